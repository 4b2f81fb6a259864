"""Rows of names, each with its dot and interval on one axis, and its figures written at the right end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from markupsafe import Markup

from core.records import Alignment, Interval
from core.report.figures.axes import WIDE, Axis
from core.report.figures.style import AMBER, GRID, INK, PEOPLE, QUIET, ends_of, snapped
from core.report.figures.svg import Drawing, Shape, box, drawing, legible, line, mark, shortened, words
from core.wording import DASH, estimate

LEFT, RIGHT = 232, 138
"""Room for names and for figures."""
NARROW = 360
"""Width of a drawing for a telephone, whose names stand above their intervals."""
_HEIGHT, _WITH_KIND = 26, 36
_NARROW_HEIGHT, _NARROW_WITH_KIND = 44, 56
_LETTERS = 34
_MOST_SAID = 30
_EDGE = 14
"""Room beside an axis over the whole width, for half a tick's name."""


@dataclass(frozen=True, slots=True)
class Row:
    """`figures` are written at the right end; `kind` below the name, in the row's colour; `reason` where undefined.

    `like_person` is the judge against the mean of the other raters, the target of the people's band: a small ring in
    the band's colour.
    """

    name: str
    value: float | None
    interval: Interval | None
    figures: str
    colour: str = QUIET
    shape: Shape = "dot"
    kind: str = ""
    reason: str = ""
    like_person: Alignment | None = None

    @classmethod
    def of(
        cls,
        name: str,
        alignment: Alignment,
        colour: str = QUIET,
        shape: Shape = "dot",
        *,
        kind: str = "",
        like_person: Alignment | None = None,
    ) -> Row:
        """A row that shows an alignment."""
        value, interval = alignment.value, alignment.interval
        return cls(name, value, interval, estimate(alignment), colour, shape, kind, alignment.reason, like_person)

    @property
    def ends(self) -> list[float]:
        """All that the axis has to hold."""
        own = [] if self.value is None else [self.value]
        own += [self.interval.low, self.interval.high] if self.interval and own else []
        return own + ends_of(self.like_person)


def whiskers(
    name: str,
    title: str,
    rows: Sequence[Row],
    *,
    measure: str,
    people: Alignment | None = None,
    ends: tuple[float, float] | None = None,
    width: int = WIDE,
) -> Drawing:
    """The rows below each other in the order given; `people` among themselves are a band behind all of them.

    The axis ends at the next fifth beyond what it holds, or at `ends`.  The drawing has a narrow one beside it.
    """
    low, high = ends or snapped([end for row in rows for end in row.ends] + ends_of(people))
    top = 24 if people is not None and people.value is not None else 8
    drawn = []
    for axis, heights, draw in (
        (Axis(low, high, LEFT, width - RIGHT), (_HEIGHT, _WITH_KIND), _row),
        (Axis(low, high, _EDGE, NARROW - _EDGE), (_NARROW_HEIGHT, _NARROW_WITH_KIND), _narrow_row),
    ):
        tops = [float(top), *(top + end for end in accumulate(heights[bool(row.kind)] for row in rows))]
        parts = [*_band(axis, people, top, tops[-1]), *bottom_axis(axis, top, tops[-1], measure)]
        whole = width if draw is _row else NARROW
        for row, y, below in zip(rows, tops, tops[1:], strict=False):
            parts += draw(axis, row, y, below, whole)
        drawn.append(drawing(name, title, _said(rows, people), (whole, tops[-1] + 42), parts))
    return replace(drawn[0], narrow=drawn[1])


def bottom_axis(axis: Axis, top: float, bottom: float, title: str) -> Iterator[Markup]:
    """Grid lines from `top` to `bottom`, tick labels, and the axis' title under them."""
    for tick, (name, *_) in axis.named():
        x = axis(tick)
        yield line((x, top), (x, bottom), QUIET if abs(tick) < 1e-9 else GRID)
        yield words(name, x, bottom + 16, "middle", fill=QUIET)
    yield words(title, (axis.start + axis.end) / 2, bottom + 34, "middle", fill=QUIET)


def whisker(
    axis: Axis, y: float, value: float | None, interval: Interval | None, *, colour: str, shape: Shape = "dot"
) -> Iterator[Markup]:
    """A dot with its interval; the undefined is drawn as nothing."""
    if value is None:
        return
    if interval is not None:
        yield line((axis(interval.low), y), (axis(interval.high), y), colour, width=2)
    yield mark(axis(value), y, colour, shape)


def _row(axis: Axis, row: Row, top: float, below: float, width: float) -> Iterator[Markup]:
    """The name at the left, the figures at the right, the interval between them."""
    y = (top + below) / 2
    yield words(shortened(row.name, _LETTERS), LEFT - 12, y - 3 if row.kind else y + 4, "end")
    if row.kind:
        yield words(row.kind, LEFT - 12, y + 11, "end", fill=row.colour, size=11)
    yield words(row.figures, width, y + 4, "end")
    if row.value is None and row.reason:
        yield words(f"{DASH} {shortened(row.reason, 90)}", LEFT + 6, y + 4, fill=QUIET)
    yield from _shown(axis, row, y)


def _narrow_row(axis: Axis, row: Row, top: float, below: float, width: float) -> Iterator[Markup]:
    """Name and figures above the interval."""
    y = below - 18
    yield words(shortened(row.name, _LETTERS), 0, top + 13, halo=True)
    yield words(row.figures, width, top + 13, "end", halo=True)
    if row.kind:
        yield words(row.kind, 0, top + 26, fill=row.colour, size=11, halo=True)
    if row.value is None and row.reason:
        yield words(f"{DASH} {shortened(row.reason, 50)}", 0, y + 4, fill=QUIET)
    yield from _shown(axis, row, y)


def _shown(axis: Axis, row: Row, y: float) -> Iterator[Markup]:
    """The interval, and below it that of the judge as one more person."""
    yield from whisker(axis, y, row.value, row.interval, colour=row.colour, shape=row.shape)
    like = row.like_person
    if like is not None and like.value is not None:
        if like.interval is not None:
            yield line((axis(like.interval.low), y + 9), (axis(like.interval.high), y + 9), AMBER)
        yield mark(axis(like.value), y + 9, AMBER, "ring", size=3)


def _band(axis: Axis, people: Alignment | None, top: float, bottom: float) -> Iterator[Markup]:
    if people is not None and people.value is not None:
        low, high = (people.interval.low, people.interval.high) if people.interval else (people.value, people.value)
        x = axis(people.value)
        yield box(axis(low), top, axis(high) - axis(low), bottom - top, PEOPLE)
        yield line((x, top), (x, bottom), AMBER, width=1.5, dash="5 3")
        middle = min(max(x, axis.start + 100), axis.end - (40 if axis.start == LEFT else 100))
        yield words(f"one person against the others: {people.value:.2f}", middle, top - 8, "middle", fill=INK)


def _said(rows: Sequence[Row], people: Alignment | None) -> str:
    told = [legible(f"{shortened(row.name, 60)}: {row.figures}") for row in rows[:_MOST_SAID]]
    more = f" And {len(rows) - _MOST_SAID} more." if len(rows) > _MOST_SAID else ""
    band = "" if people is None else f" One rater against the mean of the others: {estimate(people)}."
    like = [f"{shortened(row.name, 60)}: {estimate(row.like_person)}" for row in rows[:_MOST_SAID] if row.like_person]
    against = f" Judges against that same target: {'; '.join(like)}." if like else ""
    return f"{'; '.join(told)}.{more}{band}{against}"
