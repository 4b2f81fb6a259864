"""A judge compared with the raters, item by item: a scatter, a list by gap, and the item behind each row."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from core.comparison import Row
from core.project_records import JudgeEntry
from core.records import FloatArray
from core.report.figures.comparison import scatter_figure
from core.wording import number
from pages.compare.choices import Compared
from pages.label import label_item
from pages.ui import charts, grid, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

if TYPE_CHECKING:
    from core.report.figures import Drawing

MOST_POINTS, MOST_LISTED, MOST_REPLIES = 3_000, 500, 20
GAP = "in standard deviations; above 0: too lenient"


def draw(page: Opened, compared: Compared, row: Row, entry: JudgeEntry) -> None:
    """Draw the scatter next to the list; a row opens its item."""
    frame = _gaps((compared.key, entry.judge_id), compared, entry)
    if frame.empty:
        st.info("This judge has no item here with a score and a label.", icon=":material/scatter_plot:")
    else:
        wanted = state.url_id("item")
        known = frame.index[frame["item"] == wanted]
        picked = int(known[0]) if len(known) else None
        left, right = st.columns(2, gap="medium")
        with left:
            figure = _scatter((compared.key, entry.judge_id, picked), compared, row.name, frame, picked)
            charts.place(figure, key="compare_scatter", alt="The judge's score against the raters' label")
            if len(frame) > MOST_POINTS:
                st.caption(f"{MOST_POINTS:,} of {len(frame):,} items are drawn, evenly over the gaps.")
        with right:

            def pick_row() -> None:
                if (position := grid.picked(state.COMPARE_LIST)) is not None:
                    state.put_in_url(item=compared.golden.item_ids[int(position)])

            listed = frame.head(MOST_LISTED)
            grid.draw(
                listed,
                {
                    "item": Column(width=190),
                    **{name: Column(digits=2) for name in ("raters", "judge")},
                    "gap": Column(digits=2, signed=True, help=GAP),
                },
                alt="Items, largest gap first",
                rows=11,
                key=state.COMPARE_LIST,
                pick=grid.Pick(
                    [str(position) for position in listed.index], None if picked is None else str(picked), pick_row
                ),
            )
            more = f" The {MOST_LISTED} with the largest gaps are listed." if len(frame) > MOST_LISTED else ""
            st.caption(f"Largest gap first, in standard deviations of each side.{more}")
        if picked is None:
            st.caption("Mark a row to read the item. An item that you read here is no longer unseen.")
        else:
            _draw_item(page, compared, entry, row.name, picked)
    if unscored := entry.judge.unscored:
        words = f"{len(unscored):,} items of {plain(row.name)} without a score, and why"
        with st.expander(words, icon=":material/help:"):
            told = [
                {"item": each.item_id, "reason": each.reason, "detail": each.detail, "reply": " ".join(each.raw)[:500]}
                for each in unscored[:MOST_LISTED]
            ]
            grid.draw(pd.DataFrame(told), alt="Items without a score", rows=8)


@st.cache_resource(max_entries=64, show_spinner=False)
def _gaps(key: Hashable, _compared: Compared, _entry: JudgeEntry) -> pd.DataFrame:
    """The items used by position, largest gap first: standardised score minus standardised label."""

    def standardised(values: FloatArray) -> FloatArray:
        spread = values.std() if values.size else 0.0
        return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)

    at, golden, judge = _compared.leaderboard.pool.positions, _compared.golden, _entry.judge
    labels = golden.labels(_compared.aspect)[at]
    gaps = standardised(judge.upward[at]) - standardised(labels)
    names = [golden.item_ids[position] for position in at]
    frame = pd.DataFrame({"item": names, "raters": labels, "judge": judge.values[at], "gap": gaps}, index=at)
    return frame.iloc[np.argsort(-np.abs(gaps), kind="stable")]


@st.cache_resource(max_entries=64, show_spinner=False)
def _scatter(key: Hashable, _compared: Compared, _name: str, _frame: pd.DataFrame, _picked: int | None) -> Drawing:
    n = len(_frame)
    shown = _frame.iloc[np.unique(np.linspace(0, n - 1, min(n, MOST_POINTS)).astype(int))]
    place = shown.index.get_loc(_picked) if _picked in shown.index else None
    labels, scores = shown["raters"].to_numpy(), shown["judge"].to_numpy()
    return scatter_figure(labels, scores, scale=_compared.leaderboard.scale, of=_name, picked=place)


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept_replies(project_id: str, judge_id: str, _page: Opened) -> dict[str, tuple[str, ...]]:
    """Replies never change under a judge's id."""
    return _page.store.judges.replies(project_id, judge_id)


def _draw_item(page: Opened, compared: Compared, entry: JudgeEntry, name: str, position: int) -> None:
    """An item in full, what every judge gave it, and the judge's own words."""
    item = compared.golden.items[position]
    label, score = compared.golden.labels(compared.aspect)[position], entry.judge.values[position]
    score_words = tables.DASH if np.isnan(score) else number(score)
    with st.container(border=True):
        st.markdown(f"**{plain(item.item_id)}** · raters {label:.2f} · {plain(name)} {score_words}")
        left, right = st.columns(2, gap="large")
        with left:
            label_item.draw_parts(item, compared.golden.kind)
        with right:
            rows = compared.leaderboard.rows
            scores = [compared.judge_of(row).judge.values[position] for row in rows]
            given = {"judge": [row.name for row in rows], "score": scores}
            grid.draw(given, {"score": Column(digits=2)}, alt="Every judge's score of this item", rows=6)
            replies = _kept_replies(page.project.project_id, entry.judge_id, page).get(item.item_id, ())
            run_id = entry.judge.run_id
            if replies:
                words = "raw replies" if len(replies) > 1 else "raw reply"
                st.markdown(f"**The judge's {words}**")
            elif run_id and entry.judge.kind in ("calibrated", "no criteria"):
                words = "The reasons of its criteria, item by item"
                link_to("criteria", words, icon=":material/rule:", run=run_id)
            else:
                st.caption("This judge left no words, only its score.")
            for reply in replies[:MOST_REPLIES]:
                st.text(reply)
            if len(replies) > MOST_REPLIES:
                st.caption(f"{len(replies) - MOST_REPLIES} more replies are kept.")
