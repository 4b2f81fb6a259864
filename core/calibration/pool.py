"""The candidate pool: the judge asked, what every candidate scored on the calibration items, and what was spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.calibration.records import BestSoFar, Candidate, LeaderboardSnapshot, Phase, Status, TracePoint
from core.calibration.settings import CalibrationSettings
from core.judging.base import DraftBatch, DraftRequest, Judge, RefineRequest
from core.progress import SILENT, Progress
from core.records import Alignment, Criteria, FloatArray, GoldenSet, Level, Measure, ScoreMatrix, Task, Unscored, Usage
from core.stats import Difference, LabelledItems, align_each, paired_difference

INTERIM_RESAMPLES = 200  # for whiskers that are redrawn with the next batch


@dataclass(frozen=True)
class AskedJudge:
    """What calibrations, rounds and ablations ask; a worker's own kind keeps the answers too."""

    judge: Judge
    golden: GoldenSet
    task: Task
    progress: Progress = SILENT

    def draft(self, requests: Sequence[DraftRequest]) -> DraftBatch:
        """New criteria from labelled exemplars."""
        return self.judge.draft(self.task, requests)

    def refine(self, requests: Sequence[RefineRequest]) -> DraftBatch:
        """Criteria made better by what they got wrong."""
        return self.judge.refine(self.task, requests)

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> ScoreMatrix:
        """Scores of all `criteria` on the items at `positions` (into `GoldenSet.items`)."""
        items = [self.golden.items[position] for position in positions]
        return self.judge.score(self.task, items, criteria, on_progress=self.progress.advance)


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


@dataclass
class Entry:
    """A candidate: `values` (n_calibration,), NaN = no score, and in `asked` which items were scored."""

    criteria: Criteria
    values: FloatArray
    asked: np.ndarray[tuple[int], np.dtype[np.bool_]]
    status: Status = "waiting"
    inner_gain: float | None = None
    alignment: Alignment | None = None
    stale: bool = False
    interim: bool = False
    trace: list[TracePoint] = field(default_factory=list)

    def as_candidate(self) -> Candidate:
        calls = int(self.asked.sum())
        return Candidate(self.criteria, self.status, self.alignment, calls, self.inner_gain, tuple(self.trace))

    def follow(self) -> None:
        """Add its alignment now to its trace, once for every number of items scored."""
        items = int(self.asked.sum())
        if self.alignment is not None and (not self.trace or self.trace[-1].items < items):
            self.trace.append(TracePoint(items, self.alignment.value))


class CandidatePool:
    """Mutable state of one calibration; everything that leaves it is a frozen record."""

    def __init__(self, items: LabelledItems, settings: CalibrationSettings, level: Level, budget: CallBudget) -> None:
        self.items, self.settings, self.level, self.budget = items, settings, level, budget
        self.measure = Measure(settings.statistic, level)
        self.entries: dict[str, Entry] = {}
        self.curve: list[BestSoFar] = []
        self.unscored: dict[str, dict[str, Unscored]] = {}
        self.calls_expected = 0
        self.rounds_done = 0
        self._place = {int(position): i for i, position in enumerate(items.positions)}

    def add(self, criteria: Iterable[Criteria], status: Status = "waiting") -> None:
        n = self.items.n
        for one in criteria:
            self.entries.setdefault(
                one.criteria_id, Entry(one, np.full(n, np.nan), np.zeros(n, dtype=np.bool_), status)
            )

    def record(self, positions: Sequence[int], matrix: ScoreMatrix) -> None:
        """Enter a batch's scores; unscored items are asked-for items without a value."""
        places = [self._place[p] for p in positions]
        for criteria_id, row in zip(matrix.criteria_ids, matrix.values, strict=True):
            entry = self.entries[criteria_id]
            entry.values[places] = row
            entry.asked[places] = True
            entry.stale = True
            if entry.status == "waiting":
                entry.status = "running"
        self.take(matrix)

    def take(self, matrix: ScoreMatrix) -> None:
        """Count a batch's calls, and keep why scores are missing (criteria id → item id → Unscored)."""
        self.budget.spend(matrix.calls, matrix.usage)
        for criteria_id, rows in matrix.unscored.items():
            self.unscored.setdefault(criteria_id, {}).update({one.item_id: one for one in rows})

    def reasons(self, ids: Iterable[str]) -> dict[str, Unscored]:
        """Item id → why there is no score, from the first of `ids` that has a reason."""
        reasons: dict[str, Unscored] = {}
        for criteria_id in ids:
            reasons = self.unscored.get(criteria_id, {}) | reasons
        return reasons

    def mark(self, ids: Iterable[str], status: Status) -> None:
        for criteria_id in ids:
            if self.entries[criteria_id].status != "baseline":
                self.entries[criteria_id].status = status

    def refresh(self, *, final: bool = False) -> None:
        """Bring alignments up to date, batching the candidates that were scored on the same items."""
        groups: dict[bytes, list[Entry]] = {}
        for entry in self.entries.values():
            if entry.asked.any() and (entry.stale or (final and entry.interim)):
                groups.setdefault(entry.asked.tobytes(), []).append(entry)
        resamples = self.settings.resamples if final else min(self.settings.resamples, INTERIM_RESAMPLES)
        for entries in groups.values():
            asked = entries[0].asked
            aligned = self.align(np.stack([e.values[asked] for e in entries]), self.items.take(asked), resamples)
            for entry, alignment in zip(entries, aligned, strict=True):
                entry.alignment, entry.stale, entry.interim = alignment, False, not final
                entry.follow()

    def align(self, scores: FloatArray, items: LabelledItems, resamples: int | None = None) -> list[Alignment]:
        """Alignments of `scores` (k, n) with people on `items`, with intervals when `resamples` > 0."""
        count = self.settings.resamples if resamples is None else resamples
        return align_each(scores, items, self.measure, resamples=count, seed=[self.settings.seed, 9])

    def difference(self, one: FloatArray, other: FloatArray, items: LabelledItems) -> Difference:
        """Alignment of `one` minus that of `other`, (n,) each, on those of `items` that both scored."""
        resamples, seed = self.settings.resamples, [self.settings.seed, 10]
        return paired_difference(one, other, items, self.measure, resamples=resamples, seed=seed)

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

    def standing(self, phase: Phase, round_: int, message: str, *, final: bool = False) -> LeaderboardSnapshot:
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
