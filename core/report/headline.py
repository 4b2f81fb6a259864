"""The result in a sentence that can be read aloud: the judge beside the people, no stronger than the figures allow.

Judge and person are held against the same targets, the mean of the other raters, and compared pair by pair.  "As well
as" is a claim of its own: an interval that holds 0 does not support it.  It is made only where the whole interval of
the difference lies above -.05 (`core.stats.beside_people.MARGIN`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.projects.views.reports import Report
from core.report.words import basis_words, bounded, counted, measure, number, range_words, told
from core.stats import (
    NO_SINGLE_RATINGS,
    BesidePeople,
    annotator_test_words,
    beside_people_words,
    gain_words,
    margin_words,
)

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
    held, people = report.result.final.held_out, report.labelling.beside
    whom = "the simulated raters" if report.judged.simulated else "your people"
    details = tuple(one for one in (gain_words(report.result.gain), _against_best(report), _optimism(report)) if one)
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
    if people is None or people.difference is None:
        why = report.labelling.ceiling_reason if people is None else people.reason
        return Headline(
            "alone",
            f"The judge agrees with {whom} at {told(held)} ({where}). How well people agree with each other is "
            f"not known here, {NO_SINGLE_RATINGS}.",
            (f"Why: {bounded(why, 300) or 'the ratings of single people are missing'}", *details),
        )
    sentence = {
        "above": f"The judge agrees with {whom} better than one of them agrees with the others",
        "level": f"The judge agrees with {whom} as well as they agree with each other",
        "below": f"The judge agrees with {whom} less well than they agree with each other",
        "open": f"The judge cannot be told apart from one of {whom}",
    }[people.standing]
    return Headline(
        people.standing,
        f"{sentence}: {_figures(people)}. With their mean label it agrees at {told(held)} ({where}).",
        (*_beside(report, people), *details),
    )


def _figures(people: BesidePeople) -> str:
    """``"0.57 against 0.61 for a person, −0.04 [−0.10, +0.02]"``."""
    gap = f"{number(people.difference, signed=True)} {range_words(people.interval, signed=True)}"
    return f"{number(people.judge.value)} against {number(people.person.value)} for a person, {gap}"


def _beside(report: Report, people: BesidePeople) -> tuple[str, ...]:
    """What the comparison with people rests on, and the annotator test."""
    own = f"{beside_people_words(people, measure(people.judge))} {margin_words()}"
    return (bounded(own, 600), *(bounded(annotator_test_words(one), 400) for one in report.labelling.tests))


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
