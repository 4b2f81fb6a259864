"""How a figure changes: agreement of raters as they label, judging styles with more samples, rechecks over time."""

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
    Mark,
    describe,
    dots,
    error_bars,
    frame,
    measure_name,
    name_rows,
    plain,
    scatter,
    snapped,
    value_range,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from core.review.agreement import AspectAgreement
    from core.stats.pilot import Forecast, ForecastPoint

COLOURS = (BLUE, TEAL, AMBER, "#7C3AED", "#BE185D", "#4D7C0F", QUIET)
DECISIONS = {"holds": TEAL, "fallen": AMBER, "cannot be told": QUIET}
BAND = "rgba(11, 92, 173, 0.12)"
_SPREAD = 0.36
"""How far apart, at most, the lines of several styles stand around one number of samples."""


def growth_figure(agreement: AspectAgreement, *, n_expected: int) -> Figure:
    """Krippendorff's alpha of the first 1, 2, … doubly rated items; a whisker at the last where its interval is known.

    An undefined alpha is a gap.  `n_expected` items will be doubly rated in all: it fixes the horizontal axis.
    """
    items, alphas = [point.n_items for point in agreement.growth], [point.alpha for point in agreement.growth]
    line, hover = {"color": BLUE, "width": 2}, "alpha %{y:.3f} on %{x} items<extra></extra>"
    traces = [scatter(items, alphas, "lines+markers", line=line, marker={"size": 7}, hovertemplate=hover)]
    last = items[-1] if items else 0
    ends = [] if agreement.interval is None else [agreement.interval.low, agreement.interval.high]
    if ends and last:
        traces.append(scatter([last, last], ends, "lines", line=line, hoverinfo="skip"))
    return frame(
        traces,
        x="items rated by two or more",
        y=f"Krippendorff's alpha, {agreement.alpha_metric}",
        key="growth",
        height=300,
        legend=False,
        x_range=[0, max(n_expected, last, 1) + 1],
        y_range=snapped([*(alpha for alpha in alphas if alpha is not None), *ends]),
    )


def forecast_figure(forecasts: Sequence[tuple[str, Forecast]], *, measure: str) -> Figure:
    """Expected alignment against the samples of a score, with intervals; the calls stand under the samples.

    `forecasts` come with the names of their styles and share samples and calls; numbers of samples are evenly spaced,
    whatever lies between them.
    """
    traces, ends = [], []
    for number, (name, forecast) in enumerate(forecasts):
        shift = _SPREAD * (number - (len(forecasts) - 1) / 2) / max(1, len(forecasts) - 1)
        known = [(k, point, point.value) for k, point in enumerate(forecast.points) if point.value is not None]
        colour = COLOURS[number % len(COLOURS)]
        traces.append(
            scatter(
                [k + shift for k, _, _ in known],
                [value for _, _, value in known],
                "lines+markers",
                error_y=error_bars([(value, point.interval) for _, point, value in known], colour),
                name=plain(name, 60),
                line={"color": colour, "width": 2},
                marker={"color": colour, "size": 9},
                hovertext=[_forecast_words(name, point, value) for _, point, value in known],
            )
        )
        ends += [value for _, _, value in known]
        ends += [end for _, point, _ in known if point.interval for end in (point.interval.low, point.interval.high)]
    ticks = [f"{point.n}<br>{point.calls:,}" for point in forecasts[0][1].points] if forecasts else []
    figure = frame(
        traces,
        x="samples a score · calls for the whole golden set",
        y=measure,
        key="forecast",
        height=380,
        x_range=[-0.5, max(1, len(ticks)) - 0.5],
        y_range=snapped(ends),
    )
    figure.update_xaxes(tickvals=list(range(len(ticks))), ticktext=ticks)
    figure.update_layout(margin={"b": 76})
    return figure


def _forecast_words(name: str, point: ForecastPoint, value: float) -> str:
    samples = "1 sample" if point.n == 1 else f"{point.n} samples"
    ends = "" if point.interval is None else f" [{point.interval.low:.2f}, {point.interval.high:.2f}]"
    price = "" if point.cost is None else f", about ${point.cost:,.2f}"
    return f"<b>{plain(name, 80)}</b><br>{samples}: {value:.3f}{ends}<br>{point.calls:,} calls{price}"


def styles_figure(marks: Sequence[Mark], *, measure: str) -> Figure:
    """Each style's alignment with its interval, a line each, in the order given; the undefined is drawn as nothing."""
    trace = dots([(len(marks) - 1 - k, mark.alignment, mark.words) for k, mark in enumerate(marks)], BLUE, size=12)
    ends, height = value_range([mark.alignment for mark in marks]), 90 + 44 * max(1, len(marks))
    figure = frame([trace], x=measure, y="", key="styles", height=height, legend=False, x_range=ends)
    name_rows(figure, [plain(mark.name, 60) for mark in marks])
    return figure


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
    traces, dashed = [], {"color": BLUE, "width": 2, "dash": "dash"}
    words = [f"{plain(p.name, 60)}<br>{describe(p.now)}, n = {p.now.n}<br>{p.decision}" for p in points]
    for decision, colour in DECISIONS.items():
        own = [k for k, point in enumerate(points) if point.decision == decision and point.now.value is not None]
        if own:
            placed = [(k, points[k].now, words[k]) for k in own]
            traces.append(dots(placed, colour, upright=True, thickness=3, name=decision, size=13))
    traces.append(scatter([None], [None], "lines", name="exported with, and its 95 % interval", line=dashed))
    figure = frame(
        traces,
        x="",
        y=measure_name(then.statistic, then.level),
        key="rechecks",
        height=360,
        x_range=[-0.6, len(points) - 0.4],
        y_range=value_range([*(point.now for point in points), then]),
    )
    if then.interval is not None:
        figure.add_hrect(y0=then.interval.low, y1=then.interval.high, fillcolor=BAND, line_width=0, layer="below")
    if then.value is not None:
        figure.add_hline(y=then.value, line=dashed)
    names = [f"{point.when:%Y-%m-%d}<br>{plain(point.name, 22)}" for point in points]
    figure.update_xaxes(tickmode="array", tickvals=list(range(len(points))), ticktext=names)
    figure.update_yaxes(zeroline=True, zerolinecolor=INK)
    return figure
