"""The LLM judge: prompts out, readings in, over any provider."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from core.errors import JudgeError
from core.judging.base import CallEstimate, DraftBatch, Drafted, DraftRequest, OnProgress, RefineRequest
from core.judging.parse import Reading, read_rating
from core.judging.render import (
    DRAFT_PROMPT,
    OUTPUT_FORMS,
    REFINE_PROMPT,
    OutputForm,
    draft_messages,
    refine_messages,
    score_frame,
    score_prompt,
    shortened_parts,
)
from core.providers.base import Completion, Failure, Message, Provider, Reply, Request
from core.records import Criteria, Item, Provenance, Scored, ScoreMatrix, Task, Unscored, UnscoredReason, Usage, Verdict

CHARACTERS_PER_TOKEN = 4
CHARACTERS_PER_WORD = 6
CALLS_PER_CHUNK = 2048
"""Calls rendered and in hand at once: enough to keep an endpoint busy, little enough to hold in memory."""

REPLY_TOKENS: Mapping[OutputForm, int] = {"rate_explain": 90, "analyze_rate": 120, "score_only": 4}
"""Typical length of a reply, for estimates."""

CostOf = Callable[[int, int], float]
"""(prompt tokens, completion tokens) → dollars."""


@dataclass(frozen=True)
class Sampling:
    """How a score is asked for.  `samples` replies are averaged; more than one makes sense above temperature 0."""

    output: OutputForm = "rate_explain"
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 512
    prompt: str = ""
    draft_prompt: str = DRAFT_PROMPT
    refine_prompt: str = REFINE_PROMPT

    def __post_init__(self) -> None:
        if self.output not in OUTPUT_FORMS:
            raise JudgeError(f"The output form must be one of {', '.join(OUTPUT_FORMS)}, not {self.output!r}.")
        if self.samples < 1:
            raise JudgeError(f"A score needs at least 1 sample, not {self.samples}.")
        if not self.prompt:
            object.__setattr__(self, "prompt", score_prompt(self.output))


class LLMJudge:
    """Judges with the model `model` behind `provider`.  `spec` is what `make_judge` made it from."""

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

        Raises `ProviderError` when going on is pointless, and whatever `on_progress` raises; with a reply cache
        nothing that had arrived by then is asked for again.
        """
        table = _ScoreTable(task, items, criteria)
        progress = _Progress(on_progress, len(items) * len(criteria), self.sampling.samples)
        for chunk in self._chunks(task, items, criteria):
            replies = self.provider.complete(chunk.requests, on_reply=progress.reply)
            table.usage += total_usage(replies)
            for number, cell in enumerate(chunk.cells):
                own = replies[number * self.sampling.samples : (number + 1) * self.sampling.samples]
                table.enter(cell, verdict_of(items[cell.item].item_id, own, task))
            for cell in chunk.without_input:
                table.enter(cell, Unscored(items[cell.item].item_id, "missing input", "The text to rate is empty."))
                progress.skipped()
        return table.matrix()

    def explain(self, task: Task, items: Sequence[Item], criteria: Criteria) -> list[Verdict]:
        """Verdicts with the model's reasons; asked again only where no reply cache holds them."""
        verdicts: dict[int, Verdict] = {}
        for chunk in self._chunks(task, items, [criteria]):
            replies = self.provider.complete(chunk.requests)
            for number, cell in enumerate(chunk.cells):
                own = replies[number * self.sampling.samples : (number + 1) * self.sampling.samples]
                notes = shortened_parts(items[cell.item])
                verdicts[cell.item] = verdict_of(items[cell.item].item_id, own, task, notes=notes)
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
            self._inducing(one, refine_messages(task, one.criteria.text, one.misaligned, prompt)) for one in requests
        ]
        return self._induce(task, asked, requests)

    def estimate(self, task: Task, items: Sequence[Item], criteria_words: int) -> CallEstimate:
        """Tokens by length (about 4 characters each) and the price where known: an estimate, not a bill."""
        criteria = "x" * (criteria_words * CHARACTERS_PER_WORD)
        judged = [item for item in items if item.target.strip()]
        characters = sum(
            len(score_frame(task, item, self.sampling.prompt).messages(criteria)[0].content) for item in judged
        )
        prompt = characters * self.sampling.samples // CHARACTERS_PER_TOKEN
        completion = len(judged) * self.sampling.samples * REPLY_TOKENS[self.sampling.output]
        cost = None if self._cost_of is None else self._cost_of(prompt, completion)
        return CallEstimate(len(items), prompt, completion, cost)

    def as_state(self) -> Mapping[str, Any]:
        """What `judging.registry.restore_judge` needs; the key is not among it."""
        sampling = {name: getattr(self.sampling, name) for name in self.sampling.__dataclass_fields__}
        return {"spec": self._spec, "model": self.model, "sampling": sampling}

    def close(self) -> None:
        self.provider.close()

    def _chunks(self, task: Task, items: Sequence[Item], criteria: Sequence[Criteria]) -> Iterator[_Chunk]:
        chunk = _Chunk()
        for row, item in enumerate(items):
            cells = [_Cell(row, column) for column in range(len(criteria))]
            if not item.target.strip():
                chunk.without_input += cells
                continue
            frame = score_frame(task, item, self.sampling.prompt)
            for cell in cells:
                chunk.cells.append(cell)
                chunk.requests += self._samples(frame.messages(criteria[cell.criteria].text))
            if len(chunk.requests) >= CALLS_PER_CHUNK:
                yield chunk
                chunk = _Chunk()
        if chunk.cells or chunk.without_input:
            yield chunk

    def _samples(self, messages: tuple[Message, ...]) -> list[Request]:
        how = self.sampling
        return [
            Request(self.model, messages, how.temperature, how.max_tokens, how.top_p, sample=sample)
            for sample in range(how.samples)
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


def total_usage(replies: Sequence[Reply]) -> Usage:
    """The usage of all completions among `replies`."""
    return sum((reply.usage for reply in replies if isinstance(reply, Completion)), Usage())


def verdict_of(item_id: str, replies: Sequence[Reply], task: Task, *, notes: Sequence[str] = ()) -> Verdict:
    """The mean of the readable replies, or Unscored with the reason of the first that was not."""
    readings = [_read(reply, task) for reply in replies]
    values = [reading.value for reading in readings if reading.value is not None]
    raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    if not values:
        reason = readings[0].reason or "no verdict"
        return Unscored(item_id, reason, _detail(replies[0], reason, task), raw)
    first = next(text for text, reading in zip(_texts(replies), readings, strict=True) if reading.value is not None)
    return Scored(
        item_id,
        sum(values) / len(values),
        explanation="\n".join([first.strip(), *notes]),
        raw=raw,
        n_read=len(values),
        n_unread=len(readings) - len(values),
    )


def _read(reply: Reply, task: Task) -> Reading:
    if isinstance(reply, Failure):
        return Reading(None, "provider error")
    return read_rating(reply.text, task.scale, task.aspect, reply.finish)


def _texts(replies: Sequence[Reply]) -> list[str]:
    return [reply.text if isinstance(reply, Completion) else "" for reply in replies]


def _detail(reply: Reply, reason: UnscoredReason, task: Task) -> str:
    if isinstance(reply, Failure):
        return reply.message
    return f"The reply states a number outside {task.scale}." if reason == "out of range" else ""


def drafted_from(reply: Reply, aspect: str, provenance: Provenance) -> Drafted:
    """The criteria in a reply, without the wrapping that models add against instructions."""
    if isinstance(reply, Failure):
        return Drafted(None, reply.message)
    if reply.finish == "length":
        return Drafted(None, "The reply was cut off at the token limit.")
    text = unwrapped(reply.text, aspect)
    if reply.finish == "refusal":
        return Drafted(None, "The model refused.")
    if not text:
        return Drafted(None, "The reply was empty.")
    return Drafted(Criteria(text, aspect, provenance))


_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```\w*\n(?P<inside>.*?)\n?```\Z", re.DOTALL)


def unwrapped(text: str, aspect: str) -> str:
    """`text` without thoughts, a code fence around it, or a first line that only announces the criteria."""
    text = _THOUGHT.sub("", text).strip()
    if fenced := _FENCE.match(text):
        text = fenced["inside"].strip()
    first, _, rest = text.partition("\n")
    title = re.sub(r"[#*_:\s]+", " ", first).strip().lower()
    announces = first.rstrip("* ").endswith(":") and ("criteria" in title or "here " in title)
    if rest.strip() and (announces or title in (f"criteria for {aspect.lower()}", "criteria", "scoring criteria")):
        text = rest.strip()
    return text
