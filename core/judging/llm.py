"""The LLM judge, from prompt to score: one request a sample, each reply read into a rating, their mean the verdict.

The words of the prompts are made in `render`, a rating is read out of a reply in `parse`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from core.errors import UsageError
from core.judging.base import CallEstimate, DraftBatch, Drafted, DraftRequest, Judge, OnProgress, RefineRequest
from core.judging.parse import read_rating
from core.judging.render import (
    ScoreFrame,
    draft_messages,
    refine_messages,
    score_frame,
    shortened_parts,
    steps_messages,
)
from core.judging.styles import MOST_STEPS, REPLY_TOKENS, Sampling
from core.judging.weighted import LOGPROBS, require_weightable, weighted_rating, weights_in_words
from core.providers.base import AsyncProvider, Completion, Failure, Message, Provider, Reply, Request
from core.records import Criteria, Item, Provenance, Scored, Task, Unscored, Usage, Verdict
from core.verdicts import Reading, Scores, mean_verdict

CHARACTERS_PER_TOKEN = 4
CHARACTERS_PER_WORD = 6
CALLS_PER_CHUNK = 2048
"""Calls rendered and in hand at once: enough to keep an endpoint busy, little enough to hold in memory."""

STEPS_TOKENS = 512
"""Longest evaluation steps that the model may write."""

CostOf = Callable[[int, int], float]
"""(prompt tokens, completion tokens) → dollars."""


@dataclass(frozen=True, slots=True)
class _Cell:
    """An item beside one of the criteria (its position), and how many samples are asked for."""

    column: int
    item: Item
    n_requests: int


class LLMJudge(Judge):
    """Judges with the model `model` behind `provider`.  `spec` is what `make_judge` made it from.

    `n_unweighted` counts, over all calls of `score`, the replies of a weighted style that came without usable
    probabilities, so that the stated rating counts instead.
    """

    spec: str = ""

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
        self.spec = spec
        self.sampling = sampling or Sampling()
        self._cost_of = cost_of
        self.n_unweighted = 0

    @property
    def is_llm(self) -> bool:
        return not self.spec.startswith("scripted")

    @property
    def notice(self) -> str:
        if self.spec == "scripted:newsroom":
            return "This is the simulated reader of the demo: a program of a few rules, no language model."
        if not self.is_llm:
            return "This is the scripted stand-in for tests and demos: no language model, its scores mean nothing."
        return f"Scores come from the language model {self.model} at {self.provider.endpoint}."

    # ── scoring ──────────────────────────────────────────────────────────────────────────────────────────────

    def score(
        self,
        task: Task,
        items: Sequence[Item],
        criteria: Sequence[Criteria],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Scores:
        """Scores on the task's scale; requests go out item by item, so that criteria share each item's prefix.

        Raises `ProviderError` when going on is pointless, UsageError for a weighted style on a scale that has no whole
        ratings, and whatever `on_progress` raises; with a reply cache nothing that had arrived by then is asked for
        again.
        """
        verdicts: list[list[Verdict]] = [[] for _ in criteria]
        usage, samples, n_replies = Usage(), self.sampling.samples, 0

        def arrived(_index: int = 0, _reply: Reply | None = None) -> None:
            nonlocal n_replies
            n_replies += 1
            if on_progress is not None and n_replies % samples == 0:
                on_progress(n_replies // samples, len(items) * len(criteria))

        for cells, requests in self._chunks(task, items, criteria):
            replies = self.provider.complete(requests, on_reply=arrived)
            usage += self._read(task, cells, replies, verdicts)
            for _ in range(len(cells) * samples - len(requests)):  # for items that cannot be asked about
                arrived()
        return Scores.of(items, criteria, verdicts, usage, explain=explain)

    @property
    def awaits(self) -> bool:
        """Whether `score_async` awaits the endpoint (else it has no way to)."""
        return isinstance(self.provider, AsyncProvider)

    async def score_async(
        self, task: Task, items: Sequence[Item], criteria: Sequence[Criteria], *, explain: bool = False
    ) -> Scores:
        """As `score`, in the caller's event loop.  UsageError when the provider cannot be awaited (see `awaits`)."""
        provider = self.provider
        if not isinstance(provider, AsyncProvider):
            raise UsageError(f"The replies of {self.spec} cannot be awaited; score in a thread.")
        verdicts: list[list[Verdict]] = [[] for _ in criteria]
        usage = Usage()
        for cells, requests in self._chunks(task, items, criteria):
            usage += self._read(task, cells, await provider.complete_async(requests), verdicts)
        return Scores.of(items, criteria, verdicts, usage, explain=explain)

    def _chunks(
        self, task: Task, items: Sequence[Item], criteria: Sequence[Criteria]
    ) -> Iterator[tuple[list[_Cell], list[Request]]]:
        """Every item with all criteria, item by item, and what is asked for them; nothing is asked about no text."""
        self._check(task)
        cells: list[_Cell] = []
        requests: list[Request] = []
        for item in items:
            frames = {prompt: self._frame(task, item, prompt) for prompt in self.sampling.prompts}
            for column, each in enumerate(criteria):
                samples = self._samples(frames, each.text) if item.target.strip() else []
                cells.append(_Cell(column, item, len(samples)))
                requests += samples
            if len(requests) >= CALLS_PER_CHUNK:
                yield cells, requests
                cells, requests = [], []
        if cells:
            yield cells, requests

    def prompts(self, task: Task, item: Item, criteria: Criteria) -> tuple[tuple[Message, ...], ...]:
        """What is asked for one score, each prompt once however often it is sampled; () for an item without a text."""
        asked = [request.messages for _, requests in self._chunks(task, [item], [criteria]) for request in requests]
        return tuple(dict.fromkeys(asked))

    def _check(self, task: Task) -> None:
        if self.sampling.weighted:
            require_weightable(task.scale)

    def _frame(self, task: Task, item: Item, prompt: str) -> ScoreFrame:
        return score_frame(task, item, prompt, steps=self.sampling.steps, persona=self.sampling.persona)

    def _samples(self, frames: Mapping[str, ScoreFrame], criteria: str) -> list[Request]:
        """The samples of one score."""
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

    def _read(
        self, task: Task, cells: Sequence[_Cell], replies: Sequence[Reply], verdicts: Sequence[list[Verdict]]
    ) -> Usage:
        """Add each cell's verdict, out of its own replies, to those of its criteria; what the replies cost."""
        left = iter(replies)
        for cell in cells:
            own, item_id = list(islice(left, cell.n_requests)), cell.item.item_id
            verdict: Verdict = Unscored(item_id, "missing input", "The text to rate is empty.")
            if own:
                notes = shortened_parts(cell.item)
                verdict = verdict_of(item_id, own, task, weighted=self.sampling.weighted, notes=notes)
            verdicts[cell.column].append(verdict)
            self.n_unweighted += verdict.n_unweighted if isinstance(verdict, Scored) else 0
        return total_usage(replies)

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Criteria written from each request's exemplars."""
        prompt = self.sampling.draft_prompt
        return self._induce(task, requests, [draft_messages(task, each.exemplars, prompt) for each in requests])

    def refine(self, task: Task, requests: Sequence[RefineRequest]) -> DraftBatch:
        """Each request's criteria, improved on its misaligned items."""
        prompt = self.sampling.refine_prompt
        messages = [
            refine_messages(task, each.criteria.text, each.misaligned, prompt, operations=each.operations)
            for each in requests
        ]
        return self._induce(task, requests, messages)

    def _induce(
        self,
        task: Task,
        requests: Sequence[DraftRequest | RefineRequest],
        messages: Sequence[tuple[Message, ...]],
    ) -> DraftBatch:
        replies = self.provider.complete(
            [
                Request(self.model, prompt, r.temperature, r.max_tokens, seed=r.seed, sample=r.provenance.sample)
                for r, prompt in zip(requests, messages, strict=True)
            ]
        )
        drafted = tuple(
            drafted_from(reply, task.aspect, request.provenance)
            for reply, request in zip(replies, requests, strict=True)
        )
        return DraftBatch(drafted, len(requests), total_usage(replies))

    def write_steps(self, task: Task, criteria: str = "") -> WrittenSteps:
        """Evaluation steps that lead from an item to its number, written once by the model (auto-CoT; G-Eval).

        From the task and the criteria alone, at temperature 0; to be shown, edited and kept, then put into force as
        `Sampling.steps`.  A reply that cannot be used gives "" with the problem in words; ProviderError as `score`.
        """
        replies = self.provider.complete([Request(self.model, steps_messages(task, criteria), 0.0, STEPS_TOKENS)])
        text, problem = _written(replies[0], task.aspect)
        if len(text) > MOST_STEPS:
            text, problem = "", f"The steps were {len(text):,} characters long; {MOST_STEPS:,} are the most."
        return WrittenSteps(text, problem, total_usage(replies))

    # ── the rest of the protocol ─────────────────────────────────────────────────────────────────────────────

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
            length = sum(
                sum(len(message.content) for message in self._frame(task, item, prompt).messages(criteria))
                for item in judged
            )
            characters += length * samples
            completion += len(judged) * samples * REPLY_TOKENS[form]
        tokens = characters // CHARACTERS_PER_TOKEN
        return CallEstimate(len(items), tokens, completion, self.cost_of(tokens, completion))

    def cost_of(self, prompt_tokens: int, completion_tokens: int) -> float | None:
        """Dollars for so many tokens, None where the model's price is unknown."""
        return None if self._cost_of is None else self._cost_of(prompt_tokens, completion_tokens)

    def with_sampling(self, sampling: Sampling) -> LLMJudge:
        """The same model asked in another way, over the same connections; what the endpoint can do stays known."""
        return LLMJudge(self.provider, self.model, spec=self.spec, sampling=sampling, cost_of=self._cost_of)

    def as_state(self) -> Mapping[str, Any]:
        """What `judging.registry.restore_judge` needs; the key is not among it."""
        return {"spec": self.spec, "model": self.model, "sampling": self.sampling.as_state()}

    def close(self) -> None:
        self.provider.close()


# ── replies → verdict ────────────────────────────────────────────────────────────────────────────────────────


def verdict_of(
    item_id: str, replies: Sequence[Reply], task: Task, *, weighted: bool = False, notes: Sequence[str] = ()
) -> Verdict:
    """The mean of the readable replies, or Unscored with the reason of the first that was not.

    With `weighted` each readable reply counts with its probability-weighted score, and with its read rating where it
    came without probabilities; the explanation says which.  `notes` are put after it.
    """
    readings = [_read(reply, task) for reply in replies]
    raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    read = [
        (reply, reading)
        for reply, reading in zip(replies, readings, strict=True)
        if isinstance(reply, Completion) and reading.value is not None
    ]
    unread = [reading for reading in readings if reading.value is None]
    weights = [weighted_rating(reply, reading, task.scale) if weighted else None for reply, reading in read]
    counted = [Reading(w.value) if w else reading for w, (_, reading) in zip(weights, read, strict=True)]
    lines = [_reasons(reply.text) for reply, _ in read[:1]]
    if weighted:
        stated = [reading.value for _, reading in read if reading.value is not None]
        lines += weights_in_words(weights, stated, task.scale)
    verdict = mean_verdict(item_id, [*counted, *unread], explanation="\n".join([*lines, *notes]), raw=raw)
    if weighted and isinstance(verdict, Scored):
        return replace(verdict, n_unweighted=weights.count(None))
    return verdict


def _read(reply: Reply, task: Task) -> Reading:
    if isinstance(reply, Failure):
        return Reading(None, "provider error", detail=reply.message)
    reading = read_rating(reply.text, task.scale, task.aspect, reply.finish)
    if reading.reason == "out of range":
        return replace(reading, detail=f"The reply states a number outside {task.scale}.")
    return reading


def _reasons(reply: str) -> str:
    """What a reply gives for its rating: the words of a JSON reply's reasons, else the whole of it."""
    try:
        fields = json.loads(reply)
    except (ValueError, RecursionError):
        return reply.strip()
    reasons = [fields.get(name) for name in ("reasons", "analysis")] if isinstance(fields, dict) else []
    return next((words.strip() for words in reasons if isinstance(words, str) and words.strip()), reply.strip())


def total_usage(replies: Sequence[Reply]) -> Usage:
    """The usage of all completions among `replies`."""
    return sum((reply.usage for reply in replies if isinstance(reply, Completion)), Usage())


# ── what a model writes ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class WrittenSteps:
    """Evaluation steps as the model wrote them, or "" with the reason in words; and what asking cost."""

    text: str
    problem: str = ""
    usage: Usage = field(default_factory=Usage)


_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```\w*\n(?P<inside>.*?)\n?```\Z", re.DOTALL)
_TITLES = ("criteria", "scoring criteria", "steps", "evaluation steps")


def drafted_from(reply: Reply, aspect: str, provenance: Provenance) -> Drafted:
    """The criteria in a reply, without the wrapping that models add against instructions."""
    text, problem = _written(reply, aspect)
    return Drafted(None, problem) if problem else Drafted(Criteria(text, aspect, provenance))


def _written(reply: Reply, aspect: str) -> tuple[str, str]:
    """(text, "") or ("", why there is none)."""
    if isinstance(reply, Failure):
        return "", reply.message
    if reply.finish == "length":
        return "", "The reply was cut off at the token limit."
    if reply.finish == "refusal":
        return "", "The model refused."
    text = unwrapped(reply.text, aspect)
    return (text, "") if text else ("", "The reply was empty.")


def unwrapped(text: str, aspect: str) -> str:
    """`text` without thoughts, a code fence around it, or a first line that only announces what follows."""
    text = _THOUGHT.sub("", text).strip()
    if fenced := _FENCE.match(text):
        text = fenced["inside"].strip()
    first, _, rest = text.partition("\n")
    title = re.sub(r"[#*_:\s]+", " ", first).strip().lower()
    announces = first.rstrip("* ").endswith(":") and any(word in title for word in ("criteria", "here ", "steps"))
    if rest.strip() and (announces or title in (f"criteria for {aspect.lower()}", *_TITLES)):
        text = rest.strip()
    return text
