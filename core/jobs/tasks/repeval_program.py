"""RepEval as a durable run: states read batch by batch and kept as files, then the search, then the judge.

::

    plan     tokenise and cut every text, count tokens; weights are not read yet
    read     some batches of texts through the model, here or on a Ray cluster; their states lie in CONCORD_HOME/states
             when the step is stored
    search   every cell and k on validation, told on test
    repeat   optional: the choice over seeds, the curve over numbers of pairs

A killed worker goes on at the first step that is not stored, and within a step at the first text without a file.
Files that are gone by then (another host, a cleared folder) are computed again before the search.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.errors import JobError
from core.jobs.documents import RESULT
from core.jobs.journal import Journal
from core.jobs.tasks.convert import request_of
from core.jobs.tasks.repeval import check_request, split_of
from core.jobs.views.repeval import METHOD_NAMES, RepEvalRequest, RepEvalView
from core.records import IntArray, JudgeScores, Usage, content_digest
from core.repeval import PairPoint, RepEvalResult, Stability, States, curve_over_pairs, run, scorer_of, stability
from core.repeval.states import Machines, StatePlan, collect
from core.settings import Settings
from core.store.codec import Packed, pack, unpack
from core.store.rows import Progress, RunRow
from core.store.store import Store

BATCHES = 16
"""Batches of a step: what a killed worker may have to write down again, about a second on a CPU, ten on a GPU."""
CURVE_SEEDS = 3
FRESHLY = (
    "was changed since this run began, so that old and new states would be mixed. Start the run anew: the states of "
    "the model as it is now are kept apart."
)


@dataclass(frozen=True, slots=True)
class PlanStep:
    """Count the tokens of every text."""


@dataclass(frozen=True, slots=True)
class ReadStep:
    """Read part `number` of the plan (its texts `start` … `stop`, longest first)."""

    number: int
    start: int
    stop: int
    identity: str


@dataclass(frozen=True, slots=True)
class SearchStep:
    """Fit, choose and tell."""


@dataclass(frozen=True, slots=True)
class StabilityStep:
    seeds: int


@dataclass(frozen=True, slots=True)
class CurveStep:
    seeds: int


Step = PlanStep | ReadStep | SearchStep | StabilityStep | CurveStep


@dataclass(frozen=True)
class Planned:
    """Texts in parts: `sizes` their number and `tokens` their tokens, part by part; `identity` names the model."""

    sizes: tuple[int, ...]
    tokens: tuple[int, ...]
    identity: str
    device: str


@dataclass(frozen=True, slots=True)
class Read:
    """What one part took; texts that were kept from before took nothing."""

    texts: int
    cached: int
    tokens: int
    seconds: float
    n_halved: int


@dataclass(frozen=True)
class Curve:
    points: tuple[PairPoint, ...]


ANSWERS: dict[type, type] = {
    PlanStep: Planned,
    ReadStep: Read,
    SearchStep: RepEvalResult,
    StabilityStep: Stability,
    CurveStep: Curve,
}


class RepEvalProgram:
    """See `core.jobs.engine.Program`."""

    def __init__(self, store: Store, settings: Settings, row: RunRow) -> None:
        request = request_of(row)
        assert isinstance(request, RepEvalRequest)
        self.store, self.run, self._request, self._folder = store, row, request, settings.home
        self.golden = store.goldens.load(request.golden_id)
        check_request(self.golden, request)
        self._split = split_of(store, self.golden, request)
        self._plan: StatePlan | None = None
        self._machines = Machines(request.model, settings.ray, settings.remote_code)
        self._states: States | None = None
        self._read: list[Read] = []

    def steps(self) -> Generator[Any, Any, RepEvalView]:
        yield self._standing("plan", "counting tokens", 0, 0)
        planned: Planned = yield PlanStep()
        total, done = sum(planned.sizes), 0
        for number, size in enumerate(planned.sizes):
            yield self._standing("read", self._pace(planned, number), done, total)
            yield ReadStep(number, done, done + size, planned.identity)
            done += size
        yield self._standing("search", "searching layers and tokens on the validation items", total, total)
        result: RepEvalResult = yield SearchStep()
        found, points = None, Curve(())
        if self._request.stability_seeds:
            yield self._standing("repeat", f"choosing again over {self._request.stability_seeds} seeds", total, total)
            found = yield StabilityStep(self._request.stability_seeds)
        if self._request.pairs_curve:
            yield self._standing("repeat", "trying other numbers of pairs", total, total)
            points = yield CurveStep(CURVE_SEEDS)
        yield self._standing("done", "done", total, total)
        return RepEvalView(result, "", found, points.points)

    def question(self, step: Step | Progress) -> str:
        if isinstance(step, Progress):
            return ""
        return content_digest("step", [type(step).__name__, pack(step).body])

    def work(self, step: Step, on_progress: Callable[[int, int], None]) -> Packed:
        def beat(_: int, __: int) -> None:
            on_progress(0, 0)  # no texts are read; only whether the run must stop

        request, golden = self._request, self.golden
        match step:
            case PlanStep():
                return pack(self._planned())
            case ReadStep():
                return pack(self._read_part(step, on_progress))
            case SearchStep():
                return pack(self._searched(beat))
            case StabilityStep(seeds=n):
                states = self._all_states(beat)
                return pack(stability(golden, request.aspect, states, request.settings, range(n), on_progress=beat))
            case CurveStep(seeds=n):
                states, chosen = self._all_states(beat), request.settings
                points = curve_over_pairs(golden, request.aspect, states, chosen, seeds=range(n), on_progress=beat)
                return pack(Curve(points))

    def read(self, step: Step, stored: Packed) -> Any:
        return unpack(ANSWERS[type(step)], stored)

    def keep(self, step: Step, answer: Any) -> None:
        if isinstance(answer, Read):
            self._read.append(answer)

    def note(self, snapshot: Progress, journal: Journal) -> None:
        journal.note(snapshot, lambda: Packed("{}"))

    def finish(self, result: RepEvalView) -> str:
        """Enter the score among the project's judges, and store what was found."""
        judge = judge_of(result.result, self.run.run_id)
        judge_id = self.store.judges.add(self.run.project_id, self.run.golden_id, judge)
        self.store.results.put_document(self.run.run_id, RESULT, pack(replace(result, judge_id=judge_id)))
        return "done"

    def close(self) -> None:
        """Let go of the weights and the states."""
        self._machines.release()
        self._states = self._plan = None

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────

    def _planned(self) -> Planned:
        plan, order = self._opened(), self._order()
        lengths = np.array([len(plan.prompts[row]) for row in order])
        sizes, tokens, start = [], [], 0
        while start < order.size:
            stop = start + max(1, BATCHES * self._machines.slots * plan.budget // max(int(lengths[start]), 1))
            sizes.append(len(order[start:stop]))
            tokens.append(int(lengths[start:stop].sum()))
            start = stop
        return Planned(tuple(sizes), tuple(tokens), plan.facts.fingerprint, self._machines.where(plan))

    def _read_part(self, step: ReadStep, on_progress: Callable[[int, int], None]) -> Read:
        plan = self._opened()
        if plan.facts.fingerprint != step.identity:
            raise JobError(f"The model {plan.facts.name} {FRESHLY}")
        rows = self._order()[step.start : step.stop]
        before, n_halved = len(rows) - int(np.isin(rows, plan.missing()).sum()), plan.n_halved
        done, tokens, seconds = before, 0, 0.0

        def look() -> None:
            on_progress(done, 0)

        look()
        for batch in self._machines.compute(plan, rows, look):
            done, tokens, seconds = done + len(batch.rows), tokens + batch.tokens, seconds + batch.seconds
            look()
        return Read(len(rows), before, tokens, seconds, plan.n_halved - n_halved)

    def _opened(self) -> StatePlan:
        if self._plan is None:
            asked = self._request
            self._plan = self._machines.plan(self.golden.items, asked.extraction, self._folder)
        return self._plan

    def _order(self) -> IntArray:
        """Prompts longest first, as batches are made: the same on every start."""
        lengths = np.array([len(ids) for ids in self._opened().prompts], dtype=np.intp)
        return np.argsort(-lengths, kind="stable")

    def _all_states(self, beat: Callable[[int, int], None]) -> States:
        """The states from the files (what is not there is computed again), with the effort of the whole run."""
        if self._states is None:
            plan = self._opened()
            again = list(self._again(plan, beat))
            tokens = sum(one.tokens for one in self._read) + sum(tokens for tokens, _ in again)
            self._states = replace(
                collect(plan),
                cached=sum(one.cached for one in self._read),
                tokens=tokens,
                seconds=sum(one.seconds for one in self._read) + sum(seconds for _, seconds in again),
                n_halved=max(plan.n_halved, sum(one.n_halved for one in self._read)),
            )
            self._machines.release()  # the search needs the memory more
        return self._states

    def _again(self, plan: StatePlan, beat: Callable[[int, int], None]) -> Generator[tuple[int, float]]:
        for batch in self._machines.compute(plan, None, lambda: beat(0, 0)):
            beat(0, 0)
            yield batch.tokens, batch.seconds

    def _searched(self, beat: Callable[[int, int], None]) -> RepEvalResult:
        asked, states = self._request, self._all_states(beat)
        found = run(self.golden, asked.aspect, states, asked.settings, split=self._split, on_progress=beat)
        return replace(found, scorer=scorer_of(self.golden, states, found))

    # ── words ────────────────────────────────────────────────────────────────────────────────────────────────

    def _pace(self, planned: Planned, number: int) -> str:
        """Tokens a second so far and the time left at that pace."""
        tokens, seconds = sum(one.tokens for one in self._read), sum(one.seconds for one in self._read)
        if not seconds:
            return f"reading texts on {planned.device}"
        left = sum(planned.tokens[number:]) * seconds / tokens
        return f"reading texts on {planned.device}: {tokens / seconds:,.0f} tokens/s, about {_clock(left)} left"

    def _standing(self, phase: str, message: str, done: int, total: int) -> Progress:
        return Progress(phase, message, done, total, Usage())


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
