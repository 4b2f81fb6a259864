"""Axes, and the panel between two of them on which values are placed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from core.records import Interval
from core.report.figures.style import AMBER, GRID, QUIET
from core.report.figures.svg import LETTER, Point, Shape, line, mark, words

Ticks = Sequence[tuple[float, Sequence[str]]]
"""Places on an axis with the lines of words that stand there."""
WIDE, HALF = 900, 520
"""Widths of a picture across a screen and of one in a column."""
_LEFT, _RIGHT, _BOTTOM = 52, 16, 46
_LEGEND_LINE = 20
_DIGIT = 7.7
"""Width of a digit in the size of ticks, in pixels."""
_NAMED = 18
"""Height that the name of a line needs, in pixels."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Values `low` to `high` on pixels `start` to `end` (which may run downwards)."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """The pixel of `value`, held within the axis."""
        if self.high == self.low:
            return (self.start + self.end) / 2
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 7) -> tuple[float, ...]:
        """At most about `most` round values from low to high."""
        if self.high <= self.low:
            return (self.low,)
        rough = (self.high - self.low) / most
        unit = 10 ** math.floor(math.log10(rough))
        step = next(unit * k for k in (1, 2, 2.5, 5, 10) if unit * k >= rough * 0.999)
        first = math.ceil(round(self.low / step, 9))
        last = math.floor(round(self.high / step, 9))
        return tuple(k * step for k in range(first, last + 1))

    def named(self, most: int = 7) -> Ticks:
        """The same with their names."""
        return [(tick, (f"{round(tick, 9):,.10g}".replace("-", "−"),)) for tick in self.ticks(most)]


@dataclass(frozen=True, slots=True)
class Sign:
    """An entry of a legend: a mark, or a line where `shape` is None."""

    name: str
    colour: str
    shape: Shape | None = "dot"
    dash: str | None = None


@dataclass(frozen=True, slots=True)
class Panel:
    """A rectangle in which values of `x` run across and values of `y` upwards."""

    x: Axis
    y: Axis
    signs: tuple[Sign, ...] = ()

    @classmethod
    def sized(
        cls,
        width: float,
        height: float,
        x_ends: Sequence[float],
        y_ends: Sequence[float],
        *,
        signs: Iterable[Sign] = (),
        below: int = 1,
    ) -> Panel:
        """The panel of a picture of this size; `below`: lines of words at a tick of the horizontal axis."""
        signs = tuple(signs)
        top = 28 + _LEGEND_LINE * len(_lines_of(signs, width))
        x = Axis(x_ends[0], x_ends[1], _LEFT, width - _RIGHT)
        return cls(x, Axis(y_ends[0], y_ends[1], height - _BOTTOM - 15 * (below - 1), top), signs)

    def at(self, x: float, y: float) -> Point:
        return self.x(x), self.y(y)

    def ground(
        self, x_title: str, y_title: str, *, x_ticks: Ticks | None = None, rules: bool = True
    ) -> Iterator[Markup]:
        """The grid, the ticks, both titles (that of the vertical axis above it) and the legend."""
        left, right, top, bottom = self.x.start, self.x.end, self.y.end, self.y.start
        yield words(y_title, 0, 14, fill=QUIET)
        yield from self._legend(right + _RIGHT)
        for y, names in self.y.named(5):
            if rules:
                yield line((left, self.y(y)), (right, self.y(y)), QUIET if abs(y) < 1e-9 else GRID)
            yield words(names[0], left - 8, self.y(y) + 4, "end", fill=QUIET)
        yield line((left, bottom), (right, bottom), QUIET)
        for x, names in self.x.named() if x_ticks is None else x_ticks:
            for k, name in enumerate(names):
                edge = right + _RIGHT
                cut = self.x(x) + _DIGIT * len(name) / 2 > edge
                at, anchor = (edge, "end") if cut else (self.x(x), "middle")
                yield words(name, at, bottom + 16 + 15 * k, anchor, fill=QUIET)
        if x_title:
            below = max((len(names) for _, names in x_ticks), default=1) if x_ticks else 1
            yield words(x_title, (left + right) / 2, bottom + 21 + 15 * below, "middle", fill=QUIET)
        if top > bottom:
            raise ValueError("the picture is too low for its legend")

    def _legend(self, width: float) -> Iterator[Markup]:
        for k, row in enumerate(_lines_of(self.signs, width)):
            x, y = float(_LEFT), 34.0 + _LEGEND_LINE * k
            for sign in row:
                if sign.shape is None:
                    yield line((x, y - 4), (x + 16, y - 4), sign.colour, width=2, dash=sign.dash)
                else:
                    yield mark(x + 8, y - 4, sign.colour, sign.shape)
                yield words(sign.name, x + 22, y)
                x += _breadth(sign)

    def whisker(self, x: float, interval: Interval | None, colour: str, *, width: float = 1.5) -> Iterator[Markup]:
        """An upright interval."""
        if interval is not None:
            yield line(self.at(x, interval.low), self.at(x, interval.high), colour, width=width)

    def level(self, value: float, colour: str = AMBER, *, name: str = "", dash: str | None = "6 4") -> Iterator[Markup]:
        """A line across at a value, named at its right end: above, or beneath where the line at 0 would strike it."""
        y = self.y(value)
        yield line((self.x.start, y), (self.x.end, y), colour, width=1.5, dash=dash)
        if name:
            crossed = value < 0 and y - self.y(0) < _NAMED and self.y.start - y > _NAMED
            yield words(name, self.x.end - 4, y + 14 if crossed else y - 6, "end", fill=colour, halo=True)

    def marks(
        self,
        points: Iterable[Point],
        colour: str,
        shape: Shape = "dot",
        *,
        size: float = 5,
        opacity: float | None = None,
    ) -> Iterator[Markup]:
        for x, y in points:
            yield mark(*self.at(x, y), colour, shape, size=size, opacity=opacity)


def _breadth(sign: Sign) -> float:
    return 22 + LETTER * 12 * len(sign.name) + 18


def _lines_of(signs: Sequence[Sign], width: float) -> list[list[Sign]]:
    """The entries of a legend as they fit on lines."""
    lines: list[list[Sign]] = []
    room = 0.0
    for sign in signs:
        if not lines or room < _breadth(sign):
            lines.append([])
            room = width - _LEFT
        lines[-1].append(sign)
        room -= _breadth(sign)
    return lines
