"""What lies on the table of a meeting: a proposed change, an item on which judge and people part, or a question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.rounds import ListedProposal
from core.records import Item
from core.report.figures import measure_name
from core.review.meetings import Meeting, Point
from core.stats.claims import number
from core.wording import counted, word_diff
from pages.components import criteria_names, criteria_view, diff_view, label_item, state, tables
from pages.components.page import Opened
from pages.components.screens import plain

HUGE, LARGE = 320, 1_200
"""Characters up to which a text is set in the largest and in large type."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a judge gave an item, beside the people; None where there is none."""

    name: str
    score: float | None
    gap: str


def draw_subject(page: Opened, meeting: Meeting, point: Point) -> None:
    """The point in type that a projector shows to the last row."""
    item = point.item
    st.header(plain(item.title), anchor=False)
    if item.kind == "change":
        _draw_change(page, point)
    elif item.kind == "disagreement":
        _draw_disagreement(page, meeting, point)
    else:
        draw_large(item.text)


def proposal_of(page: Opened, point: Point) -> ListedProposal | None:
    """The round's proposal that the point is about, as it stands now."""
    if not point.item.run_id:
        return None
    try:
        proposals = projects.list_proposals(page.store, point.item.run_id)
    except ConcordError:
        return None
    return next((proposal for proposal in proposals if proposal.criteria.criteria_id == point.item.subject_id), None)


def draw_large(text: str) -> None:
    """The shorter, the larger; letter by letter."""
    mark = type_for(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if mark:
        st.markdown("\n\n".join(f"{mark}{plain(line)}" for line in lines), anchors=False)
    else:
        label_item.draw_text(text)


def type_for(text: str) -> str:
    """Markdown's mark of a heading for a text of that length, "" for running type."""
    return "## " if len(text) <= HUGE else "### " if len(text) <= LARGE else ""


def _draw_change(page: Opened, point: Point) -> None:
    project_id, item = page.project.project_id, point.item
    try:
        new = projects.get_criteria(page.store, project_id, item.subject_id)
        old = projects.get_criteria(page.store, project_id, item.parent_id) if item.parent_id else None
    except ConcordError as error:
        st.caption(plain(f"The text cannot be shown: {error}"))
        return
    if old is None:
        draw_large(new.text)
    else:
        diff_view.draw(word_diff(old.text, new.text), mark=type_for(new.text))
    proposal = proposal_of(page, point)
    if proposal is not None:
        words, alignments = criteria_view.difference_words, new.alignments
        if alignments:
            measure = measure_name(alignments[0].alignment.statistic, alignments[0].alignment.level)
            st.caption(f"Proposal minus parent: {measure}")
        st.markdown(f"**Inner fold** (no refiner saw these items): {plain(words(proposal.inner))}")
        st.markdown(f"**All calibration items**: {plain(words(proposal.calibration))}")
    elif item.text:
        st.text(item.text)
    made_from = counted(len(new.provenance.item_ids), "item")
    part = st.expander(f"What it was made from: {made_from}; and the text in full", on_change="rerun")
    if part.open:
        with part:
            criteria_view.draw_lines(new.text)
            criteria_view.draw_shown_items(page, new)


def _draw_disagreement(page: Opened, meeting: Meeting, point: Point) -> None:
    item = _item(page, meeting.golden_id, point.item.item_id)
    if item is None:
        st.caption(plain(f"The golden set has no item {point.item.item_id[:60]}."))
        return
    labels = label_item.kept_golden(meeting.golden_id, page.store).aspects.get(meeting.aspect)
    place = label_item.kept_golden(meeting.golden_id, page.store).item_ids.index(item.item_id)
    label = None if labels is None else labels.values[place]
    judged = _judged(page, meeting, point, place)
    with st.container(horizontal=True, gap="large"):
        st.metric("People", number(label), width="content")
        st.metric(
            f"Judge: {plain(judged.name)}",
            number(judged.score),
            width="content",
        )
        if judged.gap:
            st.metric("The judge is", judged.gap, width="content")
    kind = label_item.kind_of(meeting.golden_id, page.store)
    if kind == "pair":
        label_item.draw_target(item, kind)
    else:
        with st.container(border=True):
            draw_large(item.target)
    st.text(point.item.text)
    label_item.draw_beside(item, kind)
    _offer_reasons(page, point, item)


def _item(page: Opened, golden_id: str, item_id: str) -> Item | None:
    golden = label_item.kept_golden(golden_id, page.store)
    return label_item.item_of(golden_id, page.store, item_id) if item_id in golden.item_ids else None


def _judged(page: Opened, meeting: Meeting, point: Point, place: int) -> _Judged:
    """What the criteria, or the registered judge, that the point names gave the item."""
    project_id, subject = page.project.project_id, point.item.subject_id
    try:
        if (run_id := _run_of(page, subject)) is not None:
            scored = projects.item_scores(page.store, run_id, subject)
            item = next((item for item in scored if item.item_id == point.item.item_id), None)
            criteria = projects.get_criteria(page.store, project_id, subject).criteria
            name = tables.name_of(criteria, criteria_names.names_of(page, criteria.aspect))
            return _Judged(name, None, "") if item is None else _Judged(name, item.score, tables.gap_words(item))
        judge = projects.get_judge(page.store, project_id, subject).judge
        value = float(judge.values[place])
        return _Judged(judge.name, None if np.isnan(value) else value, "")
    except ConcordError:
        return _Judged(subject[:20] or "unknown", None, "")


def _run_of(page: Opened, criteria_id: str) -> str | None:
    try:
        alignments = projects.get_criteria(page.store, page.project.project_id, criteria_id).alignments
    except ConcordError:
        return None
    return next((alignment.run_id for alignment in alignments if alignment.side == "calibration"), None)


def _offer_reasons(page: Opened, point: Point, item: Item) -> None:
    """The judge's words, asked for only when somebody wants to read them."""
    part = st.expander("The judge's reasons", on_change="rerun", key=state.widget("meeting_reasons"))
    if not part.open:
        return
    with part:
        run_id = _run_of(page, point.item.subject_id)
        if run_id is None:
            st.caption("No run keeps this judge's reasons.")
            return
        try:
            explained = projects.explain_item(page.store, page.settings, run_id, point.item.subject_id, item.item_id)
        except ConcordError as error:
            st.caption(plain(str(error)))
            return
        st.text(explained.explanation or "The judge gave no reasons.")
