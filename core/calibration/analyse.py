"""Compare the candidates of a finished calibration by exemplar size and length.

Everything here is about *calibration* items, whose labels chose and shaped the candidates: it says what made criteria
win here, not how good they are (held-out says that).  Racing leaves most candidates on a few items, and an alignment on
24 items cannot be compared with one on 800.  So candidates are compared on the same items alone: the most on which at
least `ENOUGH` of them were scored.  Where these are the first items of a race, their labels were picked to be spread,
which raises all values alike.

Candidates are treated as independent; they are not quite (drafts of a trial share exemplars, refinements a parent), so
the intervals here are a little too narrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.calibration.calibration_result import Calibration
from core.records import FloatArray, Interval, Level, Statistic
from core.texts import text_length
from core.wording import change_figures, counted

Kind = Literal["draft", "fitted strengths", "refinement"]
ENOUGH = 8
"""Candidates that a comparison should have."""
GRID = 41
"""Points along the regression line, for drawing."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class ComparedCandidate:
    """One candidate: its alignment `value`, its length in words, and how many exemplars a draft was drawn from."""

    criteria_id: str
    kind: Kind
    exemplars: int
    words: int
    value: float


@dataclass(frozen=True)
class Line:
    """Least squares of alignment on words, with the 95 % band of the mean at `words`; all empty where undefined.

    `slope` is per 100 words.  `reason` says why there is no line, or no band (fewer than 3 candidates).
    """

    n: int
    slope: float | None
    interval: Interval | None
    words: tuple[float, ...] = ()
    middle: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    reason: str = ""

    @property
    def sentence(self) -> str:
        """What 100 more words go with."""
        if self.slope is None:
            return f"No line can be drawn: {self.reason}."
        per, many = f"{change_figures(self.slope, self.interval, 3)} per 100 words", counted(self.n, "candidate")
        return f"{per}, {many}; {self.reason}." if self.interval is None else f"{per} (least squares, 95 %), {many}."


@dataclass(frozen=True)
class Analyses:
    """Candidates measured on the same `n_items` calibration items, best first; of `n_candidates` with a text.

    `n_undefined` were scored on those items, but their alignment is undefined there.
    """

    statistic: Statistic
    level: Level
    n_items: int
    n_candidates: int
    n_undefined: int
    places: tuple[ComparedCandidate, ...]
    by_length: Line


def analyse(calibration: Calibration) -> Analyses:
    """Compare the candidates of `calibration`; no scores are read."""
    listed = [candidate for candidate in calibration.candidates if candidate.criteria.text]
    scored_on = Counter(point.items for candidate in listed for point in candidate.trace)
    n_items = max(scored_on, key=lambda items: (min(scored_on[items], ENOUGH), items), default=0)
    places = []
    for candidate in listed:
        text, made = candidate.criteria.text, candidate.criteria.provenance
        value = next((point.value for point in candidate.trace if point.items == n_items), None)
        if value is not None:
            exemplars = made.size if made.origin == "draft" else 0
            kind: Kind = "refinement" if made.origin != "draft" else "draft" if exemplars else "fitted strengths"
            places.append(ComparedCandidate(candidate.criteria.criteria_id, kind, exemplars, text_length(text), value))
    places.sort(key=lambda place: -place.value)
    return Analyses(
        calibration.calibration.statistic,
        calibration.calibration.level,
        n_items,
        len(listed),
        scored_on[n_items] - len(places),
        tuple(places),
        line_of([place.words for place in places], [place.value for place in places]),
    )


def line_of(words: Sequence[float], values: Sequence[float] | FloatArray) -> Line:
    """Ordinary least squares of `values` (n,) on `words` (n,) with the band of the mean.

    The band at x is ŷ ± t · s · √(1/n + (x − x̄)²/Sxx) with n − 2 degrees of freedom and s² = Σe²/(n − 2).
    """
    from scipy import stats

    n = len(words)
    if n < 2 or np.ptp(words) == 0:
        few = f"fewer than 2 candidates ({n})" if n < 2 else "all candidates have the same length"
        return Line(n, None, None, reason=few)
    fit = stats.linregress(words, values)
    grid = np.linspace(min(words), max(words), GRID)
    middle = fit.intercept + fit.slope * grid
    drawn = tuple(grid.tolist()), tuple(middle.tolist())
    if n < 3:
        return Line(n, float(100 * fit.slope), None, *drawn, reason="no band with fewer than 3 candidates")
    t = stats.t.ppf(0.5 + CONFIDENCE / 2, n - 2)
    # the standard error at the mean is s/√n, and it grows with the slope's by the distance from there
    half = t * fit.stderr * np.sqrt(np.var(words) + (grid - np.mean(words)) ** 2)
    low, high = (float(100 * (fit.slope + side * t * fit.stderr)) for side in (-1, 1))
    interval = Interval(low, high, CONFIDENCE, f"least squares, t with {n - 2} df")
    band = tuple((middle - half).tolist()), tuple((middle + half).tolist())
    return Line(n, float(100 * fit.slope), interval, *drawn, *band)
