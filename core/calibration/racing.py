"""Racing: score candidates on the calibration items in full, or by successive halving in small steps (§2.3).

All arms are scored on a few items, then, step after step, two thirds of them on half as many items again, and the
finalists on all.  Arms are compared on the same items at every rung, so no arm gains by easier texts, and a stopped arm
keeps the scores that were paid for.  Sets with few items race over whole sources in larger steps.

Order and ranking only choose.  An alignment on items picked by their labels is optimistic, so whatever is reported of
the winner rests on all calibration items, and on held-out items.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.calibration.calibration_result import Phase
from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.candidate_pool import AskedJudge, CandidatePool
from core.records import Criteria, FloatArray, IntArray, Measure
from core.stats import LabelledItems, alignment_values, average_ranks

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


@dataclass(frozen=True, slots=True)
class Rung:
    """Score `arms` candidates on the first `items` items of the order."""

    arms: int
    items: int


def schedule(settings: CalibrationSettings, n_arms: int, order: Order, share: float = 1.0) -> tuple[Rung, ...]:
    """The rungs over the first `share` of the sources: fewer arms on more items, the finalists on all of them.

    A single rung for `full`, and where there are no more arms than finalists.
    """
    total = order.up_to(share)
    rungs: list[Rung] = []
    if settings.revisit == "racing" and n_arms > settings.finalists:
        if order.first is None:
            steps = [(order.up_to(step * share), math.ceil(arms * n_arms)) for step, arms in WHOLE_STEPS]
        else:
            first = max(FIRST_SHARE * order.items.size, order.first)
            n_steps = 2 + max(0, math.ceil(math.log(order.items.size / first, MORE_ITEMS)))
            steps = [(order.near(first * MORE_ITEMS**k), round(n_arms * ARMS_LEFT**k)) for k in range(n_steps)]
        for items, arms in steps:
            if not rungs or items > rungs[-1].items:
                rungs.append(Rung(min(n_arms, max(settings.finalists, arms)), items))
    return tuple(rungs) if len(rungs) > 1 else (Rung(n_arms, total),)


def rung_calls(rungs: Sequence[Rung], n_reference: int = 0) -> int:
    """Calls that a schedule takes; `n_reference` arms run through all rungs next to the others."""
    items = np.array([0, *(rung.items for rung in rungs)])
    return int((np.array([rung.arms for rung in rungs]) + n_reference) @ np.diff(items))


# ── the race ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Revisited:
    """`complete` ids, best first, were all scored on the same `items` items: all of them, or what the budget gave."""

    complete: tuple[str, ...]
    items: int
    out_of_budget: bool


def revisit(
    judge: AskedJudge,
    pool: CandidatePool,
    arms: Sequence[Criteria],
    order: Order,
    *,
    phase: Phase,
    round_: int,
    share: float = 1.0,
) -> Revisited:
    """Score `arms` by the chosen schedule; those that fall out are marked stopped.

    The baseline, while it is not scored everywhere, is scored too, without being ranked.  Each rung keeps as many of
    the best arms as the budget covers; when it covers none, the rung before is the last.
    """
    baseline = [e.criteria for e in pool.entries.values() if e.status == "baseline" and e.calls < pool.items.n]
    by_id = {each.criteria_id: each for each in (*arms, *baseline)}
    alive, done, cut = list(by_id)[: len(arms)], 0, False
    for rung in schedule(pool.settings, len(arms), order, share):
        wanted = (_best_first(pool, alive, order, done) if done else alive)[: rung.arms]
        left = pool.budget.left()
        affordable = len(wanted) if left is None else max(0, left // (rung.items - done) - len(baseline))
        survivors = wanted[:affordable]
        cut = cut or len(survivors) < len(wanted)
        if not survivors:
            break
        pool.mark([i for i in alive if i not in survivors], "stopped")
        alive = survivors
        running = (*(by_id[i] for i in alive), *baseline)
        size = step_items(rung.items - done, len(running))
        for end in order.ends[(order.ends > done) & (order.ends <= rung.items)].tolist():
            if end - done >= size or end == rung.items:
                pool.score(judge, running, pool.items.positions[order.items[done:end]].tolist())
                done = end
                message = f"{len(alive)} of {len(arms)} criteria scored on {done} items each"
                judge.progress.publish(pool.snapshot(phase, round_, message))
    return Revisited(tuple(pool.ranked(alive)) if done else (), done, cut)


def _best_first(pool: CandidatePool, ids: Sequence[str], order: Order, items: int) -> list[str]:
    """`ids` by their standing on the first `items` of the order; ties keep their order."""
    if order.first is None:
        return pool.ranked(ids)
    places = order.items[:items]
    scores = np.stack([pool.values(criteria_id)[places] for criteria_id in ids])
    standing = standings(scores, pool.items.take(places), pool.measure)
    return [ids[k] for k in np.argsort(-standing, kind="stable")]


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
    pooled = []
    for own, labels in zip((average_ranks(filled), filled), people, strict=True):
        x, y = _less_means(own, groups), _less_means(labels[None], groups)[0]
        size = np.sqrt((x * x).sum(axis=1) * (y @ y))
        pooled.append(np.divide(x @ y, size, out=np.zeros(len(x)), where=size > 0))
    return np.asarray(np.mean([values, *pooled], axis=0), dtype=np.float64)


def _less_means(values: FloatArray, groups: IntArray) -> FloatArray:
    """`values` (k, n) less the means of their groups."""
    sums = np.stack([np.bincount(groups, weights=row) for row in values])
    return np.asarray(values - (sums / np.bincount(groups))[:, groups], dtype=np.float64)
