"""The outcome of a recheck: the record, its decision in words, and how labels and scores are distributed now.

Three decisions are possible.  *Fallen*: the interval of the change lies below 0.  *Holds*: a fall of `fall` or more is
ruled out.  *Cannot be told*: neither, for so few items; then the record says how many would tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from core.drift.change import Change
from core.json_form import json_fields
from core.records import Alignment
from core.stats import Difference
from core.stats.claims import change_figures
from core.wording import percent

Decision = Literal["holds", "fallen", "cannot be told"]

SAME, OTHER = 0.1, 0.2
"""Largest difference of the distribution functions that is called "about as before", and smallest called "clearly"."""

NARROW = 0.8
"""Share of the earlier spread below which a correlation falls by itself, however good the judge is."""


@dataclass(frozen=True, slots=True)
class Shift:
    """`n`, mean and standard deviation before and now; `distance` in [0, 1] between the distribution functions.

    The distance is Kolmogorov and Smirnov's D: the largest difference in the share of values up to any point.  It is
    told without a p: items of one source are alike, which no p of that test knows.
    """

    what: str
    n_before: int
    n_now: int
    mean_before: float
    mean_now: float
    spread_before: float
    spread_now: float
    distance: float

    @property
    def narrower(self) -> bool:
        """Whether the values spread clearly less than before."""
        return self.spread_now < NARROW * self.spread_before

    @property
    def words(self) -> str:
        """E.g. "Labels are distributed about as before (distance 0.04): mean 3.41, before 3.38."""
        how = (
            "about as before" if self.distance < SAME else "otherwise" if self.distance < OTHER else "clearly otherwise"
        )
        words = (
            f"{self.what.capitalize()} are distributed {how} (distance {self.distance:.2f}): mean {self.mean_now:.2f}, "
            f"before {self.mean_before:.2f}; spread {self.spread_now:.2f}, before {self.spread_before:.2f}."
        )
        if self.narrower:
            words += " They spread less: a correlation falls by that alone, even where the judge is as good as before."
        return words

    def as_json(self) -> dict[str, Any]:
        """All figures and the sentence."""
        return json_fields(self, but=("what",)) | {"words": self.words}


def shift_between(what: str, before: ArrayLike, now: ArrayLike) -> Shift | None:
    """The shift from `before` to `now` (each (n,), NaN = missing); None where a side has fewer than 2 values."""
    old, new = (np.asarray(side, dtype=np.float64) for side in (before, now))
    old, new = np.sort(old[~np.isnan(old)]), np.sort(new[~np.isnan(new)])
    if min(old.size, new.size) < 2:
        return None
    points = np.concatenate([old, new])
    shares = [np.searchsorted(side, points, side="right") / side.size for side in (old, new)]
    return Shift(
        what,
        int(old.size),
        int(new.size),
        float(old.mean()),
        float(new.mean()),
        float(old.std(ddof=1)),
        float(new.std(ddof=1)),
        float(np.abs(shares[0] - shares[1]).max()),
    )


@dataclass(frozen=True)
class Recheck:
    """What a recheck found.  `then` is the file's held-out alignment, `now` that on the newer labels.

    `against` is the judge minus another on the same new items; `paired` its alignment minus that of its earlier
    verdicts on the common items; `labels` and `scores` how both are distributed beside before.  None where not asked
    for or not known.  `left_out` counts the labelled items that are no part of `now`, by reason: "calibration" and
    "held_out" (the judge knew their texts), "old" (they had a label in the older golden set), "repeated".
    """

    aspect: str
    judge: str
    golden_name: str
    golden_digest: str
    now: Alignment
    then: Alignment
    change: Change
    decision: Decision
    words: str
    n_labelled: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    against: Difference | None = None
    against_name: str = ""
    paired: Difference | None = None
    labels: Shift | None = None
    scores: Shift | None = None
    notes: tuple[str, ...] = ()

    @property
    def unread_share(self) -> float | None:
        """Share of the newer labelled items without a score; None where there is none."""
        return self.now.n_unscored / self.n_labelled if self.n_labelled else None

    def as_json(self) -> dict[str, Any]:
        """The JSON answer of `recheck`."""
        against = None if self.against is None else {"name": self.against_name} | self.against.as_json()
        return json_fields(self, but=("golden_name", "golden_digest", "against", "against_name")) | {
            "golden": {"name": self.golden_name, "digest": self.golden_digest},
            "against": against,
            "unread_share": self.unread_share,
        }


def decided(change: Change) -> Decision:
    """The decision that a change leaves."""
    if change.interval is None:
        return "cannot be told"
    if change.interval.high < 0:
        return "fallen"
    return "holds" if change.interval.low > -change.fall else "cannot be told"


def in_words(decision: Decision, change: Change, now: Alignment) -> str:
    """The decision in a sentence or two."""
    if change.value is None or change.interval is None:
        return f"Inconclusive: {change.reason}."
    low, high = (change_figures(end, None, 2) for end in (change.interval.low, change.interval.high))
    moved = change_figures(change.value, None, 2)
    ends = f"{moved}, {percent(change.interval.confidence)} interval {low} to {high}"
    if decision == "fallen":
        return f"Agreement fell: {ends}."
    if decision == "holds":
        return f"The change rules out a fall of {change.fall:g} or more: {ends}."
    needed = (
        f"About {change.n_needed:,} items would show a fall of {change.fall:g}."
        if change.n_needed is not None
        else f"No number of new items would show a fall of {change.fall:g}: the earlier interval is too wide."
    )
    return f"{now.n:,} items show only a fall of {change.detectable:.2f} or more: {ends}. {needed}"
