"""What is scored: the plan for a budget of calls, and the race of candidates over the calibration items (§2.3).

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
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.calibration.calibration_records import CalibrationSettings, Phase
from core.calibration.candidate_pool import CandidatePool
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
                pool.score(running, pool.items.positions[order.items[done:end]].tolist())
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
    """What will be done at most, in `calls` calls.

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

    covered = [f"{chosen.drafts:,} of {n_drafts:,} drafts"] if chosen.drafts < n_drafts else []
    if chosen.drafts and chosen.share < 1:
        covered.append(f"their ranking on {sources.up_to(chosen.share):,} of {items.n:,} calibration items")
    if (chosen.rounds, chosen.refined) != (whole.rounds, whole.refined):
        each = f" with {chosen.refined:,} of {whole.refined:,} refinements each" if chosen.rounds else ""
        covered.append(f"{chosen.rounds} of {whole.rounds} rounds of refining{each}")
    if chosen.ensemble < whole.ensemble:
        covered.append(f"a final judge of {chosen.ensemble} criteria, not {whole.ensemble}")
    if chosen.fitting < fitting:
        covered.append(f"no strengths fitted to all labels (they take {fitting:,} calls)")
    if chosen.reserve < (chosen.ensemble + 1) * n_held_out:
        covered.append(f"not all {n_held_out:,} held-out items ({2 * n_held_out + one_draft:,} calls cover them)")
    return replace(chosen, cut=f"The budget of {settings.budget:,} calls covers {'; '.join(covered)}.")
