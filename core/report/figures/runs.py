"""Calibrations as they run, and what they came to: every candidate, the race, both sides of the split, the labels.

Every figure names its statistic and level, keeps its axes while a run grows (so that nothing jumps), draws an
undefined alignment as nothing rather than as 0, and escapes all text, for plotly reads a part of HTML in labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import Alignment, AspectLabels, FloatArray, Scale
from core.report.figures.style import (
    AMBER,
    BLUE,
    PALE,
    QUIET,
    TEAL,
    Mark,
    describe,
    dots,
    frame,
    name_rows,
    plain,
    scatter,
    snapped,
    value_range,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter

    from core.calibration.records import LeaderboardSnapshot, TracePoint

MAX_BINS = 20
_COLOURS = {"chosen": TEAL, "kept": BLUE, "not finished": BLUE}
_SYMBOLS = {"chosen": "diamond", "rejected": "circle-open", "not finished": "circle-open"}
_ORDER = ("stopped", "rejected", "not finished", "kept", "chosen")


@dataclass(frozen=True, slots=True)
class Race:
    """The way of one candidate."""

    name: str
    group: str
    trace: tuple[TracePoint, ...]


@dataclass(frozen=True, slots=True)
class Sides:
    """A judge on both sides of the split: calibration chose it and flatters, held-out did not."""

    name: str
    calibration: Alignment
    held_out: Alignment


def candidates_figure(marks: Sequence[Mark], baseline: Alignment | None, *, measure: str, slots: int = 0) -> Figure:
    """Alignment with its interval for every candidate, in the order given (that of their making, so none moves).

    `slots` is how many candidates are expected in all: it fixes the horizontal axis from the start.
    """
    traces = []
    for group in dict.fromkeys(mark.group for mark in marks):
        placed = [(i, mark.alignment, mark.words) for i, mark in enumerate(marks, 1) if mark.group == group]
        look: dict[str, Any] = {"size": 9, "symbol": _SYMBOLS.get(group, "circle"), "whisker": _line_colour(group)}
        traces.append(dots(placed, _COLOURS.get(group, QUIET), upright=True, name=group, **look))
    figure = frame(
        traces,
        x="candidates, in the order they were drafted",
        y=measure,
        key="candidates",
        x_range=[0, max(slots, len(marks), 1) + 1],
        y_range=value_range([mark.alignment for mark in marks] + [baseline]),
    )
    _baseline_line(figure, baseline)
    return figure


def race_figure(races: Sequence[Race], baseline: Race | None, *, measure: str) -> Figure:
    """How the ranking came about: a line per candidate over the items scored, ending where it dropped out.

    Lines of one group are one trace with gaps, which keeps hundreds of them quick.
    """
    groups = sorted({race.group for race in races}, key=lambda group: _ORDER.index(group) if group in _ORDER else 0)
    traces = []
    for group in groups:
        lines, chosen = [race for race in races if race.group == group], group == "chosen"
        traces.append(
            scatter(
                [x for race in lines for x in (*(point.items for point in race.trace), None)],
                [y for race in lines for y in (*(point.value for point in race.trace), None)],
                "lines+markers",
                name=group,
                line={"color": _line_colour(group), "width": 3 if chosen else 1.5},
                marker={"size": 7 if chosen else 5, "color": _line_colour(group)},
                hovertext=[plain(f"{race.name} ({group})", 60) for race in lines for _ in (*race.trace, None)],
                hovertemplate="<b>%{hovertext}</b><br>%{y:.3f} on %{x:,} items<extra></extra>",
            )
        )
    if baseline is not None:
        hover = "no criteria<br>%{y:.3f} on %{x:,} items<extra></extra>"
        line = {"dash": "dash", "color": AMBER, "width": 2}
        x, y = [point.items for point in baseline.trace], [point.value for point in baseline.trace]
        traces.append(scatter(x, y, "lines", name="no criteria", line=line, hovertemplate=hover))
    drawn = [point for race in (*races, *([baseline] if baseline else [])) for point in race.trace]
    most = max([1, *(point.items for point in drawn)])
    ends = snapped([point.value for point in drawn if point.value is not None])
    title = "calibration items scored"
    return frame(traces, x=title, y=measure, key="race", height=380, x_range=[0, most * 1.03], y_range=ends)


def best_so_far_figure(standing: LeaderboardSnapshot, baseline: Alignment | None, *, measure: str) -> Figure:
    """Best complete candidate against calls spent, a step line; the judge without criteria as a dashed line."""
    calls, values = [best.calls for best in standing.curve], [best.value for best in standing.curve]
    if calls and standing.calls > calls[-1]:  # nothing has overtaken it since
        calls, values = [*calls, standing.calls], [*values, values[-1]]
    line = scatter(
        calls,
        values,
        "lines+markers",
        line={"shape": "hv", "color": BLUE, "width": 3},
        marker={"size": 8, "color": BLUE},
        name="best so far",
        hovertemplate="%{y:.3f} after %{x:,} calls<extra></extra>",
    )
    known = [*values, *([baseline.value] if baseline is not None and baseline.value is not None else [])]
    most = max(standing.calls_expected, standing.calls, *calls, 1)
    figure = frame([line], x="calls", y=measure, key="curve", x_range=[0, most * 1.02], y_range=snapped(known))
    _baseline_line(figure, baseline)
    return figure


def sides_figure(rows: Sequence[Sides], *, measure: str) -> Figure:
    """Calibration beside held-out, with intervals, a line for each judge: how far the first flatters."""
    ends = value_range([alignment for row in rows for alignment in (row.calibration, row.held_out)])
    figure = frame(
        both_sides(rows, 0.14, -0.14), x=measure, y="", key="sides", height=110 + 62 * len(rows), x_range=ends
    )
    name_rows(figure, [plain(row.name, 40) for row in rows])
    return figure


def both_sides(rows: Sequence[Sides], above: float, below: float) -> list[Scatter]:
    """Calibration as rings a little `above` the line of each row, held-out as dots `below` it."""
    looks = ("calibration", QUIET, "circle-open", above), ("held-out", BLUE, "circle", below)
    traces = []
    for part, colour, symbol, shift in looks:
        alignments = [row.calibration if part == "calibration" else row.held_out for row in rows]
        places = [len(rows) - 1 - i + shift for i in range(len(rows))]
        words = [f"{part}: {describe(alignment)}, n = {alignment.n:,}" for alignment in alignments]
        placed = list(zip(places, alignments, words, strict=True))
        traces.append(dots(placed, colour, name=part, size=12, symbol=symbol, line={"width": 2, "color": colour}))
    return traces


def labels_figure(labels: AspectLabels) -> Figure:
    """How the labels of one aspect spread over its scale: a bar per value, or per bin when there are many."""
    from plotly.graph_objects import Bar

    values = np.array([v for v in labels.values if v is not None], dtype=np.float64)
    edges = _bin_edges(values, labels.scale)
    counts, _ = np.histogram(values, bins=edges)
    centres, width = (edges[:-1] + edges[1:]) / 2, (edges[1] - edges[0]) * 0.92
    hover = "%{y} items at %{x:.3g}<extra></extra>"
    return frame(
        [Bar(x=centres, y=counts, marker={"color": BLUE}, width=width, hovertemplate=hover)],
        x=f"{plain(labels.aspect, 40)} ({labels.scale})",
        y="items",
        key=labels.aspect,
        height=220,
        legend=False,
        x_range=[edges[0], edges[-1]],
        y_range=[0, max(1, int(counts.max())) * 1.08],
    )


def _line_colour(group: str) -> str:
    """Those that are out of the race keep quiet."""
    return _COLOURS.get(group, PALE)


def _baseline_line(figure: Figure, baseline: Alignment | None) -> None:
    if baseline is not None and baseline.value is not None:
        figure.add_hline(
            y=baseline.value,
            line={"dash": "dash", "color": AMBER, "width": 2},
            annotation={"text": f"no criteria {baseline.value:.3f}", "font": {"color": AMBER, "size": 13}},
            annotation_position="bottom right",
        )


def _bin_edges(values: FloatArray, scale: Scale) -> FloatArray:
    """Equal bins over the scale: centred on the steps where labels are steps, else at most `MAX_BINS`."""
    span = scale.high - scale.low
    step = scale.step or (1.0 if span >= 1 and np.all(np.mod(values, 1) == 0) else None)
    if span <= 0:
        return np.array([scale.low - 0.5, scale.low + 0.5])
    if step and span / step + 1 <= MAX_BINS:
        return np.arange(scale.low - step / 2, scale.high + step, step)
    return np.linspace(scale.low, scale.high, MAX_BINS + 1)
