"""The candidate pool: the judge asked, what every candidate scored on the calibration items, and what was spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.calibration.calibration_result import BestSoFar, Candidate, LeaderboardSnapshot, Phase, Status, TracePoint
from core.calibration.calibration_settings import CalibrationSettings
from core.judging.judge_protocol import DraftBatch, DraftRequest, Judge, RefineRequest
from core.judging.llm_judge import Prepared
from core.progress import SILENT, Progress
from core.records import Alignment, Criteria, FloatArray, GoldenSet, Level, Measure, ScoreMatrix, Task, Unscored, Usage
from core.stats import Difference, LabelledItems, align_each, paired_difference

BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]
INTERIM_RESAMPLES = 200  # for whiskers that are redrawn with the next batch


class Keeper:
    """Gets what a judge answers as it comes, to keep it; this one keeps nothing."""

    def keep_judge(self, judge: Judge, prepared: Prepared) -> None:
        """The judge made ready, before its first score."""

    def add_criteria(self, criteria: Sequence[Criteria]) -> None:
        """Criteria that were drafted or refined."""

    def add_scores(self, positions: Sequence[int], scores: ScoreMatrix) -> None:
        """Scores of the items at `positions` (into `GoldenSet.items`)."""


@dataclass(frozen=True)
class AskedJudge:
    """What calibrations, rounds and ablations ask.

    `prepared` is what its model wrote before; a calibration counts it.
    """

    judge: Judge
    golden: GoldenSet
    task: Task
    progress: Progress = SILENT
    prepared: Prepared = field(default_factory=Prepared, kw_only=True)
    keeper: Keeper = field(default_factory=Keeper, kw_only=True)

    def draft(self, requests: Sequence[DraftRequest]) -> DraftBatch:
        """New criteria from labelled exemplars."""
        return self._kept(self.judge.draft(self.task, requests))

    def refine(self, requests: Sequence[RefineRequest]) -> DraftBatch:
        """Criteria made better by what they got wrong."""
        return self._kept(self.judge.refine(self.task, requests))

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> ScoreMatrix:
        """Scores of all `criteria` on the items at `positions` (into `GoldenSet.items`)."""
        items = [self.golden.items[position] for position in positions]
        matrix = self.judge.score(self.task, items, criteria, on_progress=self.progress.advance)
        self.keeper.add_scores(positions, matrix)
        return matrix

    def _kept(self, batch: DraftBatch) -> DraftBatch:
        self.keeper.add_criteria([drafted.criteria for drafted in batch.drafted if drafted.criteria is not None])
        return batch


@dataclass
class CallBudget:
    """Calls counted against a `limit` (None: no limit).  `reserve` is kept back for the report on held-out."""

    limit: int | None = None
    reserve: int = 0
    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def spend(self, calls: int, usage: Usage) -> None:
        self.calls += calls
        self.usage = self.usage + usage

    def left(self, *, with_reserve: bool = False) -> int | None:
        """Calls left, None without a budget; the reserve is kept back unless asked for."""
        if self.limit is None:
            return None
        return max(0, self.limit - self.calls - (0 if with_reserve else self.reserve))


class ScoreTable:
    """What criteria scored so far over all items of a golden set, filled batch by batch, and why scores are missing."""

    def __init__(self, item_ids: Sequence[str], budget: CallBudget | None = None) -> None:
        self.places = {item_id: k for k, item_id in enumerate(item_ids)}
        self.budget = CallBudget() if budget is None else budget
        self.unscored: dict[str, dict[str, Unscored]] = {}
        self._rows: dict[str, tuple[FloatArray, BoolArray]] = {}
        self._turned: dict[str, FloatArray] = {}

    def ask(self, judge: AskedJudge, criteria: Sequence[Criteria], positions: Sequence[int]) -> None:
        """Have items scored, count the calls, and enter what comes."""
        matrix = judge.score(criteria, positions)
        self.budget.spend(matrix.calls, matrix.usage)
        self.enter(matrix)

    def enter(self, matrix: ScoreMatrix, *, kept: bool = False) -> None:
        """Enter scores.  Of `kept` ones an item counts as asked for where it has a value or a reason."""
        places = np.array([self.places[item_id] for item_id in matrix.item_ids], dtype=np.intp)
        for k, (criteria_id, row) in enumerate(zip(matrix.criteria_ids, matrix.values, strict=True)):
            values, is_asked = self._row(criteria_id)
            reasons = {verdict.item_id: verdict for verdict in matrix.unscored.get(criteria_id, ())}
            self.unscored.setdefault(criteria_id, {}).update(reasons)
            there = ~np.isnan(row) if kept else np.ones(len(row), dtype=np.bool_)
            values[places[there]] = row[there]
            if matrix.turned is not None:
                turned = self._turned.setdefault(criteria_id, np.full(len(self.places), np.nan))
                turned[places[there]] = matrix.turned[k][there]
            is_asked[places[there]] = True
            is_asked[[self.places[item_id] for item_id in reasons]] = True

    def values(self, criteria_id: str) -> FloatArray:
        """(n_items,), NaN where there is no score."""
        return self._row(criteria_id)[0]

    def asked(self, criteria_id: str) -> BoolArray:
        """(n_items,), whether a score was asked for."""
        return self._row(criteria_id)[1]

    def mean(self, ids: Sequence[str]) -> FloatArray:
        """(n_items,) mean of the scores that are there."""
        return ensemble_scores(np.stack([self.values(criteria_id) for criteria_id in ids]))

    def turned(self, ids: Sequence[str]) -> FloatArray | None:
        """(n_ids, n_items) what pairs were given the other way round; None where none was asked so."""
        if not any(criteria_id in self._turned for criteria_id in ids):
            return None
        unknown = np.full(len(self.places), np.nan)
        return np.stack([self._turned.get(criteria_id, unknown) for criteria_id in ids])

    def reasons(self, ids: Iterable[str]) -> dict[str, Unscored]:
        """Item id → why there is no score, from the first of `ids` that has a reason."""
        reasons: dict[str, Unscored] = {}
        for criteria_id in ids:
            reasons = self.unscored.get(criteria_id, {}) | reasons
        return reasons

    def _row(self, criteria_id: str) -> tuple[FloatArray, BoolArray]:
        n = len(self.places)
        return self._rows.setdefault(criteria_id, (np.full(n, np.nan), np.zeros(n, dtype=np.bool_)))


@dataclass
class Entry:
    """A candidate of the pool; `calls` are the calibration items that it was scored on."""

    criteria: Criteria
    status: Status
    calls: int = 0
    inner_gain: float | None = None
    alignment: Alignment | None = None
    stale: bool = False
    interim: bool = False
    trace: list[TracePoint] = field(default_factory=list)

    def as_candidate(self) -> Candidate:
        return Candidate(self.criteria, self.status, self.alignment, self.calls, self.inner_gain, tuple(self.trace))


class CandidatePool:
    """Mutable state of one calibration; everything that leaves it is a frozen record.

    `items` are the calibration items; the table goes over all items of the golden set.
    """

    def __init__(self, items: LabelledItems, settings: CalibrationSettings, level: Level, table: ScoreTable) -> None:
        self.items, self.settings, self.level, self.table = items, settings, level, table
        self.budget = table.budget
        self.measure = Measure(settings.statistic, level)
        self.entries: dict[str, Entry] = {}
        self.curve: list[BestSoFar] = []
        self.calls_expected = 0
        self.rounds_done = 0

    def add(self, criteria: Iterable[Criteria], status: Status = "waiting") -> None:
        for each in criteria:
            self.entries.setdefault(each.criteria_id, Entry(each, status))

    def score(self, judge: AskedJudge, criteria: Sequence[Criteria], positions: Sequence[int]) -> None:
        """Have calibration items scored with candidates."""
        self.table.ask(judge, criteria, positions)
        for each in criteria:
            entry = self.entries[each.criteria_id]
            entry.stale, entry.calls = True, int(self.asked(each.criteria_id).sum())
            if entry.status == "waiting":
                entry.status = "running"

    def values(self, criteria_id: str) -> FloatArray:
        """(n_calibration,) scores of a candidate."""
        return self.table.values(criteria_id)[self.items.positions]

    def asked(self, criteria_id: str) -> BoolArray:
        """(n_calibration,), which items a candidate was scored on."""
        return self.table.asked(criteria_id)[self.items.positions]

    def mark(self, ids: Iterable[str], status: Status) -> None:
        for criteria_id in ids:
            if self.entries[criteria_id].status != "baseline":
                self.entries[criteria_id].status = status

    def refresh(self, *, final: bool = False) -> None:
        """Bring alignments up to date, batching the candidates that were scored on the same items."""
        groups: dict[bytes, list[str]] = {}
        for criteria_id, entry in self.entries.items():
            if entry.calls and (entry.stale or (final and entry.interim)):
                groups.setdefault(self.asked(criteria_id).tobytes(), []).append(criteria_id)
        resamples = self.settings.resamples if final else min(self.settings.resamples, INTERIM_RESAMPLES)
        for ids in groups.values():
            is_asked = self.asked(ids[0])
            scores = np.stack([self.values(criteria_id)[is_asked] for criteria_id in ids])
            for criteria_id, alignment in zip(
                ids, self.align(scores, self.items.take(is_asked), resamples), strict=True
            ):
                entry = self.entries[criteria_id]
                entry.alignment, entry.stale, entry.interim = alignment, False, not final
                if not entry.trace or entry.trace[-1].items < entry.calls:
                    entry.trace.append(TracePoint(entry.calls, alignment.value))

    def align(self, scores: FloatArray, items: LabelledItems, resamples: int | None = None) -> list[Alignment]:
        """Alignments of `scores` (k, n) with people on `items`, with intervals when `resamples` > 0."""
        count = self.settings.resamples if resamples is None else resamples
        return align_each(scores, items, self.measure, resamples=count, seed=[self.settings.seed, 9])

    def difference(self, first: FloatArray, second: FloatArray, items: LabelledItems) -> Difference:
        """Alignment of `first` minus that of `second`, (n,) each, on those of `items` that both scored."""
        resamples, seed = self.settings.resamples, [self.settings.seed, 10]
        return paired_difference(first, second, items, self.measure, resamples=resamples, seed=seed)

    def value(self, criteria_id: str) -> float:
        """The alignment on what was scored so far, minus infinity when undefined: the ranking key."""
        alignment = self.entries[criteria_id].alignment
        return -np.inf if alignment is None or alignment.value is None else alignment.value

    def ranked(self, ids: Iterable[str]) -> list[str]:
        """Best first; ties keep the order in which the candidates came."""
        return sorted(ids, key=self.value, reverse=True)

    def with_status(self, *statuses: Status) -> list[str]:
        return [criteria_id for criteria_id, entry in self.entries.items() if entry.status in statuses]

    def note_best(self, ids: Iterable[str]) -> None:
        """Add a point to the best-so-far curve when the best of `ids` (all complete) beats the last point."""
        best = self.ranked(ids)[:1]
        if best and np.isfinite(self.value(best[0])):
            point = BestSoFar(self.budget.calls, self.value(best[0]), best[0])
            if not self.curve or point.value > self.curve[-1].value:
                self.curve.append(point)

    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates, best first within their tier: in the race or kept, then rejected, stopped, waiting.

        A value on few items is noisy and flattered by having been picked, so a stopped candidate never stands
        above one that is still in the race or has finished it.
        """
        tier = {"chosen": 0, "kept": 0, "running": 0, "baseline": 0, "rejected": 1, "stopped": 2, "waiting": 3}
        entries = sorted(self.entries.items(), key=lambda pair: (tier[pair[1].status], -self.value(pair[0])))
        return tuple(entry.as_candidate() for _, entry in entries)

    def snapshot(self, phase: Phase, round_: int, message: str, *, final: bool = False) -> LeaderboardSnapshot:
        """The leaderboard as it is now."""
        self.refresh(final=final)
        return LeaderboardSnapshot(
            phase=phase,
            round=round_,
            message=message,
            calls=self.budget.calls,
            calls_expected=max(self.calls_expected, self.budget.calls),
            candidates=self.candidates(),
            curve=tuple(self.curve),
            usage=self.budget.usage,
        )


def ensemble_scores(values: FloatArray) -> FloatArray:
    """(n_items,) mean over criteria (k, n_items) of the scores that are there; NaN where there is none."""
    known = ~np.isnan(values)
    total = np.where(known, values, 0.0).sum(axis=0)
    count = known.sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(values.shape[1], np.nan), where=count > 0)
    return mean
