"""How far scores lie from labels in points of the scale: a judge can rank well and still be too strict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from core.stats.correlation import pair


@dataclass(frozen=True, slots=True)
class AbsoluteErrors:
    """Errors in points of the scale.  None is undefined (no item has both), not 0.

    `mae` = mean |score − label|, from 0 (exact) upwards.  `bias` = mean (score − label): positive when the judge is
    more generous than the people.  `n` counts the items used, `n_unscored` the labelled items without a score.
    """

    mae: float | None
    bias: float | None
    n: int
    n_unscored: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"mae": self.mae, "bias": self.bias, "n": self.n, "n_unscored": self.n_unscored}


def absolute_errors(scores: ArrayLike, labels: ArrayLike) -> AbsoluteErrors:
    """Errors of `scores` (n_items,) against `labels` (n_items,), NaN = missing on either side.

    Meaningful only when scores are on the labels' scale: map them first (`core.stats.isotonic`).  ValueError when the
    lengths differ, UsageError for ±inf.
    """
    x, y = pair(scores, labels)
    gaps = (x - y)[~np.isnan(x)]
    if not gaps.size:
        return AbsoluteErrors(None, None, 0, n_unscored=y.size)
    return AbsoluteErrors(float(np.abs(gaps).mean()), float(gaps.mean()), gaps.size, n_unscored=x.size - gaps.size)
