"""The first half of a RepEval run: texts through the model, longest first, part by part, kept as files of states."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from core.errors import JobError
from core.progress import Stage
from core.records import IntArray
from core.repeval.states import Machines, StatePlan, States, collect

if TYPE_CHECKING:
    from core.projects.repeval import RepEvalRequest
    from core.projects.work import RunWork

BATCHES = 16
"""Batches of a part: what a killed worker may have to read again, about a second on a CPU, ten on a GPU."""
FRESHLY = (
    "was changed since this run began, so that old and new states would be mixed. Start the run anew: the states of "
    "the model as it is now are kept apart."
)


@dataclass(frozen=True, slots=True)
class ReadPart:
    """What one part of so many texts took; those that were kept from before took nothing."""

    texts: int
    cached: int
    tokens: int
    seconds: float
    n_halved: int


@dataclass(frozen=True)
class ReadSoFar:
    """The parts that were read, in order, by the model `identity`."""

    identity: str
    parts: tuple[ReadPart, ...] = ()


class Reading:
    """Texts through the model, longest first, part by part."""

    def __init__(self, work: RunWork, request: RepEvalRequest) -> None:
        self._work = work
        self._machines = Machines(request.model, work.settings.ray, work.settings.remote_code)
        self._request = request
        self._opened: StatePlan | None = None
        self._states: States | None = None
        self._so_far = ReadSoFar("")
        self._total = 0

    def publish(self, phase: str, message: str) -> None:
        self._work.progress.publish(Stage(phase, message, self._total, self._total))

    def read_all(self) -> None:
        """Read every part that no earlier attempt has read.  JobError where the model was changed meanwhile."""
        self.publish("plan", "counting tokens")
        plan = self._plan()
        identity = plan.facts.fingerprint
        self._so_far = self._work.kept("states read", ReadSoFar) or ReadSoFar(identity)
        if self._so_far.identity != identity:
            raise JobError(f"The model {plan.facts.name} {FRESHLY}")
        parts, done = self._parts(plan), 0
        total = sum(rows.size for rows in parts)
        for number, rows in enumerate(parts):
            self._work.progress.publish(Stage("read", self._pace(plan, parts, number), done, total))
            if number >= len(self._so_far.parts):
                part = self._read(plan, rows)
                self._so_far = ReadSoFar(identity, (*self._so_far.parts, part))
                self._work.keep("states read", self._so_far)
            done += rows.size
        self._total = total

    def states(self, beat: Callable[[int, int], None]) -> States:
        """The states from the files (what is not there is computed again), with the effort of the whole run."""
        if self._states is None:
            plan, parts = self._plan(), self._so_far.parts
            again = list(self._again(plan, beat))
            self._states = replace(
                collect(plan),
                cached=sum(part.cached for part in parts),
                tokens=sum(part.tokens for part in parts) + sum(tokens for tokens, _ in again),
                seconds=sum(part.seconds for part in parts) + sum(seconds for _, seconds in again),
                n_halved=max(plan.n_halved, sum(part.n_halved for part in parts)),
            )
            self._machines.release()  # the search needs the memory more
        return self._states

    def close(self) -> None:
        """Let go of the weights and the states."""
        self._machines.release()
        self._states = self._opened = None

    def _plan(self) -> StatePlan:
        if self._opened is None:
            asked = self._request
            self._opened = self._machines.plan(self._work.golden.items, asked.extraction, self._work.settings.home)
        return self._opened

    def _parts(self, plan: StatePlan) -> list[IntArray]:
        """Rows of prompts, longest first as batches are made; parts that were read stay as they were cut.

        How many texts make a part depends on the machine, and a run may be taken up again on another one.
        """
        read = dict(enumerate(part.texts for part in self._so_far.parts))
        lengths = np.array([len(ids) for ids in plan.prompts], dtype=np.intp)
        order = np.argsort(-lengths, kind="stable")
        parts: list[IntArray] = []
        start = 0
        while start < order.size:
            longest = max(int(lengths[order[start]]), 1)
            size = read.get(len(parts), BATCHES * self._machines.slots * plan.budget // longest)
            parts.append(order[start : start + max(1, size)])
            start += len(parts[-1])
        return parts

    def _read(self, plan: StatePlan, rows: IntArray) -> ReadPart:
        before, n_halved = len(rows) - int(np.isin(rows, plan.missing()).sum()), plan.n_halved
        done, tokens, seconds = before, 0, 0.0

        def look() -> None:
            self._work.progress.advance(done, 0)

        look()
        for batch in self._machines.compute(plan, rows, look):
            done, tokens, seconds = done + len(batch.rows), tokens + batch.tokens, seconds + batch.seconds
            look()
        return ReadPart(len(rows), before, tokens, seconds, plan.n_halved - n_halved)

    def _again(self, plan: StatePlan, beat: Callable[[int, int], None]) -> Iterator[tuple[int, float]]:
        for batch in self._machines.compute(plan, None, lambda: beat(0, 0)):
            beat(0, 0)
            yield batch.tokens, batch.seconds

    def _pace(self, plan: StatePlan, parts: list[IntArray], number: int) -> str:
        """Tokens a second so far and the time left at that pace."""
        where = self._machines.where(plan)
        tokens = sum(part.tokens for part in self._so_far.parts)
        seconds = sum(part.seconds for part in self._so_far.parts)
        if not seconds:
            return f"reading texts on {where}"
        left = sum(len(plan.prompts[row]) for rows in parts[number:] for row in rows) * seconds / tokens
        return f"reading texts on {where}: {tokens / seconds:,.0f} tokens/s, about {_clock(left)} left"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
