"""Criteria revisiting (001 §2.3): score the candidates on the calibration side, in full or by racing.

Racing is successive halving over *sources*: all arms are scored on the first few sources, the better ones on more,
the finalists on all.  Arms are compared on the same items at every rung, so no arm gains by easier texts, and a
stopped arm keeps what was paid for.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.calibration.candidate_pool import AskedJudge, CandidatePool
from core.calibration.records import Phase
from core.calibration.settings import CalibrationSettings
from core.records import Criteria, IntArray

RUNG_SHARES = (0.08, 0.2, 0.5, 1.0)  # of the calibration sources
ARM_SHARES = (1.0, 0.4, 0.15, 0.0)  # of the arms that enter; never fewer than the finalists
MIN_ITEMS = 24  # at the first rung: fewer make a correlation that says nothing
MIN_SOURCES = 4
STEP_CALLS = 512  # a batch should keep 64 parallel requests busy for several rounds
STEP_ITEMS = 20
MOST_STEPS = 40  # storing and showing what is there takes longer the more there is: steps must not grow in number too


def step_items(n_items: int, n_criteria: int) -> int:
    """How many of `n_items` are scored with `n_criteria` at once, before what is there is stored and shown."""
    return max(STEP_ITEMS, math.ceil(STEP_CALLS / max(n_criteria, 1)), math.ceil(n_items / MOST_STEPS))


@dataclass(frozen=True, slots=True)
class Rung:
    """Score `arms` candidates on the first `items` items (in racing order)."""

    arms: int
    items: int


class Order:
    """Calibration items in the order in which racing sees them: whole sources, shuffled once with the run's seed."""

    def __init__(self, sources: IntArray, seed: int) -> None:
        codes = np.unique(sources)
        place = np.empty(int(codes.max()) + 1, dtype=np.intp)
        place[np.random.default_rng([seed, 2]).permutation(codes)] = np.arange(len(codes))
        self.items: IntArray = np.argsort(place[sources], kind="stable").astype(np.intp)
        ordered = sources[self.items]
        ends = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True]) + 1
        self.source_ends: tuple[int, ...] = tuple(int(end) for end in ends)

    def up_to(self, share: float) -> int:
        """How many items the first `share` of the sources hold, at least MIN_ITEMS from MIN_SOURCES sources."""
        n_sources = max(math.ceil(share * len(self.source_ends)), min(MIN_SOURCES, len(self.source_ends)))
        items = self.source_ends[n_sources - 1]
        return next((end for end in self.source_ends if end >= max(items, MIN_ITEMS)), self.source_ends[-1])

    def batches(self, start: int, stop: int, arms: int) -> list[IntArray]:
        """Items start..stop cut at source boundaries into batches of about `step_items`."""
        size = step_items(stop - start, arms)
        cuts, last = [start], start
        for end in self.source_ends:
            if start < end <= stop and (end - last >= size or end == stop):
                cuts.append(end)
                last = end
        return [self.items[a:b] for a, b in itertools.pairwise(cuts)]


def racing_rungs(n_arms: int, finalists: int, order: Order, share: float = 1.0) -> tuple[Rung, ...]:
    """The schedule: fewer arms on more items, `finalists` arms (or all, if fewer enter) on `share` of the sources."""
    total = order.up_to(share)
    rungs: list[Rung] = []
    for step, arms in zip(RUNG_SHARES, ARM_SHARES, strict=True):
        rung = Rung(min(n_arms, max(finalists, math.ceil(arms * n_arms))), order.up_to(step * share))
        if rungs and rung.items == rungs[-1].items:
            continue
        rungs.append(rung)
    if n_arms <= finalists or rungs[0].items >= total:
        return (Rung(n_arms, total),)
    return tuple(rungs)


def schedule(settings: CalibrationSettings, n_arms: int, order: Order, share: float = 1.0) -> tuple[Rung, ...]:
    """Racing's rungs, or one rung of everything for `full`, over the first `share` of the sources."""
    if settings.revisit == "full":
        return (Rung(n_arms, order.up_to(share)),)
    return racing_rungs(n_arms, settings.finalists, order, share)


def rung_calls(rungs: Sequence[Rung], n_reference: int = 0) -> int:
    """Calls that a schedule takes; `n_reference` arms run through all rungs beside the others."""
    calls, done = 0, 0
    for rung in rungs:
        calls += (rung.arms + n_reference) * (rung.items - done)
        done = rung.items
    return calls


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

    The baseline, while it is not scored everywhere, runs along without being ranked.  Before each rung the budget
    is asked: as many of the best arms go on as it covers; when it covers none, the rung before is the last.
    """
    baseline = [e.criteria for e in pool.entries.values() if e.status == "baseline" and e.calls < pool.items.n]
    by_id = {each.criteria_id: each for each in (*arms, *baseline)}
    alive, done, cut = list(by_id)[: len(arms)], 0, False
    for rung in schedule(pool.settings, len(arms), order, share):
        wanted = (pool.ranked(alive) if done else alive)[: rung.arms]
        survivors = wanted[: _affordable(pool, rung.items - done, len(wanted), len(baseline))]
        cut = cut or len(survivors) < len(wanted)
        if not survivors:
            break
        pool.mark([i for i in alive if i not in survivors], "stopped")
        alive = survivors
        running = (*(by_id[i] for i in alive), *baseline)
        if judge.batches is not None:
            judge.progress.publish(pool.snapshot(phase, round_, f"{len(alive)} criteria go by batch"))
        judge.ask_ahead(running, [int(p) for p in pool.items.positions[order.items[done : rung.items]]])
        for batch in order.batches(done, rung.items, len(running)):
            positions = tuple(int(p) for p in pool.items.positions[batch])
            pool.score(judge, running, positions)
            done += len(positions)
            message = f"{len(alive)} of {len(arms)} criteria scored on {done} items each"
            judge.progress.publish(pool.snapshot(phase, round_, message))
    return Revisited(tuple(pool.ranked(alive)) if done else (), done, cut)


def _affordable(pool: CandidatePool, items: int, arms: int, n_baseline: int) -> int:
    """How many of `arms` the budget lets go on for `items` more items each, the baseline beside them."""
    left = pool.budget.left()
    return arms if left is None else max(0, min(arms, left // items - n_baseline))
