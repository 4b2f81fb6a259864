"""Beneath the table of fusions: what each part brings, how alike the parts are, where they contradict."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from core.fusion.fusion_split import contradictions
from core.fusion.stack import Weight, Without
from core.report.figures.comparison import Bar, between_figure, lost_figure, weights_figure
from core.stats import claim
from core.wording import change_figures
from pages.fusion.fusion_view import Fused, difference_words
from pages.label import label_item
from pages.ui import charts, grid, state
from pages.ui.grid import Column
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

MOST_LISTED = 50


def draw_parts(fused: Fused) -> None:
    """The fusion without each part, and what each part counts for."""
    shown = fused.shown
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Without each part**: what the fusion loses when it is left out and the rest is fused anew")
        if shown.without:
            charts.place(_lost(fused.key, fused), key="fusion_lost", alt="Alignment lost without each part")
            st.caption("Green helps, orange harms, by a test (Holm-corrected); grey: nothing is shown. 95 % intervals.")
        else:
            st.info("With two parts only, the fusion without one is the other: see the table.")
    with right:
        st.markdown("**What each part counts for**")
        if shown.method == "average":
            st.info("Every part that takes part counts the same in the average. Ridge learns weights.")
        else:
            charts.place(_weights(fused.key, fused), key="fusion_weights", alt="Weights with intervals")
            st.caption("Intervals: refitted on resampled sources. Weights of like parts stand for each other.")


@st.cache_resource(max_entries=64, show_spinner=False)
def _lost(key: Hashable, _fused: Fused) -> Drawing:
    return lost_figure([_lost_bar(without) for without in _fused.shown.without], measure=_fused.measure)


def _lost_bar(without: Without) -> Bar:
    words = f"without {without.name}: the whole fusion is {difference_words(without.difference)} above"
    difference = without.difference
    shown = claim(difference.value, difference.interval, difference.p) in ("higher", "lower")
    return Bar(without.name, difference.value, difference.interval, words, shown)


@st.cache_resource(max_entries=64, show_spinner=False)
def _weights(key: Hashable, _fused: Fused) -> Drawing:
    unit = "points of the label for one standard deviation"
    return weights_figure([_weight_bar(weight) for weight in _fused.shown.weights], unit=unit)


def _weight_bar(weight: Weight) -> Bar:
    return Bar(
        weight.name, weight.value, weight.interval, f"{weight.name}: {change_figures(weight.value, weight.interval)}"
    )


def draw_between(fused: Fused) -> None:
    """How alike the parts are."""
    shown = fused.shown
    st.markdown(
        f"**Spearman's rho between the parts**, on the {len(shown.report):,} items evaluated on. Parts that say nearly "
        "the same bring little to each other; a fusion gains most from good parts that differ."
    )
    charts.place(_between(fused.key, fused), key="fusion_between", alt="Correlation between the parts")


@st.cache_resource(max_entries=64, show_spinner=False)
def _between(key: Hashable, _fused: Fused) -> Drawing:
    return between_figure(list(_fused.shown.parts), _fused.shown.between)


def draw_contradictions(fused: Fused) -> None:
    """Items on which the parts part most; one in full."""
    shown = fused.shown
    judges = [part.judge for part in fused.parts]
    contradictory = contradictions(judges, shown.report, MOST_LISTED)
    if not contradictory:
        st.info("The parts order the items evaluated on in the same way; there is nothing to contradict.")
        return
    st.markdown("Items that one part puts high and another low: a person should look at these. Widest apart first.")
    names = [fused.names[part.judge_id] for part in fused.parts]
    ranks = {name: _ranks(judge.upward, shown.report) for name, judge in zip(names, judges, strict=True)}
    places = {position: k for k, position in enumerate(shown.report)}
    labels = fused.golden.labels(fused.aspect)
    frame = pd.DataFrame(
        {
            "item": [fused.golden.items[k].item_id for k in contradictory],
            "people": [labels[k] for k in contradictory],
            **{name: [values[places[k]] for k in contradictory] for name, values in ranks.items()},
        }
    )
    columns = {name: Column(digits=0, help="rank: 0 lowest, 100 highest") for name in names}
    key = state.widget(f"fusion_items_{hash(fused.key) & 0xFFFFFF:x}")
    ids = [str(position) for position in contradictory]
    picked = grid.picked(key) if grid.picked(key) in ids else ids[0]
    grid.draw(
        frame,
        {"item": Column(width=170), "people": Column(digits=2), **columns},
        alt="Items on which the parts contradict each other",
        rows=8,
        key=key,
        pick=grid.Pick(ids, picked),
    )
    st.caption("Scores as ranks among these items, 0 lowest to 100 highest, since every part has a scale of its own.")
    _draw_item(fused, int(picked or ids[0]))


def _ranks(values: np.ndarray, report: tuple[int, ...]) -> np.ndarray:
    """(n_report,) ranks 0…100 among the items evaluated on, ties at their middle, NaN where there is no score."""
    ranks = pd.Series(values[list(report)]).rank()
    spread = max(float(ranks.count() - 1), 1.0)
    return np.asarray(100 * (ranks - 1) / spread, dtype=np.float64)


def _draw_item(fused: Fused, position: int) -> None:
    item = fused.golden.items[position]
    label = fused.golden.labels(fused.aspect)[position]
    with st.container(border=True):
        st.markdown(f"**{plain(item.item_id)}** · people {label:.2f}")
        left, right = st.columns([3, 2], gap="large")
        with left:
            label_item.draw_parts(item, fused.golden.kind)
        with right:
            names = [fused.names[part.judge_id] for part in fused.parts]
            scores = [part.judge.values[position] for part in fused.parts]
            parts = pd.DataFrame({"part": names, "score": pd.Series(scores, dtype="float64")})
            grid.draw(parts, {"score": Column(digits=2)}, alt="Every part's score of this item")
