"""Draw charts of points, lines and vertical intervals over two axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from core.records import Alignment, Interval
from core.report.figures.svg import (
    GRID,
    LETTER,
    QUIET,
    Drawing,
    Point,
    Shape,
    drawing,
    line,
    mark,
    path,
    words,
)

WIDE, HALF = 900, 520
"""Widths in pixels of a picture across the whole screen, and of a picture in a column."""
_HIGH, _LEFT, _RIGHT, _BOTTOM = 340, 52, 16, 46


@dataclass(frozen=True, slots=True)
class Axis:
    """Maps values from `low` to `high` to pixels from `start` to `end`, which may be reversed."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of `value`, clipped to the axis."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 7) -> list[tuple[float, str]]:
        """Return about `most` round values from low to high, with their labels."""
        if self.high <= self.low:
            return [(self.low, f"{self.low:g}")]
        rough = (self.high - self.low) / most
        unit = 10 ** math.floor(math.log10(rough))
        step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= rough * 0.999)
        first, last = math.ceil(round(self.low / step, 9)), math.floor(round(self.high / step, 9))
        return [(k * step, f"{round(k * step, 9):,.10g}".replace("-", "−")) for k in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class Series:
    """One series of points on a chart, each with an optional vertical interval and text.

    Attributes:
        name: Entry in the legend; "" for none.
        shape: Mark of each point; None draws no marks.
        line: Width of the line through the points; 0 for none.
        said: Text of each point; empty for none.
    """

    name: str
    colour: str
    points: Sequence[Point]
    shape: Shape | None = "dot"
    size: float = 5
    opacity: float | None = None
    line: float = 0
    dash: str | None = None
    intervals: Sequence[Interval | None] = ()
    said: Sequence[str] = ()


def chart(
    name: str,
    title: str,
    says: str,
    series: Sequence[Series],
    *,
    x: tuple[str, float, float],
    y: tuple[str, float, float],
    ticks: Sequence[tuple[float, str]] | None = None,
    width: float = WIDE,
) -> Drawing:
    """Draw a chart with `series` on top of each other; the first series is at the back.

    `x` and `y` are (title, low, high) of an axis. `ticks` (value, label) replace the ticks of the horizontal axis.
    """
    parts, lines = _legend([own for own in series if own.name], width)
    across, up = Axis(x[1], x[2], _LEFT, width - _RIGHT), Axis(y[1], y[2], _HIGH - _BOTTOM, 28.0 + 20 * lines)
    parts.append(words(y[0], 0, 14, fill=QUIET))
    for value, text in up.ticks(5):
        level = up(value)
        parts.append(line((_LEFT, level), (across.end, level), QUIET if abs(value) < 1e-9 else GRID))
        parts.append(words(text, _LEFT - 8, level + 4, "end", fill=QUIET))
    parts.append(line((_LEFT, up.start), (across.end, up.start), QUIET))
    for value, text in across.ticks() if ticks is None else ticks:
        cut = across(value) + LETTER * 7 * len(text) > width
        place, anchor = (width, "end") if cut else (across(value), "middle")
        parts.append(words(text, place, up.start + 16, anchor, fill=QUIET))
    parts.append(words(x[0], (_LEFT + across.end) / 2, up.start + 36, "middle", fill=QUIET))
    parts += [part for own in series for part in _drawn(own, across, up)]
    return drawing(name, title, says, (width, _HIGH), parts)


def _legend(series: Sequence[Series], width: float) -> tuple[list[Markup], int]:
    """Return the legend of `series`, and its number of lines."""
    parts, at, lines = list[Markup](), float(_LEFT), 0
    for own in series:
        breadth = 40 + LETTER * 12 * len(own.name)
        if not lines or at + breadth > width:
            at, lines = float(_LEFT), lines + 1
        foot = 14.0 + 20 * lines
        if own.shape is None:
            parts.append(line((at, foot - 4), (at + 16, foot - 4), own.colour, width=2, dash=own.dash))
        else:
            parts.append(mark(at + 8, foot - 4, own.colour, own.shape))
        parts.append(words(own.name, at + 22, foot))
        at += breadth
    return parts, lines


def _drawn(own: Series, across: Axis, up: Axis) -> Iterator[Markup]:
    """Yield intervals, line, marks and texts, from back to front."""
    for (x, _), ends in zip(own.points, own.intervals, strict=False):
        if ends is not None:
            yield line((across(x), up(ends.low)), (across(x), up(ends.high)), own.colour, width=1.5)
    places = [(across(x), up(y)) for x, y in own.points]
    if own.line:
        yield path(places, own.colour, width=own.line, dash=own.dash)
    for k, (x, y) in enumerate(places):
        if own.shape is not None:
            yield mark(x, y, own.colour, own.shape, size=own.size, opacity=own.opacity)
        if own.said:
            yield words(own.said[k], x, y - own.size - 5, "middle")


def level_line(name: str, value: float, colour: str, x: tuple[str, float, float]) -> Series:
    """Return a dashed horizontal line at `value`, over the whole axis `x`."""
    return Series(name, colour, [(x[1], value), (x[2], value)], shape=None, line=1.5, dash="6 4")


def ends_of(alignment: Alignment | None) -> list[float]:
    """Return [value, low, high] of an alignment, [value] if it has no interval, or [] if it is undefined."""
    if alignment is None or alignment.value is None:
        return []
    return [alignment.value, *((alignment.interval.low, alignment.interval.high) if alignment.interval else ())]


def rounded_ends(values: Sequence[float]) -> tuple[float, float]:
    """Return axis ends for `values`, rounded outwards to steps of 0.2 so that they rarely change during a run."""
    if not values:
        return 0.0, 1.0
    low = max(math.floor((min(*values, 0.0) - 0.01) * 5) / 5, -1.02)
    high = min(math.ceil((max(values) + 0.03) * 5) / 5, 1.02)
    return (low if min(values) < 0 else 0.0), max(high, 0.2)
