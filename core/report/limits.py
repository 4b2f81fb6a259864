"""What makes the result weaker than it looks: sentences computed from the facts, the gravest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core.data.labels_needed import few_held_out, few_labels
from core.projects.views.reports import Report
from core.report.words import bounded, counted, number, percent
from core.stats import SHORT, gain_words

LOW_ALPHA = 0.667
"""Krippendorff's own lower bound for tentative conclusions (2004, Content Analysis, chapter 11)."""
SKEWED = 0.8
MANY_OPENINGS = 3
FLATTERED = 0.1


@dataclass(frozen=True, slots=True)
class Limit:
    """`title` in a few words, `text` in a sentence or two with its figures."""

    title: str
    text: str


def limits(report: Report) -> tuple[Limit, ...]:
    """Everything that a reader should keep in mind; empty where nothing is known against the result."""
    return tuple(
        one
        for part in (_of_labels, _of_raters, _of_judge, _of_criteria, _of_figures, _of_warnings)
        for one in part(report)
    )


def _of_labels(report: Report) -> Iterator[Limit]:
    judged, result = report.judged, report.result
    if judged.simulated:
        yield Limit(
            "No person rated these texts",
            "They are Concord's own sample data: a program made the labels. The report shows how it works, and says "
            "nothing on how good a judge is.",
        )
    few = [one for one in (few_labels(result.n_calibration), few_held_out(result.n_held_out)) if one]
    if few:
        yield Limit("Few labels", " ".join(few))
    if judged.largest_share is not None and judged.largest_share >= SKEWED:
        yield Limit(
            "Labels nearly all the same",
            f"{percent(judged.largest_share)} of the labels have one value, so there is little to agree about; a "
            "coefficient rests on the few others.",
        )


def _of_raters(report: Report) -> Iterator[Limit]:
    people = report.labelling
    if not people.raters:
        yield Limit(
            "One label an item",
            "How well people agree with each other cannot be told, so nobody knows how high a judge could get.",
        )
    elif len(people.raters) == 1:
        yield Limit("One rater", "The judge was taught one person's taste, and nobody knows whether others share it.")
    elif people.alpha is not None and people.alpha < LOW_ALPHA:
        yield Limit(
            "People agree little",
            f"Krippendorff's alpha is {number(people.alpha)} ({people.alpha_metric}, {people.alpha_n:,} items rated "
            f"twice or more); under {LOW_ALPHA} even careful conclusions are doubtful. A clearer definition helps more "
            "than another judge.",
        )


def _of_judge(report: Report) -> Iterator[Limit]:
    result = report.result
    if result.notice:
        yield Limit("What the judge is", bounded(result.notice, 600))
    if result.stopped_early:
        yield Limit("Stopped early", bounded(result.stopped_early, 600))
    held = result.final.held_out
    if held.n_unscored:
        share = held.n_unscored / max(1, result.n_held_out)
        yield Limit(
            "Replies that could not be read",
            f"{counted(held.n_unscored, 'held-out item')} ({percent(share)}) have no score. They are counted and left "
            "out, never guessed; if they are the hard ones, the figure flatters.",
        )


def _of_criteria(report: Report) -> Iterator[Limit]:
    chosen = report.history.chosen
    open_ones = [one for one in chosen if one.state != "approved"]
    if chosen and open_ones:
        whole = "None" if len(open_ones) == len(chosen) else f"Only {len(chosen) - len(open_ones)}"
        yield Limit(
            "Criteria not approved",
            f"{whole} of the {len(chosen)} criteria of this judge {'is' if len(open_ones) < len(chosen) else 'are'} "
            "approved by the people who answer for them.",
        )
    if report.others_approved:
        yield Limit(
            "Other criteria are approved",
            f"Approved, and not used by this judge: {', '.join(report.others_approved[:3])}"
            f"{' and more' if len(report.others_approved) > 3 else ''}. Calibrate again with them, or approve those "
            "of this judge.",
        )


def _of_figures(report: Report) -> Iterator[Limit]:
    result = report.result
    if result.optimism is not None and result.optimism > FLATTERED:
        yield Limit(
            "Chosen with luck",
            f"On the items that chose the judge it stands {number(result.optimism)} higher than on held-out ones.",
        )
    interval = result.final.held_out.interval
    if interval is not None and SHORT in interval.method:
        yield Limit("Few sources at system level", f"The interval holds for these systems, and is {SHORT}.")
    if len(report.openings) >= MANY_OPENINGS:
        yield Limit(
            "Held-out looked at often",
            f"The held-out items were opened {len(report.openings)} times. Whoever chooses by what they saw there "
            "makes the figures flatter; new labels would settle it.",
        )
    if report.judged.n_systems > 1 and report.reproduce.split == "by source":
        yield Limit(
            "The same systems on both sides",
            "The held-out items come from sources that the calibration did not see, but from the same systems. How the "
            "judge does on texts of a new system is not known.",
        )
    wrong = report.misaligned.by_verdict.get("label wrong", 0)
    if wrong:
        yield Limit(
            "Labels that people doubt",
            f"{counted(wrong, 'label')} of this golden set {'was' if wrong == 1 else 'were'} called wrong by whoever "
            "looked, and still count here.",
        )


def _of_warnings(report: Report) -> Iterator[Limit]:
    """What the calibration itself warned of, but for what is said above in other words."""
    result = report.result
    said = (f"{result.n_calibration} calibration labels:", f"{result.n_held_out} held-out labels:")
    for one in result.warnings:
        if one == gain_words(result.gain):
            continue
        unread = result.final.held_out.n_unscored and " items have no score (" in one
        if not one.startswith(said) and not unread:
            yield Limit("From the calibration", bounded(one, 600))
