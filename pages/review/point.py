"""The point that is open, in type that a projector shows to the last row: a changed text, or a misaligned item."""

from __future__ import annotations

import numpy as np
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.review import Point
from core.word_diff import word_diff
from core.wording import counted, number
from pages.criteria import criteria_names, criteria_view
from pages.label import label_item
from pages.ui import diff_view, state, tables
from pages.ui.page import Opened
from pages.ui.screens import plain

HUGE, LARGE = 320, 1_200
"""Characters up to which a text is set in the largest and in large type."""


def draw(page: Opened, where: tuple[str, str, str], point: Point) -> None:
    """`where` are the project, golden set and aspect."""
    st.header(plain(point.title), anchor=False)
    try:
        about = page.store.criteria.get(page.project.project_id, point.subject_id)
    except ConcordError as error:  # an item may have been triaged under a judge that is no criteria
        if point.kind == "change":
            st.caption(plain(f"The text cannot be shown: {error}"))
            return
        about = None
    if about is not None and point.kind == "change":
        _draw_change(page, point, about)
    else:
        _draw_disagreement(page, where, point, about)


def type_for(text: str) -> str:
    """Markdown's mark of a heading for a text of that length, "" for running type."""
    return "## " if len(text) <= HUGE else "### " if len(text) <= LARGE else ""


def _draw_change(page: Opened, point: Point, new: CriteriaEntry) -> None:
    old = page.store.criteria.get(page.project.project_id, point.parent_id)
    diff_view.draw(word_diff(old.text, new.text), mark=type_for(new.text))
    st.text(point.text)
    made_from = counted(len(new.provenance.item_ids), "item")
    part = st.expander(f"What it was made from: {made_from}; and the text in full", on_change="rerun")
    if part.open:
        with part:
            criteria_view.draw_lines(new.text)
            criteria_view.draw_shown_items(page, new)


def _draw_disagreement(page: Opened, where: tuple[str, str, str], point: Point, about: CriteriaEntry | None) -> None:
    _, golden_id, aspect = where
    golden = label_item.kept_golden(golden_id, page.store)
    if point.item_id not in golden.item_ids:
        st.caption(plain(f"The golden set has no item {point.item_id[:60]}."))
        return
    place = golden.item_ids.index(point.item_id)
    item, labels = golden.items[place], golden.aspects.get(aspect)
    run_id = next((each.run_id for each in about.alignments if each.side == "calibration"), "") if about else ""
    name, score, gap = _judged(page, point, about, run_id, place)
    with st.container(horizontal=True, gap="large"):
        st.metric("People", number(None if labels is None else labels.values[place]), width="content")
        st.metric(f"Judge: {plain(name)}", number(score), width="content")
        if gap:
            st.metric("The judge is", gap, width="content")
    kind = label_item.kind_of(golden_id, page.store)
    if kind == "pair":
        label_item.draw_target(item, kind)
    else:
        with st.container(border=True):
            if mark := type_for(item.target):
                lines = [line.strip() for line in item.target.splitlines() if line.strip()]
                st.markdown("\n\n".join(f"{mark}{plain(line)}" for line in lines), anchors=False)
            else:
                label_item.draw_text(item.target)
    st.text(point.text)
    label_item.draw_beside(item, kind)
    part = st.expander("The judge's reasons", on_change="rerun", key=state.widget(f"reasons_{point.key}"))
    if part.open and not run_id:
        part.caption("No run keeps this judge's reasons.")
    elif part.open:
        try:
            explained = projects.explain_item(page.store, page.settings, run_id, point.subject_id, item.item_id)
        except ConcordError as error:
            part.caption(plain(str(error)))
        else:
            part.text(explained.explanation or "The judge gave no reasons.")


def _judged(
    page: Opened, point: Point, about: CriteriaEntry | None, run_id: str, place: int
) -> tuple[str, float | None, str]:
    """Name of the criteria or judge that the item was triaged under, its score, and the gap in words."""
    try:
        if about is not None:
            name = tables.name_of(about.criteria, criteria_names.names_of(page, about.aspect))
            scored = projects.item_scores(page.store, run_id, point.subject_id) if run_id else ()
            item = next((item for item in scored if item.item_id == point.item_id), None)
            return (name, None, "") if item is None else (name, item.score, tables.gap_words(item))
        judge = page.store.judges.get(page.project.project_id, point.subject_id).judge
    except ConcordError:
        return point.subject_id[:20] or "unknown", None, ""
    value = float(judge.values[place])
    return judge.name, None if np.isnan(value) else value, ""
