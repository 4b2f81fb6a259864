"""Ablations and analyses of a calibration: what each part of the judge brings, and what winning criteria looked like.

Points are candidates; a value with few of them under it shows them all, so that nobody takes three points for a law.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from core.records import FloatArray
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
    measure_name,
    name_rows,
    plain,
    scatter,
    value_range,
)

if TYPE_CHECKING:
    from plotly.graph_objects import Box, Figure, Scatter

    from core.calibration.ablate import AblationRow
    from core.calibration.analyse import Line, PatternGroup, Place, Pool

LEAST_FOR_BOX = 5
"""Quartiles of fewer candidates than this say less than the points themselves."""

JITTER = 0.16  # of the distance between two groups
LEVEL = 0.05  # of p after Holm's correction, below which a difference is drawn as beyond chance
LEFT, RIGHT = (0.0, 0.55), (0.63, 1.0)


def variant_name(row: AblationRow) -> str:
    """How a row is headed, e.g. "final judge (mean of 3)"."""
    n = len(row.criteria_ids)
    if row.key == "final":
        return f"final judge (mean of {n})" if n > 1 else "final judge"
    return row.key


def ablation_figure(rows: Sequence[AblationRow], *, measure: str) -> Figure:
    """The variants below each other: alignment on both sides of the split, and what each loses or gains on held-out.

    The first of `rows` is the final judge, against which the others are measured; it has no difference of its own.
    """
    sides = [Sides(variant_name(row), row.calibration, row.held_out) for row in rows]
    ends = value_range([alignment for row in rows for alignment in (row.calibration, row.held_out)])
    traces = both_sides(sides, 0.16, -0.1) + _differences(rows)
    figure = frame(traces, x=measure, y="", key="ablation", height=130 + 64 * len(rows), x_range=ends)
    name_rows(figure, [plain(side.name, 40) for side in sides])
    figure.update_layout(
        xaxis={"domain": LEFT},
        xaxis2={
            "domain": RIGHT,
            "range": _around_zero(rows),
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


def _differences(rows: Sequence[AblationRow]) -> list[Scatter]:
    """A diamond for each known difference, on the second axis: those beyond chance, then those within it."""
    known = [(len(rows) - 1 - k, row, row.difference) for k, row in enumerate(rows) if row.difference is not None]
    traces = []
    for name, colour, beyond in (("differs beyond chance", AMBER, True), ("within chance", QUIET, False)):
        own = [row for row in known if (row[1].p_holm is not None and row[1].p_holm < LEVEL) == beyond]
        if own:
            values = [value for _, _, value in own]
            bars = error_bars([(value, row.interval) for _, row, value in own], colour, thickness=2)
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
                hovertext=[_difference_words(row, value) for _, row, value in own],
                cliponaxis=False,
            )
            traces.append(trace)
    return traces


def _difference_words(row: AblationRow, value: float) -> str:
    ends = "" if row.interval is None else f" [{row.interval.low:+.3f}, {row.interval.high:+.3f}]"
    p = "—" if row.p_holm is None else f"{row.p_holm:.3f}"
    return f"<b>{plain(variant_name(row), 60)}</b><br>{value:+.3f}{ends}<br>p after Holm {p}, n = {row.n:,}"


def _around_zero(rows: Sequence[AblationRow]) -> list[float]:
    """An axis with 0 in it, a little wider than all intervals, at least ± .05."""
    known = [0.05, -0.05]
    for row in rows:
        if row.difference is not None:
            known += [row.difference] + ([row.interval.low, row.interval.high] if row.interval else [])
    reach = max(known) - min(known)
    return [min(known) - 0.08 * reach, max(known) + 0.08 * reach]


# ── what the candidates looked like ──────────────────────────────────────────────────────────────────────────


def size_figure(pool: Pool, names: Mapping[str, str]) -> Figure:
    """Drafts by exemplar size: every draft a point, the median a bar, a box where there are at least 5 of them.

    `names` maps criteria ids to names.
    """
    drafts = [place for place in pool.places if place.origin == "draft"]
    sizes = sorted({draft.exemplars for draft in drafts})
    traces, heads = [], []
    for x, size in enumerate(sizes):
        values = np.array([draft.value for draft in drafts if draft.exemplars == size])
        heads.append(f"<b>{size:g}</b><br>n = {values.size}")
        traces.append(_box(x, values) if values.size >= LEAST_FOR_BOX else _bar(x, float(np.median(values))))
    spread = [sizes.index(draft.exemplars) + _shift(k) for k, draft in enumerate(drafts)]
    words = [names[draft.criteria_id] for draft in drafts]
    traces.append(_points(spread, drafts, words, name="draft", hover="%{y:.3f}", colour=BLUE))
    title, ends = "exemplars a draft was drawn from", _near([draft.value for draft in drafts])
    measure = measure_name(pool.statistic, pool.level)
    figure = frame(traces, x=title, y=measure, key="by_size", height=360, legend=False, y_range=ends)
    _categories(figure, heads)
    return figure


def length_figure(pool: Pool, line: Line, names: Mapping[str, str]) -> Figure:
    """Alignment over the length of the criteria in words, with the regression line and the 95 % band of its mean."""
    traces = []
    if line.low:
        around = ([*line.words, *line.words[::-1]], [*line.high, *line.low[::-1]])
        look: dict[str, Any] = {"fill": "toself", "fillcolor": "rgba(11, 92, 173, 0.13)", "line": {"width": 0}}
        traces.append(scatter(*around, "lines", hoverinfo="skip", name="95 % band of the mean", **look))
    if line.middle:
        ink = {"color": INK, "width": 2}
        traces.append(scatter(line.words, line.middle, "lines", line=ink, name="least squares"))
    for group, colour in (("draft", BLUE), ("refinement", TEAL)):
        own = [place for place in pool.places if (place.origin == "draft") == (group == "draft")]
        if own:
            lengths, words = [place.words for place in own], [names[place.criteria_id] for place in own]
            traces.append(_points(lengths, own, words, name=group, hover="%{y:.3f}, %{x} words", colour=colour))
    lengths, values = [place.words for place in pool.places] or [0], [place.value for place in pool.places]
    margin = max(3.0, 0.05 * (max(lengths) - min(lengths)))
    return frame(
        traces,
        x="words in the criteria",
        y=measure_name(pool.statistic, pool.level),
        key="by_length",
        height=360,
        x_range=[min(lengths) - margin, max(lengths) + margin],
        y_range=_near([*values, *_inside(line, values)]),
    )


def pattern_figure(pool: Pool, groups: Sequence[PatternGroup]) -> Figure:
    """Groups of criteria: every one a point, the mean a diamond with its interval; an empty group keeps its place."""
    traces = []
    for x, group in enumerate(groups):
        own = [place for place in pool.places if place.pattern == group.pattern]
        spread, words = [x + _shift(k) for k in range(len(own))], [group.pattern] * len(own)
        traces.append(_points(spread, own, words, name=group.pattern, hover="%{y:.3f}", colour=PALE))
    known = [(x, group.mean, group.interval) for x, group in enumerate(groups) if group.mean is not None]
    means = scatter(
        [x for x, _, _ in known],
        [mean for _, mean, _ in known],
        error_y=error_bars([(mean, interval) for _, mean, interval in known], TEAL, thickness=2),
        marker={"color": TEAL, "size": 14, "symbol": "diamond"},
        name="mean with its 95 % interval",
        hoverinfo="skip",
    )
    ends = [end for group in groups if group.interval for end in (group.interval.low, group.interval.high)]
    near, title = _near([*(place.value for place in pool.places), *ends]), "pattern of the criteria"
    measure = measure_name(pool.statistic, pool.level)
    figure = frame([*traces, means], x=title, y=measure, key="by_pattern", height=360, legend=False, y_range=near)
    for x, group in enumerate(groups):
        look: dict[str, Any] = {"showarrow": False, "font": {"size": 15}}
        if group.mean is None:
            figure.add_annotation(x=x, y=0.5, yref="paper", xanchor="center", text="none", **look)
        else:
            text = f"<b>{group.mean:.3f}</b>"
            figure.add_annotation(x=x + JITTER + 0.06, y=group.mean, xanchor="left", text=text, **look)
    _categories(figure, [f"<b>{plain(group.pattern, 30)}</b><br>n = {group.n}" for group in groups])
    return figure


def _points(
    x: Sequence[float], places: Sequence[Place], words: Sequence[str], *, name: str, hover: str, colour: str
) -> Scatter:
    return scatter(
        x,
        [place.value for place in places],
        name=plain(name, 30),
        marker={"color": colour, "size": 10, "opacity": 0.75, "line": {"width": 1, "color": "white"}},
        hovertext=[plain(word, 60) for word in words],
        hovertemplate=f"<b>%{{hovertext}}</b><br>{hover}<extra></extra>",
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


def _inside(line: Line, values: Sequence[float]) -> list[float]:
    """The ends of the band, as far as half the spread of the points: a band of four points may reach anywhere."""
    if not line.low:
        return []
    reach = max(max(values) - min(values), 0.1) / 2
    return [max(min(line.low), min(values) - reach), min(max(line.high), max(values) + reach)]
