"""The judge whose model runs in this process: ratings weighed in one pass, or written like any other model's.

Weighed is the default: the probabilities of the scale's numbers in the place of the answer give the expected score for
the price of one forward pass (G-Eval, section 2).  "likelihood" asks how likely the text itself is after instructions
to write one that is good in the aspect (GPTScore; Fu et al. 2023).  Any other form is generated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from core.errors import UsageError
from core.judging.base import CallEstimate
from core.judging.llm import CHARACTERS_PER_TOKEN, Cell, LLMJudge
from core.judging.render import (
    MOST_NUMBERS,
    SCORING,
    ScoreFrame,
    plain,
    shortened,
    whole_numbers,
)
from core.judging.styles import Sampling
from core.providers.base import Provider, Request
from core.records import Criteria, Item, Task

if TYPE_CHECKING:
    from core.providers.transformers_local import LocalProvider

ONE_PASS = Sampling("score_only", weighted=True)


class LocalJudge(LLMJudge):
    """Judges with a causal language model in the process; `sampling` is `ONE_PASS` where none is given."""

    def __init__(self, provider: Provider, model: str, *, spec: str, sampling: Sampling | None = None) -> None:
        super().__init__(provider, model, spec=spec, sampling=sampling or ONE_PASS, cost_of=lambda _prompt, _reply: 0.0)

    @property
    def notice(self) -> str:
        return f"Scores come from the language model {self.model}, which runs in Concord's own process."

    @property
    def on_gpu(self) -> bool:
        """Whether a model in this process runs on CUDA."""
        from core.providers.transformers_local import on_gpu

        return on_gpu()

    def require_askable(self, task: Task) -> None:
        scale = task.scale
        if self._reads_likelihood and task.kind == "pair":
            raise UsageError("A likelihood is that of one text; for pairs of texts take a form that asks for a rating.")
        if self.sampling.weighted and not whole_numbers(scale):
            raise UsageError(
                f"One pass weighs the whole numbers of a scale, {MOST_NUMBERS} at most, and this one is {scale}"
                f"{'' if scale.step is None else f' in steps of {scale.step:g}'}. Take a form with a written rating, "
                "such as rate_explain."
            )

    def _chunks(
        self, task: Task, items: Iterable[Item], criteria: Sequence[Criteria]
    ) -> Iterator[tuple[list[Cell], list[Request]]]:
        """As of any judge; a weighed rating is asked for by its numbers, a likelihood by the text itself."""
        numbers = tuple(map(str, whole_numbers(task.scale))) if self.sampling.weighted else ()
        for cells, requests in super()._chunks(task, items, criteria):
            if numbers:
                yield cells, [replace(request, logprobs=0, numbers=numbers) for request in requests]
            elif self._reads_likelihood:
                texts = [_to_continue(cell.item) for cell in cells if cell.n_requests]
                yield cells, [replace(each, continuation=text) for each, text in zip(requests, texts, strict=True)]
            else:
                yield cells, requests

    def _frame(self, task: Task, item: Item, prompt: str) -> ScoreFrame:
        return super()._frame(task, replace(item, target="") if self._reads_likelihood else item, prompt)

    def estimate(self, task: Task, items: Sequence[Item], criteria_words: int) -> CallEstimate:
        """As of any judge; a text whose likelihood is read stands after its prompt."""
        asked = super().estimate(task, items, criteria_words)
        if not self._reads_likelihood:
            return asked
        n_characters = sum(len(_to_continue(item)) for item in items)
        return replace(asked, prompt_tokens=(asked.prompt_tokens or 0) + n_characters // CHARACTERS_PER_TOKEN)

    @property
    def local(self) -> LocalProvider:
        """The model itself.  ConsentError where nobody here has let it in."""
        from core.providers.closed import ClosedProvider
        from core.providers.transformers_local import LocalProvider

        if isinstance(self.provider, ClosedProvider):
            raise self.provider.why
        assert isinstance(self.provider, LocalProvider), "its replies are not kept"
        return self.provider

    @property
    def _reads_likelihood(self) -> bool:
        return self.sampling.form == "likelihood"


def _to_continue(item: Item) -> str:
    return plain(shortened(item.target, SCORING.target)).strip()
