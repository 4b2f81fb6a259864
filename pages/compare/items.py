"""Judge against people, item by item: a scatter, a list by gap, and the item behind each point in full."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from core import projects
from core.comparison import Row
from core.project_records import JudgeEntry
from core.records import FloatArray, JudgeScores
from core.report.figures.comparison import Points, scatter_figure
from core.stats.claims import number
from pages.compare.choices import Compared
from pages.compare.sections import choose_row
from pages.label import label_item
from pages.ui import charts, grid, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_POINTS, MOST_LISTED, MOST_REPLIES = 3_000, 500, 20


@dataclass(frozen=True)
class Gaps:
    """Items used, largest gap first: positions, labels, scores, and standardised score minus standardised label."""

    positions: tuple[int, ...]
    labels: FloatArray
    scores: FloatArray
    gaps: FloatArray


def draw(page: Opened, compared: Compared) -> None:
    """The scatter beside the list; a point or a row opens its item."""
    row = compared.leaderboard.rows[choose_row(compared, "compare_items_judge")]
    entry = compared.judge_of(row)
    gaps = _gaps((compared.key, entry.judge_id), compared, row, entry.judge)
    if not gaps.positions:
        st.info("This judge has no item here with a score and a label.", icon=":material/scatter_plot:")
        _draw_unscored(compared, row, entry.judge)
        return
    picked = _picked(compared, gaps.positions)
    left, right = st.columns(2, gap="medium")
    with left:
        _draw_scatter(compared, entry, row.name, gaps, picked)
    with right:
        _draw_list(compared, gaps, picked)
    if picked is None:
        st.caption("Click a point or mark a row to read the item. What people read here is no longer unseen by people.")
    else:
        _draw_item(page, compared, entry, row.name, picked)
    _draw_unscored(compared, row, entry.judge)


@st.cache_resource(max_entries=64, show_spinner=False)
def _gaps(key: Hashable, _compared: Compared, _row: Row, _judge: JudgeScores) -> Gaps:
    at = _compared.leaderboard.pool.positions
    labels, scores = _compared.golden.labels(_compared.aspect)[at], _judge.values[at]
    gaps = _standardised(_judge.upward[at]) - _standardised(labels)
    order = np.argsort(-np.abs(gaps), kind="stable")
    return Gaps(tuple(int(position) for position in at[order]), labels[order], scores[order], gaps[order])


def _standardised(values: FloatArray) -> FloatArray:
    """Zero mean, unit spread; all 0 where there is no spread."""
    if not values.size:
        return values
    spread = values.std()
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def _picked(compared: Compared, positions: Sequence[int]) -> int | None:
    """The item in the URL, while it is one of these."""
    item_id = state.url_id("item")
    ids = compared.golden.item_ids
    return next((position for position in positions if ids[position] == item_id), None) if item_id else None


def _draw_scatter(compared: Compared, judge: JudgeEntry, name: str, gaps: Gaps, picked: int | None) -> None:
    key = state.widget("compare_scatter")
    charts.place_clickable(
        _scatter_figure((compared.key, judge.judge_id, picked), compared, name, gaps, picked),
        key=key,
        on_select=lambda: _pick_point(compared),
        alt="The judge's score against the people's label, a point an item",
    )
    if len(gaps.positions) > MOST_POINTS:
        st.caption(f"{MOST_POINTS:,} of {len(gaps.positions):,} items are drawn, evenly over the gaps.")


@st.cache_resource(max_entries=64, show_spinner=False)
def _scatter_figure(key: Hashable, _compared: Compared, _name: str, _shown: Gaps, _picked: int | None) -> Figure:
    n = len(_shown.positions)
    at = np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int))
    positions = tuple(_shown.positions[k] for k in at)
    points = Points(
        tuple(_compared.golden.item_ids[position] for position in positions),
        positions,
        _shown.labels[at],
        _shown.scores[at],
    )
    return scatter_figure(points, _compared.leaderboard.scale, judge=_name, picked=_picked)


def _pick_point(compared: Compared) -> None:
    chosen = st.session_state[state.widget("compare_scatter")]["selection"]["points"]
    if chosen:
        state.put_in_url(item=compared.golden.item_ids[int(chosen[0]["customdata"][0])])


def _pick_row(compared: Compared) -> None:
    if (position := grid.picked(state.COMPARE_LIST)) is not None:
        state.put_in_url(item=compared.golden.item_ids[int(position)])


def _draw_list(compared: Compared, gaps: Gaps, picked: int | None) -> None:
    shown = gaps.positions[:MOST_LISTED]
    ids = [str(position) for position in shown]
    items = [compared.golden.items[position] for position in shown]
    n = len(shown)
    grid.draw(
        pd.DataFrame(
            {
                "item": [item.item_id for item in items],
                "people": gaps.labels[:n],
                "judge": gaps.scores[:n],
                "gap": gaps.gaps[:n],
            }
        ),
        {
            "item": Column(width=190),
            "people": Column(digits=2),
            "judge": Column(digits=2),
            "gap": Column(digits=2, signed=True, help="in standard deviations; above 0: too lenient"),
        },
        alt="Items, largest gap first",
        rows=11,
        key=state.COMPARE_LIST,
        ids=ids,
        chosen=None if picked is None else str(picked),
        on_pick=lambda: _pick_row(compared),
    )
    more = f" The {MOST_LISTED} with the largest gaps are listed." if len(gaps.positions) > MOST_LISTED else ""
    st.caption(f"Largest gap first, in standard deviations of each side.{more}")


def _draw_item(page: Opened, compared: Compared, entry: JudgeEntry, name: str, position: int) -> None:
    item = compared.golden.items[position]
    label, score = compared.golden.labels(compared.aspect)[position], entry.judge.values[position]
    score_words = tables.DASH if np.isnan(score) else number(score)
    with st.container(border=True):
        st.markdown(f"**{plain(item.item_id)}** · people {label:.2f} · {plain(name)} {score_words}")
        left, right = st.columns(2, gap="large")
        with left:
            label_item.draw_parts(item, compared.golden.kind)
        with right:
            _draw_others(compared, position)
            _draw_replies(page, entry, item.item_id)


def _draw_others(compared: Compared, position: int) -> None:
    """What every judge gave this item."""
    rows = compared.leaderboard.rows
    grid.draw(
        pd.DataFrame(
            {
                "judge": [row.name for row in rows],
                "score": pd.Series([compared.judge_of(row).judge.values[position] for row in rows], dtype="float64"),
            }
        ),
        {"score": Column(digits=2)},
        alt="Every judge's score of this item",
        rows=6,
    )


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept_replies(project_id: str, judge_id: str, _page: Opened) -> dict[str, tuple[str, ...]]:
    """Replies never change under a judge's id."""
    return projects.judge_replies(_page.store, project_id, judge_id)


def _draw_replies(page: Opened, entry: JudgeEntry, item_id: str) -> None:
    replies = _kept_replies(page.project.project_id, entry.judge_id, page).get(item_id, ())
    if not replies:
        if entry.judge.run_id and entry.judge.kind in ("calibrated", "no criteria"):
            link_to(
                "criteria", "The reasons of its criteria, item by item", icon=":material/rule:", run=entry.judge.run_id
            )
        else:
            st.caption("This judge left no words, only its score.")
        return
    st.markdown("**The judge's replies as they came**" if len(replies) > 1 else "**The judge's reply as it came**")
    for reply in replies[:MOST_REPLIES]:
        st.text(reply)
    if len(replies) > MOST_REPLIES:
        st.caption(f"{len(replies) - MOST_REPLIES} more replies are kept.")


def _draw_unscored(compared: Compared, row: Row, judge: JudgeScores) -> None:
    """The items whose replies could not be read, with their reasons."""
    if not judge.unscored:
        return
    part = st.expander(
        f"{len(judge.unscored):,} items of {plain(row.name)} without a score, and why",
        icon=":material/help:",
        on_change="rerun",
    )
    if part.open:
        shown = judge.unscored[:MOST_LISTED]
        with part:
            unscored = pd.DataFrame(
                {
                    "item": [verdict.item_id for verdict in shown],
                    "reason": [verdict.reason for verdict in shown],
                    "detail": [verdict.detail for verdict in shown],
                    "reply": [" ".join(verdict.raw)[:500] for verdict in shown],
                }
            )
            grid.draw(unscored, alt="Items without a score", rows=8)
