"""Results → plotly figures.  Pure: records in, a figure out; no screen, no store; plotly is imported when used.

Every figure names its statistic and level, keeps its axes while a run grows (so that nothing jumps), draws an
undefined alignment as nothing rather than as 0, and escapes all text, for plotly reads a part of HTML in labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import Alignment, AspectLabels, Scale
from core.report.figures.style import (
    AMBER,
    BLUE,
    PALE,
    QUIET,
    TEAL,
    describe,
    dots,
    name_rows,
    plain,
    snapped,
    style,
    value_range,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MAX_BINS = 20


@dataclass(frozen=True, slots=True)
class Mark:
    """One criteria on the candidates figure; `group` decides its colour, `detail` stands in the hover box."""

    name: str
    alignment: Alignment | None
    group: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Race:
    """The way of one candidate: its alignment (`values`, None where undefined) once that many `items` were scored."""

    name: str
    group: str
    items: tuple[int, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """Best alignment so far (`values`) after that many calls; both of one length, calls not decreasing.

    `calls_now` have been spent by now, of `calls_expected`.
    """

    calls: tuple[int, ...]
    values: tuple[float, ...]
    calls_expected: int
    calls_now: int = 0


@dataclass(frozen=True, slots=True)
class Sides:
    """A judge's alignment on calibration and on held-out; None is undefined or not there yet."""

    name: str
    calibration: Alignment | None
    held_out: Alignment | None


def candidates_figure(marks: Sequence[Mark], baseline: Alignment | None, *, measure: str, slots: int = 0) -> Figure:
    """Alignment with its interval for every candidate, in the order given (that of their making, so none moves).

    `slots` is how many candidates are expected in all: it fixes the horizontal axis from the start.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    for group in dict.fromkeys(mark.group for mark in marks):
        placed = [(i, mark.alignment, _hover(mark)) for i, mark in enumerate(marks, 1) if mark.group == group]
        look: dict[str, Any] = {"size": 9, "symbol": _group_symbol(group)}
        colour, whisker = _group_colour(group), _whisker_colour(group)
        figure.add_trace(dots(placed, colour, upright=True, whisker=whisker, name=group, **look))
    _baseline_line(figure, baseline)
    style(
        figure,
        x="candidates, in the order they were drafted",
        y=measure,
        key="candidates",
        x_range=[0, max(slots, len(marks), 1) + 1],
        y_range=value_range([mark.alignment for mark in marks] + [baseline]),
    )
    return figure


def race_figure(races: Sequence[Race], baseline: Race | None, *, measure: str) -> Figure:
    """How the ranking came about: a line per candidate over the items scored, ending where it dropped out.

    Lines of one group are one trace with gaps, which keeps hundreds of them quick.
    """
    import plotly.graph_objects as go

    figure = go.Figure()
    order = ("stopped", "rejected", "not finished", "kept", "chosen")
    for group in sorted({race.group for race in races}, key=lambda one: order.index(one) if one in order else 0):
        lines = [race for race in races if race.group == group]
        figure.add_trace(
            go.Scatter(
                x=[x for race in lines for x in (*race.items, None)],
                y=[y for race in lines for y in (*race.values, None)],
                mode="lines+markers",
                name=group,
                line={"color": _whisker_colour(group), "width": 3 if group == "chosen" else 1.5},
                marker={"size": 7 if group == "chosen" else 5, "color": _whisker_colour(group)},
                hovertext=[plain(f"{race.name} ({group})", 60) for race in lines for _ in (*race.items, None)],
                hovertemplate="<b>%{hovertext}</b><br>%{y:.3f} on %{x:,} items<extra></extra>",
            )
        )
    if baseline is not None:
        dashed = {"dash": "dash", "color": AMBER, "width": 2}
        figure.add_trace(
            go.Scatter(
                x=baseline.items,
                y=baseline.values,
                mode="lines",
                name="no criteria",
                line=dashed,
                hovertemplate="no criteria<br>%{y:.3f} on %{x:,} items<extra></extra>",
            )
        )
    drawn = [*races, *([baseline] if baseline else [])]
    most = max([1, *(x for race in drawn for x in race.items)])
    style(
        figure,
        x="calibration items scored",
        y=measure,
        key="race",
        height=380,
        x_range=[0, most * 1.03],
        y_range=snapped([value for race in drawn for value in race.values if value is not None]),
    )
    return figure


def best_so_far_figure(curve: Curve, baseline: Alignment | None, *, measure: str) -> Figure:
    """Best complete candidate against calls spent, a step line; the judge without criteria as a dashed line."""
    import plotly.graph_objects as go

    calls, values = list(curve.calls), list(curve.values)
    if calls and curve.calls_now > calls[-1]:  # it still stands
        calls, values = [*calls, curve.calls_now], [*values, values[-1]]
    figure = go.Figure(
        go.Scatter(
            x=calls,
            y=values,
            mode="lines+markers",
            line={"shape": "hv", "color": BLUE, "width": 3},
            marker={"size": 8, "color": BLUE},
            name="best so far",
            hovertemplate="%{y:.3f} after %{x:,} calls<extra></extra>",
        )
    )
    _baseline_line(figure, baseline)
    known = [*values, *([baseline.value] if baseline is not None and baseline.value is not None else [])]
    most = max(curve.calls_expected, *calls, 1)
    style(figure, x="calls", y=measure, key="curve", x_range=[0, most * 1.02], y_range=snapped(known))
    return figure


def sides_figure(rows: Sequence[Sides], *, measure: str) -> Figure:
    """Calibration beside held-out, with intervals, a line for each judge: how far the first flatters."""
    import plotly.graph_objects as go

    figure = go.Figure()
    both = ("calibration", QUIET, "circle-open", 0.14), ("held-out", BLUE, "circle", -0.14)
    for part, colour, symbol, shift in both:
        found = [row.calibration if part == "calibration" else row.held_out for row in rows]
        placed = [(len(rows) - 1 - i + shift, one, f"{part}: {describe(one)}") for i, one in enumerate(found)]
        ring = {"width": 2, "color": colour}
        figure.add_trace(dots(placed, colour, name=part, size=12, symbol=symbol, line=ring))
    ends = value_range([one for row in rows for one in (row.calibration, row.held_out)])
    style(figure, x=measure, y="", key="sides", height=110 + 62 * len(rows), x_range=ends)
    name_rows(figure, [plain(row.name, 40) for row in rows])
    return figure


def labels_figure(labels: AspectLabels) -> Figure:
    """How the labels of one aspect spread over its scale: a bar per value, or per bin when there are many."""
    import plotly.graph_objects as go

    values = np.array([v for v in labels.values if v is not None], dtype=np.float64)
    edges = _bin_edges(values, labels.scale)
    counts, _ = np.histogram(values, bins=edges)
    centres = (edges[:-1] + edges[1:]) / 2
    figure = go.Figure(
        go.Bar(
            x=centres,
            y=counts,
            marker={"color": BLUE},
            width=(edges[1] - edges[0]) * 0.92,
            hovertemplate="%{y} items at %{x:.3g}<extra></extra>",
        )
    )
    style(
        figure,
        x=f"{plain(labels.aspect, 40)} ({labels.scale})",
        y="items",
        key=labels.aspect,
        height=220,
        legend=False,
        x_range=[edges[0], edges[-1]],
        y_range=[0, max(1, int(counts.max())) * 1.08],
    )
    return figure


def _group_colour(group: str) -> str:
    return {"chosen": TEAL, "kept": BLUE, "not finished": BLUE}.get(group, QUIET)


def _whisker_colour(group: str) -> str:
    """Those that are out of the race keep quiet."""
    return _group_colour(group) if _group_colour(group) != QUIET else PALE


def _group_symbol(group: str) -> str:
    return {"chosen": "diamond", "rejected": "circle-open", "not finished": "circle-open"}.get(group, "circle")


def _hover(mark: Mark) -> str:
    n = "" if mark.alignment is None else f"<br>n = {mark.alignment.n:,}"
    return f"<b>{plain(mark.name, 60)}</b> ({plain(mark.group, 20)})<br>{describe(mark.alignment)}{n}" + (
        f"<br>{plain(mark.detail, 280)}" if mark.detail else ""
    )


def _baseline_line(figure: Figure, baseline: Alignment | None) -> None:
    if baseline is None or baseline.value is None:
        return
    figure.add_hline(
        y=baseline.value,
        line={"dash": "dash", "color": AMBER, "width": 2},
        annotation={"text": f"no criteria {baseline.value:.3f}", "font": {"color": AMBER, "size": 13}},
        annotation_position="bottom right",
    )


def _bin_edges(values: np.ndarray[Any, np.dtype[np.float64]], scale: Scale) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Equal bins over the scale: centred on the steps where labels are steps, else at most `MAX_BINS`."""
    span = scale.high - scale.low
    step = scale.step or (1.0 if span >= 1 and np.all(np.mod(values, 1) == 0) else None)
    if span <= 0:
        return np.array([scale.low - 0.5, scale.low + 0.5])
    if step and span / step + 1 <= MAX_BINS:
        return np.arange(scale.low - step / 2, scale.high + step, step)
    return np.linspace(scale.low, scale.high, MAX_BINS + 1)
