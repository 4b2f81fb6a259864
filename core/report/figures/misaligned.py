"""Judge against people as four quarters whose points are items, and all versions of criteria as a family tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import Alignment, FloatArray, Scale
from core.report.figures.style import (
    AMBER,
    BLUE,
    INK,
    PALE,
    QUIET,
    TEAL,
    defined_value,
    describe,
    ends_of,
    error_bars,
    is_defined,
    plain,
    snapped,
    style,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SIDE_COLOURS = {"too lenient": AMBER, "too strict": BLUE, "aligned": QUIET}
STATE_COLOURS = {"draft": QUIET, "proposed": AMBER, "approved": TEAL, "retired": PALE}
JITTER = 0.16  # of a step, so that equal labels do not hide each other


@dataclass(frozen=True, slots=True)
class Spot:
    """An item that the judge scored; `side` is "too lenient", "too strict" or "aligned"."""

    item_id: str
    label: float
    score: float
    side: str
    triaged: bool = False


@dataclass(frozen=True, slots=True)
class Middle:
    """Mean and spread of labels and scores over all items: where the quarters meet, and how wide "aligned" is.

    `within` is the largest standardised gap that counts as aligned.
    """

    label: float
    label_spread: float
    score: float
    score_spread: float
    within: float

    @classmethod
    def of(cls, labels: FloatArray, scores: FloatArray, within: float) -> Middle:
        """From (n,) labels and scores without NaN, n at least 1."""
        return cls(float(labels.mean()), float(labels.std()), float(scores.mean()), float(scores.std()), within)


@dataclass(frozen=True, slots=True)
class Version:
    """Criteria in the tree: `depth` steps from its oldest ancestor; `parents` are ids of other versions."""

    criteria_id: str
    name: str
    depth: int
    parents: tuple[str, ...]
    alignment: Alignment | None
    state: str
    detail: str = ""


def misaligned_figure(spots: Sequence[Spot], middle: Middle, scale: Scale, *, opened: str = "") -> Figure:
    """Judge (up) against people (right); between the slanted lines both agree.  The item `opened` is ringed.

    The position in `spots` comes back on a click as `customdata`.
    """
    import plotly.graph_objects as go

    spread = np.random.default_rng(0).uniform(-1, 1, len(spots)) * JITTER * (scale.step or 0.0)
    figure = go.Figure()
    _agreement_band(figure, middle, scale)
    for side, colour in SIDE_COLOURS.items():
        at = [k for k, spot in enumerate(spots) if spot.side == side]
        figure.add_trace(
            go.Scatter(
                x=[spots[k].label + spread[k] for k in at],
                y=[spots[k].score for k in at],
                mode="markers",
                name=side,
                marker={
                    "color": colour,
                    "size": [17 if spots[k].item_id == opened else 10 for k in at],
                    "symbol": ["diamond" if spots[k].triaged else "circle" for k in at],
                    "line": {"color": INK, "width": [3 if spots[k].item_id == opened else 0 for k in at]},
                    "opacity": 0.8,
                },
                selected={"marker": {"opacity": 0.8}},
                unselected={"marker": {"opacity": 0.8}},
                customdata=[[k] for k in at],
                hovertext=[_spot_words(spots[k]) for k in at],
                hoverinfo="text",
            )
        )
    room = 0.06 * (scale.high - scale.low)
    scores = [spot.score for spot in spots]
    style(
        figure,
        x=f"people ({scale})",
        y="judge",
        key="misaligned",
        height=330,
        x_range=[scale.low - room, scale.high + room],
        y_range=[min([scale.low, *scores]) - room, max([scale.high, *scores]) + room],  # the band may leave the scale
    )
    figure.update_layout(clickmode="event+select", dragmode=False, margin={"t": 30})
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(showgrid=False)
    return figure


def _agreement_band(figure: Figure, middle: Middle, scale: Scale) -> None:
    """Where the standardised gap is small, shaded, and the two means as crossing lines."""
    import plotly.graph_objects as go

    whole = {"type": "line", "line": {"color": QUIET, "width": 1, "dash": "dot"}}
    across = {"x0": 0, "x1": 1, "xref": "x domain", "y0": middle.score, "y1": middle.score}
    upwards = {"y0": 0, "y1": 1, "yref": "y domain", "x0": middle.label, "x1": middle.label}
    figure.update_layout(shapes=[{**whole, **across}, {**whole, **upwards}])
    if middle.label_spread <= 0 or middle.score_spread <= 0:
        return
    ends = [scale.low, scale.high]
    on_line = [middle.score + middle.score_spread * (x - middle.label) / middle.label_spread for x in ends]
    width = middle.within * middle.score_spread
    figure.add_trace(
        go.Scatter(
            x=[*ends, *ends[::-1]],
            y=[*(y + width for y in on_line), *(y - width for y in on_line[::-1])],
            fill="toself",
            fillcolor=PALE,
            opacity=0.35,
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
            showlegend=False,
        )
    )


def _spot_words(spot: Spot) -> str:
    triaged = "<br>triaged" if spot.triaged else ""
    return f"<b>{plain(spot.item_id, 60)}</b><br>people {spot.label:.2f}, judge {spot.score:.2f}: {spot.side}{triaged}"


def lineage_figure(versions: Sequence[Version], *, measure: str, opened: str = "") -> Figure:
    """Every version at its alignment, generation by generation, a line from each parent; colours say its state.

    A version without an alignment stands in a row of its own below, never at 0.  The position in `versions` comes
    back on a click as `customdata`.
    """
    import plotly.graph_objects as go

    low, high = snapped([v for one in versions for v in ends_of(one.alignment)])
    bottom = low - 0.12 * (high - low)
    places = _places(versions, bottom)
    figure = go.Figure()
    _family_lines(figure, versions, places)
    for state, colour in STATE_COLOURS.items():
        at = [k for k, one in enumerate(versions) if one.state == state]
        for measured in (True, False):
            shown = [k for k in at if is_defined(versions[k].alignment) == measured]
            if shown:
                trace = _state_trace(versions, places, shown, colour, opened, measured=measured)
                figure.add_trace(
                    go.Scatter(name=state, legendgroup=state, showlegend=measured or not _any(at, versions), **trace)
                )
    if any(not is_defined(one.alignment) for one in versions):
        figure.add_annotation(
            text="not measured", x=0, xref="paper", xanchor="left", y=bottom, showarrow=False, font={"color": QUIET}
        )
    deepest = max((one.depth for one in versions), default=0)
    style(
        figure,
        x="generations from the first version",
        y=measure,
        key="lineage",
        height=430,
        x_range=[-0.6, deepest + 0.6],
        y_range=[bottom - 0.05 * (high - low), high],
    )
    figure.update_layout(clickmode="event+select", dragmode=False, legend={"title": {"text": "state "}})
    figure.update_xaxes(tickvals=list(range(deepest + 1)), showgrid=False)
    return figure


def _any(at: Sequence[int], versions: Sequence[Version]) -> bool:
    return any(is_defined(versions[k].alignment) for k in at)


def _places(versions: Sequence[Version], bottom: float) -> list[tuple[float, float]]:
    """(x, y) of each version: its generation, spread so that brothers and sisters do not hide each other."""
    counts: dict[int, int] = {}
    for one in versions:
        counts[one.depth] = counts.get(one.depth, 0) + 1
    seen: dict[int, int] = {}
    places = []
    for one in versions:
        nth = seen[one.depth] = seen.get(one.depth, 0) + 1
        shift = 0.7 * (nth / (counts[one.depth] + 1) - 0.5)
        y = defined_value(one.alignment) if is_defined(one.alignment) else bottom
        places.append((one.depth + shift, y))
    return places


def _family_lines(figure: Figure, versions: Sequence[Version], places: Sequence[tuple[float, float]]) -> None:
    import plotly.graph_objects as go

    at = {one.criteria_id: k for k, one in enumerate(versions)}
    pairs = [(at[parent], k) for k, one in enumerate(versions) for parent in one.parents if parent in at]
    figure.add_trace(
        go.Scatter(
            x=[x for a, b in pairs for x in (places[a][0], places[b][0], None)],
            y=[y for a, b in pairs for y in (places[a][1], places[b][1], None)],
            mode="lines",
            line={"color": PALE, "width": 1.5},
            hoverinfo="skip",
            showlegend=False,
        )
    )


def _state_trace(
    versions: Sequence[Version],
    places: Sequence[tuple[float, float]],
    shown: Sequence[int],
    colour: str,
    opened: str,
    *,
    measured: bool,
) -> dict[str, Any]:
    ringed = [versions[k].criteria_id == opened for k in shown]
    ends = [(places[k][1], one.interval) for k in shown if (one := versions[k].alignment) is not None]
    whisker = {"error_y": error_bars(ends, colour)} if measured else {}
    return {
        **whisker,
        "x": [places[k][0] for k in shown],
        "y": [places[k][1] for k in shown],
        "mode": "markers",
        "marker": {
            "color": colour,
            "size": [18 if ring else 12 for ring in ringed],
            "symbol": "circle" if measured else "circle-open",
            "line": {"color": INK, "width": [3 if ring else 1 for ring in ringed]},
        },
        "selected": {"marker": {"opacity": 1}},
        "unselected": {"marker": {"opacity": 1}},
        "customdata": [[k] for k in shown],
        "hovertext": [_version_words(versions[k]) for k in shown],
        "hoverinfo": "text",
    }


def _version_words(one: Version) -> str:
    n = f", n = {one.alignment.n:,}" if one.alignment is not None else ""
    detail = f"<br>{plain(one.detail, 280)}" if one.detail else ""
    return f"<b>{plain(one.name, 60)}</b> ({plain(one.state, 20)})<br>{describe(one.alignment)}{n}{detail}"
