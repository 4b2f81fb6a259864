"""Judges side by side: whiskers with the human ceiling, the matrix of tests, people against judge, scores as labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import Alignment, FloatArray, JudgeKind, Scale
from core.report.figures.style import (
    AMBER,
    BLUE,
    INK,
    PALE,
    QUIET,
    TEAL,
    describe,
    dots,
    is_defined,
    pairs_matrix,
    plain,
    stacked,
    style,
    value_range,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """`n` items with this mean score and mean label; their scores reach from `low` to `high`."""

    mean_score: float
    mean_label: float
    n: int
    low: float
    high: float


def leaderboard_figure(marks: Sequence[JudgeMark], ceiling: Alignment | None, *, measure: str) -> Figure:
    """Every judge with its interval on one axis, best on top, people among themselves as a band behind."""
    import plotly.graph_objects as go

    figure = go.Figure()
    places = _places(marks)
    for kind in dict.fromkeys(mark.kind for mark in marks):
        both = zip(places, marks, strict=True)
        placed = [(place, mark.alignment, _mark_hover(mark)) for place, mark in both if mark.kind == kind]
        look: dict[str, Any] = {"size": 14 if kind else 11, "symbol": "circle" if kind else "diamond-open"}
        figure.add_trace(dots(placed, QUIET if kind is None else KIND_COLOURS[kind], thickness=3, **look))
    _undefined_marks(figure, marks, places)
    _like_person_marks(figure, marks, places)
    _ceiling_band(figure, ceiling)
    top = max(places, default=0)
    style(
        figure,
        x=measure,
        y="",
        key="leaderboard",
        height=160 + 27 * top,
        legend=False,
        x_range=value_range([*(mark.alignment for mark in marks), *(mark.like_person for mark in marks), ceiling]),
        y_range=[-2.2, top + 1.2],
    )
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


def _undefined_marks(figure: Figure, marks: Sequence[JudgeMark], places: Sequence[int]) -> None:
    """A dash with its reason where a judge has no value: it is not a judge at 0."""
    for place, mark in zip(places, marks, strict=True):
        if not is_defined(mark.alignment):
            figure.add_annotation(
                x=0.01,
                xref="paper",
                xanchor="left",
                y=place,
                text=f"— {plain(mark.alignment.reason, 90)}",
                showarrow=False,
                font={"color": QUIET, "size": 13},
            )


def _like_person_marks(figure: Figure, marks: Sequence[JudgeMark], places: Sequence[int]) -> None:
    """A hollow dot under each judge: its agreement with the targets that a single person is held against."""
    placed = [
        (place - 0.55, mark.like_person, _like_person_hover(mark)) for place, mark in zip(places, marks, strict=True)
    ]
    if any(one is not None and one.value is not None for _, one, _ in placed):
        look: dict[str, Any] = {"size": 9, "symbol": "circle-open", "line": {"width": 2}}
        figure.add_trace(dots(placed, INK, thickness=1, **look))


def _like_person_hover(mark: JudgeMark) -> str:
    against = "against the mean of the other raters, as a person is"
    return f"<b>{plain(mark.name, 60)}</b><br>{against}<br>{describe(mark.like_person)}"


def _ceiling_band(figure: Figure, ceiling: Alignment | None) -> None:
    if ceiling is None or ceiling.value is None:
        return
    if ceiling.interval is not None:
        figure.add_vrect(
            x0=ceiling.interval.low, x1=ceiling.interval.high, fillcolor=PALE, opacity=0.35, line_width=0, layer="below"
        )
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


def _mark_hover(mark: JudgeMark) -> str:
    n = f"<br>n = {mark.alignment.n:,}" if mark.kind else ""
    detail = f"<br>{plain(mark.detail, 280)}" if mark.detail else ""
    return f"<b>{plain(mark.name, 60)}</b><br>{describe(mark.alignment)}{n}{detail}"


def significance_figure(cells: PairCells, *, alpha: float, measure: str) -> Figure:
    """Row against column: green where the row agrees better beyond chance, orange where worse, grey where open.

    Words too small for their cell are left out by plotly, as on a phone; the hover box has them all.
    """
    n = len(cells.names)
    significant = np.where(np.isnan(cells.p), False, cells.p <= alpha)
    verdict = np.where(np.isnan(cells.difference), np.nan, np.where(significant, np.sign(cells.difference), 0.0))
    np.fill_diagonal(verdict, np.nan)
    undefined = np.isnan(verdict)
    return pairs_matrix(
        cells.names,
        [[None if np.isnan(value) else float(value) for value in row] for row in verdict],
        [
            [
                "" if undefined[i, j] else f"{_signed(cells.difference[i, j])}<br>{_p_words(cells.p[i, j])}"
                for j in range(n)
            ]
            for i in range(n)
        ],
        hover=[[plain(word, 240) for word in row] for row in cells.words],
        told=f"%{{customdata}}<br>({measure})<extra></extra>",
        colours=[[0, WORSE], [0.33, WORSE], [0.34, ALIKE], [0.66, ALIKE], [0.67, BETTER], [1, BETTER]],
        key="significance",
        heights=(130, 60),
        widths=(12, 16),
    )


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("0.", ".", 1)


def _p_words(p: float) -> str:
    if np.isnan(p):
        return "p —"
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1) if p < 1 else "p = 1"


def scatter_figure(points: Points, scale: Scale, *, judge: str, picked: int | None = None) -> Figure:
    """Judge against people, a point an item; equal labels and few distinct scores are spread a little."""
    import plotly.graph_objects as go

    across, along = np.random.default_rng(0).uniform(-1, 1, (2, points.labels.size)) * JITTER * (scale.step or 0.0)
    crowded = 4 * np.unique(points.scores).size < points.scores.size  # whole numbers, say
    sizes, colours = np.full(points.labels.size, 9.0), np.full(points.labels.size, BLUE, dtype=object)
    if picked in points.positions:
        at = points.positions.index(picked)
        sizes[at], colours[at] = 18.0, AMBER
    figure = go.Figure(
        go.Scatter(
            x=points.labels + across,
            y=points.scores + along * crowded,
            mode="markers",
            marker={"color": list(colours), "size": sizes, "opacity": 0.55, "line": {"width": 0}},
            customdata=[[position] for position in points.positions],
            hovertext=[
                f"<b>{plain(item_id, 60)}</b><br>people {label:.2f}, judge {score:.2f}"
                for item_id, label, score in zip(points.item_ids, points.labels, points.scores, strict=True)
            ],
            hoverinfo="text",
        )
    )
    style(figure, x=f"people ({scale})", y=plain(judge, 60), key="scatter", height=460, legend=False)
    figure.update_layout(clickmode="event+select", dragmode=False)
    return figure


def curve_figure(
    points: Sequence[CurvePoint], line: Sequence[tuple[float, float]], scale: Scale, *, on_scale: bool
) -> Figure:
    """Mean label at each stretch of scores, the map through them, and where score and label would be equal."""
    import plotly.graph_objects as go

    figure = go.Figure()
    if on_scale:
        ends = [scale.low, scale.high]
        figure.add_trace(
            go.Scatter(
                x=ends,
                y=ends,
                mode="lines",
                name="score = label",
                line={"dash": "dot", "color": QUIET},
                hoverinfo="skip",
            )
        )
    if line:
        figure.add_trace(
            go.Scatter(
                x=[x for x, _ in line],
                y=[y for _, y in line],
                mode="lines",
                name="isotonic map",
                line={"color": TEAL, "width": 3},
                hovertemplate="score %{x:.2f} → %{y:.2f}<extra></extra>",
            )
        )
    most = max((point.n for point in points), default=1)
    figure.add_trace(
        go.Scatter(
            x=[point.mean_score for point in points],
            y=[point.mean_label for point in points],
            mode="markers+text",
            name="mean label (number of items)",
            text=[f"{point.n:,}" for point in points],
            textposition="top center",
            marker={"color": BLUE, "size": [9 + 15 * (point.n / most) ** 0.5 for point in points]},
            hovertext=[
                f"scores {point.low:.2f} to {point.high:.2f}<br>mean label {point.mean_label:.2f}, {point.n:,} items"
                for point in points
            ],
            hoverinfo="text",
        )
    )
    room = 0.04 * (scale.high - scale.low)
    style(
        figure,
        x="judge's score",
        y="mean label of the people",
        key="curve_of_scores",
        height=420,
        y_range=[scale.low - room, scale.high + 3 * room],
    )
    return figure
