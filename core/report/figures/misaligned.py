"""Judge against people as four quarters whose points are items, and all versions of criteria as a family tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import FloatArray, Scale
from core.report.figures.clickable import error_bars, frame, mark_words, plain, scatter
from core.report.figures.style import AMBER, BLUE, INK, PALE, QUIET, TEAL, Mark, ends_of, snapped
from core.wording import number

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, Scatter


SIDE_COLOURS = {"too lenient": AMBER, "too strict": BLUE, "aligned": QUIET}
SIDE_SYMBOLS = {"too lenient": "triangle-up", "too strict": "triangle-down", "aligned": "circle"}
STATE_COLOURS = {"draft": QUIET, "proposed": AMBER, "approved": TEAL, "current": TEAL, "retired": PALE}
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
    """Criteria in the tree: `depth` steps from its oldest ancestor; `parents` are ids of other versions.

    The group of its `mark` is its state.
    """

    criteria_id: str
    depth: int
    parents: tuple[str, ...]
    mark: Mark

    @property
    def value(self) -> float | None:
        return None if self.mark.alignment is None else self.mark.alignment.value


def misaligned_figure(spots: Sequence[Spot], middle: Middle, scale: Scale, *, opened: str = "") -> Figure:
    """Judge (up) against people (right); between the slanted lines both agree.  The item `opened` is ringed.

    Each side has its colour and its shape; what was triaged is hollow.

    The position in `spots` comes back on a click as `customdata`.
    """
    spread = np.random.default_rng(0).uniform(-1, 1, len(spots)) * JITTER * (scale.step or 0.0)
    traces = _agreement_band(middle, scale) + _opened_ring(spots, spread, opened)
    for side, colour in SIDE_COLOURS.items():
        for triaged in (False, True):
            own = [(k, spot) for k, spot in enumerate(spots) if (spot.side, spot.triaged) == (side, triaged)]
            marker = {"color": colour, "size": 12, "symbol": _symbol(side, triaged), "line": {"width": 2 * triaged}}
            x, y = [spot.label + spread[k] for k, spot in own], [spot.score for _, spot in own]
            words = [_spot_words(spot) for _, spot in own]
            look = {"name": side, "marker": marker, "hovertext": words, "showlegend": False}
            traces.append(_clickable(x, y, [k for k, _ in own], 0.9, **look))
    traces += _legend(spots)
    room = 0.06 * (scale.high - scale.low)
    scores = [spot.score for spot in spots]
    figure = frame(
        traces,
        x=f"people ({scale})",
        y="judge",
        key="misaligned",
        height=450,
        x_range=[scale.low - room, scale.high + room],
        y_range=[min([scale.low, *scores]) - room, max([scale.high, *scores]) + room],  # the band may leave the scale
    )
    figure.update_layout(clickmode="event+select", dragmode=False, margin={"t": 30}, shapes=_means(middle))
    figure.update_xaxes(showgrid=False)
    figure.update_yaxes(showgrid=False)
    return figure


def _symbol(side: str, triaged: bool) -> str:
    """The shape of a side, hollow where somebody has given a verdict."""
    return f"{SIDE_SYMBOLS[side]}-open" if triaged else SIDE_SYMBOLS[side]


def _opened_ring(spots: Sequence[Spot], spread: FloatArray, opened: str) -> list[Scatter]:
    """A ring around the item `opened`, if it is there."""
    at = [k for k, spot in enumerate(spots) if spot.item_id == opened]
    marker = {"symbol": "circle-open", "size": 24, "color": INK, "line": {"width": 3}}
    x, y = [spots[k].label + spread[k] for k in at], [spots[k].score for k in at]
    return [scatter(x, y, marker=marker, hoverinfo="skip", showlegend=False, name="opened")] if at else []


def _legend(spots: Sequence[Spot]) -> list[Scatter]:
    """An entry for each side and one for what was triaged, whatever the first point of a side looks like."""
    entries = [(side, colour, _symbol(side, triaged=False)) for side, colour in SIDE_COLOURS.items()]
    entries = [entry for entry in entries if any(spot.side == entry[0] for spot in spots)]
    if any(spot.triaged for spot in spots):
        entries.append(("hollow: triaged", INK, "circle-open"))
    return [
        scatter([None], [None], name=name, marker={"color": colour, "symbol": symbol, "size": 12}, hoverinfo="skip")
        for name, colour, symbol in entries
    ]


def _clickable(x: list[float], y: list[float], positions: list[int], opacity: float, **look: Any) -> Scatter:
    """Points whose `positions` come back on a click, and that look the same when one is chosen."""
    same = {"marker": {"opacity": opacity}}
    return scatter(x, y, selected=same, unselected=same, customdata=[[k] for k in positions], **look)


def _means(middle: Middle) -> list[dict[str, Any]]:
    """The two means as crossing lines."""
    whole = {"type": "line", "line": {"color": QUIET, "width": 1, "dash": "dot"}}
    across = {"x0": 0, "x1": 1, "xref": "x domain", "y0": middle.score, "y1": middle.score}
    upwards = {"y0": 0, "y1": 1, "yref": "y domain", "x0": middle.label, "x1": middle.label}
    return [{**whole, **across}, {**whole, **upwards}]


def _agreement_band(middle: Middle, scale: Scale) -> list[Scatter]:
    """Where the standardised gap is small, shaded; nothing where a side is constant."""
    if middle.label_spread <= 0 or middle.score_spread <= 0:
        return []
    ends = [scale.low, scale.high]
    on_line = [middle.score + middle.score_spread * (x - middle.label) / middle.label_spread for x in ends]
    width = middle.within * middle.score_spread
    around = [*(y + width for y in on_line), *(y - width for y in on_line[::-1])]
    look: dict[str, Any] = {"fill": "toself", "fillcolor": PALE, "opacity": 0.35, "line": {"width": 0}}
    return [scatter([*ends, *ends[::-1]], around, "lines", hoverinfo="skip", showlegend=False, **look)]


def _spot_words(spot: Spot) -> str:
    triaged = "<br>triaged" if spot.triaged else ""
    figures = f"people {number(spot.label)}, judge {number(spot.score)}"
    return f"<b>{plain(spot.item_id, 60)}</b><br>{figures}: {spot.side}{triaged}"


def lineage_figure(versions: Sequence[Version], *, measure: str, opened: str = "") -> Figure:
    """Every version at its alignment, generation by generation, a line from each parent; colours say its state.

    A version without an alignment stands in a row of its own below, never at 0.  The position in `versions` comes
    back on a click as `customdata`.
    """
    low, high = snapped([end for version in versions for end in ends_of(version.mark.alignment)])
    bottom = low - 0.12 * (high - low)
    places = _places(versions, bottom)
    traces = [_family_lines(versions, places)]
    for state, colour in STATE_COLOURS.items():
        own = [k for k, version in enumerate(versions) if version.mark.group == state]
        measured = [k for k in own if versions[k].value is not None]
        others = [k for k in own if k not in measured]
        for shown, symbol in ((measured, "circle"), (others, "circle-open")):
            if shown:
                look = {"name": state, "legendgroup": state, "showlegend": shown is measured or not measured}
                traces.append(_state_trace(versions, places, shown, opened, color=colour, symbol=symbol, **look))
    deepest = max((version.depth for version in versions), default=0)
    figure = frame(
        traces,
        x="generations from the first version",
        y=measure,
        key="lineage",
        height=430,
        x_range=[-0.6, deepest + 0.6],
        y_range=[bottom - 0.05 * (high - low), high],
    )
    if any(version.value is None for version in versions):
        look = {"showarrow": False, "font": {"color": QUIET}}
        figure.add_annotation(text="not measured", x=0, xref="paper", xanchor="left", y=bottom, **look)
    figure.update_layout(clickmode="event+select", dragmode=False, legend={"title": {"text": "state "}})
    figure.update_xaxes(tickvals=list(range(deepest + 1)), showgrid=False)
    return figure


def _places(versions: Sequence[Version], bottom: float) -> list[tuple[float, float]]:
    """(x, y) of each version: its generation, spread so that brothers and sisters do not hide each other."""
    counts, seen = Counter(version.depth for version in versions), Counter[int]()
    places = []
    for version in versions:
        seen[version.depth] += 1
        shift = 0.7 * (seen[version.depth] / (counts[version.depth] + 1) - 0.5)
        places.append((version.depth + shift, bottom if version.value is None else version.value))
    return places


def _family_lines(versions: Sequence[Version], places: Sequence[tuple[float, float]]) -> Scatter:
    at = {version.criteria_id: place for version, place in zip(versions, places, strict=True)}
    pairs = [
        (at[parent], at[version.criteria_id]) for version in versions for parent in version.parents if parent in at
    ]
    x, y = ([value for a, b in pairs for value in (a[axis], b[axis], None)] for axis in (0, 1))
    return scatter(x, y, "lines", line={"color": PALE, "width": 1.5}, hoverinfo="skip", showlegend=False)


def _state_trace(
    versions: Sequence[Version],
    places: Sequence[tuple[float, float]],
    shown: list[int],
    opened: str,
    *,
    color: str,
    symbol: str,
    **look: Any,
) -> Scatter:
    """The versions `shown` of one state, with their intervals where they were measured."""
    known = [
        (alignment.value, alignment.interval)
        for k in shown
        if (alignment := versions[k].mark.alignment) and alignment.value is not None
    ]
    if known:
        look["error_y"] = error_bars(known, color)
    ringed = [versions[k].criteria_id == opened for k in shown]
    marker = {
        "color": color,
        "size": [18 if ring else 12 for ring in ringed],
        "symbol": symbol,
        "line": {"color": INK, "width": [3 if ring else 1 for ring in ringed]},
    }
    words = [mark_words(versions[k].mark) for k in shown]
    x, y = [places[k][0] for k in shown], [places[k][1] for k in shown]
    return _clickable(x, y, shown, 1, marker=marker, hovertext=words, **look)
