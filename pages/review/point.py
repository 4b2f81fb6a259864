"""Draw one point of a review in large type: a changed text or a misaligned item."""

from __future__ import annotations

import math

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.review import Point
from core.word_diff import word_diff
from core.wording import number
from pages.criteria import criteria_text
from pages.label import label_item
from pages.ui import diff_view, state, tables
from pages.ui.page import Opened
from pages.ui.screens import plain

LARGE = 1_200
"""Characters up to which a text is set in large type."""


def draw(page: Opened, where: tuple[str, str, str], point: Point) -> None:
    """Draw one point of a review; `where` is its project, golden set and aspect."""
    st.header(plain(point.title), anchor=False)
    try:
        about = page.store.criteria.get(page.project.project_id, point.subject_id)
    except ConcordError as error:  # the item may have been triaged for a judge without criteria
        if not point.item_id:
            st.caption(plain(f"Concord can't show the text: {error}"))
            return
        about = None
    if about is None or point.item_id:
        _draw_disagreement(page, where, point, about)
        return
    old = page.store.criteria.get(page.project.project_id, point.parent_id)
    diff_view.draw(word_diff(old.text, about.text), large=len(about.text) <= LARGE)
    st.text(point.text)
    part = st.expander("The new criteria in full", on_change="rerun")
    if part.open:
        with part:
            criteria_text.draw_lines(about.text)
            criteria_text.draw_shown_items(page, about)


def _draw_disagreement(page: Opened, where: tuple[str, str, str], point: Point, about: CriteriaEntry | None) -> None:
    project_id, golden_id, aspect = where
    golden = label_item.cached_golden(golden_id, page.store)
    if point.item_id not in golden.item_ids:
        st.caption(plain(f"The golden set has no item {point.item_id[:60]}."))
        return
    place = golden.item_ids.index(point.item_id)
    item = golden.items[place]
    run_id = next((each.run_id for each in about.alignments if each.side == "calibration"), "") if about else ""
    name, score, gap = "unknown", math.nan, ""
    try:
        if about is not None:
            name = projects.criteria_references(page.store, project_id, aspect)[about.criteria_id]
            scored = projects.item_scores(page.store, run_id, point.subject_id).by_id.get(point.item_id)
            if scored is not None:
                score, gap = math.nan if scored.score is None else scored.score, tables.gap_words(scored)
        else:
            judge = page.store.judges.get(project_id, point.subject_id).judge
            name, score = judge.name, float(judge.values[place])
    except ConcordError:  # never scored, or deleted: shown as "—"
        pass
    with st.container(horizontal=True, gap="large"):
        st.metric("Raters", number(golden.labels(aspect)[place]), width="content")
        st.metric(f"Judge: {plain(name)}", number(score), width="content")
        if gap:
            st.metric("The judge is", gap, width="content")
    if golden.kind == "pair" or len(item.target) > LARGE:
        label_item.draw_target(item, golden.kind)
    else:
        with st.container(border=True):
            lines = [line.strip() for line in item.target.splitlines() if line.strip()]
            st.markdown("\n\n".join(f"### {plain(line)}" for line in lines), anchors=False)
    st.text(point.text)
    label_item.draw_beside(item, golden.kind)
    part = st.expander("The judge's reasons", on_change="rerun", key=state.widget(f"reasons_{point.key}"))
    if part.open and not run_id:
        part.caption("No run recorded this judge's reasons.")
    elif part.open:
        try:
            explanation, _ = projects.explain_item(page.store, page.settings, run_id, point.subject_id, item.item_id)
        except ConcordError as error:
            part.caption(plain(str(error)))
        else:
            part.text(explanation or "The judge gave no reasons.")
