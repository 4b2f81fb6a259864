"""What all figures share: colours, names of statistics and levels, whiskers, axes, and text made harmless."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import Alignment, FloatArray, Interval, Level, Statistic

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

INK, QUIET, GRID = "#14202E", "#8793A1", "#E3E8EE"
BLUE, AMBER, TEAL, PALE = "#0B5CAD", "#B45309", "#0F766E", "#C3CBD5"
STATISTIC_NAMES: dict[Statistic, str] = {
    "pearson": "Pearson r",
    "spearman": "Spearman rho",
    "kendall": "Kendall tau-b",
}
LEVEL_NAMES: dict[Level, str] = {"dataset": "dataset level", "sample": "sample level", "system": "system level"}


def measure_name(statistic: Statistic, level: Level) -> str:
    """E.g. "Spearman rho, sample level": how every axis and column of alignments is headed."""
    return f"{STATISTIC_NAMES[statistic]}, {LEVEL_NAMES[level]}"


def describe(alignment: Alignment | None) -> str:
    """`0.412 [0.35, 0.47]`, or "—" for what is undefined or not there yet."""
    if alignment is None or alignment.value is None:
        return "—"
    if alignment.interval is None:
        return f"{alignment.value:.3f}"
    return f"{alignment.value:.3f} [{alignment.interval.low:.2f}, {alignment.interval.high:.2f}]"


def error_bars(ends: Sequence[tuple[float, Interval | None]], colour: str, *, thickness: float = 1.5) -> dict[str, Any]:
    """Plotly's error bars around values: distances up and down, 0 where there is no interval."""
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(interval.high - value, 0.0) if interval else 0.0 for value, interval in ends],
        "arrayminus": [max(value - interval.low, 0.0) if interval else 0.0 for value, interval in ends],
        "thickness": thickness,
        "width": 0,
        "color": colour,
    }


def scatter(
    x: Sequence[Any] | FloatArray, y: Sequence[Any] | FloatArray, mode: str = "markers", **look: Any
) -> Scatter:
    """Points, lines or both; where there is `hovertext` alone, it is the whole hover box."""
    from plotly.graph_objects import Scatter

    hover = {"hoverinfo": "text"} if "hovertext" in look and "hovertemplate" not in look else {}
    x, y = (values if isinstance(values, np.ndarray) else list(values) for values in (x, y))
    return Scatter(x=x, y=y, mode=mode, **hover, **look)


def dots(
    placed: Iterable[tuple[float, Alignment | None, str]],
    colour: str,
    *,
    upright: bool = False,
    whisker: str = "",
    thickness: float = 1.5,
    name: str | None = None,
    **marker: Any,
) -> Scatter:
    """A dot with its interval for each (place, alignment, words of the hover box); the undefined is drawn as nothing.

    Values run along the horizontal axis, or the vertical one where `upright`, places along the other; `whisker` is the
    intervals' colour where it is another one, `marker` is plotly's.
    """
    known = [
        (place, alignment.value, alignment.interval, words)
        for place, alignment, words in placed
        if alignment and alignment.value is not None
    ]
    values, places = [value for _, value, _, _ in known], [place for place, *_ in known]
    bars = error_bars([(value, interval) for _, value, interval, _ in known], whisker or colour, thickness=thickness)
    x, y, bars_of = (places, values, "error_y") if upright else (values, places, "error_x")
    look: dict[str, Any] = {bars_of: bars, "marker": {"color": colour, **marker}}
    return scatter(x, y, name=name, hovertext=[words for *_, words in known], **look)


@dataclass(frozen=True, slots=True)
class Mark:
    """One line or place of a figure; `group` decides its colour, `detail` stands in the hover box."""

    name: str
    alignment: Alignment | None
    group: str = ""
    detail: str = ""

    @property
    def words(self) -> str:
        """The hover box."""
        n = "" if self.alignment is None else f", n = {self.alignment.n:,}"
        group = f" ({plain(self.group, 20)})" if self.group else ""
        detail = f"<br>{plain(self.detail, 280)}" if self.detail else ""
        return f"<b>{plain(self.name, 60)}</b>{group}<br>{describe(self.alignment)}{n}{detail}"


def plain(text: str, longest: int, *, width: int = 60, lines: int | None = None) -> str:
    """Text that plotly shows as it stands: shortened to `longest` letters, wrapped, its markup escaped."""
    short = textwrap.shorten(text, longest, placeholder="…")
    return "<br>".join(html.escape(line) for line in textwrap.wrap(short, width)[:lines]) or "—"


def stacked(name: str, width: int, lines: int = 3) -> str:
    """A name on at most so many short lines."""
    return plain(name, lines * width, width=width, lines=lines)


def value_range(alignments: Iterable[Alignment | None]) -> tuple[float, float]:
    """Ends of an axis that holds all values and intervals."""
    return snapped([end for alignment in alignments for end in ends_of(alignment)])


def ends_of(alignment: Alignment | None) -> list[float]:
    """The value of an alignment and the ends of its interval; nothing where it is undefined."""
    if alignment is None or alignment.value is None:
        return []
    return [alignment.value, *((alignment.interval.low, alignment.interval.high) if alignment.interval else ())]


def snapped(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis, moved out to the next .2 so that a growing run moves them rarely; within [-1, 1]."""
    if not values:
        return 0.0, 1.0
    low = max(math.floor((min(*values, 0.0) - 0.01) * 5) / 5, -1.02)
    high = min(math.ceil((max(values) + 0.03) * 5) / 5, 1.02)
    return (low if min(values) < 0 else 0.0), max(high, 0.2)


def frame(
    traces: Sequence[Any],
    *,
    x: str,
    y: str,
    key: str,
    height: int = 340,
    legend: bool = True,
    x_range: Sequence[float] | None = None,
    y_range: Sequence[float] | None = None,
) -> Figure:
    """A figure in a quiet frame that no drag moves; `uirevision` keeps what a person hid while new data comes in."""
    from plotly.graph_objects import Figure

    figure = Figure(list(traces))
    figure.update_layout(
        height=height,
        margin={"l": 64 if y else 8, "r": 16, "t": 8, "b": 52},
        paper_bgcolor="white",
        plot_bgcolor="white",
        font={"size": 14, "color": INK},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hoverlabel={"align": "left"},
        uirevision=key,
        showlegend=legend,
    )
    axis: dict[str, Any] = {"gridcolor": GRID, "fixedrange": True}
    heads = [{"text": text, "standoff": 8} for text in (x, y)]
    figure.update_xaxes(title=heads[0], zeroline=False, linecolor=QUIET, range=x_range, **axis)
    figure.update_yaxes(title=heads[1], zerolinecolor=QUIET, automargin=True, range=y_range, **axis)
    return figure


def name_rows(figure: Figure, names: Sequence[str]) -> None:
    """Names on the vertical axis, the first on top: at len(names) - 1, the last at 0."""
    figure.update_yaxes(
        range=[-0.6, len(names) - 0.4],
        tickvals=list(range(len(names))),
        ticktext=list(names)[::-1],
        showgrid=False,
        zeroline=False,
    )


def numbers_or_none(values: FloatArray) -> list[list[float | None]]:
    """The rows of (n, m) values with None for NaN, which plotly leaves blank."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]


def pairs_matrix(
    names: Sequence[str],
    values: FloatArray,
    text: Sequence[Sequence[str]],
    *,
    hover: Sequence[Sequence[str]],
    template: str,
    colours: Sequence[Sequence[Any]],
    key: str,
    heights: tuple[int, int],
    widths: tuple[int, int],
) -> Figure:
    """Every name against every name: cells coloured by `values` (n, n) from -1 to 1, NaN undefined, with their `text`.

    `template` is what the hover box says around `%{customdata}`, the cell's own words of `hover`; the figure is as
    high as the first of `heights` and the second for each name; `widths` are the letters of a line of the heads and of
    the names at the side.
    """
    from plotly.graph_objects import Heatmap

    places = list(range(len(names)))
    heat = Heatmap(
        z=numbers_or_none(values),
        x=places,
        y=places,
        zmin=-1,
        zmax=1,
        colorscale=colours,
        showscale=False,
        xgap=3,
        ygap=3,
        hoverongaps=False,
        text=text,
        texttemplate="%{text}",
        textfont={"color": INK},
        customdata=hover,
        hovertemplate=template,
    )
    figure = frame([heat], x="", y="", key=key, height=heights[0] + heights[1] * len(names), legend=False)
    figure.update_layout(margin={"t": 80, "b": 8})
    still: dict[str, Any] = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "tickvals": places}
    heads, sides = ([stacked(name, width) for name in names] for width in widths)
    figure.update_xaxes(side="top", ticktext=heads, automargin=True, tickfont={"size": 12}, tickangle=0, **still)
    figure.update_yaxes(autorange="reversed", ticktext=sides, **still)
    return figure
