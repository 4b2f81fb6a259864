"""What the report finds: the result in a sentence that can be read aloud, and what makes it weaker than it looks.

The sentence is no stronger than the figures allow.  Judge and person are held against the same targets, the mean of
the other raters, and compared pair by pair.  "As well as" is a claim of its own: an interval that holds 0 does not
support it.  It is made only where the whole interval of the difference lies above -.05
(`core.stats.claims.MARGIN`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from core.comparison.means_finding import is_shown, means_finding
from core.data.split import few_held_out, few_labels
from core.report.facts import Report
from core.report.words import basis_words, bounded, day, measure
from core.stats import (
    NO_SINGLE_RATINGS,
    SHORT,
    BesidePeople,
    annotator_test_words,
    beside_people_words,
    gain_words,
    margin_words,
)
from core.stats.claims import claim, no_interval_words
from core.stats.preferences import agreement_words, wins_most
from core.wording import counted, estimate, number, p_figure, percent, signed, signed_range, times

Standing = Literal["above", "level", "below", "open", "alone", "none", "undefined"]
WEAK: tuple[Standing, ...] = ("open", "none", "undefined", "below")
LOW_ALPHA = 0.667
"""Krippendorff's own lower bound for tentative conclusions (2004, Content Analysis, chapter 11)."""
SKEWED = 0.8
MANY_OPENINGS = 3
OPTIMISM = 0.1


@dataclass(frozen=True)
class Headline:
    """`claim` is the result in a sentence, `basis` what it rests on, `details` what belongs beside it.

    `standing`: above, level with or below a single person; "open" where the figures do not tell; "alone" where how
    people agree is not known; "none" where agreement with people is not shown at all; "undefined".
    """

    standing: Standing
    claim: str
    basis: str
    details: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """The result to read aloud."""
        return f"{self.claim} {self.basis}".strip()

    @property
    def weak(self) -> bool:
        """Whether the result is none to rely on."""
        return self.standing in WEAK


def headline(report: Report) -> Headline:
    """The result of `report` in words."""
    held, people = report.held_out, report.raters.beside
    judge, whom = _capital(report.judge_name), "the simulated raters" if report.labels.simulated else "your people"
    details = tuple(
        detail for detail in (brings(report), _better_judges(report), bar(report), _optimism(report)) if detail
    )
    if held.value is None:
        why = f": {held.reason}" if held.reason else ""
        words = f"How well {report.judge_name} agrees with {whom} cannot be told{why}."
        return Headline("undefined", words, "", details)
    basis = f"{measure(held)}, {basis_words(held)} that did not choose it."
    if held.interval is None:
        words = f"{judge} agrees with {whom} at {number(held.value)}. {no_interval_words(held)}"
        return Headline("open", words, basis, details)
    if held.interval.low <= 0:
        words = f"That {report.judge_name} agrees with {whom} is not shown: {estimate(held)}, and the interval holds 0."
        return Headline("none", words, basis, details)
    if people is None or people.difference is None:
        why = report.raters.ceiling.reason if people is None else people.reason
        return Headline(
            "alone",
            f"{judge} agrees with {whom} at {estimate(held)}.",
            f"{basis} How well people agree with each other is not known here, {NO_SINGLE_RATINGS}.",
            (f"Why: {bounded(why, 300) or 'the ratings of single people are missing'}", *details),
        )
    gap = f"{signed(people.difference)} {signed_range(people.interval)}"
    if people.withheld:
        return Headline(
            "alone",
            f"{judge} agrees with {whom} at {estimate(held)}.",
            f"{basis} Nothing is claimed next to a rater, because {people.withheld}.",
            (*_beside(report, people), *details),
        )
    words = {
        "above": f"{judge} agrees with {whom} better than one of them agrees with the others",
        "level": f"{judge} agrees with {whom} as well as they agree with each other",
        "below": f"{judge} agrees with {whom} less well than they agree with each other",
        "open": f"{judge} does not differ significantly from one of {whom}",
    }[people.standing]
    return Headline(
        people.standing,
        f"{words}: {number(held.value)} against {number(people.person.value)}.",
        f"{estimate(held)}: {basis} Next to one rater, each compared with the mean of the others: {gap}.",
        (*_beside(report, people), *details),
    )


def _quoted(reason: str) -> str:
    if not reason:
        return "."
    return f": “{reason}”" + ("" if reason[-1] in ".!?" else ".")


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def brings(report: Report) -> str:
    """What the criteria bring over the judge without any, and how often the items that tell it were seen."""
    gain, looks = report.gain, len(report.openings)
    before = beside_version(report)
    seen = (f" {before}" if before else "") + (f" The held-out items were seen {times(looks)}." if looks else "")
    if not report.seen_before or gain.value is None:
        return f"{gain_words(gain)}{seen}"
    figures = f"{signed(gain.value)} {signed_range(gain.interval)} on the {gain.n:,} held-out items that both scored"
    return f"Beside the same judge without criteria: {figures}; no p, for {report.seen_before}.{seen}"


def better_system(report: Report) -> str:
    """Which system is better, in a sentence; "" where no difference is beyond chance.

    Whoever brings in further verdicts asks for it, and is told either way.
    """
    if not report.n_more and not any(map(is_shown, report.means.differences)):
        return ""
    said = means_finding(report.means, bounded(report.aspect, 80)).headline
    if not report.n_more:
        return said
    n_labels = sum(system.n_labelled for system in report.means.systems)
    n_judged = sum(system.n_judged for system in report.means.systems)
    return (
        f"{said} This rests on {counted(n_labels, 'label')} and {counted(n_judged, 'verdict')}, {report.n_more:,} of "
        "them on items beyond the golden set."
    )


def preferred_systems(report: Report) -> str:
    """Which system people prefer most on pairs of texts, and how often the judge prefers the same; "" for no pairs."""
    found = report.strengths
    if found is None:
        return ""
    people, agreement = found.by_people, found.agreement
    said = wins_most(people) if people.systems else f"Nothing can be told of the systems: {people.reason}."
    return " ".join([said, found.caution, *(agreement_words(agreement) if agreement else [])])


def beside_version(report: Report) -> str:
    """What the version brought beside the one that it was compared with on held-out; "" where it was beside none."""
    entry, gain = report.measured, None if report.measured is None else report.measured.held_out_gain
    if entry is None or not entry.beside or gain is None:
        return ""
    if gain.value is None:
        return f"Compared with version {entry.beside}, the difference is undefined: {gain.reason}."
    claims = {
        "higher": "agrees better than",
        "lower": "agrees less well than",
        "open": "does not differ significantly from",
    }
    shown = claims.get(claim(gain.value, gain.interval, gain.p), "stands beside")
    tested = p_figure(gain.p) if gain.p is not None else f"no p, for {gain.p_reason or 'there is no test'}"
    basis = f"{signed(gain.value)} {signed_range(gain.interval)}, {tested}, on {counted(gain.n, 'held-out item')}"
    return f"{_capital(report.judge_name)} {shown} version {entry.beside}: {basis}."


def sign_off(report: Report) -> str:
    """Who approved which version of the judge, when, why, and on which evidence."""
    version = report.version
    if version is None:
        return "Nobody here has approved this judge: it came to be before versions of the judge were kept."
    approval, elsewhere = version.approval, version.imported_approval
    if approval is None:
        why = f"Nobody here has approved {report.judge_name}."
        if elsewhere is not None:
            by = bounded(elsewhere.actor, 80) or "Somebody"
            why += f" {by} did where the project came from, which counts for nobody here."
        return why
    by, reason = bounded(approval.actor, 80) or "Somebody", bounded(approval.reason, 300)
    words = f"{by} approved {report.judge_name} on {day(approval.at)}" + _quoted(reason)
    if evidence := approval.evidence:
        rests = f"{estimate(evidence.alignment)} on {evidence.side} items"
        words += f" The approval rests on {rests} ({measure(evidence.alignment)}, {basis_words(evidence.alignment)})."
    return f"{words} It is the current version." if version.state == "current" else words


def _beside(report: Report, people: BesidePeople) -> tuple[str, ...]:
    """What the comparison with people rests on, and the annotator test."""
    own = f"{beside_people_words(people, measure(people.judge))} {margin_words()}"
    return (bounded(own, 600), *(bounded(annotator_test_words(test), 400) for test in report.raters.tests[:1]))


def _better_judges(report: Report) -> str:
    """Judges of the registry that are shown to agree better than this one."""
    minus = [report.judges.ours_minus(k) for k in range(len(report.judges.rows))]
    better = [
        bounded(row.name, 60)
        for row, gap in zip(report.judges.rows, minus, strict=True)
        if gap is not None and gap.value is not None and gap.value < 0 and gap.p is not None and gap.p <= 0.05
    ]
    if not better:
        return ""
    agree = "agrees" if len(better) == 1 else "agree"
    return f"Of the other judges {counted(len(better), 'judge')} {agree} better on the same items: {', '.join(better)}."


def bar(report: Report) -> str:
    """Whether the judge clears the bar, a plain regression on the labels; "" where there is none."""
    table = report.judges
    if table.board.bar is None:
        return ""
    known = table.board.bar
    known = known.without_p(table.ours, report.seen_before) if report.seen_before else known
    return known.words(table.ours, criteria=True)


def _optimism(report: Report) -> str:
    """How the judge stands on the items that chose it; called optimistic only where it is higher."""
    gap, chose = report.calibration.optimism, estimate(report.calibration.calibration)
    if gap is None:
        return ""
    words = f"On the items that chose it, the judge's alignment is {chose}, {signed(gap)} compared with held-out."
    why = "That is optimistic." if round(gap, 2) > 0 else "These are different items."
    return f"{words} {why} Report the held-out figure."


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Limit:
    """`title` in a few words, `text` in a sentence or two with its figures."""

    title: str
    text: str


def limits(report: Report) -> tuple[Limit, ...]:
    """What a reader should keep in mind, the gravest first; empty where nothing is known against the result."""
    parts = (_of_labels, _of_raters, _of_judge, _of_sign_off, _of_figures, _of_warnings)
    return tuple(limit for part in parts for limit in part(report))


def _of_labels(report: Report) -> Iterator[Limit]:
    split, share = report.calibration.split, report.labels.largest_share
    if report.labels.simulated:
        yield Limit(
            "No person rated these texts",
            "They are Concord's own sample data: a program made the labels. The report shows how it works, and says "
            "nothing on how good a judge is.",
        )
    few = [words for words in (few_labels(len(split.calibration)), few_held_out(len(split.held_out))) if words]
    if few:
        yield Limit("Few labels", " ".join(few))
    if share is not None and share >= SKEWED:
        yield Limit(
            "Labels nearly all the same",
            f"{percent(share)} of the labels have one value, so there is little to agree about; a coefficient rests on "
            "the few others.",
        )


def _of_raters(report: Report) -> Iterator[Limit]:
    raters, alpha = report.raters.n_rated, report.raters.alpha
    if not raters:
        yield Limit(
            "One label an item",
            "How well people agree with each other cannot be told, so nobody knows how high a judge could get.",
        )
    elif len(raters) == 1:
        yield Limit("One rater", "The judge was taught one person's taste, and nobody knows whether others share it.")
    elif alpha.value is not None and alpha.value < LOW_ALPHA:
        yield Limit(
            "People agree little",
            f"Krippendorff's alpha is {number(alpha.value)} ({alpha.metric}, {alpha.n_items:,} items rated "
            f"twice or more); under {LOW_ALPHA} even careful conclusions are doubtful. A clearer definition helps more "
            "than another judge.",
        )


def _of_judge(report: Report) -> Iterator[Limit]:
    notice, left_out = str(report.calibration.judge_state.get("notice", "")), report.calibration.work.left_out
    if notice:
        yield Limit("What the judge is", bounded(notice, 600))
    if left_out:
        yield Limit("Stopped early", bounded(" ".join(left_out), 600))
    if n := report.held_out.n_unscored:
        yield Limit(
            "Replies that could not be read",
            f"{counted(n, 'held-out item')} ({percent(n / max(1, report.n_held_out))}) have no score. They are counted "
            "and left out, never guessed; if they are the hard ones, the figure is optimistic.",
        )


def _of_sign_off(report: Report) -> Iterator[Limit]:
    version, current = report.version, report.line.current
    if version is None or version.approval is None:
        yield Limit("Not signed off", sign_off(report))
    if current is not None and current != version:
        yield Limit(
            "Another version is current", f"This report is on {report.judge_name}; the current one is {current.name}."
        )


def _of_figures(report: Report) -> Iterator[Limit]:
    optimism, interval = report.calibration.optimism, report.held_out.interval
    if optimism is not None and optimism > OPTIMISM:
        yield Limit(
            "Chosen with luck",
            f"On the items that chose the judge it stands {number(optimism)} higher than on held-out ones.",
        )
    if interval is not None and SHORT in interval.method:
        yield Limit("Few sources at system level", f"The interval holds for these systems, and is {SHORT}.")
    if len(report.openings) >= MANY_OPENINGS:
        yield Limit(
            "Held-out looked at often",
            f"The held-out items were opened {len(report.openings)} times. If somebody chose by what they saw "
            "there, the figures are optimistic. Measure on new labels.",
        )
    if report.golden.n_systems > 1 and report.calibration.split.kind == "sources":
        yield Limit(
            "The same systems on both sides",
            "The held-out items come from sources that the calibration did not see, but from the same systems. How the "
            "judge does on texts of a new system is not known.",
        )
    if wrong := report.misaligned.by_verdict.get("label wrong", 0):
        yield Limit(
            "Labels that people doubt",
            f"{counted(wrong, 'label')} of this golden set {'was' if wrong == 1 else 'were'} called wrong by whoever "
            "looked, and still count here.",
        )


def _of_warnings(report: Report) -> Iterator[Limit]:
    """What the calibration itself warned of, but for what is said above in other words."""
    c = report.calibration
    elsewhere = (f"{len(c.split.calibration)} calibration labels:", f"{len(c.split.held_out)} held-out labels:")
    for warning in c.warnings:
        unread = c.held_out.n_unscored and " items have no score (" in warning
        if warning != gain_words(c.gain) and not warning.startswith(elsewhere) and not unread:
            yield Limit("From the calibration", bounded(warning, 600))
