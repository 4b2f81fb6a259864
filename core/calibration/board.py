"""The board: what every candidate scored on the calibration side, who stands where, and what was spent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.calibration.settings import CalibrationSettings
from core.calibration.steps import BestSoFar, Candidate, Phase, Standing, Status, TracePoint
from core.records import Alignment, Criteria, FloatArray, Level, Measure, ScoreMatrix, Unscored, Usage
from core.stats import Difference, LabelledItems, align_each, paired_difference

INTERIM_RESAMPLES = 200  # for whiskers that are redrawn with the next batch


@dataclass
class Meter:
    """Counts calls against the budget.  `reserve` is kept back for the report on held-out."""

    budget: int | None
    reserve: int = 0
    calls: int = 0
    usage: Usage = field(default_factory=Usage)

    def spend(self, calls: int, usage: Usage) -> None:
        self.calls += calls
        self.usage = self.usage + usage

    def left(self, *, with_reserve: bool = False) -> int | None:
        """Calls left, None without a budget; the reserve is kept back unless asked for."""
        if self.budget is None:
            return None
        return max(0, self.budget - self.calls - (0 if with_reserve else self.reserve))

    def affords(self, calls: int) -> bool:
        left = self.left()
        return left is None or calls <= left


@dataclass
class Entry:
    """A candidate's own column: `values` (n_calibration,) with NaN, `asked` which items were scored."""

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
        """Add where it stands now to its trace, once for every number of items scored."""
        items = int(self.asked.sum())
        if self.alignment is not None and (not self.trace or self.trace[-1].items < items):
            self.trace.append(TracePoint(items, self.alignment.value))


class Board:
    """Mutable state of one calibration; everything that leaves it is a frozen record."""

    def __init__(self, side: LabelledItems, settings: CalibrationSettings, level: Level, meter: Meter) -> None:
        self.side, self.settings, self.level, self.meter = side, settings, level, meter
        self.measure = Measure(settings.statistic, level)
        self.entries: dict[str, Entry] = {}
        self.curve: list[BestSoFar] = []
        self.unscored: dict[str, dict[str, Unscored]] = {}
        self.calls_expected = 0
        self.rounds_done = 0
        self._place = {int(position): i for i, position in enumerate(side.positions)}

    def add(self, criteria: Iterable[Criteria], status: Status = "waiting") -> None:
        n = self.side.n
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
        self.meter.spend(matrix.calls, matrix.usage)
        for criteria_id, rows in matrix.unscored.items():
            self.unscored.setdefault(criteria_id, {}).update({one.item_id: one for one in rows})

    def reasons(self, ids: Iterable[str]) -> dict[str, Unscored]:
        """Item id → why there is no score, the first of `ids` that tells counting."""
        found: dict[str, Unscored] = {}
        for criteria_id in ids:
            found = self.unscored.get(criteria_id, {}) | found
        return found

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
            aligned = self.align(np.stack([e.values[asked] for e in entries]), self.side.take(asked), resamples)
            for entry, alignment in zip(entries, aligned, strict=True):
                entry.alignment, entry.stale, entry.interim = alignment, False, not final
                entry.follow()

    def align(self, scores: FloatArray, side: LabelledItems, resamples: int | None = None) -> list[Alignment]:
        """Alignments of `scores` (k, n) with people on `side`, with intervals when `resamples` > 0."""
        count = self.settings.resamples if resamples is None else resamples
        return align_each(scores, side, self.measure, resamples=count, seed=[self.settings.seed, 9])

    def difference(self, one: FloatArray, other: FloatArray, side: LabelledItems) -> Difference:
        """Alignment of `one` minus that of `other`, (n,) each, on the items of `side` that both scored."""
        settings = self.settings
        return paired_difference(one, other, side, self.measure, resamples=settings.resamples, seed=[settings.seed, 10])

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
            point = BestSoFar(self.meter.calls, self.value(best[0]), best[0])
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

    def standing(self, phase: Phase, round_: int, message: str, *, final: bool = False) -> Standing:
        self.refresh(final=final)
        return Standing(
            phase=phase,
            round=round_,
            message=message,
            calls=self.meter.calls,
            calls_expected=max(self.calls_expected, self.meter.calls),
            candidates=self.candidates(),
            curve=tuple(self.curve),
            usage=self.meter.usage,
        )
