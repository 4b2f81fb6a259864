"""The finding of a report, what belongs next to it, and what a reader should keep in mind.

The headline is no stronger than the figures.  Judge and rater are compared with the same targets, the mean of the
other raters.  "As well as" is a claim of its own: the whole interval of the difference must lie above −0.05
(`core.stats.intervals.MARGIN`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Literal

import numpy as np

from core.comparison.steadiness import is_within_noise
from core.data.split import few_held_out, few_labels
from core.findings import Finding
from core.findings.agreement import (
    annotator_finding,
    bar_words,
    gain_finding,
    gain_warning,
    no_interval_words,
    rater_finding,
)
from core.findings.over_time import steadiness_line
from core.findings.system_quality import is_shown, means_finding
from core.records import Alignment
from core.report.figures.svg import legible
from core.report.report_facts import Report
from core.stats import NO_SINGLE_RATINGS, SHORT, claim
from core.wording import (
    DASH,
    capital,
    counted,
    difference_figures,
    estimate,
    measure_name,
    number,
    percent,
    signed,
    signed_range,
    times,
)

ReportStanding = Literal["above", "level", "below", "open", "alone", "none", "undefined"]
"""Of the judge next to a rater; "alone": not compared; "none": agreement may be chance; "undefined": no value."""

WEAK: tuple[ReportStanding, ...] = ("open", "none", "undefined", "below")
LOW_ALPHA = 0.667
"""Krippendorff's own lower bound for tentative conclusions (2004, Content Analysis, chapter 11)."""
SKEWED = 0.8
MANY_OPENINGS = 3
OPTIMISM = 0.1


def bounded(text: str, limit: int) -> str:
    """`text` of at most `limit` characters, saying so where it was longer; control characters made visible."""
    cut = text if len(text) <= limit else f"{text[:limit].rstrip()} … (shortened, {len(text):,} characters)"
    return legible(cut)


def measure(alignment: Alignment) -> str:
    """``"Spearman rho, sample level"``."""
    return measure_name(alignment.statistic, alignment.level)


def basis_words(alignment: Alignment) -> str:
    """What `n` counts: ``"72 items"``, ``"72 items in 12 sources"``, ``"16 systems"``."""
    if alignment.level == "system":
        return counted(alignment.n, "system")
    groups = f" in {counted(alignment.n_groups, 'source')}" if alignment.level == "sample" else ""
    return f"{counted(alignment.n, 'item')}{groups}"


def day(at: datetime | None) -> str:
    """``"22 November 2026"`` or "—"."""
    return DASH if at is None else f"{at.day} {at:%B %Y}"


def standing(report: Report) -> ReportStanding:
    """How strong the result may be called."""
    held, people = report.held_out, report.raters.beside
    if held.value is None:
        return "undefined"
    if held.interval is None:
        return "open"
    if held.interval.low <= 0:
        return "none"
    return "alone" if people is None or people.difference is None or people.withheld else people.standing


def headline(report: Report) -> Finding:
    """How well the judge agrees with the raters, next to one rater."""
    held, people = report.held_out, report.raters.beside
    judge = capital(report.judge_name)
    whom = "the simulated raters" if report.simulated else "your raters"
    detail = f"Agreement {estimate(held)}: {measure(held)}, {basis_words(held)}, held-out."
    match standing(report):
        case "undefined":
            return Finding(f"Agreement of {report.judge_name} with {whom} is undefined.", f"{capital(held.reason)}.")
        case "open" if held.interval is None:
            return Finding(f"{judge} agrees with {whom}: {number(held.value)}.", f"{no_interval_words(held)} {detail}")
        case "none":
            return Finding(
                f"{judge} may agree with {whom} only by chance: {number(held.value)}.",
                f"The interval holds 0. {detail}",
            )
        case "alone":
            if people is not None and people.withheld:
                why = f"There is no comparison with a rater, because {people.withheld}."
            else:
                reason = report.raters.ceiling.reason if people is None else people.reason
                reason = bounded(reason, 300) or "no single ratings"
                why = f"Agreement between raters is not known, {NO_SINGLE_RATINGS}: {reason}."
            return Finding(f"{judge} agrees with {whom}: {number(held.value)}.", f"{detail} {why}")
        case shown:
            assert people is not None
            how = {
                "above": f"{judge} agrees with {whom} better than they agree with each other",
                "level": f"{judge} agrees with {whom} as well as they agree with each other",
                "below": f"{judge} agrees with {whom} less well than they agree with each other",
            }.get(shown, f"There is no clear difference between {report.judge_name} and one of {whom}")
            gap = f"{signed(people.difference)} {signed_range(people.interval)}"
            return Finding(
                f"{how}.",
                f"{detail} One rater: {number(people.person.value)}. Judge minus rater, each against the mean of the "
                f"other raters: {gap}.",
            )


def readiness(report: Report) -> Finding:
    """Whether the judge is good enough to use: the headline begins with "Ready", "Caution" or "Not yet".

    A judge is ready if it is approved, gains significantly over its baseline on held-out items (which takes
    `LEAST_SOURCES` sources), and is not significantly below a rater.  Without raters it has to beat the regression.
    """
    shown, name, bar = standing(report), report.judge_name, report.board.bar
    if shown == "undefined" or report.held_out.interval is None:
        what = "agreement" if shown == "undefined" else "interval of the agreement"
        return Finding(f"Not yet: the {what} of {name} with raters is undefined.", headline(report).detail)
    if shown == "none":
        return Finding(f"Not yet: {name} may agree with raters only by chance.", headline(report).detail)
    reasons = []
    if report.version is None or not report.version.in_force:
        reasons.append("nobody here has approved it")
    gain = claim(report.gain.value, report.gain.interval, report.gain.p)
    if gain == "untested":
        reasons.append("its gain over the baseline is not tested")
    elif gain != "higher":
        reasons.append("it has no significant gain over the baseline")
    elif report.steadiness is not None and is_within_noise(report.steadiness, report.gain):
        reasons.append("its gain over the baseline is smaller than its own noise")
    if shown == "below":
        reasons.insert(0, "it agrees less well than a rater")
    elif shown == "alone" and (bar is None or bar.standing(report.ours) != "better"):
        reasons.append("it is not significantly better than a plain regression")
    if reasons:
        return Finding(f"Caution: {name} may not be good enough, because {reasons[0]}.")
    return Finding(f"Ready: {name} is approved and gains significantly over the baseline.")


def asides(report: Report) -> tuple[str, ...]:
    """Notes next to the headline: raters, annotator test, gain, better judges, regression, optimism."""
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
        sentences.append(f"{counted(len(better), 'other judge')} agree better on the same items: {', '.join(better)}.")
    sentences.append(bar(report))
    optimism, chose = report.calibration.optimism, estimate(report.calibration.calibration)
    if optimism is not None:
        why = "That is optimistic." if round(optimism, 2) > 0 else "These are different items."
        sentences.append(
            f"On the calibration set the judge's alignment is {chose}, {signed(optimism)} compared with held-out. "
            f"{why} Report the held-out figure."
        )
    return tuple(filter(None, sentences))


def gained(report: Report) -> Finding:
    """What the criteria add to the baseline and to the version before, and how often the held-out items were seen."""
    said, looks = gain_finding(report.gain), len(report.openings)
    parts = [said.detail]
    entry, gain = report.measured, None if report.measured is None else report.measured.held_out_gain
    if entry is not None and entry.beside and gain is not None:
        how = {
            "higher": "agrees better than",
            "lower": "agrees less well than",
            "open": "does not differ significantly from",
        }.get(claim(gain.value, gain.interval, gain.p), "is not tested against")
        figures = difference_figures(gain.value, gain.interval, gain.p, gain.p_reason)
        name = capital(report.judge_name)
        parts.append(f"{name} {how} version {entry.beside}: {figures}, on {counted(gain.n, 'held-out item')}.")
    parts.append(f"The held-out items were seen {times(looks)}." if looks else "")
    parts.append(steady(report))
    return replace(said, detail=" ".join(filter(None, parts)))


def steady(report: Report) -> str:
    """How much the scores change when the judge is asked again; "" where nobody has asked."""
    return "" if report.steadiness is None else steadiness_line(report.steadiness, report.gain)


def better_system(report: Report) -> str:
    """Which system is better; "" where no difference is beyond chance."""
    if not any(map(is_shown, report.means.differences)):
        return ""
    return means_finding(report.means, bounded(report.aspect, 80)).headline


def bar(report: Report) -> str:
    """Whether the judge agrees better than a plain regression on the labels; "" without one."""
    known = report.board.bar
    if known is None:
        return ""
    return bar_words(known.without_p(report.ours, report.seen_before) if report.seen_before else known, report.ours)


def sign_off(report: Report) -> str:
    """Who approved which version of the judge, when, why, and on which evidence."""
    version = report.version
    if version is None:
        return "Nobody here has approved this judge: it is older than the record of versions."
    approval, elsewhere = version.approval, version.imported_approval
    if approval is None:
        why = f"Nobody here has approved {report.judge_name}."
        if elsewhere is not None:
            by = bounded(elsewhere.actor, 80) or "Somebody"
            why += f" {by} approved it where the project came from; that approval does not count here."
        return why
    by, reason = bounded(approval.actor, 80) or "Somebody", bounded(approval.reason, 300)
    words = f"{by} approved {report.judge_name} on {day(approval.at)}" + (f": “{reason}”" if reason else "")
    words += "" if reason[-1:] in (".", "!", "?") and reason else "."
    if (measured := version.evidence_of(approval)) is not None:
        side, alignment = measured.evidence
        rests = f"{estimate(alignment)} on {side} items ({measure(alignment)}, {basis_words(alignment)})"
        words += f" The approval rests on {rests}."
    return f"{words} It is the current version." if version.state == "current" else words


def limits(report: Report) -> tuple[Finding, ...]:
    """What a reader should keep in mind, the gravest first: a few words, and a sentence or two with the figures."""
    return (*_of_labels(report), *_of_judge(report), *_of_figures(report))


def _of_labels(report: Report) -> Iterator[Finding]:
    split, alpha = report.calibration.split, report.raters.alpha
    if report.simulated:
        yield Finding(
            "Nobody rated these texts",
            "A program made these labels. The report shows how Concord works, not how good a judge is.",
        )
    if few := [words for words in (few_labels(len(split.calibration)), few_held_out(len(split.held_out))) if words]:
        yield Finding("Few labels", " ".join(few))
    share = np.unique(report.labels, return_counts=True)[1].max(initial=0) / max(report.labels.size, 1)
    if share >= SKEWED:
        yield Finding(
            "Labels nearly all the same",
            f"{percent(share)} of the labels have one value; the figures rest on the others.",
        )
    if not report.raters.n_rated:
        yield Finding(
            "One label per item", "Agreement between raters is not known, so neither is the ceiling of a judge."
        )
    elif len(report.raters.n_rated) == 1:
        yield Finding(
            "One rater", "The judge follows one rater, and nobody knows whether others agree with that rater."
        )
    elif alpha.value is not None and alpha.value < LOW_ALPHA:
        yield Finding(
            "Raters agree little",
            f"Krippendorff's alpha is {number(alpha.value)} ({alpha.metric}, {counted(alpha.n_items, 'item')} rated "
            f"twice or more); below {LOW_ALPHA} conclusions are doubtful. Define the aspect more clearly.",
        )


def _of_judge(report: Report) -> Iterator[Finding]:
    notice, left_out = str(report.calibration.judge_state.get("notice", "")), report.calibration.work.left_out
    version, current = report.version, report.line.current
    if notice:
        yield Finding("What the judge is", bounded(notice, 600))
    if left_out:
        yield Finding("Stopped early", bounded(" ".join(left_out), 600))
    if n := report.held_out.n_unscored:
        yield Finding(
            "Replies that could not be read",
            f"{counted(n, 'held-out item')} ({percent(n / max(1, report.n_held_out))}) have no score and are left out. "
            "If they are the hard ones, the figure is optimistic.",
        )
    if version is None or version.approval is None:
        yield Finding("Not signed off", sign_off(report))
    if current is not None and current != version:
        words = f"This report is on {report.judge_name}; the current one is {current.name}."
        yield Finding("Another version is current", words)


def _of_figures(report: Report) -> Iterator[Finding]:
    c, interval = report.calibration, report.held_out.interval
    if c.optimism is not None and c.optimism > OPTIMISM:
        words = f"On the calibration set the judge's agreement is {number(c.optimism)} higher than on held-out items."
        yield Finding("Chosen with luck", words)
    if interval is not None and SHORT in interval.method:
        yield Finding("Few sources at system level", f"The interval holds for these systems, and is {SHORT}.")
    if len(report.openings) >= MANY_OPENINGS:
        yield Finding(
            "Held-out seen often",
            f"The held-out items were opened {times(len(report.openings))}. If someone used them to choose, the "
            "figures are optimistic. Measure on new labels.",
        )
    if report.golden.n_systems > 1 and c.split.kind == "sources":
        yield Finding(
            "The same systems on both sides",
            "Held-out items come from new sources but the same systems. Agreement on a new system is not known.",
        )
    if wrong := report.misaligned.by_verdict.get("label wrong", 0):
        yield Finding("Doubted labels", f"Reviewers called {counted(wrong, 'label')} wrong; they still count here.")
    # the calibration's own warnings, without those that the report says above in other words
    elsewhere = (f"Only {len(c.split.calibration)} labels to", f"Only {len(c.split.held_out)} held-out labels")
    for warning in c.warnings:
        unread = c.held_out.n_unscored and " items have no score (" in warning
        if warning != gain_warning(c.gain) and not warning.startswith(elsewhere) and not unread:
            yield Finding("From the calibration", bounded(warning, 600))
