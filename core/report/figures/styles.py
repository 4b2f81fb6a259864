"""Figures of judging styles: where each stands with people, and what more samples a score would bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.records import Alignment, Interval
from core.report.figures.style import (
    AMBER,
    BLUE,
    QUIET,
    TEAL,
    describe,
    dots,
    error_bars,
    name_rows,
    plain,
    snapped,
    style,
    value_range,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COLOURS = (BLUE, TEAL, AMBER, "#7C3AED", "#BE185D", "#4D7C0F", QUIET)
_SPREAD = 0.36
"""How far apart, at most, the lines of several styles stand around one number of samples."""


@dataclass(frozen=True, slots=True)
class ForecastLine:
    """What one style is expected to reach with the mean of `ns` samples a score.

    All parts are of one length; a value None is unknown and drawn as nothing.  `calls` are those of the whole golden
    set, `costs` their price in dollars or None.
    """

    name: str
    ns: tuple[int, ...]
    values: tuple[float | None, ...]
    intervals: tuple[Interval | None, ...]
    calls: tuple[int, ...]
    costs: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class StyleMark:
    """One style with its alignment; `detail` stands in the hover box."""

    name: str
    alignment: Alignment
    detail: str = ""


def forecast_figure(lines: Sequence[ForecastLine], *, measure: str) -> Figure:
    """Expected alignment against the samples of a score, with intervals; the calls stand under the samples.

    The lines share `ns` and `calls`; numbers of samples are evenly spaced, whatever lies between them.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for number, line in enumerate(lines):
        shift = _SPREAD * (number - (len(lines) - 1) / 2) / max(1, len(lines) - 1)
        known = [k for k, value in enumerate(line.values) if value is not None]
        colour = COLOURS[number % len(COLOURS)]
        figure.add_trace(
            go.Scatter(
                x=[k + shift for k in known],
                y=[line.values[k] for k in known],
                error_y=error_bars([(line.values[k] or 0.0, line.intervals[k]) for k in known], colour),
                mode="lines+markers",
                name=plain(line.name, 60),
                line={"color": colour, "width": 2},
                marker={"color": colour, "size": 9},
                hovertext=[_hover(line, k) for k in known],
                hoverinfo="text",
            )
        )
    ends = [end for line in lines for one in line.intervals if one is not None for end in (one.low, one.high)]
    values = [value for line in lines for value in line.values if value is not None]
    ticks = list(zip(lines[0].ns, lines[0].calls, strict=True)) if lines else []
    style(
        figure,
        x="samples a score · calls for the whole golden set",
        y=measure,
        key="forecast",
        height=380,
        x_range=[-0.5, max(1, len(ticks)) - 0.5],
        y_range=snapped(values + ends),
    )
    figure.update_xaxes(tickvals=list(range(len(ticks))), ticktext=[f"{n}<br>{calls:,}" for n, calls in ticks])
    figure.update_layout(margin={"b": 76})
    return figure


def styles_figure(marks: Sequence[StyleMark], *, measure: str) -> Figure:
    """Each style's alignment with its interval, a line each, in the order given; the undefined is drawn as nothing."""
    import plotly.graph_objects as go

    hover = [f"<b>{plain(mark.name, 80)}</b><br>{_told(mark)}" for mark in marks]
    placed = [(len(marks) - 1 - k, mark.alignment, hover[k]) for k, mark in enumerate(marks)]
    figure = go.Figure(dots(placed, BLUE, size=12))
    ends, height = value_range([mark.alignment for mark in marks]), 90 + 44 * max(1, len(marks))
    style(figure, x=measure, y="", key="styles", height=height, legend=False, x_range=ends)
    name_rows(figure, [plain(mark.name, 60) for mark in marks])
    return figure


def _told(mark: StyleMark) -> str:
    detail = f"<br>{plain(mark.detail, 280)}" if mark.detail else ""
    return f"{describe(mark.alignment)}, n = {mark.alignment.n:,}{detail}"


def _hover(line: ForecastLine, k: int) -> str:
    samples = "1 sample" if line.ns[k] == 1 else f"{line.ns[k]} samples"
    interval = line.intervals[k]
    ends = "" if interval is None else f" [{interval.low:.2f}, {interval.high:.2f}]"
    cost = line.costs[k]
    price = "" if cost is None else f", about ${cost:,.2f}"
    return f"<b>{plain(line.name, 80)}</b><br>{samples}: {line.values[k]:.3f}{ends}<br>{line.calls[k]:,} calls{price}"
