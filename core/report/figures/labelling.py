"""How agreement of raters grew as a labelling pass went on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.records import Interval
from core.report.figures.style import BLUE, snapped, style

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True, slots=True)
class Growth:
    """Alpha (`alphas`, None where undefined) of the first `items` doubly rated items; both of one length."""

    items: tuple[int, ...]
    alphas: tuple[float | None, ...]


def growth_figure(growth: Growth, interval: Interval | None, *, metric: str, n_expected: int) -> Figure:
    """Krippendorff's alpha of the first 1, 2, … doubly rated items; a whisker at the last where `interval` is known.

    An undefined alpha is a gap.  `n_expected` items will be doubly rated in all: it fixes the horizontal axis.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=growth.items,
            y=growth.alphas,
            mode="lines+markers",
            line={"color": BLUE, "width": 2},
            marker={"size": 7},
            hovertemplate="alpha %{y:.3f} on %{x} items<extra></extra>",
            showlegend=False,
        )
    )
    last = growth.items[-1] if growth.items else 0
    if interval is not None and last:
        figure.add_trace(
            go.Scatter(
                x=[last, last],
                y=[interval.low, interval.high],
                mode="lines",
                line={"color": BLUE, "width": 2},
                hoverinfo="skip",
                showlegend=False,
            )
        )
    known = [value for value in growth.alphas if value is not None]
    style(
        figure,
        x="items rated by two or more",
        y=f"Krippendorff's alpha, {metric}",
        key="growth",
        height=300,
        x_range=[0, max(n_expected, last, 1) + 1],
        y_range=snapped(known if interval is None else [*known, interval.low, interval.high]),
    )
    return figure
