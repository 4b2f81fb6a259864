"""What came of a meeting, when it is over: each decision that yields criteria, all decisions, the minutes."""

from __future__ import annotations

import re
from collections.abc import Callable

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.meetings import DecidedCriteria
from core.review.meetings import Meeting, Point
from core.wording import counted, word_diff
from pages.components import diff_view, meeting_votes, state
from pages.components.page import Opened
from pages.components.screens import plain

COLOURS = {"accepted": "green", "rejected": "red", "postponed": "gray"}
MakeJudge = Callable[[Opened, str], None]


def draw(page: Opened, meeting: Meeting, make_judge: MakeJudge, read_points: Callable[[], None]) -> None:
    """`make_judge` draws what leads from decided criteria to a judge; `read_points` turns to the first point."""
    taken = projects.decided_criteria(page.store, page.project.project_id, meeting.meeting_id)
    decided = sum(point.decision is not None and point.decision.verdict != "postponed" for point in meeting.points)
    n = counted(len(meeting.points), "point")
    words = {0: "no text was taken", 1: "one text was taken"}.get(len(taken), f"{len(taken)} texts were taken")
    st.header(f"{decided} of {n} decided; {words}", anchor=False)
    for decision in taken:
        _draw_taken(page, decision, make_judge)
    others = [k for k in range(len(meeting.points)) if k not in {decision.point for decision in taken}]
    if others:
        st.subheader("Other points" if taken else "Points", anchor=False)
    for k in others:
        _draw_other(k, meeting.points[k])
    with st.container(horizontal=True, gap="small"):
        _draw_download(page, meeting)
        icon, key = ":material/menu_book:", state.widget("meeting_points")
        st.button("Read the points again", icon=icon, key=key, on_click=read_points)
    part = st.expander("Minutes", icon=":material/description:", on_change="rerun", key=state.widget("minutes"))
    if part.open:
        with part, st.container(border=True):
            text = projects.meeting_minutes(page.store, page.project.project_id, meeting.meeting_id)
            st.markdown(as_preview(text), anchors=False)


def _draw_other(k: int, point: Point) -> None:
    decision = point.decision
    colour = "gray" if decision is None else COLOURS[decision.verdict]
    reason = "" if decision is None else f" {plain(decision.reason)}"
    words = meeting_votes.decided_words(point)
    st.markdown(f"{k + 1}\\. **{plain(point.item.title)}** :{colour}-badge[{words}]{reason}")


def _draw_taken(page: Opened, decision: DecidedCriteria, make_judge: MakeJudge) -> None:
    """One text that the meeting took, what it changes, and the way on."""
    project_id = page.project.project_id
    with st.container(border=True), st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        with st.container(width="stretch"):
            edited = ", edited in the meeting" if decision.edited else ""
            st.markdown(f"**{plain(decision.title)}** :green-badge[accepted{edited}] {plain(decision.reason)}")
            try:
                new = projects.get_criteria(page.store, project_id, decision.criteria_id)
                old = projects.get_criteria(page.store, project_id, new.parents[0]).text if new.parents else new.text
            except ConcordError as error:
                st.caption(plain(f"The text cannot be shown: {error}"))
                return
            with st.expander("The text, with what changed"):
                diff_view.draw(word_diff(old, new.text))
        make_judge(page, decision.criteria_id)


def _draw_download(page: Opened, meeting: Meeting) -> None:
    where = (page.project.project_id, meeting.meeting_id)
    st.download_button(
        "Download the minutes",
        data=lambda: projects.meeting_minutes(page.store, *where),
        file_name="minutes.md",
        mime="text/markdown",
        icon=":material/download:",
        on_click="ignore",
    )


def as_preview(minutes: str) -> str:
    """Minutes as this program's Markdown shows them: what elsewhere is plain (`$`, `:`, addresses) stays plain here."""
    joined = re.sub(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?=@)", "\u2060", minutes)
    return re.sub(r"([$:])", r"\\\1", joined)
