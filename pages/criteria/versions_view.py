"""Any two versions word by word, what became of each, and merging the two."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core import projects
from core.project_records import CriteriaEntry
from core.projects.edit_scoring import RescoreRequest
from core.projects.rounds import Relative
from core.word_diff import word_diff
from core.wording import number
from pages.criteria import comments_view, criteria_names, lineage_view
from pages.overview import judge_view
from pages.ui import diff_view, people, state, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

PROBLEM = state.widget("versions_problem")
MEASURE = "Scores both with the same judge on the same calibration items; held-out items are left alone."
FROM, TO = state.widget("versions_from"), state.widget("versions_to")


def draw(page: Opened, view: CriteriaEntry) -> None:
    """Two versions side by side, then all of them as a tree and a table."""
    family = projects.family_tree(page.store, page.project.project_id, view.criteria.aspect, view.golden_id)
    names = criteria_names.names_of(page, view.aspect)
    by_id = {relative.criteria.criteria_id: relative for relative in family}
    st.subheader("Compare any two versions", anchor=False)
    if len(by_id) > 1:
        _draw_pair(page, by_id, view, names)
    else:
        st.caption("There is one version so far: an edit, a merge or a refinement round makes another one.")
    st.subheader("All versions", anchor=False)
    lineage_view.draw(family, names)


def _draw_pair(page: Opened, by_id: Mapping[str, Relative], view: CriteriaEntry, names: Mapping[str, str]) -> None:
    first, second = _choose(by_id, view, names)
    if problem := st.session_state.pop(PROBLEM, ""):
        st.warning(plain(problem), icon=":material/error:")
    if first == second:
        st.info("Choose two different versions.", icon=":material/compare_arrows:")
        return
    old, new = by_id[first].criteria, by_id[second].criteria
    left, right = st.columns(2, gap="large")
    with left:
        _draw_side(page, by_id[first], names)
    with right:
        _draw_side(page, by_id[second], names)
    st.markdown("**From the left one to the right one, word by word**")
    diff_view.draw(word_diff(old.text, new.text))
    runs = [alignment.run_id for alignment in old.alignments] + [alignment.run_id for alignment in new.alignments]
    with st.container(horizontal=True):
        people.button(
            page,
            "reviewer",
            "Merge the two into a new version",
            icon=":material/merge:",
            key=state.widget("merge"),
            on_click=_merge,
            args=(page, first, second),
            help="The lines of the left one, then those that only the right one has.",
        )
        people.button(
            page,
            "reviewer",
            "Measure the right one against the left one",
            icon=":material/science:",
            key=state.widget("measure_pair"),
            on_click=_measure,
            args=(page, view, old, new, runs[0] if runs else ""),
            disabled=not runs,
            help=MEASURE,
        )


def _choose(by_id: Mapping[str, Relative], view: CriteriaEntry, names: Mapping[str, str]) -> tuple[str, str]:
    """The two versions: at first the open one and its parent (or the newest other one)."""
    ids = list(reversed(by_id))
    here = view.criteria_id if view.criteria_id in by_id else ids[0]
    parent = next((parent_id for parent_id in view.parents if parent_id in by_id), None)
    other = parent or next(criteria_id for criteria_id in ids if criteria_id != here)
    later, earlier = (other, here) if by_id[other].depth > by_id[here].depth else (here, other)
    usual = {TO: later, FROM: earlier}
    opened = state.widget("versions_opened")
    for key, version_id in usual.items():
        if st.session_state.get(key) not in by_id or st.session_state.get(opened) != here:
            st.session_state[key] = version_id
    st.session_state[opened] = here

    def words(criteria_id: str) -> str:
        relative = by_id[criteria_id]
        alignment = tables.newest_calibration(relative.criteria)
        value = None if alignment is None else alignment.alignment.value
        return f"{names[criteria_id]} · {number(value)}"

    left, right = st.columns(2, gap="large")
    first = left.selectbox("From", ids, key=FROM, format_func=words)
    second = right.selectbox("To", ids, key=TO, format_func=words)
    return str(first), str(second)


def _draw_side(page: Opened, relative: Relative, names: Mapping[str, str]) -> None:
    criteria, alignment = relative.criteria, tables.newest_calibration(relative.criteria)
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f"**{plain(names[criteria.criteria_id])}**", width="content")
            judge_view.draw_follower(page, criteria.aspect, criteria.criteria_id)
            st.space("stretch")
            link_to("criteria", "Open", icon=":material/rule:", criteria=criteria.criteria_id)
        parents = ", ".join(names[p] for p in criteria.parents if p in names)
        st.caption(
            plain(
                f"{comments_view.when(criteria.created_at)}{f' · made from {parents}' if parents else ''}"
                f"{f' · {criteria.note}' if criteria.note else ''}"
            )
        )
        figure = tables.describe_n(None if alignment is None else alignment.alignment)
        heading = tables.measure_heading(None if alignment is None else alignment.alignment)
        st.text(f"{heading}, calibration items: {figure}" if alignment is not None else "Not scored yet.")


def _merge(page: Opened, first: str, second: str) -> None:
    made: list[str] = []

    def act() -> None:
        made.append(projects.merge_criteria(page.store, page.project.project_id, first, second))

    if comments_view.attempt(act, PROBLEM):
        state.leave_notice("Merged into a new version. Read it, then measure it.", good=True)
        state.put_in_url(criteria=made[0], rescore=None)


def _measure(page: Opened, view: CriteriaEntry, old: CriteriaEntry, new: CriteriaEntry, run_id: str) -> None:
    request = RescoreRequest(
        page.project.project_id,
        view.golden_id,
        view.criteria.aspect,
        criteria_id=new.criteria_id,
        parent_id=old.criteria_id,
        run_id=run_id,
    )
    started: list[str] = []

    def act() -> None:
        started.append(projects.start_rescore(page.store, page.settings, request))

    if comments_view.attempt(act, PROBLEM):
        state.put_in_url(criteria=new.criteria_id, rescore=started[0])
