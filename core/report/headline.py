"""Sum up a report in words: the main finding, notes and limits.

The headline claims no more than the figures show. The judge and a single rater are each compared with the mean of the
other raters. "As well as" requires that the whole interval of the difference is above −0.05
(`core.stats.intervals.MARGIN`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal

from core.comparison.steadiness import is_within_noise
from core.findings import Finding
from core.findings.agreement import (
    annotator_finding,
    gain_finding,
    gain_warning,
    no_interval_words,
    rater_finding,
    regression_words,
)
from core.findings.over_time import steadiness_line
from core.findings.system_quality import is_shown, means_finding
from core.records import Alignment
from core.report.figures.svg import legible
from core.report.report_facts import Report
from core.stats import NO_SINGLE_RATINGS, claim
from core.wording import (
    DASH,
    capital,
    counted,
    estimate,
    measure_name,
    number,
    signed,
    signed_range,
)

ReportStanding = Literal["above", "level", "below", "open", "alone", "none", "undefined"]
"""Of the judge next to a rater.  "alone": not compared; "none": agreement may be chance; "undefined": no value."""

WEAK: tuple[ReportStanding, ...] = ("open", "none", "undefined", "below")
LOW_ALPHA = 0.667
"""Krippendorff's own lower bound for tentative conclusions (2004, Content Analysis, chapter 11)."""
MANY_OPENINGS = 3


def bounded(text: str, limit: int) -> str:
    """Cut `text` to `limit` characters, with a note on its full length, and make control characters visible."""
    cut = text if len(text) <= limit else f"{text[:limit].rstrip()} … (shortened from {len(text):,} characters)"
    return legible(cut)


def measure(alignment: Alignment) -> str:
    """Return the statistic and level as text, for example ``"Spearman rho, sample level"``."""
    return measure_name(alignment.statistic, alignment.level)


def basis_words(alignment: Alignment) -> str:
    """Return n with its unit: ``"72 items"``, ``"72 items in 12 sources"`` or ``"16 systems"``."""
    if alignment.level == "system":
        return counted(alignment.n, "system")
    groups = f" in {counted(alignment.n_groups, 'source')}" if alignment.level == "sample" else ""
    return f"{counted(alignment.n, 'item')}{groups}"


def day(at: datetime | None) -> str:
    """Return a date as ``"22 November 2026"``; "—" for None."""
    return DASH if at is None else f"{at.day} {at:%B %Y}"


def standing(report: Report) -> ReportStanding:
    """Return how the judge's agreement on held-out items compares with a rater's."""
    held, people = report.held_out, report.raters.beside
    if held.value is None:
        return "undefined"
    if held.interval is None:
        return "open"
    if held.interval.low <= 0:
        return "none"
    return "alone" if people is None or people.difference is None or people.withheld else people.standing


def headline(report: Report) -> Finding:
    """Return the finding on how well the judge agrees with the raters, compared with one rater."""
    held, people, shown = report.held_out, report.raters.beside, standing(report)
    judge = capital(report.judge_name)
    whom = "the simulated raters" if report.simulated else "your raters"
    detail = f"Agreement on held-out items: {estimate(held)} ({measure(held)}, {basis_words(held)})."
    agrees = f"Agreement between {report.judge_name} and {whom}: {number(held.value)}."
    if shown == "undefined":
        return Finding(f"Agreement between {report.judge_name} and {whom} is undefined.", f"{capital(held.reason)}.")
    if shown == "none":
        chance = f"{judge} may agree with {whom} only by chance: {number(held.value)}."
        return Finding(chance, f"The interval includes 0. {detail}")
    if held.interval is None:
        return Finding(agrees, f"{no_interval_words(held)} {detail}")
    if people is None or shown == "alone":
        if people is not None and people.withheld:
            return Finding(agrees, f"{detail} The judge isn't compared with a rater, because {people.withheld}.")
        reason = report.raters.ceiling.reason if people is None else people.reason
        reason = bounded(reason, 300) or "there are no individual ratings"
        return Finding(agrees, f"{detail} Agreement between raters is unknown, {NO_SINGLE_RATINGS}: {reason}.")
    how = {
        "above": f"{judge} agrees with {whom} better than they agree with each other",
        "level": f"{judge} agrees with {whom} as well as they agree with each other",
        "below": f"{judge} agrees with {whom} less well than they agree with each other",
        "open": f"No clear difference between {report.judge_name} and one of {whom}",
    }[shown]
    gap = f"{signed(people.difference)} {signed_range(people.interval)}"
    return Finding(
        f"{how}.",
        f"{detail} Agreement of one rater with the others: {number(people.person.value)}. Judge minus rater: "
        f"{gap}, both compared with the mean of the other raters.",
    )


def readiness(report: Report) -> Finding:
    """Return the finding on whether the judge is good enough. It begins with "Ready", "Caution" or "Not yet".

    "Not yet" means that agreement with raters on held-out items is undefined, has no interval, or may be chance. A
    judge is "Ready" only if it is approved, significantly better than its baseline, and not significantly worse than a
    rater. Without a comparison with a rater, the judge must be significantly better than a regression.
    """
    shown, name, bar = standing(report), report.judge_name, report.board.bar
    if shown == "undefined" or report.held_out.interval is None:
        what = "is undefined" if shown == "undefined" else "is of unknown precision"
        return Finding(f"Not yet: agreement between {name} and raters {what}.", headline(report).detail)
    if shown == "none":
        return Finding(f"Not yet: {name} may agree with raters only by chance.", headline(report).detail)
    reasons = []
    gain = claim(report.gain.value, report.gain.interval, report.gain.p)
    if gain == "untested":
        reasons.append("its gain over the baseline can't be tested")
    elif gain != "higher":
        reasons.append("it has no significant gain over the baseline")
    elif report.steadiness is not None and is_within_noise(report.steadiness, report.gain):
        reasons.append("its gain over the baseline is smaller than the noise in its scores")
    if shown == "below":
        reasons.insert(0, "raters agree better with each other than with the judge")
    elif shown == "alone" and (bar is None or bar.standing(report.ours) != "better"):
        reasons.append("it isn't significantly better than a plain regression")
    if reasons:
        detail = gain_finding(report.gain).detail if gain == "untested" and shown != "below" else ""
        step = "Improve the criteria where the judge and raters disagree, or label more items."
        return Finding(f"Caution: {name} may not be good enough, because {reasons[0]}.", detail, next_step=step)
    if report.version is None or not report.version.in_force:
        return Finding(f"Caution: no one in this project has approved {name} yet.")
    return Finding(f"Ready: {name} is approved and significantly better than the baseline.")


def headline_notes(report: Report) -> tuple[str, ...]:
    """Return the notes next to the headline: raters, annotator test, gain, better judges, regression and optimism."""
    sentences, people = list[str](), report.raters.beside
    if people is not None and people.difference is not None and standing(report) not in ("undefined", "none"):
        said = [rater_finding(people, measure(people.judge), capital(report.judge_name))]
        said += [] if report.raters.test is None else [annotator_finding(report.raters.test)]
        sentences += [bounded(" ".join(filter(None, (one.headline, one.detail, *one.cautions))), 600) for one in said]
    sentences.append(" ".join(gained(report).lines))
    better = [
        bounded(row.name, 60)
        for k, row in enumerate(report.board.rows)
        if (gap := report.board.minus(report.ours, k)) and claim(gap.value, gap.interval, gap.p) == "lower"
    ]
    if better:
        sentences.append(f"On the same items, other judges agree better with raters: {', '.join(better)}.")
    sentences.append(regression(report))
    if (optimism := report.calibration.optimism) is not None:
        sentences.append(
            f"On the calibration set, the judge's agreement is {estimate(report.calibration.calibration)} "
            f"({signed(optimism)} compared with the held-out set). Report the held-out figure."
        )
    return tuple(filter(None, sentences))


def gained(report: Report) -> Finding:
    """Return the finding on the gain over the baseline, and on the noise of repeated scoring."""
    said = gain_finding(report.gain)
    return replace(said, detail=" ".join(filter(None, (said.detail, steady(report)))))


def steady(report: Report) -> str:
    """Return a sentence on how much repeated scores of the judge differ; "" if no scores were repeated."""
    return "" if report.steadiness is None else steadiness_line(report.steadiness, report.gain)


def better_system(report: Report) -> str:
    """Return a sentence that names the significantly better system; "" if there is none."""
    if not any(map(is_shown, report.means.differences)):
        return ""
    return means_finding(report.means, bounded(report.aspect, 80)).headline


def regression(report: Report) -> str:
    """Return a sentence that compares the judge with a plain regression fitted to the labels; "" if there is none."""
    bar = report.board.bar
    if bar is not None and report.seen_before:
        bar = bar.without_p(report.ours, report.seen_before)
    return "" if bar is None else regression_words(bar, report.ours)


def sign_off(report: Report) -> str:
    """Return a sentence on who approved the judge, when, why, and on which evidence."""
    version = report.version
    if version is None:
        return "This judge has no approval because it predates the version history."
    approval = version.approval
    if approval is None:
        return f"No one in this project has approved {report.judge_name}."
    by, reason = bounded(approval.actor, 80) or "Someone", bounded(approval.reason, 300)
    words = f"{by} approved {report.judge_name} on {day(approval.at)}" + (
        f": “{reason.rstrip('.')}”." if reason else "."
    )
    if (measured := version.evidence_of(approval)) is not None:
        side, alignment = measured.evidence
        rests = f"{estimate(alignment)} on {side} items ({measure(alignment)}, {basis_words(alignment)})"
        words += f" The approval is based on an agreement of {rests}."
    return f"{words} The approved version is the current version." if version.state == "current" else words


def limits(report: Report) -> tuple[Finding, ...]:
    """Return the limits of the report, most serious first. Each has a title, and a sentence or two with figures."""
    c, raters, version, found = report.calibration, report.raters, report.version, list[Finding]()

    def add(title: str, *sentences: str) -> None:
        found.append(Finding(title, bounded(" ".join(sentences), 600)))

    if report.simulated:
        made = "A program generated these labels. The report shows how Concord works, not how good a judge is."
        add("No one rated these texts", made)
    for warning in c.warnings:
        if warning != gain_warning(c.gain):  # the report says it under "What the criteria add"
            add("Calibration warning", warning)
    if not raters.n_rated:
        add(
            "One label per item",
            "Agreement between raters is unknown, so the highest agreement that a judge can reach is unknown too.",
        )
    elif len(raters.n_rated) == 1:
        add("One rater", "All individual ratings are from one rater. Concord can't tell whether other raters agree.")
    elif raters.alpha.value is not None and raters.alpha.value < LOW_ALPHA:
        add(
            "Low agreement between raters",
            f"Krippendorff's alpha is {number(raters.alpha.value)} ({raters.alpha.metric}, "
            f"{counted(raters.alpha.n_items, 'item')} rated twice or more); below {LOW_ALPHA}, the labels are "
            "unreliable. Define the aspect more clearly.",
        )
    if notice := c.judge_state.get("notice"):
        add("About the judge", str(notice))
    if c.work.left_out:
        add("Stopped early", *c.work.left_out)
    if version is None or version.approval is None:
        add("Not approved", sign_off(report))
    if len(report.openings) >= MANY_OPENINGS:
        add(
            "Held-out set used often",
            f"The held-out items were used in {len(report.openings)} evaluations. If someone used the results to "
            "choose a version, the figures are optimistic. Measure again on new labels.",
        )
    if report.golden.n_systems > 1 and c.split.kind == "sources":
        add(
            "The same systems in both sets",
            "Held-out items come from new sources but the same systems. Agreement on a new system is unknown.",
        )
    if n := report.n_doubted:
        add(
            "Disputed labels",
            f"Reviewers marked {counted(n, 'label')} as wrong. This report still includes all labels.",
        )
    return tuple(found)
