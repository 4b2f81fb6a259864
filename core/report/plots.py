"""The report's drawings as inline SVG for a page without scripts: each says in words, too, what it shows.

Colours are presentation attributes, so that the page's policy can forbid every inline style.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup, escape

from core.records import Alignment, Scale
from core.report.facts import Report
from core.report.figures.style import BLUE, INK, PALE, TEAL, value_range
from core.report.measured import Labels, OnTheScale, SourceSpread
from core.report.words import bounded, measure
from core.stats.claims import counted, estimate, number

WIDTH = 680
LEFT, RIGHT, ROW = 232, 112, 26
MOST_ROWS, MOST_JUDGES = 30, 14
QUIET, GRID, AMBER = "#5B6875", "#DDE3EA", "#A8480A"
"""Darker than on screen: these colour small letters on paper."""
_LONGEST_NAME = 34


@dataclass(frozen=True, slots=True)
class Axis:
    """Values `low` to `high` on pixels `start` to `end` (which may run downwards)."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of `value`, held within the axis."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 7) -> tuple[float, ...]:
        """At most about `most` round values from low to high."""
        rough = (self.high - self.low) / most
        unit = 10 ** math.floor(math.log10(rough))
        step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= rough * 0.999)
        first = math.ceil(round(self.low / step, 9))
        last = math.floor(round(self.high / step, 9))
        return tuple(k * step for k in range(first, last + 1))


def element(tag: str, *inside: str | Markup, **attributes: str | float | None) -> Markup:
    """``<tag a="…">inside</tag>``, everything but Markup escaped; ``stroke_width`` becomes ``stroke-width``.

    Numbers are written with two decimals; attributes that are None are left out.
    """
    written = "".join(
        f' {name.strip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    content = Markup("").join(escape(part) for part in inside)
    return Markup(f"<{tag}{written}>{content}</{tag}>")  # noqa: S704  # all parts are escaped above


def _plain(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def _drawing(name: str, title: str, description: str, height: float, parts: Iterable[Markup]) -> Markup:
    """An ``<svg>`` as wide as the page that says in words what it shows; `name` makes its ids."""
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", description, id=f"{name}-desc"),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height:.0f}",
        role="img",
        font_family="Helvetica, Arial, sans-serif",
        aria_labelledby=f"{name}-title {name}-desc",
        class_="plot",
    )


def _text(text: str, x: float, y: float, anchor: str = "start", *, fill: str = INK, size: float = 11) -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, fill=fill, font_size=size)


def _name(text: str, x: float, y: float, anchor: str) -> Markup:
    """A foreign name, shortened to what fits beside a plot."""
    short = text if len(text) <= _LONGEST_NAME else f"{text[: _LONGEST_NAME - 1].rstrip()}…"
    return _text(bounded(short, _LONGEST_NAME), x, y, anchor, size=12)


def _line(
    start: tuple[float, float], end: tuple[float, float], stroke: str, *, width: float = 1, dash: str | None = None
) -> Markup:
    (x1, y1), (x2, y2) = start, end
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, stroke_width=width, stroke_dasharray=dash)


def _box(x: float, y: float, width: float, height: float, fill: str) -> Markup:
    return element("rect", x=x, y=y, width=max(width, 0), height=max(height, 0), fill=fill)


def _dot(x: float, y: float, radius: float, fill: str, **look: str | float | None) -> Markup:
    return element("circle", cx=x, cy=y, r=radius, fill=fill, **look)


def _bottom_axis(axis: Axis, top: float, bottom: float, title: str) -> Iterator[Markup]:
    """Grid lines from `top` to `bottom`, tick labels, and the axis' title under them."""
    for tick in axis.ticks():
        x = axis(tick)
        yield _line((x, top), (x, bottom), QUIET if abs(tick) < 1e-9 else GRID)
        yield _text(f"{tick:g}", x, bottom + 16, "middle", fill=QUIET)
    yield _text(title, (axis.start + axis.end) / 2, bottom + 34, "middle", fill=QUIET, size=12)


# ── dots with their intervals ────────────────────────────────────────────────────────────────────────────────


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


def judges_plot(report: Report) -> Markup:
    """The highest judges on the same unseen items, the report's own among them, with the people's band."""
    rows, ours = report.judges.rows, report.judges.ours
    best = [k for k in range(len(rows)) if k != ours][: MOST_JUDGES - 1]
    marks = [
        Mark(
            row.name, row.alignment, BLUE if k == ours else QUIET, like_person=row.people.judge if row.people else None
        )
        for k, row in enumerate(rows)
        if k == ours or k in best
    ]
    title = "Every judge on items that none of them has seen"
    return _whisker_plot("shelf", title, marks, measure(report.held_out), report.judges.board.ceiling.alignment)


def sides_plot(report: Report) -> Markup:
    """Calibration (hollow) beside held-out (filled) for the judge, the best single criteria and none."""
    marks: list[Mark] = []
    beside = report.raters.beside
    for k, (side, colour) in enumerate(zip(report.sides, (BLUE, TEAL, QUIET), strict=True)):
        marks += [
            Mark(
                f"{side.name}, held-out", side.held_out, colour, like_person=beside.judge if beside and not k else None
            ),
            Mark("calibration", side.calibration, colour, hollow=True),
        ]
    title = "Agreement with people: held-out beside calibration"
    return _whisker_plot("sides", title, marks, measure(report.held_out), report.raters.ceiling.alignment)


def systems_plot(report: Report) -> Markup:
    """Agreement within each system."""
    marks = [Mark(system.name, system.alignment, BLUE) for system in report.systems]
    title = "Agreement within each system, held-out items"
    return _whisker_plot("systems", title, marks, measure(report.systems[0].alignment))


def _whisker_plot(
    key: str, title: str, marks: Sequence[Mark], axis_title: str, people: Alignment | None = None
) -> Markup:
    """A dot with its interval a row; the figures stand at the right end; `people` is drawn as a band behind all."""
    shown = marks[:MOST_ROWS]
    known = [*(mark.alignment for mark in shown), people, *(mark.like_person for mark in shown)]
    axis = Axis(*value_range(known), LEFT, WIDTH - RIGHT)
    top = 24 if people is not None and people.value is not None else 8
    bottom = top + ROW * len(shown)
    parts = [*_band(axis, people, top, bottom), *_bottom_axis(axis, top, bottom, axis_title)]
    for k, mark in enumerate(shown):
        parts += _whisker(axis, mark, top + ROW * (k + 0.5))
    described = "; ".join(f"{bounded(mark.name, 60)}: {estimate(mark.alignment)}" for mark in shown)
    band = f" One rater against the mean of the others: {estimate(people)}." if people is not None else ""
    like = [f"{bounded(mark.name, 60)}: {estimate(mark.like_person)}" for mark in shown if mark.like_person]
    band += f" Judges against that same target: {'; '.join(like)}." if like else ""
    return _drawing(key, title, f"{described}.{band}", bottom + 42, parts)


def _band(axis: Axis, people: Alignment | None, top: float, bottom: float) -> Iterator[Markup]:
    if people is not None and people.value is not None:
        low, high = (people.interval.low, people.interval.high) if people.interval else (people.value, people.value)
        x = axis(people.value)
        yield _box(axis(low), top, axis(high) - axis(low), bottom - top, "#F6E7D8")
        yield _line((x, top), (x, bottom), AMBER, width=1.5, dash="5 3")
        yield _text("a rater against the others", x, top - 8, "middle", fill=AMBER)


def _whisker(axis: Axis, mark: Mark, y: float) -> Iterator[Markup]:
    yield _name(mark.name, LEFT - 12, y + 4, "end")
    yield _text(estimate(mark.alignment), WIDTH, y + 4, "end")
    value, interval, like = mark.alignment.value, mark.alignment.interval, mark.like_person
    if value is None:
        return
    if interval is not None:
        yield _line((axis(interval.low), y), (axis(interval.high), y), mark.colour, width=2)
    if mark.hollow:
        yield _dot(axis(value), y, 5, "#FFFFFF", stroke=mark.colour, stroke_width=2)
    else:
        yield _dot(axis(value), y, 5, mark.colour)
    if like is not None and like.value is not None:
        if like.interval is not None:
            yield _line((axis(like.interval.low), y + 9), (axis(like.interval.high), y + 9), AMBER)
        yield _dot(axis(like.value), y + 9, 3, AMBER)


# ── bars ─────────────────────────────────────────────────────────────────────────────────────────────────────


def labels_plot(labels: Labels) -> Markup:
    """How often people gave which label."""
    names, counts = [bar.name for bar in labels.bars], [bar.n for bar in labels.bars]
    return _bars_plot("labels", f"Labels of {counted(labels.n, 'item')}", names, counts)


def sources_plot(spread: SourceSpread) -> Markup:
    """How the coefficients of single sources spread, in fifths of one."""
    low = -1.0 if spread.values and spread.values[0] < 0 else 0.0
    edges = [round(low + 0.2 * k, 1) for k in range(round((1.0 - low) / 0.2) + 1)]
    fifths = np.minimum((np.array(spread.values) - low) / 0.2 + 1e-9, len(edges) - 2).astype(int)
    counts = np.bincount(fifths, minlength=len(edges) - 1).tolist()
    names = [f"{a:g} to {b:g}" for a, b in pairwise(edges)]
    return _bars_plot("sources", f"Agreement within each of {len(spread.values):,} sources", names, counts)


def _bars_plot(key: str, title: str, names: Sequence[str], counts: Sequence[int]) -> Markup:
    """Upright bars with their counts above and their names below."""
    top, bottom, left = 22.0, 150.0, 8.0
    width = (WIDTH - 2 * left) / max(len(counts), 1)
    parts = [_line((left, bottom), (WIDTH - left, bottom), QUIET)]
    for k, (name, n) in enumerate(zip(names, counts, strict=True)):
        height, x = (bottom - top) * n / max([*counts, 1]), left + k * width
        parts += [
            _box(x + width * 0.12, bottom - height, width * 0.76, height, BLUE),
            _text(f"{n:,}", x + width / 2, bottom - height - 6, "middle"),
            _text(name, x + width / 2, bottom + 16, "middle", fill=QUIET),
        ]
    described = "; ".join(f"{name}: {n:,}" for name, n in zip(names, counts, strict=True))
    return _drawing(key, title, f"{described}.", bottom + 24, parts)


# ── scores beside labels ─────────────────────────────────────────────────────────────────────────────────────


def scores_plot(fact: OnTheScale, scale: Scale) -> Markup:
    """Items as points (the judge's score across, the people's label up) and the mean label by score as a line."""
    ends = [scale.low, scale.high, *fact.scores.tolist()]
    across, up = Axis(min(ends), max(ends), 60, WIDTH - 160), Axis(scale.low, scale.high, 300, 16)
    parts = list(_bottom_axis(across, 10, 306, "the judge's score"))
    for tick in up.ticks(5):
        parts.append(_line((across.start, up(tick)), (across.end, up(tick)), GRID))
        parts.append(_text(f"{tick:g}", across.start - 8, up(tick) + 4, "end", fill=QUIET))
    turned = f"translate(16 {(up.start + up.end) / 2:.0f}) rotate(-90)"
    look: dict[str, str | float] = {"text_anchor": "middle", "fill": QUIET, "font_size": 12}
    parts.append(element("text", "the people's label", transform=turned, **look))
    low, high = (across(scale.low), up(scale.low)), (across(scale.high), up(scale.high))
    parts.append(_line(low, high, PALE, width=1.5, dash="4 4"))
    for k, (score, label) in enumerate(zip(fact.scores.tolist(), fact.labels.tolist(), strict=True)):
        # points on one another are moved apart a little, always the same way
        aside, above = ((k * 0.618034) % 1 - 0.5) * 4, ((k * 0.754878) % 1 - 0.5) * 8
        parts.append(_dot(across(score) + aside, up(label) + above, 2.6, BLUE, fill_opacity=0.35))
    bins = fact.curve.bins if fact.curve else ()
    if bins:
        places = [(across(own.mean_score), up(own.mean_label)) for own in bins]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(element("polyline", points=path, fill="none", stroke=AMBER, stroke_width=2))
        parts += [_dot(x, y, 4, AMBER) for x, y in places]
    parts += _legend(sample=fact.scores.size < fact.n)
    described = "; ".join(
        f"scores near {number(own.mean_score)}: mean label {number(own.mean_label)} ({counted(own.n, 'item')})"
        for own in bins
    )
    title = "The judge's scores beside the people's labels, held-out items"
    return _drawing("scores", title, f"{described}.", 346, parts)


def _legend(*, sample: bool) -> list[Markup]:
    x = WIDTH - 146
    return [
        _dot(x + 7, 32, 4, BLUE, fill_opacity=0.5),
        _text("an item (a sample)" if sample else "an item", x + 20, 36),
        _line((x, 52), (x + 14, 52), AMBER, width=2),
        _dot(x + 7, 52, 4, AMBER),
        _text("mean label by score", x + 20, 56),
        _line((x, 72), (x + 14, 72), PALE, width=1.5, dash="4 4"),
        _text("score = label", x + 20, 76),
    ]
