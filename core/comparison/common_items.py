"""Which items a comparison rests on: labelled, seen by none of the judges, scored by all; and who costs what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import AspectError, UsageError
from core.records import GoldenSet, IntArray, JudgeScores, Level
from core.stats import LabelledItems

MOST_TAKEN = 1 / 3
"""Share of another judge's items that a judge may take away from the comparison before it stands aside."""


@dataclass(frozen=True, slots=True)
class JudgeCost:
    """What one judge takes away from the items that all are compared on.

    `n_seen` labelled items whose labels chose or fitted it; `unscored` reason → labelled items without a score from it
    (among those not lost to seen labels); `alone` the items that come back when this judge alone is left out.
    """

    n_seen: int
    unscored: dict[str, int]
    alone: int

    @property
    def n_unscored(self) -> int:
        return sum(self.unscored.values())


@dataclass(frozen=True)
class ItemPool:
    """`positions` (n_common,) into `GoldenSet.items`, ascending: what every judge is compared on.

    Of `n_labelled` items `n_seen` fell away because some judge has seen the label, and `n_unscored` more because some
    judge has no score there.  `costs` has one entry per judge.
    """

    positions: IntArray
    n_labelled: int
    n_seen: int
    n_unscored: int
    costs: tuple[JudgeCost, ...]

    @property
    def n_common(self) -> int:
        return int(self.positions.size)


def item_pool(golden: GoldenSet, aspect: str, judges: Sequence[JudgeScores]) -> ItemPool:
    """The items that `judges` are compared on, and what each of them costs.

    AspectError for an unknown aspect; UsageError without a judge, and for a judge of another aspect or golden set.  No
    common item is no error: `positions` is empty then.
    """
    if aspect not in golden.aspects:
        known = ", ".join(golden.aspects) or "none"
        raise AspectError(f"there is no aspect {aspect!r}; it has {known}. Name one of them.", file=golden.name)
    if not judges:
        raise UsageError("There is no judge to compare. Calibrate one, bring in replies, or compute a metric.")
    n = len(golden.items)
    for judge in judges:
        if judge.values.shape != (n,):
            raise UsageError(
                f"The judge {judge.name!r} has {judge.values.size} scores and {golden.name} has {n} items: it belongs "
                "to another golden set."
            )
        if judge.aspect != aspect:
            raise UsageError(f"The judge {judge.name!r} judges {judge.aspect!r}, the comparison is about {aspect!r}.")
    labelled = ~np.isnan(golden.labels(aspect))
    seen = np.array([np.isin(np.arange(labelled.size), list(judge.seen)) for judge in judges])
    scored = ~np.isnan(np.stack([judge.values for judge in judges]))
    in_reach = labelled & ~seen.any(axis=0)
    blocked = (~scored | seen) & labelled
    blockers = blocked.sum(axis=0)
    common = labelled & (blockers == 0)
    costs = []
    for k, judge in enumerate(judges):
        known_reasons = {lost.item_id: lost.reason for lost in judge.unscored}
        lost = np.flatnonzero(in_reach & ~scored[k])
        reasons = Counter(known_reasons.get(golden.item_ids[at], "not asked for") for at in lost)
        alone = int((blocked[k] & (blockers == 1)).sum())
        costs.append(JudgeCost(int((seen[k] & labelled).sum()), dict(reasons.most_common()), alone))
    return ItemPool(
        np.flatnonzero(common),
        n_labelled=int(labelled.sum()),
        n_seen=int((labelled & ~in_reach).sum()),
        n_unscored=int((in_reach & ~common).sum()),
        costs=tuple(costs),
    )


def costly(judges: Sequence[JudgeScores], about: int | None = None) -> tuple[int, ...]:
    """Places of the judges that would each take too many items away: those seen by it, or without a score from it.

    Counted are the items that judge `about` scored and has not seen (None: the judge with most of them).
    """
    if not judges:
        return ()
    positions = np.arange(judges[0].values.size)
    honest = np.stack([~np.isnan(judge.values) & ~np.isin(positions, judge.seen) for judge in judges])
    reference = honest[int(honest.sum(axis=1).argmax()) if about is None else about]
    taken = reference.sum() - (honest & reference).sum(axis=1)
    return tuple(np.flatnonzero(taken > MOST_TAKEN * reference.sum()).tolist())


def usual_level(golden: GoldenSet, aspect: str) -> Level:
    """The level at which `aspect` is usually measured."""
    return LabelledItems.of(golden, aspect).usual_level


def unique_names(judges: Sequence[JudgeScores]) -> tuple[str, ...]:
    """The judges' names in their order, a repeated one numbered: "offline", "offline (2)"."""
    times: Counter[str] = Counter()
    names = []
    for judge in judges:
        times[judge.name] += 1
        names.append(judge.name if times[judge.name] == 1 else f"{judge.name} ({times[judge.name]})")
    return tuple(names)
