"""The result in a sentence that can be read aloud: the judge beside the people, no stronger than the figures allow.

"As well as" is a claim of its own: intervals that overlap do not support it.  It is made only where the difference of
judge and ceiling is shown to lie above -`MARGIN`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from core.jobs.views.reports import Report
from core.records import Alignment, Interval
from core.report.words import basis_words, bounded, counted, measure, number, range_words, told

MARGIN = 0.05
"""A judge less than this below a person counts as level with them."""

Standing = Literal["above", "level", "below", "open", "alone", "none", "undefined"]


@dataclass(frozen=True)
class Headline:
    """`sentence` is the result, `details` what belongs beside it.

    `standing`: above, level with or below a single person; "open" where the figures do not tell; "alone" where how
    people agree is not known; "none" where agreement with people is not shown at all; "undefined".
    """

    standing: Standing
    sentence: str
    details: tuple[str, ...]


def headline(report: Report) -> Headline:
    """The result of `report` in words."""
    held, people = report.result.final.held_out, report.labelling.ceiling
    whom = "the simulated raters" if report.judged.simulated else "your people"
    details = tuple(one for one in (_against_bare(report), _against_best(report), _optimism(report)) if one)
    if held.value is None:
        why = f": {held.reason}" if held.reason else ""
        return Headline("undefined", f"How well the judge agrees with {whom} cannot be told{why}.", details)
    where = f"{measure(held)}, {basis_words(held)} that did not choose it"
    if held.interval is None:
        return Headline(
            "open",
            f"The judge agrees with {whom} at {number(held.value)} ({where}); there are too few sources to say "
            "how sure that is.",
            details,
        )
    if held.interval.low <= 0:
        return Headline(
            "none",
            f"That the judge agrees with {whom} is not shown: {told(held)} ({where}), and the interval holds 0.",
            details,
        )
    if people is None or people.value is None:
        why = bounded(report.labelling.ceiling_reason, 300) or "the ratings of single people are missing"
        return Headline(
            "alone",
            f"The judge agrees with {whom} at {told(held)} ({where}). How well people agree with each other is "
            "not known here, so there is nothing to hold it against.",
            (f"Why: {why}", *details),
        )
    standing = _standing(held, people)
    beside = f"{told(held)} beside {told(people)} ({where})"
    sentence = {
        "above": f"The judge agrees with {whom} better than one of them agrees with the others: {beside}.",
        "level": f"The judge agrees with {whom} as well as they agree with each other: {beside}.",
        "below": f"The judge agrees with {whom} less well than they agree with each other: {beside}.",
    }.get(
        standing,
        f"It cannot be told yet whether the judge agrees with {whom} as well as they agree with each other: {beside}. "
        "These are too few.",
    )
    return Headline(standing, sentence, (_compared(held, people), *details))


def _standing(held: Alignment, people: Alignment) -> Standing:
    apart = difference_interval(held, people)
    if apart is None:
        return "open"
    if apart.low > 0:
        return "above"
    if apart.high < 0:
        return "below"
    return "level" if apart.low > -MARGIN else "open"


def difference_interval(first: Alignment, second: Alignment) -> Interval | None:
    """Interval of first minus second from their own intervals; None where either has none.

    Zou (2007, "Toward using confidence intervals to compare correlations"): the distances of the limits from the
    values add like variances.  The two are taken as independent; on the same items they go up and down together, so
    this interval is rather too wide than too narrow.
    """
    if first.value is None or second.value is None or first.interval is None or second.interval is None:
        return None
    value = first.value - second.value
    down = math.hypot(first.value - first.interval.low, second.interval.high - second.value)
    up = math.hypot(first.interval.high - first.value, second.value - second.interval.low)
    return Interval(value - down, value + up, first.interval.confidence, "from both intervals, taken as independent")


def _compared(held: Alignment, people: Alignment) -> str:
    apart = difference_interval(held, people)
    if apart is None or held.value is None or people.value is None:
        return ""
    return (
        f"Judge minus one rater: {number(held.value - people.value, signed=True)} {range_words(apart, signed=True)}. "
        f"The judge is called level with people only where this interval stays above −{MARGIN:g}."
    )


def _against_bare(report: Report) -> str:
    """What the criteria brought over the same judge without any, on the shelf's common items."""
    bare = [one for one in report.result.shelf.rows if one.kind == "no criteria" and one.same_run]
    if len(bare) != 1 or bare[0].difference is None:
        return ""
    gain, sure = bare[0].difference, bare[0].interval
    known = f"{number(gain, signed=True)} {range_words(sure, signed=True)}"
    if sure is not None and sure.low > 0:
        return f"The criteria help: {known} over the same judge without criteria."
    if sure is not None and sure.high < 0:
        return f"The criteria harm: {known} against the same judge without criteria."
    return f"That the criteria help is not shown: {known} over the same judge without criteria."


def _against_best(report: Report) -> str:
    """Judges on the shelf that are shown to agree better than this one."""
    better = [
        bounded(one.name, 60)
        for one in report.result.shelf.rows
        if one.difference is not None and one.difference < 0 and one.p is not None and one.p <= 0.05
    ]
    if not better:
        return ""
    does = "agrees" if len(better) == 1 else "agree"
    return f"Of the other judges {counted(len(better), 'judge')} {does} better on the same items: {', '.join(better)}."


def _optimism(report: Report) -> str:
    gap = report.result.optimism
    if gap is None:
        return ""
    return (
        f"On the items that chose it the judge stands at {told(report.result.final.calibration)}, "
        f"{number(gap, signed=True)} against the held-out ones: choosing flatters, so only held-out figures count."
    )
