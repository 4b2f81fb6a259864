"""The judge whose model runs in this process: ratings weighed in one pass, or written like any other model's.

Weighed is the default: the probabilities of the scale's numbers in the place of the answer give the expected score for
the price of one forward pass (G-Eval, section 2).  "likelihood" asks how likely the text itself is after instructions
to write one that is good in the aspect (GPTScore; Fu et al. 2023).  Any other form is generated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from core.errors import UsageError
from core.judging.judge_protocol import CallEstimate
from core.judging.llm_judge import CHARACTERS_PER_TOKEN, LLMJudge
from core.judging.render import (
    MOST_NUMBERS,
    SCORING,
    ScoreFrame,
    plain,
    shortened,
    whole_numbers,
)
from core.judging.scoring_styles import Style
from core.providers.completions import Provider
from core.records import Item, Task

ONE_PASS = Style("score_only", weighted=True)


class LocalJudge(LLMJudge):
    """Judges with a causal language model in the process; `sampling` is `ONE_PASS` where none is given."""

    def __init__(self, provider: Provider, model: str, *, spec: str, sampling: Style | None = None) -> None:
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

    def _asked_besides(self, task: Task, item: Item) -> dict[str, Any]:
        """A weighed rating is asked for by its numbers, a likelihood by the text itself."""
        if self.sampling.weighted:
            return {"numbers": tuple(map(str, whole_numbers(task.scale)))}
        return {"continuation": _to_continue(item)} if self._reads_likelihood else {}

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
    def _reads_likelihood(self) -> bool:
        return self.sampling.form == "likelihood"


def _to_continue(item: Item) -> str:
    return plain(shortened(item.target, SCORING.target)).strip()
