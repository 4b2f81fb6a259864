"""The plots of the report as inline SVG: judges beside people, both sides of the split, labels, scores, systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from core.projects.views.reports import Judged, OnTheScale, Report, ScorePoint, SourceSpread
from core.records import Alignment, Scale
from core.report.figures.style import ends_of
from core.report.svg import (
    AMBER,
    BLUE,
    GRID,
    INK,
    PALE,
    QUIET,
    TEAL,
    WIDTH,
    Axis,
    bottom_axis,
    box,
    caption,
    dot,
    drawing,
    element,
    line,
    snapped,
    words,
)
from core.report.words import bounded, counted, measure, number, told

LEFT, RIGHT, ROW = 232, 112, 26
MOST_ROWS, MOST_JUDGES = 30, 14


@dataclass(frozen=True)
class Mark:
    """One row of a dot-and-whisker plot; `hollow` for figures that flatter.

    `like_person` is the judge against the mean of the other raters, the target of the people's band: a small dot in the
    band's colour.
    """

    name: str
    alignment: Alignment
    colour: str = QUIET
    hollow: bool = False
    like_person: Alignment | None = None


def whisker_plot(
    key: str, title: str, marks: Sequence[Mark], *, axis_title: str, people: Alignment | None = None
) -> Markup:
    """A dot with its interval a row; the figures stand at the right end; `people` is drawn as a band behind all."""
    shown = marks[:MOST_ROWS]
    known = [mark.alignment for mark in shown] + [one for one in (people, *(m.like_person for m in shown)) if one]
    ends = [value for one in known for value in ends_of(one)]
    axis = Axis(*snapped(ends), LEFT, WIDTH - RIGHT)
    top = 24 if people is not None and people.value is not None else 8
    bottom = top + ROW * len(shown)
    parts = _band(axis, people, top, bottom)
    parts += bottom_axis(axis, top, bottom, axis_title)
    for k, mark in enumerate(shown):
        parts += _whisker(axis, mark, top + ROW * (k + 0.5))
    described = "; ".join(f"{bounded(mark.name, 60)}: {told(mark.alignment)}" for mark in shown)
    band = f" One rater against the mean of the others: {told(people)}." if people is not None else ""
    like = [f"{bounded(one.name, 60)}: {told(one.like_person)}" for one in shown if one.like_person is not None]
    band += f" Judges against that same target: {'; '.join(like)}." if like else ""
    return drawing(key, title, f"{described}.{band}", bottom + 42, parts)


def _band(axis: Axis, people: Alignment | None, top: float, bottom: float) -> list[Markup]:
    if people is None or people.value is None:
        return []
    low, high = (people.interval.low, people.interval.high) if people.interval else (people.value, people.value)
    at = axis(people.value)
    return [
        box(axis(low), top, axis(high) - axis(low), bottom - top, "#F6E7D8"),
        line(at, top, at, bottom, AMBER, width=1.5, dash="5 3"),
        element("text", "a rater against the others", x=at, y=top - 8, text_anchor="middle", fill=AMBER, font_size=11),
    ]


def _whisker(axis: Axis, mark: Mark, y: float) -> list[Markup]:
    parts = [words(mark.name, LEFT - 12, y + 4, anchor="end")]
    value, interval = mark.alignment.value, mark.alignment.interval
    parts.append(element("text", told(mark.alignment), x=WIDTH, y=y + 4, text_anchor="end", fill=INK, font_size=11))
    if value is None:
        return parts
    if interval is not None:
        parts.append(line(axis(interval.low), y, axis(interval.high), y, mark.colour, width=2))
    fill, stroke = ("#FFFFFF", mark.colour) if mark.hollow else (mark.colour, None)
    parts.append(dot(axis(value), y, 5, fill, stroke=stroke))
    like = mark.like_person
    if like is not None and like.value is not None:
        below = y + 9
        if like.interval is not None:
            parts.append(line(axis(like.interval.low), below, axis(like.interval.high), below, AMBER))
        parts.append(dot(axis(like.value), below, 3, AMBER))
    return parts


def shelf_plot(report: Report) -> Markup:
    """The highest judges on the same unseen items, the report's own among them, with the people's band."""
    rows = report.result.shelf.rows
    best = [k for k, one in enumerate(rows) if not one.ours][: MOST_JUDGES - 1]
    shown = [one for k, one in enumerate(rows) if one.ours or k in best]
    marks = [Mark(one.name, one.alignment, BLUE if one.ours else QUIET, like_person=one.like_person) for one in shown]
    title = "Every judge on items that none of them has seen"
    return whisker_plot("shelf", title, marks, axis_title=_axis(report), people=report.result.shelf.ceiling)


def sides_plot(report: Report) -> Markup:
    """Calibration (hollow) beside held-out (filled) for the judge, the best single criteria and none."""
    marks: list[Mark] = []
    result, beside = report.result, report.labelling.beside
    for one, colour in ((result.final, BLUE), (result.best_single, TEAL), (result.no_criteria, QUIET)):
        marks += [
            Mark(
                f"{one.name}, held-out",
                one.held_out,
                colour,
                like_person=beside.judge if beside and one is result.final else None,
            ),
            Mark("calibration", one.calibration, colour, hollow=True),
        ]
    title = "Agreement with people: held-out beside calibration"
    return whisker_plot("sides", title, marks, axis_title=_axis(report), people=report.labelling.ceiling)


def systems_plot(report: Report) -> Markup:
    """Agreement within each system."""
    marks = [Mark(one.name, one.alignment, BLUE) for one in report.result.systems]
    found = report.result.systems[0].alignment
    title = "Agreement within each system, held-out items"
    return whisker_plot("systems", title, marks, axis_title=measure(found))


def _axis(report: Report) -> str:
    return measure(report.result.final.held_out)


# ── bars ─────────────────────────────────────────────────────────────────────────────────────────────────────


def labels_plot(judged: Judged) -> Markup:
    """How often people gave which label."""
    steps = all(bar.low == bar.high for bar in judged.bars)
    names = [f"{bar.low:g}" if steps else f"{bar.low:.3g}–{bar.high:.3g}" for bar in judged.bars]
    return bars_plot("labels", f"Labels of {counted(judged.n_labelled, 'item')}", names, [one.n for one in judged.bars])


def sources_plot(spread: SourceSpread) -> Markup:
    """How the coefficients of single sources spread, in fifths of one."""
    low = -1.0 if spread.values and spread.values[0] < 0 else 0.0
    edges = [round(low + 0.2 * k, 1) for k in range(round((1.0 - low) / 0.2) + 1)]
    last = len(edges) - 2
    counts = [0] * (last + 1)
    for value in spread.values:
        counts[min(int((value - low) / 0.2 + 1e-9), last)] += 1
    names = [f"{a:g} to {b:g}" for a, b in pairwise(edges)]
    return bars_plot("sources", f"Agreement within each of {spread.n_defined:,} sources", names, counts)


def bars_plot(key: str, title: str, names: Sequence[str], counts: Sequence[int]) -> Markup:
    """Upright bars with their counts above and their names below."""
    top, bottom, left = 22.0, 150.0, 8.0
    most = max([*counts, 1])
    width = (WIDTH - 2 * left) / max(len(counts), 1)
    parts = [line(left, bottom, WIDTH - left, bottom, QUIET)]
    for k, (name, n) in enumerate(zip(names, counts, strict=True)):
        height = (bottom - top) * n / most
        x = left + k * width
        parts.append(box(x + width * 0.12, bottom - height, width * 0.76, height, BLUE))
        middle = x + width / 2
        parts.append(
            element("text", f"{n:,}", x=middle, y=bottom - height - 6, text_anchor="middle", fill=INK, font_size=11)
        )
        parts.append(caption(name, middle, bottom + 16, size=11))
    described = "; ".join(f"{name}: {n:,}" for name, n in zip(names, counts, strict=True))
    return drawing(key, title, f"{described}.", bottom + 24, parts)


# ── scores beside labels ─────────────────────────────────────────────────────────────────────────────────────


def scores_plot(found: OnTheScale, scale: Scale) -> Markup:
    """Items as points (the judge's score across, the people's label up) and the mean label by score as a line."""
    lows = [scale.low, *(point.score for point in found.points)]
    highs = [scale.high, *(point.score for point in found.points)]
    across = Axis(min(lows), max(highs), 60, WIDTH - 160)
    up = Axis(scale.low, scale.high, 300, 16)
    parts = bottom_axis(across, 10, 306, "the judge's score")
    for tick in up.ticks(5):
        parts.append(line(across.start, up(tick), across.end, up(tick), GRID))
        parts.append(
            element(
                "text", f"{tick:g}", x=across.start - 8, y=up(tick) + 4, text_anchor="end", fill=QUIET, font_size=11
            )
        )
    middle = (up.start + up.end) / 2
    parts.append(
        element(
            "text",
            "the people's label",
            transform=f"translate(16 {middle:.0f}) rotate(-90)",
            text_anchor="middle",
            fill=QUIET,
            font_size=12,
        )
    )
    parts.append(
        line(across(scale.low), up(scale.low), across(scale.high), up(scale.high), PALE, width=1.5, dash="4 4")
    )
    parts += [_point(one, across, up, k) for k, one in enumerate(found.points)]
    parts += _curve(found, across, up)
    parts += _legend(len(found.points) < found.n)
    described = "; ".join(
        f"scores near {number(band.mean_score)}: mean label {number(band.mean_label)} ({counted(band.n, 'item')})"
        for band in found.bands
    )
    return drawing(
        "scores", "The judge's scores beside the people's labels, held-out items", f"{described}.", 346, parts
    )


def _point(one: ScorePoint, across: Axis, up: Axis, k: int) -> Markup:
    """Points on one another are moved apart a little, always the same way."""
    aside, above = ((k * 0.618034) % 1 - 0.5) * 4, ((k * 0.754878) % 1 - 0.5) * 8
    return dot(across(one.score) + aside, up(one.label) + above, 2.6, BLUE, opacity=0.35)


def _curve(found: OnTheScale, across: Axis, up: Axis) -> list[Markup]:
    places = [(across(one.mean_score), up(one.mean_label)) for one in found.bands]
    if not places:
        return []
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    joined = element("polyline", points=path, fill="none", stroke=AMBER, stroke_width=2)
    return [joined, *(dot(x, y, 4, AMBER) for x, y in places)]


def _legend(drawn: bool) -> list[Markup]:
    x = WIDTH - 146
    return [
        dot(x + 7, 32, 4, BLUE, opacity=0.5),
        words("an item" if not drawn else "an item (a sample)", x + 20, 36, size=11),
        line(x, 52, x + 14, 52, AMBER, width=2),
        dot(x + 7, 52, 4, AMBER),
        words("mean label by score", x + 20, 56, size=11),
        line(x, 72, x + 14, 72, PALE, width=1.5, dash="4 4"),
        words("score = label", x + 20, 76, size=11),
    ]
