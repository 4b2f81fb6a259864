"""Draw charts with one row per value: name, dot and interval on a common axis, and figures on the right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from core.records import Alignment, Interval
from core.report.figures.chart import WIDE, Axis, ends_of, rounded_ends
from core.report.figures.svg import (
    AMBER,
    BLUE,
    GRID,
    PEOPLE,
    QUIET,
    TEAL,
    Drawing,
    Shape,
    box,
    drawing,
    legible,
    line,
    mark,
    shortened,
    words,
)
from core.wording import DASH, change_figures, estimate

if TYPE_CHECKING:
    from core.stats.choices import Strengths
    from core.stats.system_means import MeanEstimate, SystemMeans

LEFT, RIGHT, ROW = 232, 138, 26
"""Pixels for the longest names, for the figures, and for the height of a row."""


@dataclass(frozen=True, slots=True)
class WhiskerRow:
    """A row of a chart. `figures` are shown on the right, and `reason` says why the value is undefined."""

    name: str
    value: float | None
    interval: Interval | None
    figures: str
    colour: str
    shape: Shape = "dot"
    reason: str = ""

    @classmethod
    def of(cls, name: str, found: Alignment | MeanEstimate, colour: str) -> WhiskerRow:
        """Return a row for an alignment or a mean."""
        return cls(name, found.value, found.interval, estimate(found), colour, reason=found.reason)


def _whiskers(
    name: str,
    title: str,
    rows: Sequence[WhiskerRow],
    *,
    measure: str,
    people: Alignment | None = None,
    close: bool = False,
    width: int = WIDE,
) -> Drawing:
    """Draw rows below each other, with the agreement among raters (`people`) as a band behind them.

    The axis ends at a fifth. With `close` it ends just beyond the values, for values other than alignments.
    """
    held = ends_of(people)
    for row in rows:
        if row.value is not None:
            held += [row.value, *(row.interval or ())]
    low, high = rounded_ends(held)
    if close and held:
        room = 0.04 * (max(held) - min(held)) or 0.1
        low, high = min(held) - room, max(held) + room
    band = None if people is None or people.value is None else people
    left = min(LEFT, 24 + 7 * max((len(row.name) for row in rows), default=0))
    axis, top = Axis(low, high, left, width - RIGHT), 8.0 if band is None else 24.0
    bottom = top + ROW * len(rows)
    parts = list(_ground(axis, band, top, bottom, measure))
    for k, row in enumerate(rows):
        parts += _row(axis, row, top + ROW * (k + 0.5), width)
    said = [legible(f"{shortened(row.name, 60)}: {row.figures}") for row in rows]
    says = f"{'; '.join(said)}."
    says += "" if people is None else f" One rater compared with the mean of the others: {estimate(people)}."
    return drawing(name, title, says, (width, bottom + 42), parts)


def _ground(axis: Axis, people: Alignment | None, top: float, bottom: float, title: str) -> Iterator[Markup]:
    """Draw the raters' band, grid lines, tick labels, and the axis title."""
    if people is not None and people.value is not None:
        low, high = people.interval or (people.value, people.value)
        x = axis(people.value)
        yield box(axis(low), top, axis(high) - axis(low), bottom - top, PEOPLE)
        yield line((x, top), (x, bottom), AMBER, width=1.5, dash="5 3")
        middle = min(max(x, axis.start + 100), axis.end - 40)
        yield words(f"shaded: agreement between raters ({people.value:.2f})", middle, top - 8, "middle")
    for tick, name in axis.ticks(min(7, int(axis.end - axis.start) // 50)):
        x = axis(tick)
        yield line((x, top), (x, bottom), QUIET if abs(tick) < 1e-9 else GRID)
        yield words(name, x, bottom + 16, "middle", fill=QUIET)
    yield words(title, (axis.start + axis.end) / 2, bottom + 34, "middle", fill=QUIET)


def _row(axis: Axis, row: WhiskerRow, y: float, width: float) -> Iterator[Markup]:
    yield words(shortened(row.name, 34), axis.start - 12, y + 4, "end")
    yield words(row.figures, width, y + 4, "end")
    if row.value is None:
        room = int(axis.end - axis.start) // 7
        yield words(f"{DASH} {shortened(row.reason, room)}" if row.reason else "", axis.start + 6, y + 4, fill=QUIET)
        return
    if row.interval is not None:
        yield line((axis(row.interval.low), y), (axis(row.interval.high), y), row.colour, width=2)
    yield mark(axis(row.value), y, row.colour, row.shape)


def leaderboard_figure(judges: Mapping[str, Alignment], ceiling: Alignment | None, *, measure: str) -> Drawing:
    """Draw the alignment of each judge, highest first, with the agreement among raters as a band."""
    rows = [WhiskerRow.of(name, alignment, BLUE) for name, alignment in judges.items()]
    rows.sort(key=lambda row: -2.0 if row.value is None else row.value, reverse=True)
    return _whiskers("leaderboard", "Agreement of each judge, with its interval", rows, measure=measure, people=ceiling)


def held_out_figure(
    judges: Mapping[str, Alignment], *, measure: str, people: Alignment | None = None, width: int = WIDE
) -> Drawing:
    """Draw the held-out alignment of each judge."""
    coloured = zip(judges.items(), (BLUE, TEAL, QUIET) * len(judges), strict=False)
    rows = [WhiskerRow.of(name, held_out, colour) for (name, held_out), colour in coloured]
    title = "Agreement with raters on held-out items"
    return _whiskers("sides", title, rows, measure=f"{measure}, held-out", people=people, width=width)


def standing_figure(rows: Mapping[str, Alignment], *, measure: str, width: int = WIDE) -> Drawing:
    """Draw the alignment of raters, judge and baseline, in this order."""
    shown = [
        WhiskerRow.of(name, alignment, colour)
        for (name, alignment), colour in zip(rows.items(), (AMBER, BLUE, TEAL), strict=False)
    ]
    return _whiskers("standing", "Agreement of raters, judge and baseline", shown, measure=measure, width=width)


def system_means_figure(means: SystemMeans, aspect: str, *, most: int) -> Drawing:
    """Draw the corrected means of the best systems, at most `most` of them."""
    rows = [WhiskerRow.of(system.name, system.corrected, BLUE) for system in means.corrected[:most]]
    measure = f"mean {aspect}, corrected with labels; 95 % intervals"
    return _whiskers("system-means", f"Mean {aspect} of each system", rows, measure=measure, close=True)


def strengths_figure(people: Strengths, judge: Strengths | None, judge_name: str) -> Drawing:
    """Draw each system's strength according to raters and, below it, its strength according to the judge."""
    by_judge = {} if judge is None else {strength.system: strength for strength in judge.systems}
    rows = []
    for own in people.systems:
        figures = change_figures(own.value, own.interval)
        rows.append(WhiskerRow(own.system, own.value, own.interval, figures, AMBER))
        if (other := by_judge.get(own.system)) is not None:
            figures = change_figures(other.value, other.interval)
            rows.append(WhiskerRow(judge_name, other.value, other.interval, figures, BLUE, "ring"))
    measure = "log-odds of being preferred over an average system; 95 % intervals"
    return _whiskers("strengths", "Strength of each system", rows, measure=measure, close=True)
