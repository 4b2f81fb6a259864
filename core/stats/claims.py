"""What a paired difference allows to be said: no more than its test shows.

A point value never makes a claim.  Where the test shows nothing the words describe ("a gain is not shown"), and where
there is no test, as with fewer than 8 sources, they say so.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from core.records import Interval
from core.stats.intervals import Difference
from core.stats.spread import LEAST_SOURCES

ALPHA = 0.05
"""Differences with a p up to this, corrected where there are several, are called shown or significant."""
NO_TEST = f"no test: that takes at least {LEAST_SOURCES} sources"

Claim = Literal["higher", "lower", "open", "untested", "undefined"]


def claim(value: float | None, interval: Interval | None, p: float | None) -> Claim:
    """What a difference shows: "open" where p is above `ALPHA` or the interval holds 0, "untested" without p.

    NaN counts as None.
    """
    if value is None or np.isnan(value):
        return "undefined"
    if p is None or np.isnan(p):
        return "untested"
    if p > ALPHA or value == 0.0 or (interval is not None and interval.low <= 0.0 <= interval.high):
        return "open"
    return "higher" if value > 0 else "lower"


def difference_figures(value: float | None, interval: Interval | None, p: float | None) -> str:
    """``"+0.050 [+0.010, +0.090], p = .012"``; "undefined", and why there is no p."""
    if value is None:
        return "undefined"
    ends = "" if interval is None else f" [{interval.low:+.3f}, {interval.high:+.3f}]"
    return f"{value:+.3f}{ends}, {p_figure(p)}"


def p_figure(p: float | None) -> str:
    """``"p = .012"``, ``"p < .001"``, or why there is none."""
    if p is None or np.isnan(p):
        return NO_TEST
    return "p < .001" if p < 0.001 else "p = 1" if p >= 0.9995 else f"p = {p:.3f}".replace("0.", ".", 1)


def gain_words(gain: Difference, where: str = "on held-out items") -> str:
    """Whether criteria bring a gain over none, in a sentence with value, interval, p and the common items."""
    shown = claim(gain.value, gain.interval, gain.p)
    if shown == "undefined":
        return f"The gain over no criteria is undefined {where}: {gain.reason}."
    figures = difference_figures(gain.value, gain.interval, gain.p)
    basis = f"{figures}, on the {gain.n:,} items that both scored ({gain.a.value:.3f} and {gain.b.value:.3f})"
    return {
        "higher": f"The criteria bring a gain over no criteria {where}: {basis}.",
        "lower": f"The criteria lower the alignment {where}: {basis}.",
        "open": f"A gain over no criteria is not shown {where}: {basis}.",
        "untested": f"Whether the criteria bring a gain {where} cannot be told: {basis}.",
    }[shown]
