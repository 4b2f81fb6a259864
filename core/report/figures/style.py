"""What all figures share: colours, names of statistics and levels, whiskers, axes, and text made harmless."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from core.records import Alignment, Interval, Level, Statistic

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


def is_defined(alignment: Alignment | None) -> bool:
    """Whether there is a value to draw."""
    return alignment is not None and alignment.value is not None


def defined_value(alignment: Alignment | None) -> float:
    """The value of an alignment known to be defined."""
    if alignment is None or alignment.value is None:
        raise ValueError("an undefined alignment has no place on a figure")
    return alignment.value


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
    from plotly.graph_objects import Scatter

    known = [(place, one.value, one.interval, words) for place, one, words in placed if one and one.value is not None]
    along, across = ("y", "x") if upright else ("x", "y")
    bars = error_bars([(value, interval) for _, value, interval, _ in known], whisker or colour, thickness=thickness)
    return Scatter(
        **{along: [value for _, value, _, _ in known], across: [place for place, *_ in known], f"error_{along}": bars},
        mode="markers",
        name=name,
        marker={"color": colour, **marker},
        hovertext=[words for *_, words in known],
        hoverinfo="text",
    )


def plain(text: str, longest: int, *, width: int = 60, lines: int | None = None) -> str:
    """Text that plotly shows as it stands: shortened to `longest` letters, wrapped, its markup escaped."""
    short = textwrap.shorten(text, longest, placeholder="…")
    return "<br>".join(html.escape(line) for line in textwrap.wrap(short, width)[:lines]) or "—"


def stacked(name: str, width: int, lines: int = 3) -> str:
    """A name on at most so many short lines."""
    return plain(name, lines * width, width=width, lines=lines)


def value_range(alignments: Iterable[Alignment | None]) -> tuple[float, float]:
    """Ends of an axis that holds all values and intervals."""
    return snapped([end for one in alignments for end in ends_of(one)])


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


def style(
    figure: Figure,
    *,
    x: str,
    y: str,
    key: str,
    height: int = 340,
    legend: bool = True,
    x_range: Sequence[float] | None = None,
    y_range: Sequence[float] | None = None,
) -> None:
    """Quiet frame that no drag moves; `uirevision` keeps what a person hid while new data comes in."""
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
    head_x, head_y = {"text": x, "standoff": 8}, {"text": y, "standoff": 8}
    figure.update_xaxes(title=head_x, gridcolor=GRID, zeroline=False, linecolor=QUIET, range=x_range, fixedrange=True)
    figure.update_yaxes(
        title=head_y, gridcolor=GRID, zerolinecolor=QUIET, automargin=True, range=y_range, fixedrange=True
    )


def name_rows(figure: Figure, names: Sequence[str]) -> None:
    """Names on the vertical axis, the first on top: at len(names) - 1, the last at 0."""
    figure.update_yaxes(
        range=[-0.6, len(names) - 0.4],
        tickvals=list(range(len(names))),
        ticktext=list(names)[::-1],
        showgrid=False,
        zeroline=False,
    )


def pairs_matrix(
    names: Sequence[str],
    numbers: Sequence[Sequence[float | None]],
    text: Sequence[Sequence[str]],
    *,
    hover: Sequence[Sequence[str]],
    told: str,
    colours: Sequence[Sequence[Any]],
    key: str,
    heights: tuple[int, int],
    widths: tuple[int, int],
) -> Figure:
    """Every name against every name: cells coloured by `numbers` (-1 to 1, None undefined), with `text` in them.

    `told` is what the hover box says around `%{customdata}`, the cell's own words of `hover`; the figure is as high as
    the first of `heights` and the second for each name; `widths` are the letters of a line of the heads and of the
    names at the side.
    """
    import plotly.graph_objects as go

    places = list(range(len(names)))
    figure = go.Figure(
        go.Heatmap(
            z=numbers,
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
            hovertemplate=told,
        )
    )
    style(figure, x="", y="", key=key, height=heights[0] + heights[1] * len(names), legend=False)
    figure.update_layout(margin={"t": 80, "b": 8})
    still: dict[str, Any] = {"showgrid": False, "zeroline": False, "showline": False, "ticks": "", "tickvals": places}
    heads, sides = ([stacked(name, width) for name in names] for width in widths)
    figure.update_xaxes(side="top", ticktext=heads, automargin=True, tickfont={"size": 12}, tickangle=0, **still)
    figure.update_yaxes(autorange="reversed", ticktext=sides, **still)
    return figure
