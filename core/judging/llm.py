"""The LLM judge: prompts out, readings in, over any provider."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from core.errors import UsageError
from core.judging.base import CallEstimate, DraftBatch, DraftRequest, OnProgress, RefineRequest
from core.judging.render import (
    ScoreFrame,
    draft_messages,
    refine_messages,
    score_frame,
    shortened_parts,
    steps_messages,
)
from core.judging.sampling import REPLY_TOKENS, Sampling
from core.judging.verdicts import total_usage, verdict_of
from core.judging.weighted import LOGPROBS, require_weightable
from core.judging.written import WrittenSteps, drafted_from, steps_from
from core.providers.base import AsyncProvider, Failure, Message, Provider, Reply, Request
from core.records import Criteria, Item, Scored, ScoreMatrix, Task, Unscored, Usage, Verdict

__all__ = ["LLMJudge", "Sampling"]

CHARACTERS_PER_TOKEN = 4
CHARACTERS_PER_WORD = 6
CALLS_PER_CHUNK = 2048
"""Calls rendered and in hand at once: enough to keep an endpoint busy, little enough to hold in memory."""

STEPS_TOKENS = 512
"""Longest evaluation steps that the model may write."""

CostOf = Callable[[int, int], float]
"""(prompt tokens, completion tokens) → dollars."""


class LLMJudge:
    """Judges with the model `model` behind `provider`.  `spec` is what `make_judge` made it from.

    `n_unweighted` counts, over all calls of `score`, the replies of a weighted style that came without usable
    probabilities, so that the stated rating counts instead.
    """

    def __init__(
        self,
        provider: Provider,
        model: str,
        *,
        spec: str,
        sampling: Sampling | None = None,
        cost_of: CostOf | None = None,
    ) -> None:
        self.provider = provider
        self.model = model
        self.sampling = sampling or Sampling()
        self._spec = spec
        self._cost_of = cost_of
        self.n_unweighted = 0

    @property
    def spec(self) -> str:
        return self._spec

    @property
    def is_llm(self) -> bool:
        return not self._spec.startswith("scripted")

    @property
    def notice(self) -> str:
        if not self.is_llm:
            return "This is the scripted stand-in for tests and demos: no language model, its scores mean nothing."
        return f"Scores come from the language model {self.model} at {self.provider.endpoint}."

    def prepare(self, task: Task, items: Sequence[Item]) -> Self:
        """An LLM judge learns nothing beforehand: what the endpoint can do shows with the first request."""
        return self

    def score(
        self, task: Task, items: Sequence[Item], criteria: Sequence[Criteria], *, on_progress: OnProgress | None = None
    ) -> ScoreMatrix:
        """Scores on the task's scale; requests go out item by item, so that criteria share each item's prefix.

        Raises `ProviderError` when going on is pointless, UsageError for a weighted style on a scale that has no whole
        ratings, and whatever `on_progress` raises; with a reply cache nothing that had arrived by then is asked for
        again.
        """
        table = _ScoreTable(task, items, criteria)
        progress = _Progress(on_progress, len(items) * len(criteria), self.sampling.samples)
        for chunk in self._chunks(task, items, criteria):
            replies = self.provider.complete(chunk.requests, on_reply=progress.reply)
            self._enter(table, task, items, chunk, replies)
            for _ in chunk.without_input:
                progress.skipped()
        return table.matrix()

    @property
    def awaits(self) -> bool:
        """Whether `score_async` awaits the endpoint (else it has no way to)."""
        return isinstance(self.provider, AsyncProvider)

    async def score_async(self, task: Task, items: Sequence[Item], criteria: Sequence[Criteria]) -> ScoreMatrix:
        """As `score`, in the caller's event loop.  UsageError when the provider cannot be awaited (see `awaits`)."""
        provider = self.provider
        if not isinstance(provider, AsyncProvider):
            raise UsageError(f"The replies of {self.spec} cannot be awaited; score in a thread.")
        table = _ScoreTable(task, items, criteria)
        for chunk in self._chunks(task, items, criteria):
            self._enter(table, task, items, chunk, await provider.complete_async(chunk.requests))
        return table.matrix()

    def _enter(
        self, table: _ScoreTable, task: Task, items: Sequence[Item], chunk: _Chunk, replies: Sequence[Reply]
    ) -> None:
        """Read the replies to a chunk into the table."""
        table.usage += total_usage(replies)
        for number, cell in enumerate(chunk.cells):
            own = replies[number * self.sampling.samples : (number + 1) * self.sampling.samples]
            judged = verdict_of(items[cell.item].item_id, own, task, weighted=self.sampling.weighted)
            self.n_unweighted += judged.n_unweighted
            table.enter(cell, judged.verdict)
        for cell in chunk.without_input:
            table.enter(cell, Unscored(items[cell.item].item_id, "missing input", "The text to rate is empty."))

    def explain(self, task: Task, items: Sequence[Item], criteria: Criteria) -> list[Verdict]:
        """Verdicts with the model's reasons; asked again only where no reply cache holds them."""
        verdicts: dict[int, Verdict] = {}
        for chunk in self._chunks(task, items, [criteria]):
            replies = self.provider.complete(chunk.requests)
            for number, cell in enumerate(chunk.cells):
                own = replies[number * self.sampling.samples : (number + 1) * self.sampling.samples]
                item = items[cell.item]
                verdicts[cell.item] = verdict_of(
                    item.item_id, own, task, weighted=self.sampling.weighted, notes=shortened_parts(item)
                ).verdict
            for cell in chunk.without_input:
                item_id = items[cell.item].item_id
                verdicts[cell.item] = Unscored(item_id, "missing input", "The text to rate is empty.")
        return [verdicts[index] for index in range(len(items))]

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        prompt = self.sampling.draft_prompt
        return self._induce(
            task, [self._inducing(asked, draft_messages(task, asked.exemplars, prompt)) for asked in requests], requests
        )

    def refine(self, task: Task, requests: Sequence[RefineRequest]) -> DraftBatch:
        prompt = self.sampling.refine_prompt
        asked = [
            self._inducing(
                one, refine_messages(task, one.criteria.text, one.misaligned, prompt, operations=one.operations)
            )
            for one in requests
        ]
        return self._induce(task, asked, requests)

    def write_steps(self, task: Task, criteria: str = "") -> WrittenSteps:
        """Evaluation steps that lead from an item to its number, written once by the model (auto-CoT; G-Eval).

        From the task and the criteria alone, at temperature 0; to be shown, edited and kept, then put into force as
        `Sampling.steps`.  A reply that cannot be used gives "" with the problem in words; ProviderError as `score`.
        """
        request = Request(self.model, steps_messages(task, criteria), 0.0, STEPS_TOKENS)
        return steps_from(self.provider.complete([request])[0], task.aspect)

    def estimate(self, task: Task, items: Sequence[Item], criteria_words: int) -> CallEstimate:
        """Tokens by length (about 4 characters each) and the price where known: an estimate, not a bill.

        Every sample is counted with its prompt, the steps and the persona in it; an endpoint that gives several samples
        a request charges the prompt once for all of them, and comes out cheaper.
        """
        self._check(task)
        criteria = "x" * (criteria_words * CHARACTERS_PER_WORD)
        judged = [item for item in items if item.target.strip()]
        characters = completion = 0
        for prompt, form, samples in self.sampling.shares():
            asked = sum(
                sum(len(message.content) for message in self._frame(task, item, prompt).messages(criteria))
                for item in judged
            )
            characters += asked * samples
            completion += len(judged) * samples * REPLY_TOKENS[form]
        tokens = characters // CHARACTERS_PER_TOKEN
        cost = None if self._cost_of is None else self._cost_of(tokens, completion)
        return CallEstimate(len(items), tokens, completion, cost)

    def cost_of(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Dollars for so many tokens, None where the model's price is unknown."""
        return None if self._cost_of is None else self._cost_of(prompt_tokens, completion_tokens)

    def with_sampling(self, sampling: Sampling) -> LLMJudge:
        """The same model asked in another way, over the same connections; what the endpoint can do stays known."""
        return LLMJudge(self.provider, self.model, spec=self._spec, sampling=sampling, cost_of=self._cost_of)

    def as_state(self) -> Mapping[str, Any]:
        """What `judging.registry.restore_judge` needs; the key is not among it."""
        sampling = {name: getattr(self.sampling, name) for name in self.sampling.__dataclass_fields__}
        return {"spec": self._spec, "model": self.model, "sampling": sampling}

    def close(self) -> None:
        self.provider.close()

    def _chunks(self, task: Task, items: Sequence[Item], criteria: Sequence[Criteria]) -> Iterator[_Chunk]:
        self._check(task)
        chunk = _Chunk()
        for row, item in enumerate(items):
            cells = [_Cell(row, column) for column in range(len(criteria))]
            if not item.target.strip():
                chunk.without_input += cells
                continue
            frames = {prompt: self._frame(task, item, prompt) for prompt in self.sampling.prompts}
            for cell in cells:
                chunk.cells.append(cell)
                chunk.requests += self._samples(frames, criteria[cell.criteria].text)
            if len(chunk.requests) >= CALLS_PER_CHUNK:
                yield chunk
                chunk = _Chunk()
        if chunk.cells or chunk.without_input:
            yield chunk

    def _check(self, task: Task) -> None:
        if self.sampling.weighted:
            require_weightable(task.scale)

    def _frame(self, task: Task, item: Item, prompt: str) -> ScoreFrame:
        return score_frame(task, item, prompt, steps=self.sampling.steps, persona=self.sampling.persona)

    def _samples(self, frames: Mapping[str, ScoreFrame], criteria: str) -> list[Request]:
        how = self.sampling
        messages = {prompt: frame.messages(criteria) for prompt, frame in frames.items()}
        return [
            Request(
                self.model,
                messages[place.prompt],
                how.temperature,
                how.max_tokens,
                how.top_p,
                sample=place.sample,
                json_schema=place.schema,
                logprobs=LOGPROBS if how.weighted else 0,
            )
            for place in how.places
        ]

    def _inducing(self, asked: DraftRequest | RefineRequest, messages: tuple[Message, ...]) -> Request:
        sample = asked.provenance.sample
        return Request(self.model, messages, asked.temperature, asked.max_tokens, seed=asked.seed, sample=sample)

    def _induce(
        self, task: Task, requests: Sequence[Request], asked: Sequence[DraftRequest | RefineRequest]
    ) -> DraftBatch:
        replies = self.provider.complete(requests)
        drafted = tuple(
            drafted_from(reply, task.aspect, one.provenance) for reply, one in zip(replies, asked, strict=True)
        )
        return DraftBatch(drafted, len(requests), total_usage(replies))


@dataclass(frozen=True, slots=True)
class _Cell:
    """A place in the score matrix: positions of the item and of the criteria."""

    item: int
    criteria: int


@dataclass
class _Chunk:
    """Cells with their requests (samples of one cell next to each other), and cells that cannot be asked."""

    cells: list[_Cell] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    without_input: list[_Cell] = field(default_factory=list)


class _ScoreTable:
    """Collects verdicts into a `ScoreMatrix`."""

    def __init__(self, task: Task, items: Sequence[Item], criteria: Sequence[Criteria]) -> None:
        self._item_ids = tuple(item.item_id for item in items)
        self._criteria_ids = tuple(one.criteria_id for one in criteria)
        self._values = np.full((len(criteria), len(items)), np.nan)
        self._unscored: list[list[tuple[int, Unscored]]] = [[] for _ in criteria]
        self.usage = Usage()

    def enter(self, cell: _Cell, verdict: Verdict) -> None:
        if isinstance(verdict, Scored):
            self._values[cell.criteria, cell.item] = verdict.value
        else:
            self._unscored[cell.criteria].append((cell.item, verdict))

    def matrix(self) -> ScoreMatrix:
        unscored = {
            criteria_id: tuple(verdict for _, verdict in sorted(entries, key=lambda entry: entry[0]))
            for criteria_id, entries in zip(self._criteria_ids, self._unscored, strict=True)
            if entries
        }
        return ScoreMatrix(self._criteria_ids, self._item_ids, self._values, unscored, self._values.size, self.usage)


class _Progress:
    """Counts replies and tells about whole calls."""

    def __init__(self, on_progress: OnProgress | None, calls: int, samples: int) -> None:
        self._on_progress = on_progress
        self._calls = calls
        self._samples = samples
        self._replies = 0

    def reply(self, _index: int, _reply: Reply) -> None:
        self._replies += 1
        if self._on_progress is not None and self._replies % self._samples == 0:
            self._on_progress(self._replies // self._samples, self._calls)

    def skipped(self) -> None:
        for _ in range(self._samples):
            self.reply(0, _SKIPPED)


_SKIPPED = Failure("Not asked: the text to rate is empty.")
