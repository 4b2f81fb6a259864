"""Criteria revisiting (001 §2.3): score the candidates on the calibration side, in full or by racing.

Racing is successive halving in small steps: all arms are scored on a few items, then, step after step, two thirds of
them on half as many items again, and the finalists on all (over whole sources, as where there are few items, in large
ones).  Arms are compared on the same items at every rung, so no
arm gains by easier texts, and a stopped arm keeps what was paid for.  `racing_order` says which items come first and
`standings` who goes on.  Both only choose: an alignment on items picked by their labels is flattered, so what is told
of the winner rests on all calibration items, and on held-out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.calibration.calibration_result import Phase
from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.candidate_pool import AskedJudge, CandidatePool
from core.calibration.racing_order import Order
from core.calibration.standings import standings
from core.records import Criteria, IntArray

FIRST_SHARE = 0.04  # of the items, at the first rung
MORE_ITEMS, ARMS_LEFT = 1.5, 0.64  # from rung to rung: all cost about the same
RUNG_SHARES = (0.08, 0.2, 0.5, 1.0)  # of whole sources, in larger steps
ARM_SHARES = (1.0, 0.4, 0.15, 0.0)  # of the arms that enter; never fewer than the finalists
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


def batches(order: Order, start: int, stop: int, arms: int) -> list[IntArray]:
    """Items start..stop of the order, cut at ends of its chunks into batches of about `step_items`."""
    size = step_items(stop - start, arms)
    cuts, last = [start], start
    for end in order.ends:
        if start < end <= stop and (end - last >= size or end == stop):
            cuts.append(end)
            last = end
    return [order.items[a:b] for a, b in itertools.pairwise(cuts)]


def racing_rungs(n_arms: int, finalists: int, order: Order, share: float = 1.0) -> tuple[Rung, ...]:
    """The schedule: fewer arms on more items; the last, `finalists` or more, on `share` of the sources."""
    total = order.up_to(share)
    if n_arms <= finalists:
        return (Rung(n_arms, total),)
    steps = _large_steps(n_arms, order, share) if order.first is None else _small_steps(n_arms, order, order.first)
    rungs: list[Rung] = []
    for arms, items in steps:
        if not rungs or items > rungs[-1].items:
            rungs.append(Rung(min(n_arms, max(finalists, arms)), items))
        if items >= total:
            break
    return tuple(rungs) if len(rungs) > 1 else (Rung(n_arms, total),)


def _large_steps(n_arms: int, order: Order, share: float) -> Iterator[tuple[int, int]]:
    for step, arms in zip(RUNG_SHARES, ARM_SHARES, strict=True):
        yield math.ceil(arms * n_arms), order.up_to(step * share)


def _small_steps(n_arms: int, order: Order, first: int) -> Iterator[tuple[int, int]]:
    items, arms = max(FIRST_SHARE * order.items.size, first), float(n_arms)
    while True:
        yield round(arms), order.near(items)
        items, arms = items * MORE_ITEMS, arms * ARMS_LEFT


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
        wanted = (_best_first(pool, alive, order, done) if done else alive)[: rung.arms]
        survivors = wanted[: _affordable(pool, rung.items - done, len(wanted), len(baseline))]
        cut = cut or len(survivors) < len(wanted)
        if not survivors:
            break
        pool.mark([i for i in alive if i not in survivors], "stopped")
        alive = survivors
        running = (*(by_id[i] for i in alive), *baseline)
        for batch in batches(order, done, rung.items, len(running)):
            positions = tuple(int(p) for p in pool.items.positions[batch])
            pool.score(judge, running, positions)
            done += len(positions)
            message = f"{len(alive)} of {len(arms)} criteria scored on {done} items each"
            judge.progress.publish(pool.snapshot(phase, round_, message))
    return Revisited(tuple(pool.ranked(alive)) if done else (), done, cut)


def _best_first(pool: CandidatePool, ids: Sequence[str], order: Order, items: int) -> list[str]:
    """`ids` as they stand on the first `items` of the order; ties keep theirs."""
    if order.first is None:
        return pool.ranked(ids)
    places = order.items[:items]
    scores = np.stack([pool.values(criteria_id)[places] for criteria_id in ids])
    standing = standings(scores, pool.items.take(places), pool.measure)
    return [ids[k] for k in np.argsort(-standing, kind="stable")]


def _affordable(pool: CandidatePool, items: int, arms: int, n_baseline: int) -> int:
    """How many of `arms` the budget lets go on for `items` more items each, the baseline beside them."""
    left = pool.budget.left()
    return arms if left is None else max(0, min(arms, left // items - n_baseline))
