"""Several aspects of an item in one call: a prompt that holds the item once, a reply that is read aspect by aspect.

What an item is asked on several aspects by judges that differ in nothing but aspect, scale, definition, criteria and
steps costs a call for each of them; here it costs one.  The ratings are not those of the judges asked alone: what is
said on one aspect stands in view of the next.  Where a judge has several criteria, its first goes with the others'
first, its second with their second; an aspect that is left over is asked for by the judge's own prompt.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, islice

from core.errors import UsageError
from core.judging.base import CallEstimate, OnProgress
from core.judging.both_orders import NO_TEXT, has_texts, orders_of, verdict_of_both
from core.judging.first_replies import FIRST_RATINGS
from core.judging.llm import CALLS_PER_CHUNK, CHARACTERS_PER_TOKEN, LLMJudge
from core.judging.parse_aspects import AspectReading, read_aspects
from core.judging.render import (
    AspectBlock,
    OutputForm,
    shortened_parts,
    shown_item,
    together_messages,
    together_prompt,
)
from core.judging.replies import reading_of, said, total_usage, unread_because, verdict_of
from core.judging.styles import MOST_TOKENS, REPLY_TOKENS, SCHEMAS, Place, Sampling
from core.providers.base import AsyncProvider, Completion, Message, Reply, Request
from core.records import Criteria, Item, Task, Unscored, Usage, Verdict
from core.verdicts import Scores, Verdicts, mean_verdict

Requests = Iterator[Sequence[Request]]

HEADING_TOKENS = 12
"""Typical length of the heading of an aspect in a reply."""


@dataclass(frozen=True)
class AspectJudge:
    """What a judge of one aspect asks: its task, its criteria (several are averaged), and how it asks."""

    task: Task
    criteria: tuple[Criteria, ...]
    sampling: Sampling


@dataclass(frozen=True, slots=True)
class _Cell:
    """An item, the aspects that are asked for in one call (their places), by which of their criteria, by how many."""

    item: Item
    aspects: tuple[int, ...]
    round: int
    n_requests: int


@dataclass(frozen=True)
class Together:
    """The judges of several aspects, asked in one call by the model behind `llm`."""

    llm: LLMJudge
    aspects: tuple[AspectJudge, ...]

    @property
    def calls_an_item(self) -> int:
        """Calls about an item: as many as the judge with the most criteria makes."""
        return max(len(each.criteria) for each in self.aspects)

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Where the samples of a call are asked for."""
        how = self.aspects[0].sampling
        return tuple(
            Place(together_prompt(place.form, structured=how.structured), place.form, place.sample, "")
            for place in how.places
        )

    def score(
        self, items: Sequence[Item], wanted: Sequence[Sequence[int]], *, on_progress: OnProgress | None = None
    ) -> tuple[Scores, ...]:
        """Scores of each aspect on those of `items` that it is wanted on; `wanted` holds the aspects of each item.

        Raises as `LLMJudge.score`.
        """
        rows, usage, done = self._empty(), Usage(), 0
        for cells, requests in self._chunks(items, wanted):
            asked = [cell.aspects for cell in cells for _ in range(cell.n_requests)]

            def arrived(index: int, reply: Reply, asked: Sequence[tuple[int, ...]] = asked) -> None:
                nonlocal done
                self._note(reply, [self.aspects[place].task for place in asked[index]])
                done += 1
                if on_progress is not None and done % len(self.places) == 0:
                    on_progress(done // len(self.places), len(items) * self.calls_an_item)

            usage += self._read(cells, self.llm.provider.complete(requests, on_reply=arrived), rows)
        return self._scores(items, wanted, rows, usage)

    async def score_async(self, items: Sequence[Item], wanted: Sequence[Sequence[int]]) -> tuple[Scores, ...]:
        """As `score`, in the caller's event loop.  UsageError when the provider cannot be awaited."""
        rows, usage, provider = self._empty(), Usage(), self.llm.provider
        if not isinstance(provider, AsyncProvider):
            raise UsageError(f"The replies of {self.llm.spec} cannot be awaited; score in a thread.")
        for cells, requests in self._chunks(items, wanted):
            usage += self._read(cells, await provider.complete_async(requests), rows)
        return self._scores(items, wanted, rows, usage)

    def requests(self, items: Sequence[Item], wanted: Sequence[Sequence[int]]) -> Requests:
        """What `score` asks for, some at a time."""
        return (requests for _, requests in self._chunks(items, wanted))

    def estimate(self, items: Sequence[Item], wanted: Sequence[Sequence[int]]) -> CallEstimate:
        """Calls, tokens by length and the price where known, as `LLMJudge.estimate`."""
        characters = completion = calls = 0
        for cells, requests in self._chunks(items, wanted):
            calls += len(cells)
            characters += sum(len(message.content) for request in requests for message in request.messages)
            for cell in cells:
                forms = [self.places[k % len(self.places)].form for k in range(cell.n_requests)]
                completion += len(cell.aspects) * sum(REPLY_TOKENS[form] + HEADING_TOKENS for form in forms)
        tokens = characters // CHARACTERS_PER_TOKEN
        return CallEstimate(calls, tokens, completion, self.llm.cost_of(tokens, completion))

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────

    def _chunks(
        self, items: Iterable[Item], wanted: Sequence[Sequence[int]]
    ) -> Iterator[tuple[list[_Cell], list[Request]]]:
        """What is asked about every item, item by item; nothing is asked about no text, or on no aspect."""
        cells: list[_Cell] = []
        requests: list[Request] = []
        for item, places in zip(items, wanted, strict=True):
            for k in range(self.calls_an_item):
                asked = tuple(place for place in places if k < len(self.aspects[place].criteria))
                if not asked:
                    continue
                samples = self._samples(item, asked, k)
                cells.append(_Cell(item, asked, k, len(samples)))
                requests += samples
            if len(requests) >= CALLS_PER_CHUNK:
                yield cells, requests
                cells, requests = [], []
        if cells:
            yield cells, requests

    def _samples(self, item: Item, asked: tuple[int, ...], k: int) -> list[Request]:
        first = self.aspects[asked[0]]
        if not has_texts(first.task, item):
            return []
        if len(asked) == 1:
            alone = self.llm.with_sampling(first.sampling)
            return list(chain.from_iterable(alone.requests(first.task, [item], [first.criteria[k]])))
        tasks = [self.aspects[place].task for place in asked]

        def reads(reply: Completion) -> bool:
            return all(each.reading.value is not None for each in read_aspects(reply, tasks))

        return [each for way in orders_of(first.task, item) for each in self._of_order(way, asked, k, reads)]

    def _of_order(
        self, item: Item, asked: tuple[int, ...], k: int, reads: Callable[[Completion], bool]
    ) -> Iterator[Request]:
        how, ways = self.aspects[0].sampling, [self.aspects[place] for place in asked]
        blocks = [AspectBlock(way.task, way.criteria[k].text, way.sampling.steps) for way in ways]
        most = min(MOST_TOKENS, sum(way.sampling.max_tokens + HEADING_TOKENS for way in ways))
        messages: Mapping[str, tuple[Message, ...]] = {
            prompt: together_messages(blocks, shown_item(item, references=how.references), prompt, how.persona)
            for prompt in dict.fromkeys(place.prompt for place in self.places)
        }
        for place in self.places:
            schema = _schema(place.form, len(asked)) if how.structured else ""
            told = {"top_p": how.top_p, "sample": place.sample, "json_schema": schema}
            yield self.llm.request(messages[place.prompt], how.temperature, most, reads, **told)

    # ── replies ──────────────────────────────────────────────────────────────────────────────────────────────

    def _empty(self) -> list[list[list[Verdict]]]:
        """For each aspect and each of its criteria the verdicts, none yet."""
        return [[[] for _ in each.criteria] for each in self.aspects]

    def _note(self, reply: Reply, tasks: Sequence[Task]) -> None:
        """Look whether the first replies can be read at all, on any aspect."""
        if not self.llm.first.settled:
            problems = [unread_because(reading) for reading, _ in _readings(reply, tasks)]
            self.llm.first.note("" if "" in problems else problems[0], FIRST_RATINGS, said(reply))

    def _read(self, cells: Sequence[_Cell], replies: Sequence[Reply], rows: Sequence[Sequence[list[Verdict]]]) -> Usage:
        """Add the verdicts of each cell to those of its aspects; what the replies cost."""
        left = iter(replies)
        for cell in cells:
            own = list(islice(left, cell.n_requests))
            for place, verdict in zip(cell.aspects, self._verdicts(cell, own), strict=True):
                rows[place][cell.round].append(verdict)
        self.llm.note_sent(replies)
        return total_usage(replies)

    def _verdicts(self, cell: _Cell, replies: Sequence[Reply]) -> list[Verdict]:
        item, tasks = cell.item, [self.aspects[place].task for place in cell.aspects]
        if not replies:
            return [Unscored(item.item_id, "missing input", NO_TEXT) for _ in tasks]
        n = len(replies) // len(orders_of(tasks[0], item))
        by_order = [self._of_replies(item, tasks, replies[k : k + n]) for k in range(0, len(replies), n)]
        if len(by_order) == 1:
            return by_order[0]
        pairs = zip(*by_order, tasks, strict=True)
        return [verdict_of_both(straight, turned, task.scale) for straight, turned, task in pairs]

    def _of_replies(self, item: Item, tasks: Sequence[Task], replies: Sequence[Reply]) -> list[Verdict]:
        """A verdict on each aspect: the mean of the replies in which it could be read."""
        notes = shortened_parts(item)
        if len(tasks) == 1:
            return [verdict_of(item.item_id, replies, tasks[0], notes=notes)]
        read = [_readings(reply, tasks) for reply in replies]
        raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
        verdicts = []
        for own in zip(*read, strict=True):
            words = next((each.words for each in own if each.reading.value is not None), "")
            explanation = "\n".join([words, *notes]).strip()
            readings = [each.reading for each in own]
            verdicts.append(mean_verdict(item.item_id, readings, explanation=explanation, raw=raw))
        return verdicts

    def _scores(
        self,
        items: Sequence[Item],
        wanted: Sequence[Sequence[int]],
        rows: Sequence[Sequence[list[Verdict]]],
        usage: Usage,
    ) -> tuple[Scores, ...]:
        """What each aspect comes to; the usage of all calls stands with the first, since none is of one aspect."""
        return tuple(
            Scores.of(
                [item for item, places in zip(items, wanted, strict=True) if place in places],
                judge.criteria,
                [Verdicts(row) for row in rows[place]],
                usage if place == 0 else Usage(),
                explain=True,
            )
            for place, judge in enumerate(self.aspects)
        )


def _readings(reply: Reply, tasks: Sequence[Task]) -> tuple[AspectReading, ...]:
    """What a reply gives each of `tasks`; one that was asked for alone is read as a reply on nothing else."""
    return read_aspects(reply, tasks) if len(tasks) > 1 else (AspectReading(reading_of(reply, tasks[0])),)


@cache
def _schema(form: OutputForm, n_aspects: int) -> str:
    """The JSON schema of a reply with the object of `form` for each aspect, in their order."""
    fields = {f"aspect_{number}": json.loads(SCHEMAS[form]) for number in range(1, n_aspects + 1)}
    return json.dumps({"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False})
