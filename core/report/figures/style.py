"""What all figures share: colours, names of statistics and levels, whiskers, axes, and text made harmless."""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.records import Alignment, Level, Statistic

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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


def whiskers(alignments: Sequence[Alignment | None], colour: str) -> dict[str, Any]:
    """Plotly's error bars: distances from the value up and down, 0 where there is no interval."""
    ends = [(defined_value(a), a.interval) for a in alignments if a is not None]
    return {
        "type": "data",
        "symmetric": False,
        "array": [max(interval.high - value, 0.0) if interval else 0.0 for value, interval in ends],
        "arrayminus": [max(value - interval.low, 0.0) if interval else 0.0 for value, interval in ends],
        "thickness": 1.5,
        "width": 0,
        "color": colour,
    }


def plain(text: str, width: int) -> str:
    """Text that plotly shows as it stands: shortened, wrapped at 60, markup escaped."""
    short = textwrap.shorten(text, width, placeholder="…")
    return "<br>".join(html.escape(line) for line in textwrap.wrap(short, 60)) or "—"


def value_range(alignments: Sequence[Alignment | None]) -> tuple[float, float]:
    """Ends of an axis that holds all values and intervals."""
    known: list[float] = []
    for a in alignments:
        if a is not None and a.value is not None:
            known += [a.value] + ([a.interval.low, a.interval.high] if a.interval else [])
    return snapped(known)


def snapped(values: Sequence[float]) -> tuple[float, float]:
    """Ends of an axis, moved out to the next .2 so that a growing run moves them rarely; within [-1, 1]."""
    if not values:
        return 0.0, 1.0
    low = max(math.floor((min(*values, 0.0) - 0.01) * 5) / 5, -1.02)
    high = min(math.ceil((max(values) + 0.03) * 5) / 5, 1.02)
    return (low if min(values) < 0 else 0.0), max(high, 0.2)


def style(figure: Figure, *, x: str, y: str, key: str, height: int = 340) -> None:
    """Quiet frame; `uirevision` keeps what a person zoomed or hid while new data comes in."""
    figure.update_layout(
        height=height,
        margin={"l": 64 if y else 8, "r": 16, "t": 8, "b": 52},
        paper_bgcolor="white",
        plot_bgcolor="white",
        font={"size": 14, "color": INK},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        hoverlabel={"align": "left"},
        uirevision=key,
        showlegend=True,
    )
    figure.update_xaxes(title={"text": x, "standoff": 8}, gridcolor=GRID, zeroline=False, linecolor=QUIET)
    figure.update_yaxes(title={"text": y, "standoff": 8}, gridcolor=GRID, zerolinecolor=QUIET, automargin=True)
