"""Judges side by side: whiskers with the human ceiling, the matrix of tests, people against judge, scores as labels;
and fusions: what is lost without each part, what each part counts for, and how alike the parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import Alignment, FloatArray, Interval, JudgeKind, Scale
from core.report.figures.style import (
    AMBER,
    BLUE,
    INK,
    PALE,
    QUIET,
    TEAL,
    describe,
    dots,
    error_bars,
    frame,
    name_rows,
    pairs_matrix,
    plain,
    scatter,
    stacked,
    value_range,
)
from core.stats.claims import p_figure

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from core.comparison.curve import ScoreBin

PURPLE, ROSE = "#7A3E9D", "#9F1239"
BETTER, WORSE, ALIKE = "#BFE3DC", "#F6D7B8", "#EEF1F5"
KIND_COLOURS: dict[JudgeKind, str] = {
    "calibrated": TEAL,
    "no criteria": AMBER,
    "style": PURPLE,
    "imported": BLUE,
    "metric": QUIET,
    "repeval": ROSE,
    "fused": INK,
}
JITTER = 0.12  # of a step, so that equal labels do not hide each other


@dataclass(frozen=True, slots=True)
class JudgeMark:
    """One line of the leaderboard; `kind` None is a printed number of somebody else's, drawn hollow.

    `like_person` is the judge measured as a person is, against the mean of the other raters: what stands on the same
    footing as the people's band.
    """

    name: str
    kind: JudgeKind | None
    alignment: Alignment
    detail: str = ""
    like_person: Alignment | None = None


@dataclass(frozen=True)
class PairCells:
    """Row minus column in alignment, as (n, n) arrays with NaN where undefined; `words` say each cell in full."""

    names: tuple[str, ...]
    difference: FloatArray
    p: FloatArray
    words: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Points:
    """Items with label and score: (n,) each, with the item ids in the same order; `positions` come back on a click."""

    item_ids: tuple[str, ...]
    positions: tuple[int, ...]
    labels: FloatArray
    scores: FloatArray


def leaderboard_figure(marks: Sequence[JudgeMark], ceiling: Alignment | None, *, measure: str) -> Figure:
    """Every judge with its interval on one axis, best on top, people among themselves as a band behind."""
    places, traces = _places(marks), []
    for kind in dict.fromkeys(mark.kind for mark in marks):
        own = [(place, mark) for place, mark in zip(places, marks, strict=True) if mark.kind == kind]
        placed = [(place, mark.alignment, _mark_words(mark)) for place, mark in own]
        look: dict[str, Any] = {"size": 14 if kind else 11, "symbol": "circle" if kind else "diamond-open"}
        traces.append(dots(placed, QUIET if kind is None else KIND_COLOURS[kind], thickness=3, **look))
    likes = [(place - 0.55, mark.like_person, mark.name) for place, mark in zip(places, marks, strict=True)]
    if any(like is not None and like.value is not None for _, like, _ in likes):
        against = "against the mean of the other raters, as a person is"
        words = [f"<b>{plain(name, 60)}</b><br>{against}<br>{describe(like)}" for _, like, name in likes]
        below = [(place, like, hover) for (place, like, _), hover in zip(likes, words, strict=True)]
        traces.append(dots(below, INK, thickness=1, size=9, symbol="circle-open", line={"width": 2}))
    top = max(places, default=0)
    figure = frame(
        traces,
        x=measure,
        y="",
        key="leaderboard",
        height=160 + 27 * top,
        legend=False,
        x_range=value_range([*(mark.alignment for mark in marks), *(mark.like_person for mark in marks), ceiling]),
        y_range=[-2.2, top + 1.2],
    )
    _say_undefined(figure, marks, places)
    _ceiling_band(figure, ceiling)
    figure.update_xaxes(title={"font": {"size": 14}})
    names = [_name_and_kind(mark) for mark in marks]
    figure.update_yaxes(tickvals=places, ticktext=names, showgrid=False, zeroline=False)
    return figure


def _places(marks: Sequence[JudgeMark]) -> list[int]:
    """Heights on the vertical axis, the first on top: two units below a judge, one below a printed number."""
    steps = [1 if mark.kind is None else 2 for mark in marks]
    return [sum(steps[k:-1]) for k in range(len(marks))]


def _name_and_kind(mark: JudgeMark) -> str:
    if mark.kind is None:
        return plain(mark.name, 30)
    return (
        f"{stacked(mark.name, 24)}<br><span style='font-size:12px;color:{KIND_COLOURS[mark.kind]}'>{mark.kind}</span>"
    )


def _mark_words(mark: JudgeMark) -> str:
    n = f"<br>n = {mark.alignment.n:,}" if mark.kind else ""
    detail = f"<br>{plain(mark.detail, 280)}" if mark.detail else ""
    return f"<b>{plain(mark.name, 60)}</b><br>{describe(mark.alignment)}{n}{detail}"


def _say_undefined(figure: Figure, marks: Sequence[JudgeMark], places: Sequence[int]) -> None:
    """A dash with its reason where a judge has no value: it is not a judge at 0."""
    look: dict[str, Any] = {"showarrow": False, "font": {"color": QUIET, "size": 13}}
    for place, mark in zip(places, marks, strict=True):
        if mark.alignment.value is None:
            text = f"— {plain(mark.alignment.reason, 90)}"
            figure.add_annotation(x=0.01, xref="paper", xanchor="left", y=place, text=text, **look)


def _ceiling_band(figure: Figure, ceiling: Alignment | None) -> None:
    if ceiling is None or ceiling.value is None:
        return
    if ceiling.interval is not None:
        ends = {"x0": ceiling.interval.low, "x1": ceiling.interval.high}
        figure.add_vrect(**ends, fillcolor=PALE, opacity=0.35, line_width=0, layer="below")
    figure.add_vline(x=ceiling.value, line={"dash": "dash", "color": INK, "width": 2})
    figure.add_annotation(
        x=ceiling.value,
        y=-1.6,
        text=f"a person: {ceiling.value:.2f}",
        showarrow=False,
        bgcolor="white",
        font={"color": INK, "size": 13},
        hovertext=f"one person against the mean of the other raters<br>{describe(ceiling)}",
    )


def significance_figure(cells: PairCells, *, alpha: float, measure: str) -> Figure:
    """Row against column: green where the row agrees better beyond chance, orange where worse, grey where open.

    Words too small for their cell are left out by plotly, as on a phone; the hover box has them all.
    """
    significant = np.where(np.isnan(cells.p), False, cells.p <= alpha)
    verdict = np.where(np.isnan(cells.difference), np.nan, np.where(significant, np.sign(cells.difference), 0.0))
    np.fill_diagonal(verdict, np.nan)
    places = range(len(cells.names))
    return pairs_matrix(
        cells.names,
        verdict,
        [["" if np.isnan(verdict[i, j]) else _cell_words(cells, i, j) for j in places] for i in places],
        hover=[[plain(word, 240) for word in row] for row in cells.words],
        template=f"%{{customdata}}<br>({measure})<extra></extra>",
        colours=[[0, WORSE], [0.33, WORSE], [0.34, ALIKE], [0.66, ALIKE], [0.67, BETTER], [1, BETTER]],
        key="significance",
        heights=(130, 60),
        widths=(12, 16),
    )


def _cell_words(cells: PairCells, i: int, j: int) -> str:
    """``"+.20<br>p = .010"``."""
    difference, p = f"{cells.difference[i, j]:+.2f}".replace("0.", ".", 1), float(cells.p[i, j])
    return f"{difference}<br>{p_figure(p, 'p —')}"


def scatter_figure(points: Points, scale: Scale, *, judge: str, picked: int | None = None) -> Figure:
    """Judge against people, a point an item; equal labels and few distinct scores are spread a little."""
    n = points.labels.size
    across, along = np.random.default_rng(0).uniform(-1, 1, (2, n)) * JITTER * (scale.step or 0.0)
    crowded = 4 * np.unique(points.scores).size < n  # whole numbers, say
    stands_out = [position == picked for position in points.positions]
    trace = scatter(
        points.labels + across,
        points.scores + along * crowded,
        marker={
            "color": [AMBER if picked_here else BLUE for picked_here in stands_out],
            "size": [18.0 if picked_here else 9.0 for picked_here in stands_out],
            "opacity": 0.55,
            "line": {"width": 0},
        },
        customdata=[[position] for position in points.positions],
        hovertext=[
            f"<b>{plain(item_id, 60)}</b><br>people {label:.2f}, judge {score:.2f}"
            for item_id, label, score in zip(points.item_ids, points.labels, points.scores, strict=True)
        ],
    )
    figure = frame([trace], x=f"people ({scale})", y=plain(judge, 60), key="scatter", height=460, legend=False)
    figure.update_layout(clickmode="event+select", dragmode=False)
    return figure


def curve_figure(
    bins: Sequence[ScoreBin], line: Sequence[tuple[float, float]], scale: Scale, *, on_scale: bool
) -> Figure:
    """Mean label at each stretch of scores, the map through them, and where score and label would be equal."""
    traces = []
    if on_scale:
        ends, dotted = [scale.low, scale.high], {"dash": "dot", "color": QUIET}
        traces.append(scatter(ends, ends, "lines", name="score = label", line=dotted, hoverinfo="skip"))
    if line:
        x, y = zip(*line, strict=True)
        solid, hover = {"color": TEAL, "width": 3}, "score %{x:.2f} → %{y:.2f}<extra></extra>"
        traces.append(scatter(x, y, "lines", name="isotonic map", line=solid, hovertemplate=hover))
    most = max((own.n for own in bins), default=1)
    means = scatter(
        [own.mean_score for own in bins],
        [own.mean_label for own in bins],
        "markers+text",
        name="mean label (number of items)",
        text=[f"{own.n:,}" for own in bins],
        textposition="top center",
        marker={"color": BLUE, "size": [9 + 15 * (own.n / most) ** 0.5 for own in bins]},
        hovertext=[
            f"scores {own.low:.2f} to {own.high:.2f}<br>mean label {own.mean_label:.2f}, {own.n:,} items"
            for own in bins
        ],
    )
    room, up = 0.04 * (scale.high - scale.low), "mean label of the people"
    reach = [scale.low - room, scale.high + 3 * room]
    return frame([*traces, means], x="judge's score", y=up, key="curve_of_scores", height=420, y_range=reach)


# ── fusions ──────────────────────────────────────────────────────────────────────────────────────────────────


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
