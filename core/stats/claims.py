"""How much data a claim needs, what a test shows, and every reason for an undefined value, interval or p.

A point value never makes a claim.  `core.findings` puts results into words.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from core.records import Interval

Claim = Literal["higher", "lower", "open", "untested", "undefined"]
Standing = Literal["above", "level", "below", "open"]

# ── how much it takes ────────────────────────────────────────────────────────────────────────────────────────

ALPHA = 0.05
"""Differences with a p up to this, corrected where there are several, are called shown or significant."""

HALF_ALPHA = ALPHA / 2
"""One half for what is said of a judge next to the bar, one for where it fails and its biases: all their sentences
together claim something by chance in at most `ALPHA` of the cases."""

LEAST_SOURCES = 8
"""Fewest sources for a p: below, no test keeps its level on such data and few could reject at all."""

LEAST_DIFFERING = 6
"""Fewest sources whose coefficients differ for a p: of 5 even all in one direction happen by chance in 6 %."""

SHORT_BELOW = 25
"""Below so many sources an interval at system level covers less than it says."""

MARGIN = 0.05
"""A judge that is less than this below a rater, at the low end of the interval, agrees as well as a rater."""

PASSES_AT = 0.5
"""Share of the raters whose place a judge may take, from which on it passes the Alternative Annotator Test."""

LEAST_DUELS = 30
"""Fewest items a rater for a verdict of that test; `ADVISED_RATERS` raters are advised."""

ADVISED_RATERS = 3

MOST_RATERS = 200
"""Most raters that are each compared with the others; of more, those with the most ratings are taken, and results say
so.  Everybody's ratings still count in what they are compared with."""

# ── why there is nothing ─────────────────────────────────────────────────────────────────────────────────────

NO_TEST = f"no test: that takes at least {LEAST_SOURCES} sources, and a difference in {LEAST_DIFFERING} of them"
TOO_FEW = f"fewer than {LEAST_SOURCES} sources: a test cannot be trusted"
TOO_ALIKE = f"the two differ in fewer than {LEAST_DIFFERING} sources"
UNVARYING = "it is the same whichever source is left out, so nothing tells how sure it is"
UNKNOWN = "too few items are behind it, or a single source carries it, so nothing tells how sure it is"
NOT_ASKED_FOR = "none was asked for, as bootstrap is 0"
ONLY_SOURCE = "all items are of one source; label items of 8 sources or more"
CARRIED = "without one of the sources the value is undefined; label items of more sources"
SAME_WITHOUT_ANY = "the value is the same whichever source is left out; label items of more sources"
ONE_SOURCE = "no interval: there is only one source"
SINGLE_SOURCES = "no interval: it rests on single sources: without one of them it is undefined"
SAME_EVERYWHERE = "every source gives the same value"
SHORT = "too short with so few: with 8 sources such an interval covers 84 to 97 %, not 95 %"

NO_LABEL = "no item has a label"
NO_PAIR = "no item has both a score and a label"
TOO_FEW_SYSTEMS = "fewer than 2 systems have scored items"
ONE_RATER = "there is only one rater, so nobody to compare with"
NOT_RATED_TWICE = "no item has ratings by two raters"
NOT_SCORED_BY_BOTH = "the judge scored no item that two raters rated"
NO_RATER_RANKED = (
    "no rater can be ranked next to the others' means where the judge can be too (all values equal, or too few)"
)
NO_COMMON_RATERS = "fewer than two raters share items with the judge and another rater"
NO_SINGLE_RATINGS = "so the judge cannot be compared with raters"
COLLINEAR = "the two judges' scores are the same up to a linear map"


def too_few_items(n_scored: int, n_labelled: int) -> str:
    """Of so many labelled items so few have a score."""
    return f"fewer than 2 items have both a score and a label ({n_scored} of {n_labelled} labelled)"


def no_source(n_sources: int) -> str:
    """None of the sources has a coefficient."""
    return f"no source has enough items with differing scores and differing labels ({n_sources} sources)"


def constant(side: str, what: str) -> str:
    """Nothing can correlate with a constant; `what` is equal: an item, a mean."""
    return f"all {side} are equal ({what} by {what})"


# ── differences ──────────────────────────────────────────────────────────────────────────────────────────────


def claim(value: float | None, interval: Interval | None, p: float | None, *, alpha: float = ALPHA) -> Claim:
    """What a difference shows: "open" where p is above `alpha` or the interval holds 0, "untested" without p.

    NaN counts as None.
    """
    if value is None or np.isnan(value):
        return "undefined"
    if p is None or np.isnan(p):
        return "untested"
    if p > alpha or value == 0.0 or (interval is not None and interval.low <= 0.0 <= interval.high):
        return "open"
    return "higher" if value > 0 else "lower"
