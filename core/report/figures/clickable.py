"""Figures that a person clicks into: plotly draws them in the browser, and its script is fetched for them alone."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import FloatArray, Interval
from core.report.figures.style import DARK, GRID, INK, PAPER, QUIET, Mark, describe

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter


def in_dark(part: Any) -> Any:
    """A figure's JSON with its colours turned for a dark page."""
    if isinstance(part, dict):
        return {key: in_dark(value) for key, value in part.items()}
    if isinstance(part, list | tuple):
        return [in_dark(value) for value in part]
    return DARK.get(part, part) if isinstance(part, str) else part


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


def plain(text: str, longest: int, *, width: int = 60, lines: int | None = None) -> str:
    """Text that plotly shows as it stands: shortened to `longest` letters, wrapped, its markup escaped."""
    short = textwrap.shorten(text, longest, placeholder="…")
    return "<br>".join(html.escape(line) for line in textwrap.wrap(short, width)[:lines]) or "—"


def mark_words(mark: Mark) -> str:
    """The hover box of a mark."""
    n = "" if mark.alignment is None else f", n = {mark.alignment.n:,}"
    group = f" ({plain(mark.group, 20)})" if mark.group else ""
    detail = f"<br>{plain(mark.detail, 280)}" if mark.detail else ""
    return f"<b>{plain(mark.name, 60)}</b>{group}<br>{describe(mark.alignment)}{n}{detail}"


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
        paper_bgcolor=PAPER,
        plot_bgcolor=PAPER,
        font={"size": 14, "color": INK},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hoverlabel={"align": "left", "bgcolor": PAPER, "bordercolor": QUIET, "font": {"color": INK}},
        uirevision=key,
        showlegend=legend,
    )
    axis: dict[str, Any] = {"gridcolor": GRID, "fixedrange": True}
    heads = [{"text": text, "standoff": 8} for text in (x, y)]
    figure.update_xaxes(title=heads[0], zeroline=False, linecolor=QUIET, range=x_range, **axis)
    figure.update_yaxes(title=heads[1], zerolinecolor=QUIET, automargin=True, range=y_range, **axis)
    return figure


def numbers_or_none(values: FloatArray) -> list[list[float | None]]:
    """The rows of (n, m) values with None for NaN, which plotly leaves blank."""
    return [[None if np.isnan(value) else float(value) for value in row] for row in values]
