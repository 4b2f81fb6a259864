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
from core.report.figures.style import (
    AMBER,
    BLUE,
    GRID,
    INK,
    PALE,
    QUIET,
    TEAL,
    describe,
    dots,
    error_bars,
    name_rows,
    plain,
    style,
    value_range,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LEAST_FOR_BOX = 5
"""Quartiles of fewer candidates than this say less than the points themselves."""

JITTER = 0.16  # of the distance between two groups
LEVEL = 0.05  # of p after Holm's correction, below which a difference is drawn as told from chance
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
    import plotly.graph_objects as go

    figure = go.Figure()
    places = list(range(len(marks) - 1, -1, -1))
    both = ("calibration", QUIET, "circle-open", 0.16), ("held-out", BLUE, "circle", -0.1)
    for part, colour, symbol, shift in both:
        found = [mark.calibration if part == "calibration" else mark.held_out for mark in marks]
        placed = [
            (place + shift, one, f"{part}: {describe(one)}, n = {one.n:,}")
            for place, one in zip(places, found, strict=True)
        ]
        ring = {"width": 2, "color": colour}
        figure.add_trace(dots(placed, colour, name=part, size=12, symbol=symbol, line=ring))
    _add_differences(figure, list(zip(places, marks, strict=True)))
    ends = value_range([one for mark in marks for one in (mark.calibration, mark.held_out)])
    style(figure, x=measure, y="", key="ablation", height=130 + 64 * len(marks), x_range=ends)
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


def _add_differences(figure: Figure, placed: Sequence[tuple[int, VariantMark]]) -> None:
    import plotly.graph_objects as go

    for name, colour, wanted in (("differs beyond chance", AMBER, True), ("within chance", QUIET, False)):
        own = [
            (place, mark, mark.difference)
            for place, mark in placed
            if mark.difference is not None and (mark.p_holm is not None and mark.p_holm < LEVEL) == wanted
        ]
        if not own:
            continue
        figure.add_trace(
            go.Scatter(
                x=[value for _, _, value in own],
                y=[place for place, _, _ in own],
                xaxis="x2",
                error_x=error_bars([(value, mark.interval) for _, mark, value in own], colour, thickness=2),
                mode="markers+text",
                name=name,
                text=[f"{value:+.3f}".replace("-", "−") for _, _, value in own],
                textposition="top center",
                textfont={"size": 14, "color": INK},
                marker={"color": colour, "size": 12, "symbol": "diamond"},
                hovertext=[_difference_words(mark, value) for _, mark, value in own],
                hoverinfo="text",
                cliponaxis=False,
            )
        )


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
    import plotly.graph_objects as go

    figure = go.Figure()
    sizes = sorted({dot.x for dot in dots})
    for place, size in enumerate(sizes):
        own = [dot for dot in dots if dot.x == size]
        values = np.array([dot.y for dot in own])
        if len(own) >= LEAST_FOR_BOX:
            figure.add_trace(_box(place, values))
        else:
            figure.add_trace(_bar(place, float(np.median(values))))
    placed = [(sizes.index(dot.x) + _shift(k), dot) for k, dot in enumerate(dots)]
    figure.add_trace(_points([x for x, _ in placed], [dot for _, dot in placed], "draft", "%{y:.3f}", BLUE))
    ends = _near([dot.y for dot in dots])
    style(
        figure,
        x="exemplars a draft was drawn from",
        y=measure,
        key="by_size",
        height=360,
        legend=False,
        y_range=ends,
    )
    counts = [sum(dot.x == size for dot in dots) for size in sizes]
    _categories(figure, [f"<b>{size:g}</b><br>n = {n}" for size, n in zip(sizes, counts, strict=True)])
    return figure


def length_figure(dots: Sequence[Dot], band: Band | None, *, measure: str) -> Figure:
    """Alignment over the length of the criteria in words, with the regression line and the 95 % band of its mean."""
    import plotly.graph_objects as go

    figure = go.Figure()
    if band is not None and band.low:
        figure.add_trace(
            go.Scatter(
                x=[*band.x, *band.x[::-1]],
                y=[*band.high, *band.low[::-1]],
                fill="toself",
                fillcolor="rgba(11, 92, 173, 0.13)",
                line={"width": 0},
                hoverinfo="skip",
                name="95 % band of the mean",
            )
        )
    if band is not None and band.middle:
        line = {"color": INK, "width": 2}
        figure.add_trace(go.Scatter(x=band.x, y=band.middle, mode="lines", line=line, name="least squares"))
    for group, colour in (("draft", BLUE), ("refinement", TEAL)):
        own = [dot for dot in dots if dot.group == group]
        if own:
            figure.add_trace(_points([dot.x for dot in own], own, group, "%{y:.3f}, %{x} words", colour))
    words, drawn = [dot.x for dot in dots] or [0.0], [dot.y for dot in dots]
    margin = max(3.0, 0.05 * (max(words) - min(words)))
    style(
        figure,
        x="words in the criteria",
        y=measure,
        key="by_length",
        height=360,
        x_range=[min(words) - margin, max(words) + margin],
        y_range=_near([*drawn, *(_inside(band, drawn) if band else [])]),
    )
    return figure


def pattern_figure(marks: Sequence[MeanMark], *, measure: str) -> Figure:
    """Groups of criteria: every one a point, the mean a diamond with its interval; an empty group keeps its place."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for place, mark in enumerate(marks):
        dots = [Dot(place, value, mark.name, mark.name) for value in mark.values]
        figure.add_trace(_points([place + _shift(k) for k in range(len(dots))], dots, mark.name, "%{y:.3f}", PALE))
    known = [(place, mark, mark.mean) for place, mark in enumerate(marks) if mark.mean is not None]
    figure.add_trace(
        go.Scatter(
            x=[place for place, _, _ in known],
            y=[mean for _, _, mean in known],
            error_y=error_bars([(mean, mark.interval) for _, mark, mean in known], TEAL, thickness=2),
            mode="markers",
            marker={"color": TEAL, "size": 14, "symbol": "diamond"},
            name="mean with its 95 % interval",
            hoverinfo="skip",
        )
    )
    for place, mark in enumerate(marks):
        text = "none" if mark.mean is None else f"<b>{mark.mean:.3f}</b>"
        shown = {"text": text, "showarrow": False, "xanchor": "left", "font": {"size": 15}}
        figure.add_annotation(x=place + JITTER + 0.06, y=0.5 if mark.mean is None else mark.mean, **shown)
        if mark.mean is None:
            figure.layout.annotations[-1].update(x=place, xanchor="center", yref="paper")
    ends = [end for mark in marks if mark.interval for end in (mark.interval.low, mark.interval.high)]
    near = _near([*(v for mark in marks for v in mark.values), *ends])
    style(figure, x="pattern of the criteria", y=measure, key="by_pattern", height=360, legend=False, y_range=near)
    _categories(figure, [f"<b>{plain(mark.name, 30)}</b><br>n = {len(mark.values)}" for mark in marks])
    return figure


def _points(x: Sequence[float], dots: Sequence[Dot], name: str, told: str, colour: str) -> Any:
    import plotly.graph_objects as go

    return go.Scatter(
        x=list(x),
        y=[dot.y for dot in dots],
        mode="markers",
        name=plain(name, 30),
        marker={"color": colour, "size": 10, "opacity": 0.75, "line": {"width": 1, "color": "white"}},
        hovertext=[plain(dot.name, 60) for dot in dots],
        hovertemplate=f"<b>%{{hovertext}}</b><br>{told}<extra></extra>",
    )


def _box(place: int, values: FloatArray) -> Any:
    import plotly.graph_objects as go

    low, middle, high = np.percentile(values, [25, 50, 75])
    return go.Box(
        x=[place],
        q1=[low],
        median=[middle],
        q3=[high],
        lowerfence=[values.min()],
        upperfence=[values.max()],
        width=0.6,
        fillcolor="rgba(195, 203, 213, 0.45)",
        line={"color": QUIET, "width": 2},
        hoverinfo="y",
    )


def _bar(place: int, value: float) -> Any:
    import plotly.graph_objects as go

    return go.Scatter(
        x=[place - 0.3, place + 0.3],
        y=[value, value],
        mode="lines",
        line={"color": QUIET, "width": 3},
        hovertemplate="median %{y:.3f}<extra></extra>",
    )


def _shift(k: int) -> float:
    """Steps sideways that keep points of one group apart: the golden ratio spreads any number of them evenly."""
    return JITTER * (2.0 * math.modf(0.5 + k * 0.6180339887)[0] - 1.0)


def _categories(figure: Figure, names: Sequence[str]) -> None:
    figure.update_xaxes(
        tickvals=list(range(len(names))),
        ticktext=list(names),
        range=[-0.6, max(len(names), 1) - 0.4],
        automargin=True,
        title={"standoff": 12},
    )


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
