"""The candidates: what each scored and what it cost, the race between them, and the plan for a budget.

All arms are scored on a few items, then, step after step, two thirds of them on half as many items again, and the
finalists on all.  Arms are compared on the same items at every rung, so no arm gains by easier texts, and a stopped arm
keeps the scores that were paid for.  Sets with few items race over whole sources in larger steps.

Order and ranking only choose.  An alignment on items picked by their labels is optimistic, so whatever is reported of
the winner rests on all calibration items, and on held-out items.

A budget is planned over the whole loop before the first call, so that what is cut is known and reported.  First come
the calls that the report needs: the final judge's criteria and the baseline on every held-out item; then, of a judge
that fits strengths, the calls for that.  The rest goes to drafts, their ranking and the refinement rounds.  Drafts and
refinements are cut by the same share, as long as a quarter of the drafts is left and every parent gets a refinement.
Below that, refining is left out and the drafts get everything, ranked on fewer sources where necessary.  Only where not
even one draft can be paid for next to the held-out items are those cut, too.
"""

from __future__ import annotations

import itertools
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
    TracePoint,
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
from core.stats import Difference, LabelledItems, align_each, alignment_values, average_ranks, paired_difference
from core.verdicts import Scores

BoolArray = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Keeper:
    """Interface for storing the answers of a judge as they arrive; the default stores nothing."""

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
        batch = without_copies(self.judge.draft(self.task, requests), requests, self.task)
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
    `unscored`, item id → why there is no score; `said`, item id → what the judge said of its score.  `calls` count
    against the `limit` (None: no limit), of which `reserve` are kept back for the held-out items.  `dollars` are the
    budget in dollars, and `ended` says that it is used up.
    """

    def __init__(
        self, item_ids: Sequence[str], limit: int | None = None, *, reserve: int = 0, spent: Prepared | None = None
    ) -> None:
        n = len(item_ids)
        self.places = {item_id: k for k, item_id in enumerate(item_ids)}
        self.limit, self.reserve = limit, reserve
        self.dollars: float | None = None
        self._price = 0.0
        self.ended: BudgetSpentError | None = None
        self.calls, self.usage = (0, Usage()) if spent is None else (spent.calls, spent.usage)
        self.unscored = defaultdict[str, dict[str, Unscored]](dict)
        self.values = defaultdict[str, FloatArray](lambda: np.full(n, np.nan))
        self.asked = defaultdict[str, BoolArray](lambda: np.zeros(n, dtype=np.bool_))
        self.said = defaultdict[str, dict[str, str]](dict)
        self._turned = defaultdict[str, FloatArray](lambda: np.full(n, np.nan))

    def spend(self, calls: int, usage: Usage) -> None:
        self.calls += calls
        self.usage = self.usage + usage

    def left(self, *, with_reserve: bool = False) -> int | None:
        """Calls left, None without a limit; of a budget in dollars no more than the last scores cost each."""
        if self.ended is not None:
            return 0
        if self.limit is None:
            return None
        left = self.limit - self.calls
        if self.dollars is not None and self._price:
            left = min(left, math.floor((self.dollars - (self.usage.cost or 0.0)) / self._price))
        return max(0, left - (0 if with_reserve else self.reserve))

    def ask(self, judge: AskedJudge, criteria: Sequence[Criteria], positions: Sequence[int]) -> bool:
        """Have items scored, count the calls, and enter the scores; False where the budget in dollars ended it."""
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
        """The budget in dollars is used up: a batch was stopped, and its scores are not entered."""
        self.ended = error
        self.spend(error.usage.requests + error.usage.cached, error.usage)

    def enter(self, matrix: ScoreMatrix, *, stored: bool = False) -> None:
        """Enter scores.  Of `stored` ones an item counts as asked for where it has a value or a reason."""
        places = np.array([self.places[item_id] for item_id in matrix.item_ids], dtype=np.intp)
        for k, (name, row) in enumerate(zip(matrix.criteria_ids, matrix.values, strict=True)):
            reasons = {verdict.item_id: verdict for verdict in matrix.unscored.get(name, ())}
            there = ~np.isnan(row) | (not stored)
            self.unscored[name] |= reasons
            if isinstance(matrix, Scores):
                self.said[name] |= matrix.said.get(name, {})
            self.values[name][places[there]] = row[there]
            if matrix.turned is not None:
                self._turned[name][places[there]] = matrix.turned[k][there]
            self.asked[name][places[there]] = True
            self.asked[name][[self.places[item_id] for item_id in reasons]] = True

    def mean(self, ids: Sequence[str]) -> FloatArray:
        """(n_items,) mean of the available scores."""
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
        self.calls_expected = 0
        self.rounds_done = 0

    def add(self, criteria: Iterable[Criteria], status: Status = "waiting") -> None:
        for each in criteria:
            self.entries.setdefault(each.criteria_id, Candidate(each, status))

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> bool:
        """Have calibration items scored with candidates; False where the budget in dollars ended it."""
        if not self.table.ask(self.judge, criteria, positions):
            return False
        for each in criteria:
            entry = self.entries[each.criteria_id]
            status = "running" if entry.status == "waiting" else entry.status
            self.entries[each.criteria_id] = replace(
                entry, status=status, calls=int(self.asked(each.criteria_id).sum())
            )
        return True

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
        for ids in groups.values():  # those scored on the same items in one go
            is_asked = self.asked(ids[0])
            scores = np.stack([self.values(name)[is_asked] for name in ids])
            for name, found in zip(ids, self.align(scores, self.items.take(is_asked)), strict=True):
                entry, trace = self.entries[name], self.entries[name].trace
                if not trace or trace[-1].items < entry.calls:
                    trace = (*trace, TracePoint(entry.calls, found.value))
                self.entries[name] = replace(entry, alignment=found, trace=trace)

    def align(self, scores: FloatArray, items: LabelledItems) -> list[Alignment]:
        """Alignments of `scores` (k, n) with the labels of `items`, with intervals."""
        return align_each(scores, items, self.measure, seed=[self.settings.seed, 9])

    def difference(self, first: FloatArray, second: FloatArray, items: LabelledItems) -> Difference:
        """Alignment of `first` minus that of `second`, (n,) each, on those of `items` that both scored."""
        return paired_difference(first, second, items, self.measure, seed=[self.settings.seed, 10])

    def value(self, criteria_id: str) -> float:
        """The alignment on what was scored so far, minus infinity when undefined: the ranking key."""
        alignment = self.entries[criteria_id].alignment
        return -np.inf if alignment is None or alignment.value is None else alignment.value

    def ranked(self, ids: Iterable[str]) -> list[str]:
        """Best first; ties keep the order in which the candidates came."""
        return sorted(ids, key=self.value, reverse=True)

    def with_status(self, status: Status) -> list[str]:
        return [name for name, entry in self.entries.items() if entry.status == status]

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
        expected = max(self.calls_expected, calls)
        self.judge.progress.publish(
            LeaderboardSnapshot(phase, round_, message, calls, expected, self.candidates(), self.table.usage)
        )


def ensemble_scores(values: FloatArray) -> FloatArray:
    """(n_items,) mean over criteria (k, n_items) of the available scores; NaN if there are none."""
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
TIGHTER = ((1, 1), (0.75, 1), (0.5, 1), (0.5, 0.6), (0.4, 0.5), (0.3, 0.4), (0.25, 0.3), (0.2, 0.2), (0.1, 0.1))
"""Without refining, the dearest first: share of the drafts, share of the calibration items they are ranked on."""
REFINED_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25)
"""With refining: share of the drafts and of the refinements of each round."""
MOST_STEPS = 40  # each stored snapshot takes longer the more there is, so steps must not grow in number too


def step_items(n_items: int, n_criteria: int) -> int:
    """How many of `n_items` are scored with `n_criteria` before scores are stored and shown."""
    return max(STEP_ITEMS, math.ceil(STEP_CALLS / max(n_criteria, 1)), math.ceil(n_items / MOST_STEPS))


# ── the order of the items ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class Order:
    """Items (n,) in their order, in chunks that stay together and end at `ends`.

    `first` is the fewest items to rank on where labels are spread; None for whole sources.
    """

    items: IntArray
    ends: IntArray
    first: int | None = None

    def near(self, items: float) -> int:
        """The end of the chunk that ends nearest to so many items."""
        return int(self.ends[np.argmin(np.abs(self.ends - items))])

    def up_to(self, share: float) -> int:
        """How many items the first `share` of whole sources hold, at least LEAST_WHOLE from LEAST_SOURCES of them."""
        n_chunks = max(math.ceil(share * self.ends.size), min(LEAST_SOURCES, self.ends.size))
        least = max(int(self.ends[n_chunks - 1]), LEAST_WHOLE)
        return int(min(self.ends[self.ends >= least], default=self.ends[-1]))


def whole_sources(sources: IntArray, seed: int) -> Order:
    """Whole sources, shuffled once with the run's seed."""
    names, codes = np.unique(sources, return_inverse=True)
    place = np.argsort(np.random.default_rng([seed, 2]).permutation(names.size))[codes]
    items = np.argsort(place, kind="stable")
    return Order(items, np.cumsum(np.bincount(place)))


def spread_in_sources(labels: FloatArray, sources: IntArray, seed: int) -> Order:
    """Of each source, in shuffled order, `CHUNK` items spread from its lowest label to its highest; then the next.

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
    """Single items such that every beginning is spread over all labels (van der Corput, rotated by chance)."""
    rng, n = np.random.default_rng([seed, 2]), labels.size
    ranked = np.lexsort((rng.random(n), labels))
    bits = max(1, (n - 1).bit_length())
    mirrored = np.array([int(f"{k:0{bits}b}"[::-1], 2) for k in range(2**bits)])
    places = (mirrored[mirrored < n] + rng.integers(n)) % n
    return Order(ranked[places], np.arange(1, n + 1), LEAST_SINGLE)


def racing_order(items: LabelledItems, settings: CalibrationSettings, share: float = 1.0) -> Order:
    """Choose the order: spread over the labels where candidates race over all items, else whole sources by chance.

    With `share` < 1 the budget ends before the items do.  Then the report rests on these items, and items picked by
    their labels would make it optimistic.
    """
    level = settings.level or items.usual_level
    whole = settings.revisit == "full" or level == "system" or share < 1.0
    if whole or (level == "sample" and items.n < ENOUGH_ITEMS):
        return whole_sources(items.sources, settings.seed)
    if level == "dataset":
        return spread_over_all(items.labels, settings.seed)
    return spread_in_sources(items.labels, items.sources, settings.seed)


# ── the schedule ──────────────────────────────────────────────────────────────────────────────────────────────────────


Rung = tuple[int, int]
"""So many candidates are scored on so many of the first items of the order."""


def schedule(settings: CalibrationSettings, n_arms: int, order: Order, share: float = 1.0) -> tuple[Rung, ...]:
    """The rungs over the first `share` of the sources: fewer arms on more items, the finalists on all of them.

    A single rung for `full`, and where there are no more arms than finalists.
    """
    rungs: list[Rung] = []
    if settings.revisit == "racing" and n_arms > settings.finalists:
        if order.first is None:
            steps = [(order.up_to(step * share), math.ceil(arms * n_arms)) for step, arms in WHOLE_STEPS]
        else:
            first = max(FIRST_SHARE * order.items.size, order.first)
            n_steps = 2 + max(0, math.ceil(math.log(order.items.size / first, MORE_ITEMS)))
            steps = [(order.near(first * MORE_ITEMS**k), round(n_arms * ARMS_LEFT**k)) for k in range(n_steps)]
        for items, arms in steps:
            if not rungs or items > rungs[-1][1]:
                rungs.append((min(n_arms, max(settings.finalists, arms)), items))
    return tuple(rungs) if len(rungs) > 1 else ((n_arms, order.up_to(share)),)


def rung_calls(rungs: Sequence[Rung], n_reference: int = 0) -> int:
    """Calls that a schedule takes; `n_reference` arms run through all rungs next to the others."""
    arms, items = np.array(rungs).T
    return int((arms + n_reference) @ np.diff(items, prepend=0))


# ── the race ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def revisit(
    pool: CandidatePool,
    arms: Sequence[Criteria],
    order: Order,
    *,
    phase: Phase,
    round_: int,
    share: float = 1.0,
) -> tuple[tuple[str, ...], int, bool]:
    """Score `arms` by the chosen schedule; those that fall out are marked stopped.

    Returns ids, best first, that were all scored on the same items; how many items these are, all or what the budget
    gave; and whether the budget ended before.

    The baseline, while it is not scored everywhere, is scored too, without being ranked.  Each rung keeps as many of
    the best arms as the budget covers; when it covers none, the rung before is the last.
    """
    baseline = [e.criteria for e in pool.entries.values() if e.status == "baseline" and e.calls < pool.items.n]
    by_id = {each.criteria_id: each for each in (*arms, *baseline)}
    alive, done, cut = list(by_id)[: len(arms)], 0, False
    for n_arms, items in schedule(pool.settings, len(arms), order, share):
        wanted = (_best_first(pool, alive, order, done) if done else alive)[:n_arms]
        left = pool.table.left()
        affordable = len(wanted) if left is None else max(0, left // (items - done) - len(baseline))
        survivors = wanted[:affordable]
        cut = cut or len(survivors) < len(wanted)
        if not survivors:
            break
        pool.mark([i for i in alive if i not in survivors], "stopped")
        alive = survivors
        running = (*(by_id[i] for i in alive), *baseline)
        size = step_items(items - done, len(running))
        for end in order.ends[(order.ends > done) & (order.ends <= items)].tolist():
            if end - done >= size or end == items:
                if not pool.score(running, pool.items.positions[order.items[done:end]].tolist()):
                    return tuple(pool.ranked(alive)) if done else (), done, True
                done = end
                pool.publish(phase, f"{len(alive)} of {len(arms)} criteria scored on {done} items each", round_)
    return tuple(pool.ranked(alive)) if done else (), done, cut


def _best_first(pool: CandidatePool, ids: Sequence[str], order: Order, items: int) -> list[str]:
    """`ids` by their standing on the first `items` of the order; ties keep their order."""
    if order.first is None:
        return pool.ranked(ids)
    places = order.items[:items]
    scores = np.stack([pool.values(criteria_id)[places] for criteria_id in ids])
    return [ids[k] for k in np.argsort(-standings(scores, pool.items.take(places), pool.measure), kind="stable")]


def standings(scores: FloatArray, items: LabelledItems, measure: Measure) -> FloatArray:
    """(k,) what racing ranks `scores` (k, n) on some `items` by, NaN = unscored; minus infinity without an alignment.

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
        """`values` (k, n) less the means of their sources."""
        sums = np.stack([np.bincount(groups, weights=row) for row in values])
        return np.asarray(values - (sums / np.bincount(groups))[:, groups], dtype=np.float64)

    pooled = []
    for own, labels in zip((average_ranks(filled), filled), people, strict=True):
        x, y = less_means(own), less_means(labels[None])[0]
        size = np.sqrt((x * x).sum(axis=1) * (y @ y))
        pooled.append(np.divide(x @ y, size, out=np.zeros(len(x)), where=size > 0))
    return np.asarray(np.mean([values, *pooled], axis=0), dtype=np.float64)


# ── the plan for a budget ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """The work that `calls` calls cover.

    `drafts` are asked for and ranked on the first `share` of the calibration items; then `rounds` rounds ask for
    `refined` refinements each; the best `ensemble` criteria make the final judge.  `reserve` calls are kept for the
    held-out items and `fitting` for fitting strengths.  `cut` says in a sentence what the budget does not cover.
    """

    drafts: int
    share: float
    rounds: int
    refined: int
    ensemble: int
    reserve: int
    calls: int
    fitting: int = 0
    cut: str = ""


def plan_work(
    settings: CalibrationSettings, items: LabelledItems, n_held_out: int, fitting: int = 0, spent: int = 0
) -> WorkPlan:
    """Plan what the budget covers of a calibration on `items`; everything without a budget.

    `fitting` is what `fitting_calls` says of its judge; `spent` calls of the budget are gone already.
    """
    n_drafts, order = settings.plan.n_drafts, racing_order(items, settings)
    sources = whole_sources(items.sources, settings.seed)  # the order where not all items are ranked on
    budget = math.inf if settings.budget is None else max(1, settings.budget - spent)

    def plan(paid: tuple[int, int, int], drafts: int, share: float, rounds: int = 0, refined: int = 0) -> WorkPlan:
        """A plan after what is `paid` first: the ensemble, its calls on held-out items, and those for fitting."""
        calls = sum(paid[1:])
        if drafts:
            calls += drafts + rung_calls(schedule(settings, drafts, order if share == 1 else sources, share), 1)
        if refined:
            calls += rounds * (refined + rung_calls(schedule(settings, refined, order)))
        if paid[1] < (paid[0] + 1) * n_held_out:  # held-out items get whatever is left
            calls = max(calls, int(budget))
        return WorkPlan(drafts, share, rounds, refined, *paid[:2], calls, paid[2])

    def refining(paid: tuple[int, int, int]) -> list[WorkPlan]:
        """Plans with at least one round, the dearest first: drafts weigh more than further rounds."""
        return [
            plan(
                paid,
                max(math.ceil(share * n_drafts), min(settings.finalists, n_drafts)),
                1.0,
                rounds,
                max(math.ceil(share * settings.refinements), min(settings.keep, n_drafts)),
            )
            for share in REFINED_SHARES
            for rounds in range(settings.rounds, 0, -1)
        ]

    report = (settings.ensemble, (settings.ensemble + 1) * n_held_out)
    whole = plan((*report, fitting), n_drafts, 1.0, settings.rounds, settings.refinements)
    if whole.calls <= budget:
        return whole
    # as many criteria in the final judge as leave at least one draft to be paid for; fitting comes first
    first = sources.up_to(0.0)
    one_draft = 1 + 2 * first
    affordable = [
        (ensemble, (ensemble + 1) * n_held_out, fits)
        for fits, ensemble in itertools.product((fitting, 0), range(settings.ensemble, 0, -1))
        if (ensemble + 1) * n_held_out + fits + one_draft <= budget
    ]
    paid = affordable[0] if affordable else (1, min(2 * n_held_out, int(budget) * 2 // 5), 0)
    ranking_alone = [plan(paid, math.ceil(arms * n_drafts), share) for arms, share in TIGHTER]
    few = plan(paid, max(0, min(n_drafts, (int(budget) - sum(paid[1:]) - first) // (first + 1))), 0.0)
    chosen = next((each for each in (*refining(paid), *ranking_alone) if each.calls <= budget), few)

    ranked = sources.up_to(chosen.share) if chosen.drafts and chosen.share < 1 else items.n
    done: dict[str, tuple[int, int]] = {
        "drafts": (chosen.drafts, n_drafts),
        "calibration items to rank them on": (ranked, items.n),
        "rounds of refining": (chosen.rounds, whole.rounds),
        "refinements a round": (chosen.refined if chosen.rounds else whole.refined, whole.refined),
        "criteria in the final judge": (chosen.ensemble, whole.ensemble),
    }
    covered = [f"{some:,} of {wanted:,} {what}" for what, (some, wanted) in done.items() if some < wanted]
    if chosen.fitting < fitting:
        covered.append(f"no strengths fitted to all labels (they take {fitting:,} calls)")
    if chosen.reserve < (chosen.ensemble + 1) * n_held_out:
        covered.append(f"not all {n_held_out:,} held-out items ({2 * n_held_out + one_draft:,} calls cover them)")
    return replace(chosen, cut=f"The {settings.budget_words} covers {'; '.join(covered)}.")
