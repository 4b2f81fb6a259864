"""What the candidates of a finished calibration had in common (001 §5, Figures 3 and 4).

Everything here is about *calibration* items, whose labels chose and shaped the candidates: it says what made criteria
win here, not how good they are (held-out says that).  Racing leaves most candidates on a few items, and an alignment on
24 items is no match for one on 800.  So candidates are compared only where all were scored on the same items: either
those that came through to the end (`scope` "complete"), or all of them on the items that each was scored on
("common": their first rung, few items and a noisy value, but nobody is missing; racing picks those items so that their
labels lie apart, which raises all values alike).  The two are never mixed.

Candidates are taken as independent; they are not quite (drafts of a trial share exemplars, refinements a parent), so
the intervals and p values here are a little too sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.calibration.criteria_patterns import PATTERNS, Pattern, pattern_of
from core.calibration.records import Calibration
from core.records import (
    Criteria,
    FloatArray,
    Interval,
    Level,
    Origin,
    Scale,
    Statistic,
)
from core.stats import (
    ALPHA,
    average_ranks,
    change_figures,
    p_figure,
    pearson,
    spearman,
)
from core.stats.claims import signed
from core.texts import text_length
from core.wording import counted

Scope = Literal["complete", "common"]
Kind = Literal["draft", "fitted strengths", "refinement"]
PERMUTATIONS = 9_999
GRID = 41
"""Points along the regression line, for drawing."""


@dataclass(frozen=True, slots=True)
class Place:
    """One candidate in an analysis.  `value` is its alignment, `words` its length.

    `exemplars` is 0 but for drafts from exemplars: strengths fitted to all labels were drawn from none.
    """

    criteria_id: str
    origin: Origin
    round: int
    exemplars: int
    words: int
    pattern: Pattern
    value: float

    @property
    def kind(self) -> Kind:
        """How it came about."""
        if self.origin != "draft":
            return "refinement"
        return "draft" if self.exemplars else "fitted strengths"


@dataclass(frozen=True)
class Pool:
    """Candidates measured on the same `n_items` calibration items, best first; of `n_candidates` with a text.

    `n_undefined` were scored on those items, but their alignment is undefined there.
    """

    scope: Scope
    statistic: Statistic
    level: Level
    n_items: int
    n_candidates: int
    places: tuple[Place, ...]
    n_undefined: int = 0

    @property
    def values(self) -> FloatArray:
        """(n_places,) alignments."""
        return np.array([place.value for place in self.places], dtype=np.float64)

    @property
    def why_empty(self) -> str:
        """Why no candidate has an alignment, and what to do, in sentences; "" where some have one."""
        if self.places:
            return ""
        if not self.n_candidates:
            return "this calibration never drafted. Calibrate with a larger budget."
        if self.n_undefined:
            return (
                f"the alignment of all {self.n_undefined} candidates that were scored is undefined, because they do "
                "not tell the calibration items apart. Calibrate on other items, or with another judge."
            )
        if self.scope == "common":
            return f"none of the {self.n_candidates} candidates was scored. Calibrate with a larger budget."
        return (
            f"the budget ended before any of the {self.n_candidates} candidates was scored on all {self.n_items:,} "
            "calibration items. Look at all of them on their first items (scope common), or calibrate with a larger "
            "budget."
        )


@dataclass(frozen=True, slots=True)
class Trend:
    """Spearman rho of a property with alignment over `n` candidates; `p` two-sided, by permutation.

    None where undefined, with `reason`.
    """

    rho: float | None
    p: float | None
    n: int
    reason: str = ""

    @property
    def sentence(self) -> str:
        """Whether alignment goes with the number of exemplars, in words."""
        if self.rho is None or self.p is None:
            return f"No trend can be told: {self.reason}."
        measured = f"{signed(self.rho)}, {p_figure(self.p)} (permutation), {counted(self.n, 'draft')}"
        told = "a trend" if self.p < ALPHA else "no trend that can be told from chance"
        return f"Spearman rho of size with alignment {measured}: {told}."


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
class ByPattern:
    """Both patterns, and the mean of the specific minus that of the holistic; None where one has no candidate."""

    groups: tuple[PatternGroup, ...]
    difference: float | None
    interval: Interval | None

    @property
    def sentence(self) -> str:
        """Specific against holistic, or why there is nothing to compare."""
        if self.difference is None:
            only = next((group for group in self.groups if group.n), None)
            follow = "no candidate was measured" if only is None else f"all {only.n} are {only.pattern}"
            return f"There is nothing to compare: {follow}."
        counts = ", ".join(f"{group.n} {group.pattern}" for group in self.groups)
        gap = change_figures(self.difference, self.interval)
        return f"Specific minus holistic {gap} (Welch's t over candidates, 95 %); {counts}."


@dataclass(frozen=True)
class Analyses:
    """The analyses of one pool."""

    pool: Pool
    by_size: Trend
    by_length: Line
    by_pattern: ByPattern


def analyse(calibration: Calibration, scope: Scope = "complete") -> Analyses:
    """All analyses of the candidates in `scope`; deterministic.  `calibration` alone is enough, no scores are read."""
    measured = pool(calibration, scope)
    seed = calibration.settings.seed
    return Analyses(
        measured,
        by_size(measured.places, np.random.default_rng([seed, 20])),
        line_of([place.words for place in measured.places], measured.values),
        by_pattern(measured.places),
    )


def pool(calibration: Calibration, scope: Scope = "complete") -> Pool:
    """Candidates with a text, measured on the same calibration items (module docstring), best first."""
    listed = [candidate for candidate in calibration.candidates if candidate.criteria.text]
    if scope == "complete":
        n_items = len(calibration.split.calibration)
        inside = [(each, each.alignment.value) for each in listed if each.alignment and each.calls == n_items]
    else:
        scored = [candidate for candidate in listed if candidate.trace]
        shared = set.intersection(*({point.items for point in each.trace} for each in scored)) if scored else set()
        n_items = max(shared, default=0)
        inside = [(each, point.value) for each in scored for point in each.trace if point.items == n_items]
    places = [_place(each.criteria, calibration.task.scale, value) for each, value in inside if value is not None]
    return Pool(
        scope,
        calibration.calibration.statistic,
        calibration.calibration.level,
        n_items,
        len(listed),
        tuple(sorted(places, key=lambda place: -place.value)),
        len(inside) - len(places),
    )


def _place(criteria: Criteria, scale: Scale, value: float) -> Place:
    origin = criteria.provenance
    exemplars = origin.size if origin.origin == "draft" else 0
    words, pattern = text_length(criteria.text), pattern_of(criteria.text, scale)
    return Place(criteria.criteria_id, origin.origin, origin.round, exemplars, words, pattern, value)


# ── by exemplar size, by length, by pattern ──────────────────────────────────────────────────────────────────


def by_size(places: Sequence[Place], generator: np.random.Generator) -> Trend:
    """Whether drafts from more exemplars align better (001 Figure 3 A); what was drawn from none is no part."""
    drafts = [place for place in places if place.kind == "draft"]
    sizes, values = (
        np.array([getattr(draft, name) for draft in drafts], dtype=np.float64) for name in ("exemplars", "value")
    )
    return trend_of(sizes, values, generator)


def trend_of(x: FloatArray, values: FloatArray, generator: np.random.Generator) -> Trend:
    """Spearman rho of `x` and `values`, each (n,), with a two-sided permutation p over `PERMUTATIONS` shuffles.

    Undefined with fewer than 3 candidates, or a constant side.
    """
    n = values.size
    if n < 3:
        return Trend(None, None, n, f"fewer than 3 candidates ({n})")
    rho = float(spearman(x, values))
    if np.isnan(rho):
        return Trend(None, None, n, "all are equal on one side")
    shuffled = generator.permuted(np.tile(average_ranks(values), (PERMUTATIONS, 1)), axis=1)
    resampled = pearson(shuffled, average_ranks(x))
    as_far = int(np.count_nonzero(np.abs(resampled) >= abs(rho) - 1e-12))
    return Trend(rho, (1 + as_far) / (1 + PERMUTATIONS), n)


def line_of(words: Sequence[int], values: FloatArray, confidence: float = 0.95) -> Line:
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
    t = float(stdtrit(n - 2, 0.5 + confidence / 2))
    half = t * error * np.sqrt(1 / n + (grid - x.mean()) ** 2 / spread)
    reach = 100 * t * error / spread**0.5
    interval = Interval(100 * slope - reach, 100 * slope + reach, confidence, f"least squares, t with {n - 2} df")
    return Line(n, 100 * slope, interval, *drawn, tuple((middle - half).tolist()), tuple((middle + half).tolist()))


def by_pattern(places: Sequence[Place]) -> ByPattern:
    """Mean alignment of holistic and of specific criteria (001 Figure 4), with t intervals over candidates.

    The difference has Welch's (1947) interval: each kind its own variance, Satterthwaite's degrees of freedom.
    """
    values = {p: np.array([each.value for each in places if each.pattern == p], dtype=np.float64) for p in PATTERNS}
    groups = tuple(
        PatternGroup(p, own.size, float(own.mean()) if own.size else None, _t_interval(own))
        for p, own in values.items()
    )
    holistic, specific = groups
    if holistic.mean is None or specific.mean is None:
        return ByPattern(groups, None, None)
    return ByPattern(groups, specific.mean - holistic.mean, _t_interval(values["specific"], values["holistic"]))


def _t_interval(values: FloatArray, minus: FloatArray | None = None, confidence: float = 0.95) -> Interval | None:
    """Interval of the mean of `values`, or of its difference to that of `minus`; None with fewer than 2 on a side."""
    from scipy.special import stdtrit

    samples = [values] if minus is None else [values, minus]
    if any(sample.size < 2 for sample in samples):
        return None
    squares = np.array([sample.var(ddof=1) / sample.size for sample in samples])
    if not squares.sum() > 0:
        return None
    freedom = squares.sum() ** 2 / (squares**2 / np.array([sample.size - 1 for sample in samples])).sum()
    reach = float(stdtrit(freedom, 0.5 + confidence / 2) * np.sqrt(squares.sum()))
    middle = float(values.mean() - (0.0 if minus is None else minus.mean()))
    most = 1.0 if minus is None else 2.0  # of a correlation, and of a difference of two
    return Interval(middle - reach, middle + reach, confidence, f"t({freedom:.3g}) over candidates").within(-most, most)
