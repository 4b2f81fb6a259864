"""Fusions drawn: what is lost without each part, what each part counts for, and how alike the parts are."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import FloatArray, Interval
from core.report.figures.style import AMBER, BLUE, INK, QUIET, TEAL, plain, style

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
    """What the fusion loses in alignment without each part, the dearest loss on top."""
    ordered = sorted(bars, key=lambda bar: -np.inf if bar.value is None else bar.value)
    colours = [_verdict(bar) for bar in ordered]
    return _dots(ordered, colours, x=f"lost without it<br>{measure}", key="lost")


def weights_figure(bars: Sequence[Bar], *, unit: str) -> Figure:
    """What each part counts for; `unit` heads the axis."""
    ordered = sorted(bars, key=lambda bar: -np.inf if bar.value is None else bar.value)
    return _dots(ordered, [BLUE] * len(ordered), x=unit, key="weights")


def _verdict(bar: Bar) -> str:
    """Teal where a test shows that the part helps, amber that it harms, grey where nothing is shown."""
    if bar.value is None or not bar.shown:
        return QUIET
    return TEAL if bar.value > 0 else AMBER


def _dots(bars: Sequence[Bar], colours: Sequence[str], *, x: str, key: str) -> Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    for place, (bar, colour) in enumerate(zip(bars, colours, strict=True)):
        if bar.value is None:
            continue
        ends = bar.interval
        figure.add_trace(
            go.Scatter(
                x=[bar.value],
                y=[place],
                mode="markers",
                marker={"size": 13, "color": colour},
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [max(ends.high - bar.value, 0.0) if ends else 0.0],
                    "arrayminus": [max(bar.value - ends.low, 0.0) if ends else 0.0],
                    "thickness": 3,
                    "width": 0,
                    "color": colour,
                },
                hovertext=[plain(bar.words or bar.name, 240)],
                hoverinfo="text",
            )
        )
    figure.add_vline(x=0, line={"color": INK, "width": 1})
    style(figure, x=x, y="", key=key, height=112 + 38 * max(len(bars), 2))
    figure.update_layout(showlegend=False, margin={"b": 74})
    figure.update_xaxes(fixedrange=True, title={"font": {"size": 13}})
    figure.update_yaxes(
        tickvals=list(range(len(bars))),
        ticktext=[_short(bar.name, 34) for bar in bars],
        range=[-0.6, len(bars) - 0.4],
        fixedrange=True,
    )
    return figure


def between_figure(names: Sequence[str], between: FloatArray) -> Figure:
    """Spearman's rho between the parts, (n, n) with NaN where undefined: dark pairs say nearly the same."""
    import plotly.graph_objects as go

    n = len(names)
    known = [[None if np.isnan(value) else float(value) for value in row] for row in between]
    text = [["—" if value is None else f"{value:.2f}" for value in row] for row in known]
    figure = go.Figure(
        go.Heatmap(
            z=known,
            x=list(range(n)),
            y=list(range(n)),
            zmin=-1,
            zmax=1,
            colorscale=[[0, "#E8B98A"], [0.5, "#FFFFFF"], [1, "#7FA9D6"]],
            xgap=3,
            ygap=3,
            showscale=False,
            text=text,
            texttemplate="%{text}",
            textfont={"color": INK, "size": 14},
            customdata=[[f"{plain(a, 60)}<br>{plain(b, 60)}" for b in names] for a in names],
            hovertemplate="%{customdata}<br>%{text}<extra></extra>",
        )
    )
    style(figure, x="", y="", key="between", height=150 + 44 * n)
    figure.update_layout(showlegend=False, margin={"t": 70, "b": 8})
    still: dict[str, Any] = {"showgrid": False, "showline": False, "fixedrange": True, "tickvals": list(range(n))}
    figure.update_xaxes(
        side="top",
        ticktext=[_short(name, max(14, 90 // max(n, 1)), lines=3) for name in names],
        automargin=True,
        **still,
    )
    figure.update_xaxes(tickfont={"size": 12}, tickangle=0)
    figure.update_yaxes(autorange="reversed", ticktext=[_short(name, 34) for name in names], **still)
    return figure


def _short(name: str, width: int, lines: int = 1) -> str:
    wrapped = textwrap.wrap(textwrap.shorten(name, width * lines, placeholder="…") or name[:width], width)[:lines]
    return "<br>".join(html.escape(line) for line in wrapped) or "—"
