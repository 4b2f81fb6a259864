"""Rechecks drawn: alignment on newer labels, one after the other, beside the figure of the export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from core.records import Alignment
from core.report.figures.style import (
    AMBER,
    BLUE,
    INK,
    QUIET,
    TEAL,
    describe,
    dots,
    measure_name,
    plain,
    style,
    value_range,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

COLOURS = {"holds": TEAL, "fallen": AMBER, "cannot be told": QUIET}
BAND = "rgba(11, 92, 173, 0.12)"


@dataclass(frozen=True, slots=True)
class Point:
    """A recheck: when, on which golden set, its alignment, and what was decided."""

    when: datetime
    name: str
    now: Alignment
    decision: str


def history_figure(points: Sequence[Point], then: Alignment) -> Figure:
    """Alignment with its interval at each recheck, in order of time; the exported value as a line in its interval.

    Rechecks stand at equal distances, whatever the time between them; undefined ones keep their place without a mark.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    if then.interval is not None:
        figure.add_hrect(y0=then.interval.low, y1=then.interval.high, fillcolor=BAND, line_width=0, layer="below")
    if then.value is not None:
        figure.add_hline(y=then.value, line={"color": BLUE, "width": 2, "dash": "dash"})
    for decision, colour in COLOURS.items():
        placed = [(place, one.now, _hover(one)) for place, one in enumerate(points) if one.decision == decision]
        if any(one.value is not None for _, one, _ in placed):
            figure.add_trace(dots(placed, colour, upright=True, thickness=3, name=decision, size=13))
    figure.add_trace(
        go.Scatter(
            x=[None],
            y=[None],
            mode="lines",
            name="exported with, and its 95 % interval",
            line={"color": BLUE, "width": 2, "dash": "dash"},
        )
    )
    style(
        figure,
        x="",
        y=measure_name(then.statistic, then.level),
        key="rechecks",
        height=360,
        x_range=[-0.6, len(points) - 0.4],
        y_range=value_range([*(point.now for point in points), then]),
    )
    names = [f"{one.when:%Y-%m-%d}<br>{plain(one.name, 22)}" for one in points]
    figure.update_xaxes(tickmode="array", tickvals=list(range(len(points))), ticktext=names)
    figure.update_yaxes(zeroline=True, zerolinecolor=INK)
    return figure


def _hover(one: Point) -> str:
    return f"{plain(one.name, 60)}<br>{describe(one.now)}, n = {one.now.n}<br>{one.decision}"
