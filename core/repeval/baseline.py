"""Is the direction better than any direction?  Random unit vectors in the chosen cell (003 section 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.records import FloatArray, Measure
from core.repeval.projection import Training
from core.stats import LabelledItems, alignment_values

RANDOM_VECTORS = 2_000
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


@dataclass(frozen=True)
class RandomBaseline:
    """Test alignments of random directions in the chosen cell.

    `values` (n,) of the vectors as they came, `flipped` (n,) of the same ones turned so that the good text of most
    training pairs projects higher; NaN = undefined.  `projection` is the chosen cell's own test alignment;
    `percentile` (0 to 100) is the share of random vectors below it (ties count half), `percentile_flipped` the same
    for the turned ones.
    """

    projection: float | None
    percentile: float | None
    percentile_flipped: float | None
    values: FloatArray
    flipped: FloatArray

    def as_json(self) -> dict[str, Any]:
        """Percentiles and quantiles, without the single values."""
        return {
            "percentile": self.percentile,
            "percentile_flipped": self.percentile_flipped,
            "projection": self.projection,
            "n": int(self.values.size),
            "quantiles": _quantiles(self.values),
            "quantiles_flipped": _quantiles(self.flipped),
        }


def random_baseline(
    states: NDArray[np.float32],
    training: Training,
    test: LabelledItems,
    measure: Measure,
    *,
    projection: float | None,
    count: int = RANDOM_VECTORS,
    generator: np.random.Generator,
) -> RandomBaseline:
    """`count` random unit vectors on `states` (n_items, dim) of one cell, told on `test`.

    The pairs of `training` turn the vectors for the second distribution; `projection` is what the fitted direction
    reaches on the same test items.
    """
    vectors = generator.standard_normal((count, states.shape[1])).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values = alignment_values((vectors @ states[test.positions].T).astype(np.float64), test, measure)
    gaps = vectors @ (states[training.good] - states[training.bad]).T
    votes = np.sign(gaps).sum(axis=1)
    signs = np.sign(np.where(votes == 0, gaps.sum(axis=1), votes))
    flipped = values * np.where(signs == 0, 1.0, signs)
    return RandomBaseline(
        projection, percentile_of(projection, values), percentile_of(projection, flipped), values, flipped
    )


def percentile_of(value: float | None, among: FloatArray) -> float | None:
    """0 to 100: the share of `among` below `value`, ties counted half; None when either is undefined."""
    defined = among[~np.isnan(among)]
    if value is None or not defined.size:
        return None
    return float(100.0 * ((defined < value).sum() + 0.5 * (defined == value).sum()) / defined.size)


def _quantiles(values: FloatArray) -> dict[str, float] | None:
    defined = values[~np.isnan(values)]
    if not defined.size:
        return None
    return {f"{level:g}": float(np.quantile(defined, level)) for level in QUANTILES}
