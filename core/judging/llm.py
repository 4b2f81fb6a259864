"""The LLM judge, from prompt to score: one request a sample, each reply read into a rating, their mean the verdict.

The words of the prompts are made in `render`, a rating is read out of a reply in `parse`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, TypeVar

from core.errors import UsageError
from core.judging.base import (
    CallEstimate,
    DraftBatch,
    DraftRequest,
    Exemplar,
    Judge,
    Misaligned,
    OnProgress,
    RefineRequest,
)
from core.judging.both_orders import NO_TEXT, has_texts, orders_of, verdict_of_both
from core.judging.first_replies import FIRST_DRAFTS, FIRST_RATINGS, FirstReplies
from core.judging.render import (
    ScoreFrame,
    definition_messages,
    draft_messages,
    refine_messages,
    score_frame,
    shortened_parts,
    shown_item,
    steps_messages,
)
from core.judging.replies import (
    drafted_from,
    reading_of,
    said,
    sent_otherwise,
    total_usage,
    unread_because,
    verdict_of,
    written,
)
from core.judging.styles import MOST_STEPS, REPLY_TOKENS, Sampling
from core.judging.weighted import LOGPROBS, require_askable
from core.providers.base import AsyncProvider, Completion, Message, Provider, Reply, Request
from core.records import Criteria, Item, Scored, Task, Unscored, Usage, Verdict
from core.verdicts import Scores

CHARACTERS_PER_TOKEN = 4
CHARACTERS_PER_WORD = 6
CALLS_PER_CHUNK = 2048
"""Calls rendered and in hand at once: enough to keep an endpoint busy, little enough to hold in memory."""

STEPS_TOKENS = 512
"""Longest evaluation steps that the model may write."""
DEFINITION_TOKENS, MOST_DEFINITION = 256, 2_000
"""Longest definition of an aspect that it may write, and the longest that is kept, in characters."""

NO_REFERENCES = "The item has no reference, and this judge was made with references."
Example = TypeVar("Example", Exemplar, Misaligned)

Requests = Iterator[Sequence[Request]]
CostOf = Callable[[int, int], float]
"""(prompt tokens, completion tokens) → dollars."""


@dataclass(frozen=True, slots=True)
class Cell:
    """An item beside one of the criteria (its position), and how many samples are asked for."""

    column: int
    item: Item
    n_requests: int


class LLMJudge(Judge):
    """Judges with the model `model` behind `provider`.  `spec` is what `make_judge` made it from.

    `n_unweighted` counts, over all calls of `score`, the replies of a weighted style that came without usable
    probabilities, so that the stated rating counts instead.  `spent` is what its scores and drafts have cost so far,
    `refused_before` what the endpoint did not take when the judge was calibrated.
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
        effort: str = "",
        extra: str = "",
        room: int = 0,
    ) -> None:
        self.provider = provider
        self.model = model
        self.spec = spec
        self.sampling = sampling or Sampling()
        self.effort = effort
        self.extra = extra
        self.room = room
        self.refused_before = frozenset[str]()
        self._cost_of = cost_of
        self.n_unweighted = 0
        self.first = FirstReplies(f"{model} at {provider.endpoint}")
        self._without: set[str] = set()
        self.spent = Usage()

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
        usage, samples, n_replies = Usage(), self.sampling.samples * (2 if task.kind == "pair" else 1), 0

        def arrived(_index: int = 0, reply: Reply | None = None) -> None:
            nonlocal n_replies
            if reply is not None and not self.first.settled:
                self.first.note(unread_because(reading_of(reply, task)), FIRST_RATINGS, said(reply))
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
        self, task: Task, items: Iterable[Item], criteria: Sequence[Criteria]
    ) -> Iterator[tuple[list[Cell], list[Request]]]:
        """Every item with all criteria, item by item, and what is asked for them; nothing is asked about no text."""
        self.require_askable(task)

        def reads(reply: Completion) -> bool:
            return reading_of(reply, task).value is not None

        cells: list[Cell] = []
        requests: list[Request] = []
        for item in items:
            shown = () if self.lacking(task, item) else orders_of(task, item)
            orders = [{prompt: self._frame(task, way, prompt) for prompt in self.sampling.prompts} for way in shown]
            for column, each in enumerate(criteria):
                samples = [sample for frames in orders for sample in self._samples(frames, each.text, reads)]
                cells.append(Cell(column, item, len(samples)))
                requests += samples
            if len(requests) >= CALLS_PER_CHUNK:
                yield cells, requests
                cells, requests = [], []
        if cells:
            yield cells, requests

    def requests(self, task: Task, items: Iterable[Item], criteria: Sequence[Criteria]) -> Requests:
        """What `score` asks for, some at a time."""
        return (requests for _, requests in self._chunks(task, items, criteria))

    def prompts(self, task: Task, item: Item, criteria: Criteria) -> tuple[tuple[Message, ...], ...]:
        """What is asked for one score, each prompt once however often it is sampled; () for an item without a text."""
        asked = [request.messages for _, requests in self._chunks(task, [item], [criteria]) for request in requests]
        return tuple(dict.fromkeys(asked))

    def require_askable(self, task: Task) -> None:
        """UsageError where this judge cannot be asked about `task` in its style."""
        require_askable(self.sampling, self.spec, task.scale)

    def _frame(self, task: Task, item: Item, prompt: str) -> ScoreFrame:
        how = self.sampling
        item = shown_item(item, references=how.references)
        return score_frame(task, item, prompt, steps=how.steps, persona=how.persona)

    def lacking(self, task: Task, item: Item) -> str:
        """Why nothing is asked about an item, in words; "" for one that can be asked about."""
        if not has_texts(task, item):
            return NO_TEXT
        return NO_REFERENCES if self.sampling.references and not item.references else ""

    def _shown(self, examples: Sequence[Example]) -> list[Example]:
        """Exemplars and misaligned items as this judge sees their items."""
        references = self.sampling.references
        return [replace(each, item=shown_item(each.item, references=references)) for each in examples]

    def _samples(
        self, frames: Mapping[str, ScoreFrame], criteria: str, reads: Callable[[Completion], bool]
    ) -> list[Request]:
        """The samples of one score."""
        how = self.sampling
        messages = {prompt: frame.messages(criteria) for prompt, frame in frames.items()}
        return [
            self.request(
                messages[place.prompt],
                how.temperature,
                how.max_tokens,
                reads,
                top_p=how.top_p,
                sample=place.sample,
                json_schema=place.schema,
                logprobs=LOGPROBS if how.weighted else 0,
            )
            for place in how.places
        ]

    def request(
        self,
        messages: tuple[Message, ...],
        temperature: float | None,
        max_tokens: int,
        reads: Callable[[Completion], bool],
        **others: Any,
    ) -> Request:
        """One call to the model, told all that it is always told; its own temperature where this judge keeps that."""
        heat = None if self.sampling.temperature is None else temperature
        return Request(
            *(self.model, messages, heat, max_tokens),
            **{"effort": self.effort, "extra": self.extra, "room": self.room, "reads": reads, **others},
        )

    def _read(
        self, task: Task, cells: Sequence[Cell], replies: Sequence[Reply], verdicts: Sequence[list[Verdict]]
    ) -> Usage:
        """Add each cell's verdict, out of its own replies, to those of its criteria; what the replies cost."""
        left = iter(replies)
        for cell in cells:
            own, item_id = list(islice(left, cell.n_requests)), cell.item.item_id
            verdict: Verdict = Unscored(item_id, "missing input", self.lacking(task, cell.item))
            if own:
                verdict = self._verdict(task, cell.item, own)
            verdicts[cell.column].append(verdict)
            self.n_unweighted += verdict.n_unweighted if isinstance(verdict, Scored) else 0
        self.note_sent(replies)
        return total_usage(replies)

    def _verdict(self, task: Task, item: Item, replies: Sequence[Reply]) -> Verdict:
        """The verdict on an item out of all replies about it, order by order."""
        orders, notes = orders_of(task, item), shortened_parts(item)
        n = len(replies) // len(orders)
        weighted = self.sampling.weighted
        verdicts = [
            verdict_of(item.item_id, replies[k * n : (k + 1) * n], task, weighted=weighted, notes=notes)
            for k in range(len(orders))
        ]
        return verdicts[0] if len(verdicts) == 1 else verdict_of_both(verdicts[0], verdicts[1], task.scale)

    # ── writing ──────────────────────────────────────────────────────────────────────────────────────────────

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Criteria written from each request's exemplars."""
        prompt = self.sampling.draft_prompt
        messages = [draft_messages(task, self._shown(r.exemplars), prompt, r.max_words) for r in requests]
        return self._induce(task, requests, messages)

    def refine(self, task: Task, requests: Sequence[RefineRequest]) -> DraftBatch:
        """Each request's criteria, improved on its misaligned items."""
        prompt = self.sampling.refine_prompt
        messages = [
            refine_messages(
                task,
                r.criteria.text,
                self._shown(r.misaligned),
                prompt,
                operations=r.operations,
                max_words=r.max_words,
            )
            for r in requests
        ]
        return self._induce(task, requests, messages)

    def _induce(
        self,
        task: Task,
        requests: Sequence[DraftRequest | RefineRequest],
        messages: Sequence[tuple[Message, ...]],
    ) -> DraftBatch:
        def arrived(_index: int, reply: Reply) -> None:
            if not self.first.settled:
                self.first.note(written(reply, task.aspect)[1], FIRST_DRAFTS, said(reply))

        replies = self.provider.complete(
            [
                self.request(
                    prompt,
                    r.temperature,
                    max(r.max_tokens, self.sampling.max_tokens),
                    _says_something,
                    seed=r.seed,
                    sample=r.provenance.sample,
                )
                for r, prompt in zip(requests, messages, strict=True)
            ],
            on_reply=arrived,
        )
        self.note_sent(replies)
        drafted = tuple(
            drafted_from(reply, task.aspect, request.provenance)
            for reply, request in zip(replies, requests, strict=True)
        )
        return DraftBatch(drafted, len(requests), total_usage(replies))

    def write_steps(self, task: Task, criteria: str = "") -> Written:
        """Evaluation steps that lead from an item to its number, written once by the model (auto-CoT; G-Eval).

        From the task and the criteria alone, at temperature 0; to be shown, edited and kept, then put into force as
        `Sampling.steps`.  A reply that cannot be used gives "" with the problem in words; ProviderError as `score`.
        """
        answer = self._write(task, steps_messages(task, criteria), STEPS_TOKENS)
        if len(answer.text) > MOST_STEPS:
            long = f"The steps were {len(answer.text):,} characters long; {MOST_STEPS:,} are the most."
            return replace(answer, text="", problem=long)
        return answer

    def write_definition(self, task: Task) -> Written:
        """What the aspect means, in a sentence or two, from its name and the kind of item alone; as `write_steps`."""
        answer = self._write(task, definition_messages(task), DEFINITION_TOKENS)
        return replace(answer, text=" ".join(answer.text.split())[:MOST_DEFINITION])

    def _write(self, task: Task, messages: tuple[Message, ...], max_tokens: int) -> Written:
        replies = self.provider.complete([self.request(messages, 0.0, max_tokens, _says_something)])
        self.note_sent(replies)
        return Written(*written(replies[0], task.aspect), total_usage(replies))

    # ── the rest of the protocol ─────────────────────────────────────────────────────────────────────────────

    def estimate(self, task: Task, items: Sequence[Item], criteria_words: int) -> CallEstimate:
        """Tokens by length (about 4 characters each) and the price where known: an estimate, not a bill.

        Every sample is counted with its prompt, the steps and the persona in it; an endpoint that gives several samples
        a request charges the prompt once for all of them, and comes out cheaper.
        """
        self.require_askable(task)
        criteria = "x" * (criteria_words * CHARACTERS_PER_WORD)
        judged = [shown for item in items if not self.lacking(task, item) for shown in orders_of(task, item)]
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
        other = copy.copy(self)
        other.sampling, other.n_unweighted, other._without = sampling, 0, set()
        other.first = FirstReplies(f"{self.model} at {self.provider.endpoint}")
        return other

    def note_sent(self, replies: Sequence[Reply]) -> None:
        """Count what `replies` cost, and keep what they tell of the endpoint."""
        self.spent += total_usage(replies)
        came = [reply for reply in replies if isinstance(reply, Completion)]
        self._without.update(name for reply in came for name in reply.without)
        self.room = max([self.room, *(reply.room for reply in came)])

    @property
    def remarks(self) -> tuple[str, ...]:
        """What of the sampling the endpoint did not take, a sentence each."""
        return sent_otherwise(self._without, self.sampling)

    def as_state(self) -> Mapping[str, Any]:
        """What `judging.registry.restore_judge` needs, and what was not sent; the key is not among it."""
        state: dict[str, Any] = {"spec": self.spec, "model": self.model, "sampling": self.sampling.as_state()}
        state |= {name: value for name in ("effort", "extra", "room") if (value := getattr(self, name))}
        return state | ({"sent_without": sorted(self._without)} if self._without else {})

    def close(self) -> None:
        self.provider.close()


def _says_something(reply: Completion) -> bool:
    return not written(reply, "")[1]


@dataclass(frozen=True, slots=True)
class Written:
    """Evaluation steps or a definition as the model wrote it, or "" with the reason in words; and what asking cost."""

    text: str
    problem: str = ""
    usage: Usage = field(default_factory=Usage)
