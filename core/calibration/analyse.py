"""What the candidates of a finished calibration had in common (001 §5, Figures 3 and 4).

Everything here is about *calibration* items, whose labels chose and shaped the candidates: it says what made criteria
win here, not how good they are (held-out says that).  Racing leaves most candidates on a few items, and an alignment on
24 items is no match for one on 800.  So candidates are compared on the same items alone: the most on which at least
`ENOUGH` of them were scored.  Where these are the first items of a race, their labels were picked to lie apart, which
raises all values alike.

Candidates are taken as independent; they are not quite (drafts of a trial share exemplars, refinements a parent), so
the intervals here are a little too narrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.calibration.calibration_result import Calibration
from core.calibration.criteria_patterns import PATTERNS, Pattern, pattern_of
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
class Place:
    """One candidate: its alignment `value`, its length in words, and how many exemplars a draft was drawn from."""

    criteria_id: str
    kind: Kind
    exemplars: int
    words: int
    pattern: Pattern
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


@dataclass(frozen=True, slots=True)
class PatternGroup:
    """Mean alignment of the `n` candidates of one pattern; None without any, no interval with fewer than 2."""

    pattern: Pattern
    n: int
    mean: float | None
    interval: Interval | None


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
    places: tuple[Place, ...]
    by_length: Line
    by_pattern: tuple[PatternGroup, ...]


def analyse(calibration: Calibration) -> Analyses:
    """Compare the candidates of `calibration`; no scores are read."""
    listed = [candidate for candidate in calibration.candidates if candidate.criteria.text]
    scored_on = Counter(point.items for candidate in listed for point in candidate.trace)
    enough = [items for items, n in scored_on.items() if n >= ENOUGH]
    n_items = max(enough) if enough else max(scored_on, key=lambda items: (scored_on[items], items), default=0)
    places = []
    for candidate in listed:
        criteria, made = candidate.criteria, candidate.criteria.provenance
        value = next((point.value for point in candidate.trace if point.items == n_items), None)
        if value is not None:
            exemplars = made.size if made.origin == "draft" else 0
            kind: Kind = "refinement" if made.origin != "draft" else "draft" if exemplars else "fitted strengths"
            pattern = pattern_of(criteria.text, calibration.task.scale)
            places.append(Place(criteria.criteria_id, kind, exemplars, text_length(criteria.text), pattern, value))
    places.sort(key=lambda place: -place.value)
    return Analyses(
        calibration.calibration.statistic,
        calibration.calibration.level,
        n_items,
        len(listed),
        scored_on[n_items] - len(places),
        tuple(places),
        line_of([place.words for place in places], np.array([place.value for place in places], dtype=np.float64)),
        by_pattern(places),
    )


def line_of(words: Sequence[int], values: FloatArray) -> Line:
    """Ordinary least squares of `values` (n,) on `words` (n,) with the band of the mean (001 Figure 3 B).

    The band at x is ŷ ± t · s · √(1/n + (x − x̄)²/Sxx) with n − 2 degrees of freedom and s² = Σe²/(n − 2).
    """
    x, y = np.asarray(words, dtype=np.float64), np.asarray(values, dtype=np.float64)
    n = x.size
    if n < 2 or np.ptp(x) == 0:
        few = f"fewer than 2 candidates ({n})" if n < 2 else "all candidates have the same length"
        return Line(n, None, None, reason=few)
    from scipy.special import stdtrit

    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ (y - y.mean())) / spread
    grid = np.linspace(x.min(), x.max(), GRID)
    middle = y.mean() + slope * (grid - x.mean())
    drawn = tuple(grid.tolist()), tuple(middle.tolist())
    if n < 3:
        return Line(n, 100 * slope, None, *drawn, reason="no band with fewer than 3 candidates")
    residual = y - y.mean() - slope * centred
    error = float(np.sqrt(residual @ residual / (n - 2)))
    t = float(stdtrit(n - 2, 0.5 + CONFIDENCE / 2))
    half = t * error * np.sqrt(1 / n + (grid - x.mean()) ** 2 / spread)
    reach = 100 * t * error / spread**0.5
    interval = Interval(100 * slope - reach, 100 * slope + reach, CONFIDENCE, f"least squares, t with {n - 2} df")
    return Line(n, 100 * slope, interval, *drawn, tuple((middle - half).tolist()), tuple((middle + half).tolist()))


def by_pattern(places: Sequence[Place]) -> tuple[PatternGroup, ...]:
    """Mean alignment of holistic and of specific criteria (001 Figure 4), with t intervals over candidates."""
    from scipy.special import stdtrit

    groups = []
    for pattern in PATTERNS:
        values = np.array([place.value for place in places if place.pattern == pattern], dtype=np.float64)
        n, mean, interval = values.size, float(values.mean()) if values.size else None, None
        if mean is not None and n > 1 and values.std() > 0:
            reach = float(stdtrit(n - 1, 0.5 + CONFIDENCE / 2) * values.std(ddof=1) / np.sqrt(n))
            interval = Interval(mean - reach, mean + reach, CONFIDENCE, f"t({n - 1}) over candidates").within(-1, 1)
        groups.append(PatternGroup(pattern, n, mean, interval))
    return tuple(groups)
