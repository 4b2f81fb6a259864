"""Races between the candidates of a calibration (successive halving).

All candidates are scored on a few items. Each later rung (round of the race) keeps the best candidates and scores them
on more items. The last rung scores the finalists on all items.

A race only ranks candidates. Alignments during a race can be optimistic, because its items were chosen by their labels.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.calibration.calibration_records import (
    CalibrationSettings,
    Candidate,
    LeaderboardSnapshot,
    Phase,
    Status,
)
from core.judging.judge_protocol import DraftBatch, DraftRequest, Judge, Prepared, without_copies
from core.progress import SILENT, Progress
from core.providers.budget import BudgetSpentError
from core.records import (
    Alignment,
    Criteria,
    FloatArray,
    GoldenSet,
    IntArray,
    Measure,
    ScoreMatrix,
    Task,
    Unscored,
    Usage,
)
from core.stats import LabelledItems, align_each, alignment_values, average_ranks
from core.stats.correlation import BoolArray
from core.verdicts import Scores


class Recorder:
    """Interface for storing a judge's output as it arrives. This base class stores nothing."""

    def set_judge(self, judge: Judge, prepared: Prepared) -> None:
        """Store the prepared judge. Called before the first scores arrive."""

    def add_criteria(self, criteria: Sequence[Criteria]) -> None:
        """Store new or refined criteria."""

    def add_scores(self, positions: Sequence[int], scores: ScoreMatrix) -> None:
        """Store scores of the items at `positions` (indices into `GoldenSet.items`)."""


@dataclass(frozen=True)
class BoundJudge:
    """A judge with the golden set and task that it scores. `prepared` has the calls and cost of its preparation."""

    judge: Judge
    golden: GoldenSet
    task: Task
    progress: Progress = SILENT
    prepared: Prepared = field(default_factory=Prepared, kw_only=True)
    recorder: Recorder = field(default_factory=Recorder, kw_only=True)

    def draft(self, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Draft criteria from labelled exemplars, or refine criteria on misaligned items."""
        batch = without_copies(self.judge.draft(self.task, requests), requests, self.task)
        self.recorder.add_criteria([drafted for drafted in batch.drafted if not isinstance(drafted, str)])
        return batch

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> ScoreMatrix:
        """Return the scores of `criteria` for the items at `positions` (indices into `GoldenSet.items`)."""
        items = [self.golden.items[position] for position in positions]
        matrix = self.judge.score(self.task, items, criteria, on_progress=self.progress.advance)
        self.recorder.add_scores(positions, matrix)
        return matrix


class ScoreTable:
    """Scores of criteria for the items of a golden set, with calls and cost.

    Attributes:
        values: Criteria id → scores (n_items,); NaN for an item without a score.
        asked: Criteria id → whether a score was requested, (n_items,).
        unscored: Criteria id → item id → reason for the missing score.
        said: Criteria id → item id → the judge's explanation.
        clauses: Criteria id → item id → ratings of the clauses (`Scored.clauses`).
        limit: Maximum number of calls.
        reserve: Number of calls, out of `limit`, that are reserved for the held-out items.
        dollars: Maximum cost; None for no limit.
        ended: The error raised when `dollars` were spent; None before that.
    """

    def __init__(self, item_ids: Sequence[str], limit: float = math.inf, dollars: float | None = None) -> None:
        n = len(item_ids)
        self.places = {item_id: k for k, item_id in enumerate(item_ids)}
        self.limit, self.reserve, self.dollars = limit, 0.0, dollars
        self.calls, self.usage = 0, Usage()
        self.ended: BudgetSpentError | None = None
        self._price = 0.0  # dollars per score in the last batch
        self.unscored = defaultdict[str, dict[str, Unscored]](dict)
        self.values = defaultdict[str, FloatArray](lambda: np.full(n, np.nan))
        self.asked = defaultdict[str, BoolArray](lambda: np.zeros(n, dtype=np.bool_))
        self.said = defaultdict[str, dict[str, str]](dict)
        self.clauses = defaultdict[str, dict[str, tuple[tuple[float, float | None], ...]]](dict)
        self._turned = defaultdict[str, FloatArray](lambda: np.full(n, np.nan))

    def spend(self, calls: int, usage: Usage) -> None:
        self.calls += calls
        self.usage = self.usage + usage

    @property
    def left(self) -> float:
        """Number of calls that the budgets still allow, at the price of the last scores; infinity without a budget."""
        if self.ended is not None:
            return 0
        left = self.limit - self.calls - self.reserve
        if self.dollars is not None and self._price:
            left = min(left, (self.dollars - (self.usage.cost or 0.0)) // self._price - self.reserve)
        return max(0, left)

    def ask(self, judge: BoundJudge, criteria: Sequence[Criteria], positions: Sequence[int]) -> bool:
        """Score items and record scores and calls. Return False if the dollar budget ran out."""
        try:
            matrix = judge.score(criteria, positions)
        except BudgetSpentError as error:
            self.end(error)
            return False
        self.spend(matrix.calls, matrix.usage)
        if matrix.usage.cost and matrix.usage.requests:  # the price without cached replies
            replies = matrix.usage.requests + matrix.usage.cached
            self._price = matrix.usage.cost / matrix.usage.requests * replies / matrix.calls
        self.enter(matrix)
        return True

    def end(self, error: BudgetSpentError) -> None:
        """Record that the dollar budget is spent, and what the interrupted batch cost."""
        self.ended = error
        self.spend(error.usage.requests + error.usage.cached, error.usage)

    def enter(self, matrix: ScoreMatrix, *, stored: bool = False) -> None:
        """Record scores. If they are `stored` scores, items with neither value nor reason count as not requested."""
        places = np.array([self.places[item_id] for item_id in matrix.item_ids], dtype=np.intp)
        for k, (name, row) in enumerate(zip(matrix.criteria_ids, matrix.values, strict=True)):
            reasons = {verdict.item_id: verdict for verdict in matrix.unscored.get(name, ())}
            there = ~np.isnan(row) | (not stored)
            self.unscored[name] |= reasons
            if isinstance(matrix, Scores):
                self.said[name] |= matrix.said.get(name, {})
                self.clauses[name] |= matrix.clauses.get(name, {})
            self.values[name][places[there]] = row[there]
            if matrix.turned is not None:
                self._turned[name][places[there]] = matrix.turned[k][there]
            self.asked[name][places[there]] = True
            self.asked[name][[self.places[item_id] for item_id in reasons]] = True

    def mean(self, ids: Sequence[str]) -> FloatArray:
        """Return the mean of the available scores over the criteria `ids`, (n_items,)."""
        return ensemble_scores(np.stack([self.values[name] for name in ids]))

    def turned(self, ids: Sequence[str]) -> FloatArray | None:
        """Return the scores of pairs with the two texts swapped, (n_ids, n_items); None if none were requested."""
        return np.stack([self._turned[name] for name in ids]) if set(ids) & set(self._turned) else None

    def reasons(self, ids: Iterable[str]) -> dict[str, Unscored]:
        """Return item id → reason for the items that at least one of the criteria `ids` left without a score.

        If several criteria did, the reason comes from the first of them.
        """
        reasons: dict[str, Unscored] = {}
        for name in ids:
            reasons = self.unscored[name] | reasons
        return reasons


class CandidatePool:
    """The candidates of a calibration, and their scores so far on the calibration items (`items`)."""

    def __init__(
        self, judge: BoundJudge, items: LabelledItems, settings: CalibrationSettings, table: ScoreTable
    ) -> None:
        self.judge, self.items, self.settings, self.table = judge, items, settings, table
        self.measure = Measure(settings.statistic, settings.level or items.usual_level)
        self.entries: dict[str, Candidate] = {}
        self.aligned_on: dict[str, int] = {}  # number of items behind each alignment
        self.calls_expected = 0
        self.rounds_done = 0

    def add(self, criteria: Iterable[Criteria], status: Status = "waiting") -> None:
        for each in criteria:
            self.entries.setdefault(each.criteria_id, Candidate(each, status))

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> bool:
        """Score calibration items with the candidates `criteria`. Return False if the dollar budget ran out."""
        if not self.table.ask(self.judge, criteria, positions):
            return False
        for each in criteria:
            entry, calls = self.entries[each.criteria_id], int(self.asked(each.criteria_id).sum())
            status = "running" if entry.status == "waiting" else entry.status
            self.entries[each.criteria_id] = replace(entry, status=status, calls=calls)
        return True

    def score_all(self, criteria: Sequence[Criteria]) -> None:
        """Score all calibration items with the candidates `criteria`, in batches."""
        n, size = self.items.n, step_items(self.items.n, len(criteria))
        for start in range(0, n, size):
            self.score(criteria, self.items.positions[start : start + size].tolist())
            self.publish("revisit", f"{min(start + size, n)} of {n} calibration items scored")

    def values(self, criteria_id: str) -> FloatArray:
        """Return the scores of a candidate on the calibration items, (n_calibration,)."""
        return self.table.values[criteria_id][self.items.positions]

    def asked(self, criteria_id: str) -> BoolArray:
        """Return for each calibration item whether the candidate's score was requested, (n_calibration,)."""
        return self.table.asked[criteria_id][self.items.positions]

    def mark(self, ids: Iterable[str], status: Status) -> None:
        """Set the status of the candidates `ids`, except the baseline."""
        for name in ids:
            if self.entries[name].status != "baseline":
                self.entries[name] = replace(self.entries[name], status=status)

    def refresh(self) -> None:
        """Recompute the alignments of all candidates that have new scores."""
        groups: dict[bytes, list[str]] = {}
        for name, entry in self.entries.items():
            if self.aligned_on.get(name, 0) < entry.calls:
                groups.setdefault(self.asked(name).tobytes(), []).append(name)
        for ids in groups.values():  # one call for all that share their scored items
            is_asked = self.asked(ids[0])
            scores = np.stack([self.values(name)[is_asked] for name in ids])
            for name, found in zip(ids, self.align(scores, self.items.take(is_asked)), strict=True):
                self.entries[name] = replace(self.entries[name], alignment=found)
                self.aligned_on[name] = self.entries[name].calls

    def align(self, scores: FloatArray, items: LabelledItems) -> list[Alignment]:
        """Return the alignment of each row of `scores` (k, n) with the labels of `items`, with intervals."""
        return align_each(scores, items, self.measure, seed=[self.settings.seed, 9])

    def value(self, criteria_id: str) -> float:
        """Return the alignment of a candidate on the items scored so far; minus infinity if undefined."""
        alignment = self.entries[criteria_id].alignment
        return -np.inf if alignment is None or alignment.value is None else alignment.value

    def ranked(self, ids: Iterable[str]) -> list[str]:
        """Sort candidates by alignment, best first. Ties keep the given order."""
        return sorted(ids, key=self.value, reverse=True)

    def with_status(self, status: Status) -> list[str]:
        return [name for name, entry in self.entries.items() if entry.status == status]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return all candidates: first the running and kept candidates, then the rejected, the stopped and the waiting.

        Within each group, the best candidate comes first. Stopped candidates have a group of their own, because
        alignments on few items are noisy and optimistic.
        """
        tier = {"rejected": 1, "stopped": 2, "waiting": 3}
        ranked = sorted(self.entries, key=lambda name: (tier.get(self.entries[name].status, 0), -self.value(name)))
        return tuple(self.entries[name] for name in ranked)

    def publish(self, phase: Phase, message: str, round_: int | None = None) -> None:
        """Publish the current leaderboard. `round_` is the number of its round; None means the last finished round."""
        self.refresh()
        round_, calls = self.rounds_done if round_ is None else round_, self.table.calls
        expected = max(self.calls_expected, calls)
        self.judge.progress.publish(
            LeaderboardSnapshot(phase, round_, message, calls, expected, self.candidates(), self.table.usage)
        )


def ensemble_scores(values: FloatArray) -> FloatArray:
    """Return the mean of the available scores over criteria, (k, n_items) → (n_items,); NaN where all are missing."""
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(values.shape[1], np.nan), where=count > 0)
    return mean


CHUNK = 4  # items of a source in one step: the lowest label, the highest, and two between
LEAST_SPREAD, LEAST_SINGLE = 16, 12  # fewest items at the first rung, in chunks or as single items
LEAST_WHOLE, LEAST_SOURCES = 24, 4  # fewest items and sources at the first rung of whole sources
ENOUGH_ITEMS = 200  # below, races at sample level use whole sources: chunks were tested on 210 items and more
FIRST_SHARE = 0.04  # share of the items at the first rung
MORE_ITEMS, ARMS_LEFT = 1.5, 0.64  # factors from rung to rung, so that all cost about the same
WHOLE_STEPS = ((0.08, 1.0), (0.2, 0.4), (0.5, 0.15), (1.0, 0.0))  # rungs: share of the sources, share of the candidates
STEP_CALLS = 512  # a batch should keep 64 parallel requests busy for several rounds
STEP_ITEMS = 20
MOST_STEPS = 40  # storing a snapshot gets slower as scores accumulate, so the number of steps is limited


def step_items(n_items: int, n_criteria: int) -> int:
    """Return the number of items per step. After each step, the scores are stored and the leaderboard is published."""
    return max(STEP_ITEMS, math.ceil(STEP_CALLS / max(n_criteria, 1)), math.ceil(n_items / MOST_STEPS))


# ── the order of the items ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Order:
    """Order of the items in a race. Items are scored in chunks.

    Attributes:
        ends: Number of items up to the end of each chunk.
        first: Smallest number of items to rank candidates on. None if each chunk is a whole source.
    """

    items: IntArray
    ends: IntArray
    first: int | None = None

    def nearest_end(self, items: float) -> int:
        """Return the value in `ends` that is closest to `items`."""
        return int(self.ends[np.argmin(np.abs(self.ends - items))])

    def up_to(self, share: float) -> int:
        """Return the number of items in the first `share` of the sources.

        If `share` is too small, more sources are included, until there are LEAST_WHOLE items and LEAST_SOURCES sources.
        """
        n_chunks = max(math.ceil(share * self.ends.size), min(LEAST_SOURCES, self.ends.size))
        least = max(int(self.ends[n_chunks - 1]), LEAST_WHOLE)
        return int(min(self.ends[self.ends >= least], default=self.ends[-1]))


def whole_sources(sources: IntArray, seed: int) -> Order:
    """Return an order of whole sources, shuffled with `seed`."""
    names, codes = np.unique(sources, return_inverse=True)
    place = np.argsort(np.random.default_rng([seed, 2]).permutation(names.size))[codes]
    items = np.argsort(place, kind="stable")
    return Order(items, np.cumsum(np.bincount(place)))


def spread_in_sources(labels: FloatArray, sources: IntArray, seed: int) -> Order:
    """Order items by taking up to `CHUNK` items from each source in turn, spread over the source's labels.

    Sources are in random order. Sources whose labels are all equal come last, because their correlation is undefined.
    """
    rng = np.random.default_rng([seed, 2])
    names, codes = np.unique(sources, return_inverse=True)
    place = rng.permutation(names.size)[codes]
    ranked = np.lexsort((rng.random(labels.size), labels, place))
    sizes = np.bincount(place)
    turns = []
    for own in np.split(labels[ranked], np.cumsum(sizes)[:-1]):
        turn, left = np.full(own.size, sizes.max() if own[0] == own[-1] else 0), np.arange(own.size)
        for k in range(math.ceil(own.size / CHUNK)):
            taken = np.unique(np.rint(np.linspace(0, left.size - 1, min(CHUNK, left.size))).astype(np.intp))
            turn[left[taken]] += k
            left = np.delete(left, taken)
        turns.append(turn)
    order = np.argsort(np.concatenate(turns), kind="stable")
    chunk = np.stack([np.concatenate(turns)[order], place[ranked[order]]])
    last = np.append((np.diff(chunk) != 0).any(axis=0), True)
    return Order(ranked[order], np.flatnonzero(last) + 1, LEAST_SPREAD)


def spread_over_all(labels: FloatArray, seed: int) -> Order:
    """Return an order of single items. Its first k items are spread evenly over the labels, for every k."""
    # a van der Corput sequence, randomly rotated
    rng, n = np.random.default_rng([seed, 2]), labels.size
    ranked = np.lexsort((rng.random(n), labels))
    bits = max(1, (n - 1).bit_length())
    mirrored = np.array([int(f"{k:0{bits}b}"[::-1], 2) for k in range(2**bits)])
    places = (mirrored[mirrored < n] + rng.integers(n)) % n
    return Order(ranked[places], np.arange(1, n + 1), LEAST_SINGLE)


def racing_order(items: LabelledItems, settings: CalibrationSettings, *, may_end_early: bool = False) -> Order:
    """Return the order of items in a race: spread over their labels, or whole sources in random order.

    Args:
        may_end_early: Whether a budget may end the race, so that the report uses only the first items of the race.
            Whole sources then keep the report from being optimistic.
    """
    level = settings.level or items.usual_level
    whole = settings.revisit == "full" or level == "system" or may_end_early
    if whole or (level == "sample" and items.n < ENOUGH_ITEMS):
        return whole_sources(items.sources, settings.seed)
    if level == "dataset":
        return spread_over_all(items.labels, settings.seed)
    return spread_in_sources(items.labels, items.sources, settings.seed)


# ── the race ──────────────────────────────────────────────────────────────────────────────────────────────────────────


Rung = tuple[int, int]
"""Number of candidates, and number of first items of the order that they are scored on."""


def schedule(settings: CalibrationSettings, n_arms: int, order: Order) -> tuple[Rung, ...]:
    """Return the rungs (rounds) of a race, as pairs: number of candidates, and number of items to score them on.

    Each rung has fewer candidates and more items than the rung before. The last rung has the finalists and all items.
    There is only one rung if `settings.revisit` is "full", or if all candidates are finalists.
    """
    rungs: list[Rung] = []
    if settings.revisit == "racing" and n_arms > settings.finalists:
        if order.first is None:
            steps = [(order.up_to(share), math.ceil(arms * n_arms)) for share, arms in WHOLE_STEPS]
        else:
            first = max(FIRST_SHARE * order.items.size, order.first)
            n_steps = 2 + max(0, math.ceil(math.log(order.items.size / first, MORE_ITEMS)))
            steps = [(order.nearest_end(first * MORE_ITEMS**k), round(n_arms * ARMS_LEFT**k)) for k in range(n_steps)]
        for items, arms in steps:
            if not rungs or items > rungs[-1][1]:
                rungs.append((min(n_arms, max(settings.finalists, arms)), items))
    return tuple(rungs) if len(rungs) > 1 else ((n_arms, order.items.size),)


def race_calls(settings: CalibrationSettings, n_arms: int, order: Order, *, with_baseline: bool = False) -> int:
    """Return the number of calls in a race. `with_baseline` adds the baseline, which takes part in all rungs."""
    arms, items = np.array(schedule(settings, n_arms, order)).T
    return int((arms + with_baseline) @ np.diff(items, prepend=0))


def revisit(
    pool: CandidatePool, arms: Sequence[Criteria], order: Order, *, phase: Phase, round_: int
) -> tuple[tuple[str, ...], int, bool]:
    """Run a race between the candidates `arms`. Candidates that drop out get the status "stopped".

    If the budget doesn't cover the first rung (round) of the race, all candidates are scored on fewer items. If the
    budget doesn't cover a later rung, fewer candidates remain.

    Returns:
        The ids of the remaining candidates, best first.
        The number of items that they were scored on.
        Whether the budget ended the race early.
    """
    baseline = [e.criteria for e in pool.entries.values() if e.status == "baseline" and e.calls < pool.items.n]
    by_id = {each.criteria_id: each for each in (*arms, *baseline)}
    alive, done, cut = list(by_id)[: len(arms)], 0, False
    for n_arms, until in schedule(pool.settings, len(arms), order):
        survivors = (_best_first(pool, alive, order, done) if done else alive)[:n_arms]
        end, left = until, pool.table.left
        if (len(survivors) + len(baseline)) * (until - done) > left:
            cut = True
            if done:
                survivors = survivors[: max(0, int(left // (until - done)) - len(baseline))]
            else:
                end = max(order.ends[order.ends * len(by_id) <= left].tolist(), default=0)
        if not survivors or not end:
            break
        pool.mark([i for i in alive if i not in survivors], "stopped")
        alive = survivors
        running = (*(by_id[i] for i in alive), *baseline)
        size = step_items(end - done, len(running))
        for stop in order.ends[(order.ends > done) & (order.ends <= end)].tolist():
            if stop - done >= size or stop == end:
                if not pool.score(running, pool.items.positions[order.items[done:stop]].tolist()):
                    return tuple(pool.ranked(alive)) if done else (), done, True
                done = stop
                pool.publish(phase, f"{len(alive)} of {len(arms)} sets of criteria scored on {done} items each", round_)
    return tuple(pool.ranked(alive)) if done else (), done, cut


def _best_first(pool: CandidatePool, ids: Sequence[str], order: Order, items: int) -> list[str]:
    """Sort `ids` by `race_keys` on the first `items` of the order; ties keep their order."""
    if order.first is None:
        return pool.ranked(ids)
    places = order.items[:items]
    scores = np.stack([pool.values(criteria_id)[places] for criteria_id in ids])
    return [ids[k] for k in np.argsort(-race_keys(scores, pool.items.take(places), pool.measure), kind="stable")]


def race_keys(scores: FloatArray, items: LabelledItems, measure: Measure) -> FloatArray:
    """Return the key (k,) by which a race ranks the `scores` (k, n) of its candidates; the highest key wins.

    At system level, the key is the alignment. At other levels, the key is the mean of the alignment and two
    correlations over all items. On few items, this mean predicts the winner better than the alignment alone.

    A missing score is NaN. The key is −infinity if the alignment is undefined.
    """
    values = np.nan_to_num(alignment_values(scores, items, measure), nan=-np.inf)
    if measure.level == "system":
        return values
    groups = np.unique(items.sources, return_inverse=True)[1]
    if measure.level == "dataset":
        groups, people = np.zeros_like(groups), [average_ranks(items.labels), items.labels]
    else:
        ranks = np.zeros(items.n)
        for group in range(int(groups.max()) + 1):
            own = average_ranks(items.labels[groups == group])
            ranks[groups == group] = (own - own.mean()) / (own.std() or 1.0)
        people = [ranks, ranks]
    known = ~np.isnan(scores)
    means = np.where(known, scores, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
    filled = np.where(known, scores, means[:, None])

    def minus_source_means(values: FloatArray) -> FloatArray:
        sums = np.stack([np.bincount(groups, weights=row) for row in values])
        return np.asarray(values - (sums / np.bincount(groups))[:, groups], dtype=np.float64)

    pooled = []  # the labels correlated with the ranks of the scores, and with the scores
    for own, labels in zip((average_ranks(filled), filled), people, strict=True):
        x, y = minus_source_means(own), minus_source_means(labels[None])[0]
        size = np.sqrt((x * x).sum(axis=1) * (y @ y))
        pooled.append(np.divide(x @ y, size, out=np.zeros(len(x)), where=size > 0))
    return np.asarray(np.mean([values, *pooled], axis=0), dtype=np.float64)
