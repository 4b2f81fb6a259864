"""The candidate pool: the judge asked, what every candidate scored on the calibration items, and what was spent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.calibration.calibration_records import (
    BestSoFar,
    CalibrationSettings,
    Candidate,
    LeaderboardSnapshot,
    Phase,
    Status,
    TracePoint,
)
from core.judging.judge_protocol import DraftBatch, DraftRequest, Judge, Prepared
from core.progress import SILENT, Progress
from core.records import Alignment, Criteria, FloatArray, GoldenSet, Measure, ScoreMatrix, Task, Unscored, Usage
from core.stats import Difference, LabelledItems, align_each, paired_difference

BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]
INTERIM_RESAMPLES = 200  # for whiskers that are redrawn with the next batch


class Keeper:
    """Receive what a judge answers as it comes, to store it; this one stores nothing."""

    def keep_judge(self, judge: Judge, prepared: Prepared) -> None:
        """The judge made ready, before its first score."""

    def add_criteria(self, criteria: Sequence[Criteria]) -> None:
        """Criteria that were drafted or refined."""

    def add_scores(self, positions: Sequence[int], scores: ScoreMatrix) -> None:
        """Scores of the items at `positions` (into `GoldenSet.items`)."""


@dataclass(frozen=True)
class AskedJudge:
    """A judge with the golden set it is asked about.  `prepared`: what its model wrote before the first score."""

    judge: Judge
    golden: GoldenSet
    task: Task
    progress: Progress = SILENT
    prepared: Prepared = field(default_factory=Prepared, kw_only=True)
    keeper: Keeper = field(default_factory=Keeper, kw_only=True)

    def draft(self, requests: Sequence[DraftRequest]) -> DraftBatch:
        """New criteria from labelled exemplars, or criteria improved on items that they got wrong."""
        batch = self.judge.draft(self.task, requests)
        self.keeper.add_criteria([drafted for drafted in batch.drafted if not isinstance(drafted, str)])
        return batch

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> ScoreMatrix:
        """Scores of all `criteria` on the items at `positions` (into `GoldenSet.items`)."""
        items = [self.golden.items[position] for position in positions]
        matrix = self.judge.score(self.task, items, criteria, on_progress=self.progress.advance)
        self.keeper.add_scores(positions, matrix)
        return matrix


class ScoreTable:
    """The scores of criteria over all items of a golden set, filled batch by batch, and what they cost.

    By criteria id: `values` (n_items,), NaN where there is no score; `asked` (n_items,), whether one was asked for;
    `unscored`, item id → why there is no score.  `calls` count against the `limit` (None: no limit), of which `reserve`
    are kept back for the held-out items.
    """

    def __init__(
        self, item_ids: Sequence[str], limit: int | None = None, *, reserve: int = 0, spent: Prepared | None = None
    ) -> None:
        n = len(item_ids)
        self.places = {item_id: k for k, item_id in enumerate(item_ids)}
        self.limit, self.reserve = limit, reserve
        self.calls, self.usage = (0, Usage()) if spent is None else (spent.calls, spent.usage)
        self.unscored = defaultdict[str, dict[str, Unscored]](dict)
        self.values = defaultdict[str, FloatArray](lambda: np.full(n, np.nan))
        self.asked = defaultdict[str, BoolArray](lambda: np.zeros(n, dtype=np.bool_))
        self._turned = defaultdict[str, FloatArray](lambda: np.full(n, np.nan))

    def spend(self, calls: int, usage: Usage) -> None:
        self.calls += calls
        self.usage = self.usage + usage

    def left(self, *, with_reserve: bool = False) -> int | None:
        """Calls left, None without a limit."""
        if self.limit is None:
            return None
        return max(0, self.limit - self.calls - (0 if with_reserve else self.reserve))

    def ask(self, judge: AskedJudge, criteria: Sequence[Criteria], positions: Sequence[int]) -> None:
        """Have items scored, count the calls, and enter the scores."""
        matrix = judge.score(criteria, positions)
        self.spend(matrix.calls, matrix.usage)
        self.enter(matrix)

    def enter(self, matrix: ScoreMatrix, *, stored: bool = False) -> None:
        """Enter scores.  Of `stored` ones an item counts as asked for where it has a value or a reason."""
        places = np.array([self.places[item_id] for item_id in matrix.item_ids], dtype=np.intp)
        for k, (name, row) in enumerate(zip(matrix.criteria_ids, matrix.values, strict=True)):
            reasons = {verdict.item_id: verdict for verdict in matrix.unscored.get(name, ())}
            there = ~np.isnan(row) | (not stored)
            self.unscored[name] |= reasons
            self.values[name][places[there]] = row[there]
            if matrix.turned is not None:
                self._turned[name][places[there]] = matrix.turned[k][there]
            self.asked[name][places[there]] = True
            self.asked[name][[self.places[item_id] for item_id in reasons]] = True

    def mean(self, ids: Sequence[str]) -> FloatArray:
        """(n_items,) mean of the scores that are there."""
        return ensemble_scores(np.stack([self.values[name] for name in ids]))

    def turned(self, ids: Sequence[str]) -> FloatArray | None:
        """(n_ids, n_items) scores of pairs shown the other way round; None where none was asked so."""
        return np.stack([self._turned[name] for name in ids]) if set(ids) & set(self._turned) else None

    def reasons(self, ids: Iterable[str]) -> dict[str, Unscored]:
        """Item id → why there is no score, from the first of `ids` that has a reason."""
        reasons: dict[str, Unscored] = {}
        for name in ids:
            reasons = self.unscored[name] | reasons
        return reasons


class CandidatePool:
    """Mutable state of one calibration; everything that leaves it is a frozen record.

    `items` are the calibration items; the table covers all items of the golden set.
    """

    def __init__(
        self, judge: AskedJudge, items: LabelledItems, settings: CalibrationSettings, table: ScoreTable
    ) -> None:
        self.judge, self.items, self.settings, self.table = judge, items, settings, table
        self.measure = Measure(settings.statistic, settings.level or items.usual_level)
        self.entries: dict[str, Candidate] = {}
        self.curve: list[BestSoFar] = []
        self.calls_expected = 0
        self.rounds_done = 0

    def add(self, criteria: Iterable[Criteria], status: Status = "waiting") -> None:
        for each in criteria:
            self.entries.setdefault(each.criteria_id, Candidate(each, status))

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> None:
        """Have calibration items scored with candidates."""
        self.table.ask(self.judge, criteria, positions)
        for each in criteria:
            entry = self.entries[each.criteria_id]
            status = "running" if entry.status == "waiting" else entry.status
            self.entries[each.criteria_id] = replace(
                entry, status=status, calls=int(self.asked(each.criteria_id).sum())
            )

    def values(self, criteria_id: str) -> FloatArray:
        """(n_calibration,) scores of a candidate."""
        return self.table.values[criteria_id][self.items.positions]

    def asked(self, criteria_id: str) -> BoolArray:
        """(n_calibration,), which items a candidate was scored on."""
        return self.table.asked[criteria_id][self.items.positions]

    def mark(self, ids: Iterable[str], status: Status) -> None:
        """Give candidates a status; the baseline keeps its own."""
        for name in ids:
            if self.entries[name].status != "baseline":
                self.entries[name] = replace(self.entries[name], status=status)

    def refresh(self, *, final: bool = False) -> None:
        """Update alignments that newer scores have made stale; `final` redoes all, with every resample."""
        groups: dict[bytes, list[str]] = {}
        for name, entry in self.entries.items():
            stale = not entry.trace or entry.trace[-1].items < entry.calls
            if entry.calls and (stale or final):
                groups.setdefault(self.asked(name).tobytes(), []).append(name)
        resamples = self.settings.resamples if final else min(self.settings.resamples, INTERIM_RESAMPLES)
        for ids in groups.values():  # those scored on the same items in one go
            is_asked = self.asked(ids[0])
            scores = np.stack([self.values(name)[is_asked] for name in ids])
            for name, found in zip(ids, self.align(scores, self.items.take(is_asked), resamples), strict=True):
                entry, trace = self.entries[name], self.entries[name].trace
                if not trace or trace[-1].items < entry.calls:
                    trace = (*trace, TracePoint(entry.calls, found.value))
                self.entries[name] = replace(entry, alignment=found, trace=trace)

    def align(self, scores: FloatArray, items: LabelledItems, resamples: int | None = None) -> list[Alignment]:
        """Alignments of `scores` (k, n) with the labels of `items`, with intervals when `resamples` > 0."""
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

    def with_status(self, status: Status) -> list[str]:
        return [name for name, entry in self.entries.items() if entry.status == status]

    def note_best(self) -> None:
        """Add a point to the best-so-far curve when the best complete candidate beats the last point."""
        best = self.ranked(self.with_status("kept"))[:1]
        if best and self.value(best[0]) > (self.curve[-1].value if self.curve else -np.inf):
            self.curve.append(BestSoFar(self.table.calls, self.value(best[0]), best[0]))

    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates, best first within their tier: in the race or kept, then rejected, stopped, waiting.

        A value on few items is noisy and optimistic, so a stopped candidate never ranks above one that is still in the
        race or has finished it.
        """
        tier = {"rejected": 1, "stopped": 2, "waiting": 3}
        ranked = sorted(self.entries, key=lambda name: (tier.get(self.entries[name].status, 0), -self.value(name)))
        return tuple(self.entries[name] for name in ranked)

    def publish(self, phase: Phase, message: str, round_: int | None = None) -> None:
        """Publish the leaderboard as it is now; `round_` None is the last one done."""
        self.refresh()
        round_, calls = self.rounds_done if round_ is None else round_, self.table.calls
        expected, curve = max(self.calls_expected, calls), tuple(self.curve)
        self.judge.progress.publish(
            LeaderboardSnapshot(phase, round_, message, calls, expected, self.candidates(), curve, self.table.usage)
        )


def ensemble_scores(values: FloatArray) -> FloatArray:
    """(n_items,) mean over criteria (k, n_items) of the scores that are there; NaN where there is none."""
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(values.shape[1], np.nan), where=count > 0)
    return mean
