"""What may be said: how much data a claim needs, why a value is undefined, and findings in words.

A point value never makes a claim.  Where the test shows nothing the words describe ("a gain is not shown"), and where
there is no test, as with fewer than 8 sources, they say so.  Every reason for an undefined value, a missing interval or
a missing p stands here, so that one thing is said one way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from core.records import Alignment, Interval
from core.wording import counted, difference_figures, estimate, number, p_figure, signed, signed_range

if TYPE_CHECKING:
    from core.stats.alignment import Difference
    from core.stats.annotator_test import AnnotatorTest
    from core.stats.ceiling import BesidePeople

Claim = Literal["higher", "lower", "open", "untested", "undefined"]
Standing = Literal["above", "level", "below", "open"]

# ── how much it takes ────────────────────────────────────────────────────────────────────────────────────────

ALPHA = 0.05
"""Differences with a p up to this, corrected where there are several, are called shown or significant."""

HALF_ALPHA = ALPHA / 2
"""One half for what is said of a judge beside the bar, one for where it fails and its biases: all their sentences
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
NOT_SCORED_BY_BOTH = "the judge scored no item that two people rated"
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


def undefined_sides(named: Mapping[str, Alignment]) -> str:
    """Why a difference is undefined, by the names of its sides."""
    return "; ".join(f"{name}: {side.reason}" for name, side in named.items() if side.value is None)


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


def alone_words(interval: Interval | None, p: float | None) -> str:
    """``", corrected for all comparisons, as the interval is not"``; "" but where an interval without 0 stands beside
    a p, corrected over a table, that shows nothing."""
    if p is None or np.isnan(p) or p <= ALPHA or interval is None or interval.low <= 0.0 <= interval.high:
        return ""
    return ", corrected for all comparisons, as the interval is not"


def is_backwards(alignment: Alignment) -> bool:
    """Whether a judge ranks texts against the raters beyond chance: its whole interval lies below 0."""
    return alignment.interval is not None and alignment.interval.high < 0


def backwards_words(alignment: Alignment, whose: str) -> str:
    """Ask whether 1 is the best label where `is_backwards`; "" elsewhere."""
    if not is_backwards(alignment):
        return ""
    return (
        f"{whose} contradicts the raters, at {estimate(alignment)}. Is the lowest label the best? Then turn the labels "
        "round, with --values best=low or at the upload, and measure again."
    )


def gain_words(gain: Difference, where: str = "on held-out items") -> str:
    """Whether criteria bring a gain over none, in a sentence with value, interval, p and the common items.

    Beside a baseline that is backwards a gain says nothing; then it is asked whether the lowest label is the best.
    """
    if asked := backwards_words(gain.b, "The judge without criteria"):
        return asked
    shown = claim(gain.value, gain.interval, gain.p)
    if shown == "undefined":
        return f"The gain over no criteria is undefined {where}: {gain.reason}."
    figures = difference_figures(gain.value, gain.interval, gain.p, gain.p_reason)
    basis = f"{figures}, on the {gain.n:,} items that both scored ({number(gain.a.value)} and {number(gain.b.value)})"
    return {
        "higher": f"The criteria bring a gain over no criteria {where}: {basis}.",
        "lower": f"The criteria lower the alignment {where}: {basis}.",
        "open": f"A gain over no criteria is not shown {where}: {basis}.",
        "untested": f"Whether the criteria bring a gain {where} cannot be told: {basis}.",
    }[shown]


# ── a judge next to a rater ────────────────────────────────────────────────────────────────────────────────────

STANDING_WORDS: dict[Standing, str] = {
    "above": "better than a rater",
    "level": "as good as a rater",
    "below": "worse than a rater",
    "open": "no clear difference",
}


def beside_people_words(result: BesidePeople, measure: str, *, judge: str = "The judge") -> str:
    """Say how `judge` compares with a rater, with figures, interval, p and what they rest on; `measure` names the axis.

    >>> # The judge agrees with these raters better than one of them does with the others: 0.61 against 0.52, …
    """
    if result.difference is None or result.judge.value is None or result.person.value is None:
        return f"{judge} cannot be compared with a rater here: {result.reason}."
    figures = f"{number(result.judge.value)} against {number(result.person.value)} for a rater"
    tested = "" if result.p is None else f", {p_figure(result.p)}"
    if result.n_judges > 1:
        tested += f", corrected for {result.n_judges} judges"
    ends = "(no interval)" if result.interval is None else signed_range(result.interval)
    apart = f"difference {signed(result.difference)} {ends}{tested}"
    basis = f"{counted(result.n_items, 'item')}, {counted(result.n_sources, 'source')}, {_raters(result)}"
    evidence = f"{figures}, each against the mean of the other raters ({apart}; {measure}, {basis})."
    if result.withheld:
        return f"Nothing is claimed next to a rater, because {result.withheld}. {judge}: {evidence}"
    match result.standing:
        case "above":
            return f"{judge} agrees with these raters better than one of them does on average: {evidence}"
        case "below":
            return f"{judge} agrees with these raters less well than one of them does on average: {evidence}"
        case "level" if result.interval is not None:
            least = number(max(-result.interval.low, 0.0))
            return f"{judge} agrees with these raters as well as one of them does, at worst {least} less: {evidence}"
        case _:
            why = f" ({result.reason})" if result.reason else ""
            return f"{judge} does not differ significantly from one of these raters{why}: {evidence}"


def annotator_test_words(result: AnnotatorTest) -> str:
    """Whether the judge may take a rater's place, with omega, rho and what the test rests on."""
    name = "Alternative annotator test"
    if result.clustered:
        name += " clustered by source (ours)"
    elif result.n_sources < result.n_items:
        name += " over items (as in the paper; passes too often where items share sources)"
    if result.omega is None:
        return f"{name}: undefined, {result.reason}."
    if result.withheld:
        return f"{name}: no verdict, because {result.withheld}."
    outdone = sum(rater.replaceable for rater in result.by_rater)
    verdict = "no verdict" if result.passes is None else "passed" if result.passes else "not passed"
    rests = f"ε = {result.epsilon:g}, {counted(result.n_items, 'item')}, {counted(result.n_sources, 'source')}"
    evidence = (
        f"{name}: {verdict}. The judge could stand in for {outdone} of {_raters(result)} "
        f"(ω = {number(result.omega)}, {number(PASSES_AT)} passes; ρ = {number(result.rho)}; {rests})."
    )
    return " ".join([evidence, *result.cautions])


def margin_words() -> str:
    """State what "as good as a rater" requires."""
    return f"“As good as” needs the whole interval above {signed(-MARGIN)}."


def _raters(result: BesidePeople | AnnotatorTest) -> str:
    """Their number; the panel is named where there are several, and who was left out of very many."""
    words = f"{result.n_raters} raters" + (f" of the panel {result.panel}" if result.panel else "")
    return words + (f" of {result.n_in_all:,}, those with the most ratings" if result.n_in_all > MOST_RATERS else "")


def no_interval_words(alignment: Alignment) -> str:
    """``"No interval: all items are of one source; …"``, the one sentence on a value without an interval; else ""."""
    if alignment.value is None or alignment.interval is not None:
        return ""
    return f"No interval: {alignment.no_interval}." if alignment.no_interval else "No interval is known."
