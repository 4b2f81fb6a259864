"""The report as Markdown, for a wiki: the same facts in fewer words, every foreign text shown as it stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from core.projects.views.reports import Report, Version
from core.records import Alignment
from core.report.headline import headline
from core.report.limits import limits
from core.report.words import (
    DASH,
    KIND_WORDS,
    ORIGIN_WORDS,
    RUN_WORDS,
    basis_words,
    bounded,
    counted,
    day,
    duration,
    measure,
    money,
    named,
    number,
    p_words,
    range_words,
    told,
)

_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!&$^])")
_LINKS = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?=@)", re.IGNORECASE)
_STARTS = re.compile(r"^(\s*\d*)(?=[-+=:.)])")
MOST_RATERS = 30
_JOINER = "\u2060"
"""Neither seen nor a place to break a line: parts what would become a link."""


def markdown_page(report: Report) -> str:
    """The report in CommonMark with tables."""
    parts = (
        _top,
        _limits,
        _agreement,
        _shelf,
        _systems,
        _judged,
        _criteria,
        _history,
        _apart,
        _openings,
        _costs,
        _again,
    )
    return "\n".join(line for part in parts for line in part(report)).rstrip("\n") + "\n"


def literal(text: str, limit: int = 120) -> str:
    """Foreign text on one line that Markdown shows letter by letter: no markup, no HTML, no link."""
    line = " / ".join(bounded(text, limit).split("\n"))
    return _STARTS.sub(r"\1\\", _MARKUP.sub(r"\\\1", _LINKS.sub(_JOINER, line)))


def fenced(text: str, limit: int) -> list[str]:
    """Foreign text of several lines as a code block whose fence the text cannot close."""
    shown = bounded(text, limit)
    longest = max((len(found) for found in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", *shown.split("\n"), fence, ""]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table; cells are escaped already."""
    lines = [header, ["---"] * len(header), *rows]
    return [*(f"| {' | '.join(cells)} |" for cells in lines), ""]


def _top(report: Report) -> Iterator[str]:
    head, judged = headline(report), report.judged
    yield from (f"# How well does the judge of {literal(report.aspect)} agree with people?", "")
    yield f"{literal(report.project)}, golden set {literal(judged.name)}, calibrated {day(report.result.at)},"
    yield from (f"report of {day(report.made_at)}.", "", f"**{literal(head.sentence, 2_000)}**", "")
    for one in head.details:
        yield from (literal(one, 2_000), "")


def _limits(report: Report) -> Iterator[str]:
    yield from ("## What to keep in mind", "")
    found = limits(report)
    yield from (f"- **{one.title}.** {literal(one.text, 800)}" for one in found)
    if not found:
        yield "Nothing is known against this result beyond what its intervals say."
    yield ""


def _agreement(report: Report) -> Iterator[str]:
    result = report.result
    yield from (
        "## How well the judge agrees with people",
        "",
        f"{measure(result.final.held_out)}, 95 % intervals.",
        "",
    )
    rows = [
        [one.name, *_cells(one.held_out), *_cells(one.calibration)]
        for one in (result.final, result.best_single, result.no_criteria)
    ]
    yield from table(["judge", "held-out", "n", "calibration", "n"], rows)
    yield from _beside(report)


def _beside(report: Report) -> Iterator[str]:
    """The judge and each rater against the mean of the other raters."""
    found = report.labelling.beside
    if found is None or found.difference is None:
        return
    yield from ("### Beside a person", "", "Each against the mean of the other raters, on the same items.", "")
    gap = f"{number(found.difference, signed=True)} {range_words(found.interval, signed=True)}"
    rows = [["all raters", told(found.judge), told(found.person), gap, f"{found.n_items:,}"]]
    rows += [
        [literal(k.rater), number(k.judge), number(k.person), number(k.difference, signed=True), f"{k.n_items:,}"]
        for k in found.by_rater[:MOST_RATERS]
    ]
    yield from table(["rater", "judge", "rater", "judge minus rater", "n"], rows)


def _cells(one: Alignment) -> list[str]:
    return [told(one), basis_words(one)]


def _shelf(report: Report) -> Iterator[str]:
    shelf = report.result.shelf
    yield from ("### Beside every other judge", "")
    if shelf.problem:
        yield from (literal(shelf.problem, 600), "")
        return
    yield f"On the same {counted(shelf.n_items, 'item')} from {counted(shelf.n_sources, 'source')} that none has seen."
    yield ""
    rows = [
        [
            f"**{literal(one.name)}**" if one.ours else literal(one.name),
            one.kind,
            told(one.alignment),
            f"{number(one.difference, signed=True)} {range_words(one.interval, signed=True)}" if not one.ours else DASH,
            p_words(one.p),
        ]
        for one in shelf.rows
    ]
    yield from table(["judge", "kind", "agreement", "ours minus it", "p (Holm)"], rows)
    if shelf.aside:
        yield from (f"Aside, with few scored items: {literal(named(list(shelf.aside)), 400)}.", "")


def _systems(report: Report) -> Iterator[str]:
    found = report.result.systems
    if found:
        yield from ("### By system", "", f"{measure(found[0].alignment)} within each, held-out items.", "")
        yield from table(
            ["system", "agreement", "n", "mean label", "mean score"],
            [
                [literal(one.name), *_cells(one.alignment), number(one.mean_label), number(one.mean_score)]
                for one in found
            ],
        )


def _judged(report: Report) -> Iterator[str]:
    judged, people = report.judged, report.labelling
    yield from ("## What was judged, and by whom it was labelled", "")
    systems = f", {counted(judged.n_systems, 'system')}" if judged.n_systems else ""
    yield (
        f"{counted(judged.n_items, 'item')} ({KIND_WORDS[judged.kind]}), {counted(judged.n_sources, 'source')}{systems}"
        f"; {judged.n_labelled:,} labelled for {literal(judged.aspect)} on {judged.scale}, mean {number(judged.mean)}."
    )
    yield ""
    if people.raters:
        who = literal(named([f"{one.name} ({one.n:,})" for one in people.raters], 12), 1_000)
        alpha = f"{number(people.alpha)} {range_words(people.alpha_interval)}"
        yield f"Raters: {who}. Krippendorff's alpha ({people.alpha_metric}): {alpha}, {people.alpha_n:,} items."
    else:
        yield literal(people.alpha_reason, 400)
    yield ""


def _criteria(report: Report) -> Iterator[str]:
    yield from ("## The criteria in full", "")
    for one in report.history.chosen:
        yield from (f"### {one.criteria_id}", "", f"{_origin(one)}. {_signed(one)}", "", *fenced(one.text, 20_000))
    if not report.history.chosen:
        yield from ("The judge holds no criteria.", "")


def _origin(one: Version) -> str:
    by = f" by {literal(one.author)}" if one.author else ""
    return f"{ORIGIN_WORDS[one.origin].capitalize()}{by}, {day(one.at)}"


def _signed(one: Version) -> str:
    if one.approval is None:
        return f"State: {one.state}; nobody has approved it."
    who = literal(one.approval.actor) or "somebody"
    return f"Approved by {who} on {day(one.approval.at)}: {literal(one.approval.reason, 600)}"


def _history(report: Report) -> Iterator[str]:
    told_of = report.history
    yield from ("## How the criteria came about", "")
    yield "; ".join(f"{n:,} {ORIGIN_WORDS[origin]}" for origin, n in told_of.made.items()) + "."
    yield ""
    for one in told_of.versions:
        parents = f", from {', '.join(one.parents[:3])}" if one.parents else ""
        marks = "".join(f" ({mark})" for mark in ("in the judge" if one.chosen else "", one.state) if mark)
        note = f" Note: {literal(one.note, 600)}" if one.note else ""
        yield (
            f"{'  ' * min(one.depth, 4)}- `{one.criteria_id}`{marks}: {_origin(one)}{parents}. Calibration "
            f"{told(one.calibration)}.{note}"
        )
    yield ""
    for meeting in told_of.meetings:
        yield from (f"### Meeting: {literal(meeting.name)}, {day(meeting.began_at)}", "")
        rows = [
            [
                literal(point.item.title, 300),
                ", ".join(str(point.tally[choice]) for choice in ("for", "against", "abstain"))
                if point.votes
                else DASH,
                f"{point.decision.verdict}: {literal(point.decision.reason, 400)}" if point.decision else "not decided",
            ]
            for point in meeting.points
        ]
        yield from table(["point", "for, against, abstained", "decision"], rows)


def _apart(report: Report) -> Iterator[str]:
    apart = report.misaligned
    yield from ("## Where judge and people part", "")
    yield f"{apart.n_apart:,} of {counted(apart.n_scored, 'calibration item')} lie {apart.least:g} or more apart."
    yield ""
    yield from table(
        ["item", "people", "judge", "gap", "people say", "note", "meeting"],
        [
            [
                literal(one.item_id, 80),
                number(one.label),
                number(one.score),
                number(one.gap, signed=True),
                one.verdict or "nobody has looked",
                literal(one.note, 300) or DASH,
                f"{one.decided}: {literal(one.decided_why, 300)}" if one.decided else DASH,
            ]
            for one in apart.examples
        ],
    )


def _openings(report: Report) -> Iterator[str]:
    yield from ("## How often held-out was opened", "", f"{counted(len(report.openings), 'time')}.", "")
    for one in report.openings:
        yield f"- {day(one.at)}, {literal(one.actor) or 'somebody'}: {literal(one.why, 200)}"
    yield ""


def _costs(report: Report) -> Iterator[str]:
    yield from ("## What it cost", "")
    lines = [("this calibration", report.costs.this)]
    lines += [(f"all {RUN_WORDS.get(one.kind, one.kind)}", one) for one in report.costs.every]
    yield from table(
        ["runs", "calls", "requests", "tokens in", "tokens out", "money", "time"],
        [
            [
                name,
                f"{one.calls:,}",
                f"{one.usage.requests:,}",
                f"{one.usage.prompt_tokens:,}",
                f"{one.usage.completion_tokens:,}",
                money(one.usage.cost).replace("$", r"\$"),
                duration(one.seconds),
            ]
            for name, one in lines
        ],
    )


def _again(report: Report) -> Iterator[str]:
    again = report.reproduce
    yield from ("## How to get the same again", "", *fenced(again.command, 4_000))
    yield f"- golden set `{again.golden_digest}`"
    yield f"- judge `{again.judge_digest}`"
    yield f"- split {again.split}, seed {again.seed}"
    yield f"- {', '.join(f'{name} {version}' for name, version in again.versions.items())}"
