"""Item by item under some criteria: where judge and people part, and which words moved the score."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.misaligned_items import ExplainedItem, ItemScore
from core.records import ItemKind
from core.wording import counted, number
from pages.label import label_item
from pages.ui import grid, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

MOST_ITEMS = 500


def draw_items(page: Opened, view: CriteriaEntry) -> None:
    """The calibration items by size of the gap; a marked row opens the item with the judge's words."""
    run_id = next((alignment.run_id for alignment in view.alignments if alignment.side == "calibration"), None)
    if run_id is None:
        return
    st.subheader("Item by item", anchor=False)
    try:
        scored = projects.item_scores(page.store, run_id, view.criteria_id)
    except ConcordError as error:
        st.caption(plain(f"The items cannot be shown: {error}"))
        return
    st.markdown(_count_words(scored))
    ids = {"run": run_id, "criteria": view.criteria_id}
    link_to("misaligned", "Read and triage them in Misaligned", icon=":material/difference:", **ids)
    picked = _choose_item(scored[:MOST_ITEMS])
    if picked is None:
        st.caption("Mark a row to read the item and what moved its score.")
        return
    try:
        explained = projects.explain_item(page.store, page.settings, run_id, view.criteria_id, picked)
        _draw_item(explained, label_item.kind_of(view.golden_id, page.store))
    except ConcordError as error:
        st.error(plain(f"This item cannot be shown. {error}"), icon=":material/error:")


def _count_words(scored: tuple[ItemScore, ...]) -> str:
    words = [tables.gap_words(item) for item in scored if item.gap is not None]
    unread = len(scored) - len(words)
    counts = ", ".join(f"{words.count(name)} {name}" for name in ("aligned", "too lenient", "too strict"))
    shown = f" The {MOST_ITEMS} with the largest gaps are listed." if len(scored) > MOST_ITEMS else ""
    return (
        f"{counted(len(scored), 'calibration item')}: {counts}{f', {unread} unread' if unread else ''}. "
        f"The gap is in standard deviations of each side; under {tables.ALIGNED_GAP:g} counts as aligned.{shown}"
    )


def _choose_item(scored: tuple[ItemScore, ...]) -> str | None:
    ids = [item.item_id for item in scored]
    picked = grid.picked(state.ITEMS)
    picked = picked if picked in ids else None
    number = Column(digits=2)
    grid.draw(
        tables.item_scores_frame(scored),
        {"raters": number, "judge": number, "gap": Column(digits=2, signed=True)},
        alt="Calibration items, largest gap first",
        rows=8,
        key=state.ITEMS,
        pick=grid.Pick(ids, picked),
    )
    return picked


def _draw_item(view: ExplainedItem, kind: ItemKind) -> None:
    score = number(view.score.score)
    with st.container(border=True):
        st.markdown(f"**{plain(view.item.item_id)}** · raters {number(view.score.label)} · judge {score}")
        left, right = st.columns(2, gap="large")
        with left:
            label_item.draw_parts(view.item, kind)
        with right:
            st.markdown("**What moved the score**" if view.score.score is not None else "**Why it was not read**")
            st.text(view.explanation or tables.gap_words(view.score))
            for reply in view.raw:
                if reply.strip() == view.explanation.strip():
                    continue
                st.caption("The raw reply")
                st.text(reply)
