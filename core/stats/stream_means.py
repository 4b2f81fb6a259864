"""Follow a mean over time, with intervals that hold however often you look.

An interval for a fixed n, recomputed each day, misses the true mean sooner or later. A *confidence sequence* covers the
true mean at all n at once, with the stated confidence (Robbins 1970). The sequence used here is asymptotic
(Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, "Time-uniform central limit theory and asymptotic confidence
sequences", Theorem 2.2)::

    mean ± s·√( 2·(nρ² + 1) / (n²ρ²) · log(√(nρ² + 1) / α) )

- n is the number of *sources*, so items of one source do not count as independent.
- s is the standard deviation of the sources' contributions to the mean.
- ρ makes the interval narrowest near a value of n that is chosen beforehand.

Several streams (successive periods) share a level α: stream k = 1, 2, … gets α/(k·(k + 1)). The sum of these shares is
at most α.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from core.records import FloatArray, IntArray
from core.stats.intervals import CONFIDENCE, clustered_error, t_quantile

LEAST_STREAM = 30
"""Fewest sources of a stream before its sequence begins: it rests on the central limit theorem."""


@dataclass(frozen=True, slots=True)
class StreamMean:
    """Mean of a stream's items; `error` is its standard error over `n_sources` sources, None for fewer than two."""

    value: float
    error: float | None
    n: int
    n_sources: int

    def as_json(self) -> dict[str, float]:
        return {"value": self.value, "n_sources": self.n_sources}

    def radius(self, alpha: float, best_at: int) -> float | None:
        """Return half the width of the interval with confidence 1 − `alpha` (0 < `alpha` < 1).

        The interval is narrowest at about `best_at` sources. Returns None with fewer than `LEAST_STREAM` sources.
        """
        if self.n_sources < LEAST_STREAM or self.error is None:
            return None
        # ρ² by which the sequence is about narrowest there (section 2.4, the approximation with a logarithm)
        n, spent = self.n_sources, -2.0 * math.log(alpha)
        rho2 = (spent + math.log(spent + 1.0)) / max(best_at, LEAST_STREAM)
        grown = n * rho2 + 1.0
        width = 2.0 * grown / (n * n * rho2) * math.log(math.sqrt(grown) / alpha)
        return self.error * math.sqrt(n * width)

    def half_width(self, alpha: float) -> float | None:
        """Return half the width of the t interval with confidence 1 − `alpha` for a finished stream.

        Returns None under the same conditions as `radius`.
        """
        if self.n_sources < LEAST_STREAM or self.error is None:
            return None
        return t_quantile(self.n_sources - 1, (1.0 - CONFIDENCE) / alpha) * self.error


def stream_mean(values: FloatArray, sources: IntArray) -> StreamMean | None:
    """Return the mean of `values` (n,) and its standard error over sources; None if there are no values.

    `sources` (n,) are the numbers of the sources, from 0.
    """
    if not values.size:
        return None
    mean, n_sources = float(values.mean()), np.unique(sources).size
    error = clustered_error((values - mean) / values.size, sources) if n_sources > 1 else None
    return StreamMean(mean, error, values.size, n_sources)


def share_of_level(alpha: float, k: int) -> float:
    """Return α/(k·(k + 1)), the share of the level `alpha` for stream `k`, counted from 1."""
    return alpha / (k * (k + 1))
