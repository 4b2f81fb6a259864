"""RepEval: states read part by part and kept as files, then the search, then the judge.

::

    plan     tokenise and cut every text, count tokens; weights are not read yet
    read     texts through the model, here or on a Ray cluster; their states lie in CONCORD_HOME/states
    search   every cell and k on validation, evaluated on test
    repeat   optional: the choice over seeds, the curve over numbers of pairs

A run that is taken up again reads only texts without a file, with the model it began with; what was read, the search
and what was repeated are kept with the run.  Files that are gone by then (another host, a cleared folder) are computed
again before the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from core.errors import JobError
from core.jobs.runs.work import RunWork
from core.progress import Stage
from core.projects.repeval import check_request, split_of
from core.projects.views.repeval import METHOD_NAMES, RepEvalRequest, RepEvalView
from core.records import IntArray, JudgeScores
from core.repeval import PairPoint, RepEvalResult, Stability, States, curve_over_pairs, run, scorer_of, stability
from core.repeval.states import Machines, StatePlan, collect

T = TypeVar("T")
BATCHES = 16
"""Batches of a part: what a killed worker may have to read again, about a second on a CPU, ten on a GPU."""
CURVE_SEEDS = 3
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


@dataclass(frozen=True)
class Curve:
    points: tuple[PairPoint, ...]


DOCUMENTS = {"states read": ReadSoFar, "search": RepEvalResult, "stability": Stability, "curve": Curve}
"""What a run keeps on its way, by name."""


def run_repeval(work: RunWork) -> RepEvalView:
    """Read, search, repeat, and enter the score among the judges."""
    request, golden = work.request(RepEvalRequest), work.golden
    check_request(golden, request)
    split = split_of(work.store, golden, request)
    reading = _Reading(work, request)
    settings, aspect = request.settings, request.aspect

    def beat(_done: int, _of: int) -> None:
        work.progress.advance(0, 0)  # no texts are read; only whether the run must stop

    def searched() -> RepEvalResult:
        states = reading.states(beat)
        found = run(golden, aspect, states, settings, split=split, on_progress=beat)
        return replace(found, scorer=scorer_of(golden, states, found))

    try:
        reading.read_all()
        reading.publish("search", "searching layers and tokens on the validation items")
        result = _once(work, "search", RepEvalResult, searched)
        steady, points = None, Curve(())
        if n := request.stability_seeds:
            reading.publish("repeat", f"choosing again over {n} seeds")
            steady = _once(
                *(work, "stability", Stability),
                lambda: stability(golden, aspect, reading.states(beat), settings, range(n), on_progress=beat),
            )
        if request.pairs_curve:
            reading.publish("repeat", "trying other numbers of pairs")
            seeds = range(CURVE_SEEDS)
            points = _once(
                *(work, "curve", Curve),
                lambda: Curve(
                    curve_over_pairs(golden, aspect, reading.states(beat), settings, seeds=seeds, on_progress=beat)
                ),
            )
        reading.publish("done", "done")
    finally:
        reading.close()
    judge_id = work.add_judge(judge_of(result, work.run.run_id))
    return RepEvalView(result, judge_id, steady, points.points)


def _once(work: RunWork, name: str, kind: type[T], compute: Callable[[], T]) -> T:
    """What an earlier attempt kept under `name`, else what `compute` gives, which is kept."""
    found = work.kept(name, kind)
    if found is None:
        found = compute()
        work.keep(name, found)
    return found


class _Reading:
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


def judge_of(result: RepEvalResult, run_id: str) -> JudgeScores:
    """The score of every item as a judge; it saw the labels of the training and validation items."""
    method, cells = METHOD_NAMES[result.settings.method], len(result.members)
    place = f"layer {result.chosen.layer}, token {result.chosen.token}"
    where = f"mean of the {cells} best cells, the best at {place}" if cells > 1 else place
    return JudgeScores(
        name=f"RepEval, {method} ({result.model})",
        kind="repeval",
        aspect=result.aspect,
        values=result.scores,
        seen=tuple(sorted((*result.parts.train, *result.parts.validation))),
        on_scale=False,
        note=f"Hidden states of {result.model} projected by {method}: {where}. No call, one pass of the model a text.",
        run_id=run_id,
        calls_per_item=0.0,
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
