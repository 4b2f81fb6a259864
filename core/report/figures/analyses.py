"""Ablations and analyses of a calibration: what each part of the judge brings, and what winning criteria looked like.

Points are candidates; a value with few of them under it shows them all, so that nobody takes three points for a law.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import Alignment, FloatArray, Interval
from core.report.figures.runs import Sides, both_sides
from core.report.figures.style import (
    AMBER,
    BLUE,
    GRID,
    INK,
    PALE,
    QUIET,
    TEAL,
    error_bars,
    frame,
    name_rows,
    plain,
    scatter,
    value_range,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Box, Figure, Scatter

LEAST_FOR_BOX = 5
"""Quartiles of fewer candidates than this say less than the points themselves."""

JITTER = 0.16  # of the distance between two groups
LEVEL = 0.05  # of p after Holm's correction, below which a difference is drawn as beyond chance
LEFT, RIGHT = (0.0, 0.55), (0.63, 1.0)


@dataclass(frozen=True)
class VariantMark:
    """A line of the ablation: alignments of a variant, and variant minus final judge on held-out (None: undefined)."""

    name: str
    calibration: Alignment
    held_out: Alignment
    difference: float | None = None
    interval: Interval | None = None
    p_holm: float | None = None
    n: int = 0


@dataclass(frozen=True, slots=True)
class Dot:
    """One candidate: its alignment `y` over `x` (exemplars, words); `group` decides its colour."""

    x: float
    y: float
    name: str
    group: str


@dataclass(frozen=True)
class Band:
    """A line and its 95 % band, all of one length; `low` and `high` are empty where there is no band."""

    x: tuple[float, ...]
    middle: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class MeanMark:
    """A group of candidates with its mean; None for a group without any."""

    name: str
    values: tuple[float, ...]
    mean: float | None
    interval: Interval | None


def ablation_figure(marks: Sequence[VariantMark], *, measure: str) -> Figure:
    """The variants below each other: alignment on both sides of the split, and what each loses or gains on held-out.

    The first of `marks` is the final judge, against which the others are measured; it has no difference of its own.
    """
    sides = [Sides(mark.name, mark.calibration, mark.held_out) for mark in marks]
    ends = value_range([alignment for mark in marks for alignment in (mark.calibration, mark.held_out)])
    traces = both_sides(sides, 0.16, -0.1) + _differences(marks)
    figure = frame(traces, x=measure, y="", key="ablation", height=130 + 64 * len(marks), x_range=ends)
    name_rows(figure, [plain(mark.name, 40) for mark in marks])
    figure.update_layout(
        xaxis={"domain": LEFT},
        xaxis2={
            "domain": RIGHT,
            "range": _around_zero(marks),
            "fixedrange": True,
            "title": {"text": "minus the final judge, held-out", "standoff": 8},
            "gridcolor": GRID,
            "zeroline": True,
            "zerolinecolor": QUIET,
            "zerolinewidth": 2,
        },
        yaxis={"tickfont": {"size": 15}},
    )
    return figure


def _differences(marks: Sequence[VariantMark]) -> list[Scatter]:
    """A diamond for each known difference, on the second axis: those beyond chance, then those within it."""
    known = [(len(marks) - 1 - k, mark, mark.difference) for k, mark in enumerate(marks) if mark.difference is not None]
    traces = []
    for name, colour, beyond in (("differs beyond chance", AMBER, True), ("within chance", QUIET, False)):
        own = [row for row in known if (row[1].p_holm is not None and row[1].p_holm < LEVEL) == beyond]
        if own:
            values = [value for _, _, value in own]
            bars = error_bars([(value, mark.interval) for _, mark, value in own], colour, thickness=2)
            trace = scatter(
                values,
                [place for place, _, _ in own],
                "markers+text",
                xaxis="x2",
                error_x=bars,
                name=name,
                text=[f"{value:+.3f}".replace("-", "−") for value in values],
                textposition="top center",
                textfont={"size": 14, "color": INK},
                marker={"color": colour, "size": 12, "symbol": "diamond"},
                hovertext=[_difference_words(mark, value) for _, mark, value in own],
                cliponaxis=False,
            )
            traces.append(trace)
    return traces


def _difference_words(mark: VariantMark, value: float) -> str:
    ends = "" if mark.interval is None else f" [{mark.interval.low:+.3f}, {mark.interval.high:+.3f}]"
    p = "—" if mark.p_holm is None else f"{mark.p_holm:.3f}"
    return f"<b>{plain(mark.name, 60)}</b><br>{value:+.3f}{ends}<br>p after Holm {p}, n = {mark.n:,}"


def _around_zero(marks: Sequence[VariantMark]) -> list[float]:
    """An axis with 0 in it, a little wider than all intervals, at least ± .05."""
    known = [0.05, -0.05]
    for mark in marks:
        if mark.difference is not None:
            known += [mark.difference] + ([mark.interval.low, mark.interval.high] if mark.interval else [])
    reach = max(known) - min(known)
    return [min(known) - 0.08 * reach, max(known) + 0.08 * reach]


# ── what the candidates looked like ──────────────────────────────────────────────────────────────────────────


def size_figure(dots: Sequence[Dot], *, measure: str) -> Figure:
    """Drafts by exemplar size: every draft a point, the median a bar, a box where there are at least 5 of them."""
    sizes = sorted({dot.x for dot in dots})
    traces, heads = [], []
    for place, size in enumerate(sizes):
        values = np.array([dot.y for dot in dots if dot.x == size])
        heads.append(f"<b>{size:g}</b><br>n = {values.size}")
        traces.append(_box(place, values) if values.size >= LEAST_FOR_BOX else _bar(place, float(np.median(values))))
    places = [sizes.index(dot.x) + _shift(k) for k, dot in enumerate(dots)]
    traces.append(_points(places, dots, "draft", "%{y:.3f}", BLUE))
    x, ends = "exemplars a draft was drawn from", _near([dot.y for dot in dots])
    figure = frame(traces, x=x, y=measure, key="by_size", height=360, legend=False, y_range=ends)
    _categories(figure, heads)
    return figure


def length_figure(dots: Sequence[Dot], band: Band | None, *, measure: str) -> Figure:
    """Alignment over the length of the criteria in words, with the regression line and the 95 % band of its mean."""
    traces = []
    if band is not None and band.low:
        around = ([*band.x, *band.x[::-1]], [*band.high, *band.low[::-1]])
        look: dict[str, Any] = {"fill": "toself", "fillcolor": "rgba(11, 92, 173, 0.13)", "line": {"width": 0}}
        traces.append(scatter(*around, "lines", hoverinfo="skip", name="95 % band of the mean", **look))
    if band is not None and band.middle:
        line = {"color": INK, "width": 2}
        traces.append(scatter(band.x, band.middle, "lines", line=line, name="least squares"))
    for group, colour in (("draft", BLUE), ("refinement", TEAL)):
        own = [dot for dot in dots if dot.group == group]
        if own:
            traces.append(_points([dot.x for dot in own], own, group, "%{y:.3f}, %{x} words", colour))
    words, values = [dot.x for dot in dots] or [0.0], [dot.y for dot in dots]
    margin = max(3.0, 0.05 * (max(words) - min(words)))
    return frame(
        traces,
        x="words in the criteria",
        y=measure,
        key="by_length",
        height=360,
        x_range=[min(words) - margin, max(words) + margin],
        y_range=_near([*values, *(_inside(band, values) if band else [])]),
    )


def pattern_figure(marks: Sequence[MeanMark], *, measure: str) -> Figure:
    """Groups of criteria: every one a point, the mean a diamond with its interval; an empty group keeps its place."""
    traces = []
    for place, mark in enumerate(marks):
        dots = [Dot(place, value, mark.name, mark.name) for value in mark.values]
        traces.append(_points([place + _shift(k) for k in range(len(dots))], dots, mark.name, "%{y:.3f}", PALE))
    known = [(place, mark.mean, mark.interval) for place, mark in enumerate(marks) if mark.mean is not None]
    means = scatter(
        [place for place, _, _ in known],
        [mean for _, mean, _ in known],
        error_y=error_bars([(mean, interval) for _, mean, interval in known], TEAL, thickness=2),
        marker={"color": TEAL, "size": 14, "symbol": "diamond"},
        name="mean with its 95 % interval",
        hoverinfo="skip",
    )
    ends = [end for mark in marks if mark.interval for end in (mark.interval.low, mark.interval.high)]
    near, x = _near([*(value for mark in marks for value in mark.values), *ends]), "pattern of the criteria"
    figure = frame([*traces, means], x=x, y=measure, key="by_pattern", height=360, legend=False, y_range=near)
    for place, mark in enumerate(marks):
        look: dict[str, Any] = {"showarrow": False, "font": {"size": 15}}
        if mark.mean is None:
            figure.add_annotation(x=place, y=0.5, yref="paper", xanchor="center", text="none", **look)
        else:
            text = f"<b>{mark.mean:.3f}</b>"
            figure.add_annotation(x=place + JITTER + 0.06, y=mark.mean, xanchor="left", text=text, **look)
    _categories(figure, [f"<b>{plain(mark.name, 30)}</b><br>n = {len(mark.values)}" for mark in marks])
    return figure


def _points(x: Sequence[float], dots: Sequence[Dot], name: str, where: str, colour: str) -> Scatter:
    return scatter(
        x,
        [dot.y for dot in dots],
        name=plain(name, 30),
        marker={"color": colour, "size": 10, "opacity": 0.75, "line": {"width": 1, "color": "white"}},
        hovertext=[plain(dot.name, 60) for dot in dots],
        hovertemplate=f"<b>%{{hovertext}}</b><br>{where}<extra></extra>",
    )


def _box(place: int, values: FloatArray) -> Box:
    from plotly.graph_objects import Box

    low, middle, high = np.percentile(values, [25, 50, 75])
    quartiles: dict[str, Any] = {"q1": [low], "median": [middle], "q3": [high]}
    return Box(
        x=[place],
        **quartiles,
        lowerfence=[values.min()],
        upperfence=[values.max()],
        width=0.6,
        fillcolor="rgba(195, 203, 213, 0.45)",
        line={"color": QUIET, "width": 2},
        hoverinfo="y",
    )


def _bar(place: int, value: float) -> Scatter:
    line, hover = {"color": QUIET, "width": 3}, "median %{y:.3f}<extra></extra>"
    return scatter([place - 0.3, place + 0.3], [value, value], "lines", line=line, hovertemplate=hover)


def _shift(k: int) -> float:
    """Steps sideways that keep points of one group apart: the golden ratio spreads any number of them evenly."""
    return JITTER * (2.0 * math.modf(0.5 + k * 0.6180339887)[0] - 1.0)


def _categories(figure: Figure, names: Sequence[str]) -> None:
    ends = [-0.6, max(len(names), 1) - 0.4]
    look: dict[str, Any] = {"range": ends, "automargin": True, "title": {"standoff": 12}}
    figure.update_xaxes(tickvals=list(range(len(names))), ticktext=list(names), **look)


def _near(values: Sequence[float]) -> list[float]:
    """Ends of an axis close around the values: what is compared is their spread, not their distance from 0."""
    known = list(values) or [0.0]
    reach = max(max(known) - min(known), 0.1)
    return [max(min(known) - 0.1 * reach, -1.02), min(max(known) + 0.12 * reach, 1.02)]


def _inside(band: Band, values: Sequence[float]) -> list[float]:
    """The ends of the band, as far as half the spread of the points: a band of four points may reach anywhere."""
    if not band.low:
        return []
    reach = max(max(values) - min(values), 0.1) / 2
    return [max(min(band.low), min(values) - reach), min(max(band.high), max(values) + reach)]
