"""Findings on a judge's errors by subgroup, its biases, spoiled texts, and intervals around verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.findings import Finding
from core.stats.intervals import HALF_ALPHA
from core.wording import (
    capital,
    counted,
    difference_figures,
    estimate,
    number,
    percent,
)

if TYPE_CHECKING:
    from core.comparison.controls import Control
    from core.comparison.examination import Bias, Division, Examination, Part
    from core.comparison.sureness import Sureness

DIVISIONS: dict[Division, str] = {
    "score": "Score by the judge",
    "system": "System",
    "length": "Length",
}
_WHERE: dict[Division, str] = {
    "score": "on texts that it scored {}",
    "system": "on texts by {}",
    "length": "on texts of {}",
}


def examination_finding(found: Examination) -> Finding:
    """Return the finding on subgroups with significantly more errors, and on significant biases."""
    name = capital(found.name)
    if not found.n:
        return Finding(f"No labelled item that is new to {found.name} has a score.")
    measure = f"{found.overall.statistic.capitalize()} on all items pooled, not per source: {estimate(found.overall)}"
    detail = (
        f"{measure}, {counted(found.n, 'unseen item')} from {counted(found.n_sources, 'source')}. "
        f"Holm-corrected for {counted(found.n_tests, 'test')}, including those for biases; "
        f"significant if p ≤ {HALF_ALPHA:g}."
    )
    worst = found.worst
    claims = tuple(
        f"The judge also makes larger errors {_WHERE[part.division].format(part.name)} ({part_figures(part)})."
        for part in worst[1:]
    ) + tuple(bias_finding(bias).headline for bias in found.biases if bias.shown)
    if worst:
        first = worst[0]
        where = _WHERE[first.division].format(first.name)
        errors = f"{number(first.error)} points, {number(first.expected)} expected"
        return Finding(
            f"{name} makes larger errors {where}: {errors}.", f"Excess {part_figures(first)}. {detail}", claims
        )
    tested = sum(part.p is not None for part in found.parts)
    if not tested:
        return Finding(f"Weak spots of {found.name} are unknown because no subgroup could be tested.", detail, claims)
    return Finding(f"No weak spot found in {counted(tested, 'subgroup')} of items.", detail, claims)


def controls_finding(controls: Sequence[Control]) -> Finding:
    """Return the finding on whether the judge prefers texts that were spoiled on purpose."""
    known = [control for control in controls if control.preferred is not None]
    if not known:
        return Finding("None of the spoiled texts could be scored.")
    lines = [
        f"{capital(control.kind)}: {percent(control.preferred)} of {counted(control.n, 'pair')}"
        + (f" [{percent(ends.low)}, {percent(ends.high)}]" if (ends := control.interval) else "")
        for control in known
    ]
    detail = f"{'; '.join(lines)}. Equal scores count as half; the 95 % intervals account for shared sources."
    n_unread = sum(control.n_unscored for control in controls)
    cautions = (f"Left out: {counted(n_unread, 'pair')} that couldn't be scored.",) if n_unread else ()
    worst = max(known, key=lambda control: 1.0 if control.interval is None else control.interval.high)
    if worst.interval is not None and worst.interval.high < 0.5:
        return Finding("The judge prefers the originals to every kind of spoiled text.", detail, cautions)
    said = (
        f"The judge may not notice spoiled texts ({worst.kind}): it prefers {percent(worst.preferred)} of them to the "
        "originals."
    )
    return Finding(said, detail, cautions)


def part_figures(part: Part) -> str:
    """Format a subgroup's excess error over the other items: ``"+0.40 [+0.21, +0.59], p < 0.001"``."""
    return difference_figures(part.difference, part.interval, part.p, limit=HALF_ALPHA)


def bias_finding(bias: Bias) -> Finding:
    """Return the finding on whether the judge prefers a length, a position or its own family more than raters do."""
    longer, detail = (bias.difference or 0.0) > 0, f"{capital(bias_figures(bias))}."
    own = None if bias.judge is None else bias.judge.interval
    surely = own is not None and (own.low > 0 if longer else own.high < 0)
    name = {
        "length": "Length",
        "position": "Position in a pair",
        "own family": "The judge's own model family",
    }[bias.kind]
    if not bias.shown:
        return Finding(f"{name}: {'not tested' if bias.difference is None else 'no bias found'}.", detail)
    match bias.kind:
        case "length":
            leaning = f"favours {'longer' if longer else 'shorter'} texts more than raters do"
            if not surely:  # the judge's own correlation may be 0, and only differ from the raters'
                leaning = f"{'penalises' if longer else 'rewards'} length less than raters do"
            headline = f"The judge {leaning}."
        case "position":
            headline = f"The judge prefers the {'second' if longer else 'first'} text of a pair, regardless of quality."
        case _:
            headline = f"The judge favours texts by {bias.name} systems (its own model family) more than raters do."
    return Finding(headline, detail)


def bias_figures(bias: Bias) -> str:
    """Format a bias: ``"correlation 0.68 [0.60, 0.75], 0.15 expected without bias, raters 0.23 […]; excess …"``."""
    if bias.difference is None:
        return bias.reason
    excess = difference_figures(bias.difference, bias.interval, bias.p, bias.reason, limit=HALF_ALPHA)
    if bias.flips is not None:
        flips = f"{percent(bias.flips)} of {counted(bias.n, 'verdict')} change with the order of the texts"
        return f"excess share for the second position {excess}; {flips}"
    if bias.judge is None or bias.expected is None:
        return excess
    low, high = (number(end) for end in bias.expected)
    expected = f"{low if low == high else f'{low} to {high}'} expected without bias"
    unit = " (in standard deviations of the judge's scores)" if bias.kind == "own family" else ""
    sides = f"correlation {estimate(bias.judge)}, {expected}, raters {estimate(bias.people)}"
    return f"{sides}; excess{unit} {excess}"


def sureness_finding(sure: Sureness) -> Finding:
    """Return the finding on whether the intervals around verdicts contain as many labels as they should."""
    if sure.held is None or sure.width is None:
        headline = f"No {percent(sure.coverage)} intervals for verdicts: {sure.reason}."
    else:
        headline = (
            f"The intervals contain {percent(sure.held)} of the labels; they should contain {percent(sure.coverage)}."
        )
    size = f"intervals {number(sure.width)} points wide on average"
    if sure.two_answers:
        size = f"{percent(sure.width)} of the intervals contain both answers, yes and no"
    details = [f"{counted(sure.n, 'unseen item')} from {counted(sure.n_sources, 'source')}"]
    details += [] if sure.width is None else [size]
    return Finding(headline, "; ".join(details) + ".")
