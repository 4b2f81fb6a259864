"""How numbers (labels, scores) are distributed now beside before, in two figures and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.json_form import json_fields

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
        told = (
            f"{self.what.capitalize()} are distributed {how} (distance {self.distance:.2f}): mean {self.mean_now:.2f}, "
            f"before {self.mean_before:.2f}; spread {self.spread_now:.2f}, before {self.spread_before:.2f}."
        )
        if self.narrower:
            told += " They spread less: a correlation falls by that alone, even where the judge is as good as before."
        return told

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
