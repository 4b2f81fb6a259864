"""Fusions drawn: what is lost without each part, what each part counts for, and how alike the parts are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from core.records import FloatArray, Interval
from core.report.figures.style import (
    AMBER,
    BLUE,
    INK,
    QUIET,
    TEAL,
    error_bars,
    frame,
    name_rows,
    pairs_matrix,
    plain,
    scatter,
    stacked,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, slots=True)
class Bar:
    """A named number with its interval; `words` are shown when a person points at it.

    `shown`: a test shows that the number is not 0.
    """

    name: str
    value: float | None
    interval: Interval | None
    words: str = ""
    shown: bool = False


def lost_figure(bars: Sequence[Bar], *, measure: str) -> Figure:
    """What the fusion loses in alignment without each part, the dearest loss on top.

    Teal where a test shows that the part helps, amber that it harms, grey where nothing is shown.
    """
    return _dots(bars, _verdict, x=f"lost without it<br>{measure}", key="lost")


def _verdict(bar: Bar) -> str:
    if bar.value is None or not bar.shown:
        return QUIET
    return TEAL if bar.value > 0 else AMBER


def weights_figure(bars: Sequence[Bar], *, unit: str) -> Figure:
    """What each part counts for; `unit` heads the axis."""
    return _dots(bars, lambda _: BLUE, x=unit, key="weights")


def _dots(bars: Sequence[Bar], colour: Callable[[Bar], str], *, x: str, key: str) -> Figure:
    """The largest on top, the undefined below all, without a dot."""
    ordered = sorted(bars, key=lambda bar: -np.inf if bar.value is None else bar.value)
    traces = [
        scatter(
            [bar.value],
            [place],
            marker={"size": 13, "color": colour(bar)},
            error_x=error_bars([(bar.value, bar.interval)], colour(bar), thickness=3),
            hovertext=[plain(bar.words or bar.name, 240)],
        )
        for place, bar in enumerate(ordered)
        if bar.value is not None
    ]
    figure = frame(traces, x=x, y="", key=key, height=112 + 38 * max(len(bars), 2), legend=False)
    figure.add_vline(x=0, line={"color": INK, "width": 1})
    figure.update_layout(margin={"b": 74})
    figure.update_xaxes(title={"font": {"size": 13}})
    name_rows(figure, [stacked(bar.name, 34, 1) for bar in ordered][::-1])
    return figure


def between_figure(names: Sequence[str], between: FloatArray) -> Figure:
    """Spearman's rho between the parts, (n, n) with NaN where undefined: dark pairs say nearly the same."""
    return pairs_matrix(
        names,
        between,
        [["—" if np.isnan(value) else f"{value:.2f}" for value in row] for row in between],
        hover=[[f"{plain(a, 60)}<br>{plain(b, 60)}" for b in names] for a in names],
        template="%{customdata}<br>%{text}<extra></extra>",
        colours=[[0, "#E8B98A"], [0.5, "#FFFFFF"], [1, "#7FA9D6"]],
        key="between",
        heights=(150, 44),
        widths=(max(14, 90 // max(len(names), 1)), 34),
    )
