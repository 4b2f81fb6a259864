"""Which items a comparison rests on: labelled, seen by none of the judges, scored by all; and who costs what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.errors import AspectError, UsageError
from core.records import GoldenSet, IntArray, JudgeScores, Level
from core.stats import LabelledItems

ItemsMode = Literal["unseen", "own", "all"]
"""`unseen`: the same items for every judge, whose labels none of them has seen.  `own`: each judge on all that it
scored and has not seen, so on items of its own.  `all`: the same items for every judge, seen labels among them."""

MOST_TAKEN = 1 / 3
"""Share of another judge's items that a judge may take away from the comparison before it stands aside."""

ITEMS_MODES: tuple[ItemsMode, ...] = ("unseen", "own", "all")


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
    judge has no score there.  `costs` has one entry a judge.  `own` (one array a judge) is what each judge is measured
    on: the common items, or in mode `own` its own.
    """

    mode: ItemsMode
    positions: IntArray
    own: tuple[IntArray, ...]
    n_labelled: int
    n_seen: int
    n_unscored: int
    costs: tuple[JudgeCost, ...]

    @property
    def n_common(self) -> int:
        return int(self.positions.size)


def item_pool(golden: GoldenSet, aspect: str, judges: Sequence[JudgeScores], mode: ItemsMode = "unseen") -> ItemPool:
    """The items that `judges` are compared on under `mode`, and what each of them costs.

    AspectError for an unknown aspect; UsageError without a judge, for a judge of another aspect or golden set, or an
    unknown mode.  No common item is no error: `positions` is empty then.
    """
    _require_comparable(golden, aspect, judges, mode)
    labelled = ~np.isnan(golden.labels(aspect))
    seen = np.array([np.isin(np.arange(labelled.size), list(judge.seen)) for judge in judges])
    scored = ~np.isnan(np.stack([judge.values for judge in judges]))
    anybody_saw = seen.any(axis=0) & (mode == "unseen")
    blocked = (~scored | (seen & (mode == "unseen"))) & labelled
    common = labelled & ~blocked.any(axis=0)
    blockers = blocked.sum(axis=0)
    costs, own = [], []
    for k, judge in enumerate(judges):
        in_reach = labelled & ~(seen[k] if mode == "own" else anybody_saw)
        reasons = _reasons(golden, judge, np.flatnonzero(in_reach & ~scored[k]))
        alone = int((blocked[k] & (blockers == 1)).sum()) if mode != "own" else 0
        costs.append(JudgeCost(int((seen[k] & labelled).sum()), reasons, alone))
        own.append(np.flatnonzero(in_reach & scored[k] if mode == "own" else common))
    return ItemPool(
        mode,
        np.flatnonzero(common),
        tuple(own),
        n_labelled=int(labelled.sum()),
        n_seen=int((labelled & anybody_saw).sum()),
        n_unscored=int((labelled & ~anybody_saw & ~common).sum()),
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


def _require_comparable(golden: GoldenSet, aspect: str, judges: Sequence[JudgeScores], mode: ItemsMode) -> None:
    if aspect not in golden.aspects:
        known = ", ".join(golden.aspects) or "none"
        raise AspectError(f"there is no aspect {aspect!r}; it has {known}. Name one of them.", file=golden.name)
    if mode not in ITEMS_MODES:
        raise UsageError(f"The items must be one of {', '.join(ITEMS_MODES)}, not {mode!r}.")
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


def _reasons(golden: GoldenSet, judge: JudgeScores, positions: IntArray) -> dict[str, int]:
    """Reason → count over `positions`, most frequent first; items that nobody asked the judge about by that name."""
    known = {lost.item_id: lost.reason for lost in judge.unscored}
    return dict(Counter(known.get(golden.item_ids[k], "not asked for") for k in positions).most_common())
