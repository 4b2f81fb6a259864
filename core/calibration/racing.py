"""Candidates of a calibration, their scores and cost, and the race between them (successive halving).

All arms are scored on a few items, then, step after step, two thirds of them on half as many items again, and the
finalists on all.  Arms are compared on the same items at every rung, so no arm gains by easier texts, and a stopped arm
keeps the scores that were paid for.  Sets with few items race over whole sources in larger steps.

Order and ranking only choose.  An alignment on items picked by their labels is optimistic, so whatever is reported of
the winner rests on all calibration items, and on held-out items.  Where a budget may end the race before, its items
are whole sources drawn at random.
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


class Keeper:
    """Interface for storing what a judge answers as it arrives; the default stores nothing."""

    def keep_judge(self, judge: Judge, prepared: Prepared) -> None:
        """Store the judge made ready, before its first score."""

    def add_criteria(self, criteria: Sequence[Criteria]) -> None:
        """Store criteria that were drafted or refined."""

    def add_scores(self, positions: Sequence[int], scores: ScoreMatrix) -> None:
        """Store scores of the items at `positions` (into `GoldenSet.items`)."""


@dataclass(frozen=True)
class AskedJudge:
    """A judge with the golden set that it scores; `prepared` is what its model wrote before the first score."""

    judge: Judge
    golden: GoldenSet
    task: Task
    progress: Progress = SILENT
    prepared: Prepared = field(default_factory=Prepared, kw_only=True)
    keeper: Keeper = field(default_factory=Keeper, kw_only=True)

    def draft(self, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Draft criteria from labelled exemplars, or refine criteria on items that they got wrong."""
        batch = without_copies(self.judge.draft(self.task, requests), requests, self.task)
        self.keeper.add_criteria([drafted for drafted in batch.drafted if not isinstance(drafted, str)])
        return batch

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> ScoreMatrix:
        """Score the items at `positions` (into `GoldenSet.items`) with all `criteria`."""
        items = [self.golden.items[position] for position in positions]
        matrix = self.judge.score(self.task, items, criteria, on_progress=self.progress.advance)
        self.keeper.add_scores(positions, matrix)
        return matrix


class ScoreTable:
    """Scores of criteria over all items of a golden set, filled batch by batch, and what they cost.

    Attributes:
        values: Criteria id → scores (n_items,), NaN where there is none.
        asked: Criteria id → whether a score was requested, (n_items,).
        unscored: Criteria id → item id → why there is no score.
        said: Criteria id → item id → what the judge said of its score.
        clauses: Criteria id → item id → the ratings of its clauses (`Scored.clauses`).
        limit: Most calls; `reserve` of them are kept back for the held-out items.
        dollars: Most dollars, None for no such limit; `ended` is the error that reported it as used up.
    """

    def __init__(self, item_ids: Sequence[str], limit: float = math.inf, dollars: float | None = None) -> None:
        n = len(item_ids)
        self.places = {item_id: k for k, item_id in enumerate(item_ids)}
        self.limit, self.reserve, self.dollars = limit, 0.0, dollars
        self.calls, self.usage = 0, Usage()
        self.ended: BudgetSpentError | None = None
        self._price = 0.0  # dollars for each of the last scores
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
        """Calls that both budgets still allow, infinity without any; the dollars at the price of the last scores."""
        if self.ended is not None:
            return 0
        left = self.limit - self.calls - self.reserve
        if self.dollars is not None and self._price:
            left = min(left, (self.dollars - (self.usage.cost or 0.0)) // self._price - self.reserve)
        return max(0, left)

    def ask(self, judge: AskedJudge, criteria: Sequence[Criteria], positions: Sequence[int]) -> bool:
        """Score items, count the calls, and enter the scores; False if the budget in dollars ended it."""
        try:
            matrix = judge.score(criteria, positions)
        except BudgetSpentError as error:
            self.end(error)
            return False
        self.spend(matrix.calls, matrix.usage)
        if matrix.usage.cost and matrix.usage.requests:  # as if none came from the cache
            replies = matrix.usage.requests + matrix.usage.cached
            self._price = matrix.usage.cost / matrix.usage.requests * replies / matrix.calls
        self.enter(matrix)
        return True

    def end(self, error: BudgetSpentError) -> None:
        """Note that the budget in dollars is used up; the scores of the batch that it stopped are not entered."""
        self.ended = error
        self.spend(error.usage.requests + error.usage.cached, error.usage)

    def enter(self, matrix: ScoreMatrix, *, stored: bool = False) -> None:
        """Enter scores.  In `stored` ones an item was requested if it has a value or a reason."""
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
        """Return the mean of the available scores, (n_items,)."""
        return ensemble_scores(np.stack([self.values[name] for name in ids]))

    def turned(self, ids: Sequence[str]) -> FloatArray | None:
        """Return the scores of pairs in the other order, (n_ids, n_items); None where none was requested."""
        return np.stack([self._turned[name] for name in ids]) if set(ids) & set(self._turned) else None

    def reasons(self, ids: Iterable[str]) -> dict[str, Unscored]:
        """Map item ids to why there is no score, from the first of `ids` that has a reason."""
        reasons: dict[str, Unscored] = {}
        for name in ids:
            reasons = self.unscored[name] | reasons
        return reasons


class CandidatePool:
    """The candidates of one calibration, with their scores on its calibration `items` so far."""

    def __init__(
        self, judge: AskedJudge, items: LabelledItems, settings: CalibrationSettings, table: ScoreTable
    ) -> None:
        self.judge, self.items, self.settings, self.table = judge, items, settings, table
        self.measure = Measure(settings.statistic, settings.level or items.usual_level)
        self.entries: dict[str, Candidate] = {}
        self.aligned_on: dict[str, int] = {}  # how many items an alignment rests on
        self.calls_expected = 0
        self.rounds_done = 0

    def add(self, criteria: Iterable[Criteria], status: Status = "waiting") -> None:
        for each in criteria:
            self.entries.setdefault(each.criteria_id, Candidate(each, status))

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> bool:
        """Score calibration items with candidates; False if the budget in dollars ended it."""
        if not self.table.ask(self.judge, criteria, positions):
            return False
        for each in criteria:
            entry, calls = self.entries[each.criteria_id], int(self.asked(each.criteria_id).sum())
            status = "running" if entry.status == "waiting" else entry.status
            self.entries[each.criteria_id] = replace(entry, status=status, calls=calls)
        return True

    def score_all(self, criteria: Sequence[Criteria]) -> None:
        """Score all calibration items with candidates, some at a time."""
        n, size = self.items.n, step_items(self.items.n, len(criteria))
        for start in range(0, n, size):
            self.score(criteria, self.items.positions[start : start + size].tolist())
            self.publish("revisit", f"{min(start + size, n)} of {n} calibration items scored")

    def values(self, criteria_id: str) -> FloatArray:
        """Return the scores of a candidate, (n_calibration,)."""
        return self.table.values[criteria_id][self.items.positions]

    def asked(self, criteria_id: str) -> BoolArray:
        """Return which items a candidate was scored on, (n_calibration,)."""
        return self.table.asked[criteria_id][self.items.positions]

    def mark(self, ids: Iterable[str], status: Status) -> None:
        """Give candidates a status; the baseline keeps its own."""
        for name in ids:
            if self.entries[name].status != "baseline":
                self.entries[name] = replace(self.entries[name], status=status)

    def refresh(self) -> None:
        """Update alignments that newer scores have made stale."""
        groups: dict[bytes, list[str]] = {}
        for name, entry in self.entries.items():
            if self.aligned_on.get(name, 0) < entry.calls:
                groups.setdefault(self.asked(name).tobytes(), []).append(name)
        for ids in groups.values():  # those scored on the same items in one go
            is_asked = self.asked(ids[0])
            scores = np.stack([self.values(name)[is_asked] for name in ids])
            for name, found in zip(ids, self.align(scores, self.items.take(is_asked)), strict=True):
                self.entries[name] = replace(self.entries[name], alignment=found)
                self.aligned_on[name] = self.entries[name].calls

    def align(self, scores: FloatArray, items: LabelledItems) -> list[Alignment]:
        """Align `scores` (k, n) with the labels of `items`, with intervals."""
        return align_each(scores, items, self.measure, seed=[self.settings.seed, 9])

    def value(self, criteria_id: str) -> float:
        """Return the ranking key: the alignment on what was scored so far, minus infinity when undefined."""
        alignment = self.entries[criteria_id].alignment
        return -np.inf if alignment is None or alignment.value is None else alignment.value

    def ranked(self, ids: Iterable[str]) -> list[str]:
        """Sort candidates, best first; ties keep the order in which the candidates came."""
        return sorted(ids, key=self.value, reverse=True)

    def with_status(self, status: Status) -> list[str]:
        return [name for name, entry in self.entries.items() if entry.status == status]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return all candidates, best first within their tier: in the race or kept, then rejected, stopped, waiting.

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
        expected = max(self.calls_expected, calls)
        self.judge.progress.publish(
            LeaderboardSnapshot(phase, round_, message, calls, expected, self.candidates(), self.table.usage)
        )


def ensemble_scores(values: FloatArray) -> FloatArray:
    """Average the available scores over criteria, (k, n_items) → (n_items,); NaN where there are none."""
    known = ~np.isnan(values)
    total, count = np.where(known, values, 0.0).sum(axis=0), known.sum(axis=0)
    mean: FloatArray = np.divide(total, count, out=np.full(values.shape[1], np.nan), where=count > 0)
    return mean


CHUNK = 4  # items of a source taken at once: its lowest and its highest label, and two from between
LEAST_SPREAD, LEAST_SINGLE = 16, 12  # items at the first rung, of chunks and of single items: fewer say too little
LEAST_WHOLE, LEAST_SOURCES = 24, 4  # items, and sources, at the first rung of whole sources
ENOUGH_ITEMS = 200  # with fewer items in sources a race covers whole sources: chunks were measured on 210 and more
FIRST_SHARE = 0.04  # of the items, at the first rung
MORE_ITEMS, ARMS_LEFT = 1.5, 0.64  # from rung to rung: all cost about the same
WHOLE_STEPS = ((0.08, 1.0), (0.2, 0.4), (0.5, 0.15), (1.0, 0.0))  # shares of whole sources, and of the arms
STEP_CALLS = 512  # a batch should keep 64 parallel requests busy for several rounds
STEP_ITEMS = 20
MOST_STEPS = 40  # each stored snapshot takes longer the more there is, so steps must not grow in number too


def step_items(n_items: int, n_criteria: int) -> int:
    """Choose how many of `n_items` to score with `n_criteria` between two stored and published states."""
    return max(STEP_ITEMS, math.ceil(STEP_CALLS / max(n_criteria, 1)), math.ceil(n_items / MOST_STEPS))


# ── the order of the items ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Order:
    """Order of the items (n,) in a race, in chunks that stay together and end at `ends`.

    `first` is the fewest items to rank on where labels are spread; None for whole sources.
    """

    items: IntArray
    ends: IntArray
    first: int | None = None

    def near(self, items: float) -> int:
        """Return the end of the chunk that ends nearest to so many items."""
        return int(self.ends[np.argmin(np.abs(self.ends - items))])

    def up_to(self, share: float) -> int:
        """Count the items of the first `share` of whole sources, at least LEAST_WHOLE from LEAST_SOURCES of them."""
        n_chunks = max(math.ceil(share * self.ends.size), min(LEAST_SOURCES, self.ends.size))
        least = max(int(self.ends[n_chunks - 1]), LEAST_WHOLE)
        return int(min(self.ends[self.ends >= least], default=self.ends[-1]))


def whole_sources(sources: IntArray, seed: int) -> Order:
    """Order items by whole sources, shuffled once with the run's seed."""
    names, codes = np.unique(sources, return_inverse=True)
    place = np.argsort(np.random.default_rng([seed, 2]).permutation(names.size))[codes]
    items = np.argsort(place, kind="stable")
    return Order(items, np.cumsum(np.bincount(place)))


def spread_in_sources(labels: FloatArray, sources: IntArray, seed: int) -> Order:
    """Order items in turns: from each source in shuffled order, `CHUNK` items spread over its labels; then the next.

    Sources whose labels are all equal, for which no coefficient is defined, come last.
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
    """Order single items so that every beginning is spread over all labels (van der Corput, randomly rotated)."""
    rng, n = np.random.default_rng([seed, 2]), labels.size
    ranked = np.lexsort((rng.random(n), labels))
    bits = max(1, (n - 1).bit_length())
    mirrored = np.array([int(f"{k:0{bits}b}"[::-1], 2) for k in range(2**bits)])
    places = (mirrored[mirrored < n] + rng.integers(n)) % n
    return Order(ranked[places], np.arange(1, n + 1), LEAST_SINGLE)


def racing_order(items: LabelledItems, settings: CalibrationSettings, *, may_end_early: bool = False) -> Order:
    """Choose the order: spread over the labels where candidates race over all items, else whole sources by chance.

    Where the budget may end the race before, the report rests on the first items, and items picked by their labels
    would make it optimistic.
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
    """Plan the rungs of a race: fewer arms on more items, the finalists on all of them.

    A single rung for `full`, and where there are no more arms than finalists.
    """
    rungs: list[Rung] = []
    if settings.revisit == "racing" and n_arms > settings.finalists:
        if order.first is None:
            steps = [(order.up_to(share), math.ceil(arms * n_arms)) for share, arms in WHOLE_STEPS]
        else:
            first = max(FIRST_SHARE * order.items.size, order.first)
            n_steps = 2 + max(0, math.ceil(math.log(order.items.size / first, MORE_ITEMS)))
            steps = [(order.near(first * MORE_ITEMS**k), round(n_arms * ARMS_LEFT**k)) for k in range(n_steps)]
        for items, arms in steps:
            if not rungs or items > rungs[-1][1]:
                rungs.append((min(n_arms, max(settings.finalists, arms)), items))
    return tuple(rungs) if len(rungs) > 1 else ((n_arms, order.items.size),)


def race_calls(settings: CalibrationSettings, n_arms: int, order: Order, *, with_baseline: bool = False) -> int:
    """Count the calls of a race; the baseline runs through all rungs."""
    arms, items = np.array(schedule(settings, n_arms, order)).T
    return int((arms + with_baseline) @ np.diff(items, prepend=0))


def revisit(
    pool: CandidatePool, arms: Sequence[Criteria], order: Order, *, phase: Phase, round_: int
) -> tuple[tuple[str, ...], int, bool]:
    """Score `arms` by the chosen schedule; those that fall out are marked stopped.

    The baseline, while it is not scored everywhere, is scored too, without being ranked.  Where the budget does not
    cover the first rung, all arms are scored on fewer items; a later rung keeps as many of the best arms as it covers.

    Returns:
        Ids, best first, that were all scored on the same items; how many items these are; and whether the budget ended
        the race early.
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
                pool.publish(phase, f"{len(alive)} of {len(arms)} criteria scored on {done} items each", round_)
    return tuple(pool.ranked(alive)) if done else (), done, cut


def _best_first(pool: CandidatePool, ids: Sequence[str], order: Order, items: int) -> list[str]:
    """Sort `ids` by `standings` on the first `items` of the order; ties keep their order."""
    if order.first is None:
        return pool.ranked(ids)
    places = order.items[:items]
    scores = np.stack([pool.values(criteria_id)[places] for criteria_id in ids])
    return [ids[k] for k in np.argsort(-standings(scores, pool.items.take(places), pool.measure), kind="stable")]


def standings(scores: FloatArray, items: LabelledItems, measure: Measure) -> FloatArray:
    """Return the ranking key (k,) of `scores` (k, n) in a race, NaN = unscored; minus infinity without an alignment.

    An alignment at sample level, a mean over a few sources of four items each, uses little of the data.  Its mean with
    two correlations over all items at once finds the later winner more often.  Both take every score less the mean of
    its source and the standardised ranks of the labels within their source: one with the scores' ranks over all items,
    one with the scores themselves.  At dataset level the two are Spearman's and Pearson's over all items.
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

    def less_means(values: FloatArray) -> FloatArray:
        """Subtract the means of their sources from `values` (k, n)."""
        sums = np.stack([np.bincount(groups, weights=row) for row in values])
        return np.asarray(values - (sums / np.bincount(groups))[:, groups], dtype=np.float64)

    pooled = []
    for own, labels in zip((average_ranks(filled), filled), people, strict=True):
        x, y = less_means(own), less_means(labels[None])[0]
        size = np.sqrt((x * x).sum(axis=1) * (y @ y))
        pooled.append(np.divide(x @ y, size, out=np.zeros(len(x)), where=size > 0))
    return np.asarray(np.mean([values, *pooled], axis=0), dtype=np.float64)
