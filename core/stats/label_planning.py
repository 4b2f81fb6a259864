"""Plan how many labels to collect: the expected interval of an alignment, and the smallest fall that can be detected.

On Fisher's scale z = atanh(r), an alignment over w independent items has the standard error 1 / √(w − 3). An earlier
measurement gives w = 3 + (1.96 / half the width of its interval on Fisher's scale)². w then grows with the number of
items or of sources, whichever grows less. Without a measurement, the alignment is assumed to be `USUAL_ALIGNMENT`. Then
w = n / (1 + (m − 1)·ICC) for n items, m per source, with the intraclass correlation `USUAL_ICC`.

More raters per item raise the expected alignment: r_n = r_inf · √(n·rel / (1 + (n−1)·rel)) for n raters (attenuation,
Spearman 1904, and Spearman-Brown). rel is the usual reliability of one rater's labels.

A fall is the difference between two measurements of equal size. A one-sided test at 5 % detects the fall with
probability `core.stats.change.POWER`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.errors import UsageError
from core.records import Alignment, Interval, JsonRecord
from core.stats.change import POWER, fisher_z
from core.stats.intervals import CONFIDENCE, LEAST_SOURCES, Z95
from core.wording import counted

USUAL_ALIGNMENT, USUAL_RATERS, USUAL_ICC = 0.5, 3.0, 0.2
USUAL_RELIABILITY = 0.5
"""Reliability of one rater's label: Krippendorff's alpha lies between 0.3 and 0.7 on most public sets."""

MOST_ITEMS = 10_000_000
_SURELY = 0.999
"""Planned alignments are clipped to plus or minus this value."""

LABELS_ENOUGH_FOR: Sequence[tuple[int, str]] = (
    (50, "measuring a judge's agreement"),
    (100, "calibrating without refining"),
    (200, "calibrating with refining"),
)
"""Numbers of labels in total (half held out), and what they suffice for: with 20 calibration labels, criteria added
nothing, with 50 they lost in 44 % of 34 runs, with 100 in 26 %."""


@dataclass(frozen=True, slots=True)
class LabelPlanning(JsonRecord):
    """Forecast for `n_items` labelled items from `n_sources` sources, with `n_raters` raters per item.

    The forecast is an alignment (`value`) with its `interval`.

    Attributes:
        fall: Smallest fall in alignment that a second measurement of this size can detect. None if it can't even detect
            a fall to 0.
        enough: What the labels are enough for.
    """

    n_items: int
    n_sources: int
    n_raters: int
    value: float
    interval: Interval
    fall: float | None
    enough: tuple[str, ...]
    basis: str


def plan_labels(
    n_items: int, n_sources: int | None = None, n_raters: int = 1, *, measured: Alignment | None = None
) -> LabelPlanning:
    """Forecast the interval of an alignment with this many labels, and the smallest fall that can be detected.

    Args:
        n_sources: None if each item has its own source.
        measured: Alignment of the judge on some of the items, with `USUAL_RATERS` raters per item. Ignored without a
            value and an interval.

    Raises:
        UsageError: There are no items, too many items, or more sources than items.
    """
    from scipy.special import ndtri

    n_sources = n_items if n_sources is None else n_sources
    if not (1 <= n_sources <= n_items <= MOST_ITEMS and n_raters >= 1):
        raise UsageError(
            f"A plan needs at least 1 rater, 1 source and 1 item per source, and can have at most {MOST_ITEMS:,} "
            f"items. You gave {n_items:,} items, {n_sources:,} sources and {n_raters} raters."
        )
    value, worth = USUAL_ALIGNMENT, n_items / (1.0 + (n_items / n_sources - 1.0) * USUAL_ICC)
    basis = f"assuming that agreement with the mean of {USUAL_RATERS:.0f} raters is {USUAL_ALIGNMENT:g}"
    if measured and measured.value is not None and (ends := measured.interval) and ends.high > ends.low:
        value, half = measured.value, (fisher_z(ends.high, _SURELY) - fisher_z(ends.low, _SURELY)) / 2.0
        by_sources = n_sources / ends.n_sources if ends.n_sources else np.inf
        worth = 3.0 + (Z95 / half) ** 2 * min(n_items / max(1, measured.n), by_sources)
        basis = f"based on {counted(measured.n, 'labelled item')}"
    factors = [n / (1.0 + (n - 1.0) * USUAL_RELIABILITY) for n in (n_raters, USUAL_RATERS)]
    z = fisher_z(value * math.sqrt(factors[0] / factors[1]), _SURELY)
    value, error = math.tanh(z), 1.0 / math.sqrt(max(worth - 3.0, 1.0))
    quantiles = float(ndtri(CONFIDENCE) + ndtri(POWER))
    fall = value - math.tanh(z - quantiles * math.sqrt(2.0) * error)
    method = f"expected, effective n = {worth:.0f}, Fisher's z"
    interval = Interval(math.tanh(z - Z95 * error), math.tanh(z + Z95 * error), method=method, n_sources=n_sources)
    # without a test over held-out sources, no number of labels is enough
    enough = tuple(words for least, words in LABELS_ENOUGH_FOR if n_items >= least and n_sources >= 2 * LEAST_SOURCES)
    seen = fall if fall <= max(value, 0.0) else None
    return LabelPlanning(n_items, n_sources, n_raters, value, interval, seen, enough, basis)
