"""Leaving the least sure verdicts out: what error remains, what share must go, and whether it helps.

A verdict is the surer the smaller the error expected of it (`core.stats.conformal`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.json_form import json_fields
from core.records import FloatArray, IntArray, Interval
from core.stats.claims import ALPHA, LEAST_SOURCES, TOO_FEW, UNVARYING
from core.stats.intervals import CONFIDENCE, t_quantile

_ROUNDING = 1e-9
SHARES = tuple(k / 20 for k in range(1, 21))
"""Shares of the verdicts that are kept, the surest first, on a curve of the error."""


def short(number: float) -> float:
    """Six digits, which is more than is known, so that a file can be read."""
    return float(f"{number:.6g}")


@dataclass(frozen=True, slots=True)
class KeptShare:
    """Of the surest `share` of the verdicts, each with an expected error up to `expected`: their mean `error`.

    `best` is the mean error of as many when those furthest off had been left out: no choice can do better.
    """

    share: float
    expected: float
    error: float
    best: float

    def as_json(self) -> list[float]:
        return [short(number) for number in (self.share, self.expected, self.error, self.best)]


def kept_shares(expected: FloatArray, errors: FloatArray) -> tuple[KeptShare, ...]:
    """The mean of `errors` (n,) of the surest verdicts by `expected` (n,), at each of `SHARES`; none without items."""
    if not errors.size:
        return ()
    order = np.argsort(expected, kind="stable")
    counts = np.arange(1, errors.size + 1)
    error, best = np.cumsum(errors[order]) / counts, np.cumsum(np.sort(errors)) / counts
    last = np.maximum(np.rint(np.array(SHARES) * errors.size).astype(np.intp), 1) - 1
    return tuple(
        KeptShare(share, float(expected[order[k]]), float(error[k]), float(best[k]))
        for share, k in zip(SHARES, last, strict=True)
    )


@dataclass(frozen=True, slots=True)
class Abstention:
    """Leaving the least sure verdicts out so that the mean error of the rest is `wanted`, by the calibration.

    Verdicts with an expected error above `most_expected` go, and `share` of those of calibration remain (None and 0
    where even the surest err more).  `overall` is the error when none goes; at least `least_gone` must go whoever
    chooses: for errors of 0 and 1 that is (overall − wanted) / (1 − wanted).
    """

    wanted: float
    overall: float
    most_expected: float | None
    share: float
    least_gone: float


def abstain_over(kept: tuple[KeptShare, ...], wanted: float) -> Abstention:
    """By the curve of a calibration: as many verdicts kept as go with a mean error up to `wanted`."""
    best = np.interp(wanted, [point.best for point in kept], [point.share for point in kept], left=0.0)
    good = [point for point in kept if point.error <= wanted + _ROUNDING]
    overall = kept[-1].error
    if not good:
        return Abstention(wanted, overall, None, 0.0, 1.0 - float(best))
    if good[-1].share == 1.0:
        return Abstention(wanted, overall, np.inf, 1.0, 0.0)
    return Abstention(wanted, overall, good[-1].expected, good[-1].share, 1.0 - float(best))


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The mean error of the surest `share` of `n` verdicts minus that of all, `overall`.

    `interval` is over sources (None with fewer than 2); `p` is one-sided, for a lower error (None with fewer than
    `LEAST_SOURCES` sources; `reason` says so).
    """

    share: float
    overall: float
    change: float
    interval: Interval | None
    p: float | None
    n: int
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        return json_fields(self)

    @property
    def helps(self) -> bool:
        """Whether the error is shown to be lower."""
        return self.p is not None and self.p <= ALPHA


def left_out(expected: FloatArray, errors: FloatArray, sources: IntArray, share: float = 0.8) -> LeftOut | None:
    """What leaving out all but the surest `share` by `expected` (n,) does to the mean of `errors` (n,), on new items.

    The standard error is that of the difference of two means over clusters, by their linearisation.
    None without items.
    """
    if not errors.size:
        return None
    order = np.argsort(expected, kind="stable")
    kept = np.zeros(errors.size, dtype=np.bool_)
    kept[order[: max(1, round(share * errors.size))]] = True
    overall, error = float(errors.mean()), float(errors[kept].mean())
    _, of_item = np.unique(sources, return_inverse=True)
    pull = np.where(kept, (errors - error) / kept.sum(), 0.0) - (errors - overall) / errors.size
    by_source = np.bincount(of_item, weights=pull)
    n_sources, change = by_source.size, error - overall
    deviation = float(np.sqrt((by_source**2).sum() * n_sources / max(1, n_sources - 1)))
    if n_sources < 2 or not deviation:
        return LeftOut(share, overall, change, None, None, errors.size, TOO_FEW if n_sources < 2 else UNVARYING)
    from scipy.special import stdtr

    reach = t_quantile(n_sources - 1) * deviation
    method = f"linearised over {n_sources:,} sources, t({n_sources - 1})"
    interval = Interval(change - reach, change + reach, CONFIDENCE, method, n_sources)
    few = n_sources < LEAST_SOURCES
    p = None if few else float(stdtr(n_sources - 1, change / deviation))
    return LeftOut(share, overall, change, interval, p, errors.size, TOO_FEW if few else "")
