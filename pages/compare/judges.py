"""The judges on Compare: which there are, rename and remove, and the ways to add more."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.comparison import unique_names
from core.errors import ConcordError
from core.project_records import GoldenSummary
from pages.compare import import_view, judge_file_view, styles_view
from pages.compare.choices import Compared
from pages.ui import grid, metrics_view, people, state, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

KINDS = {
    "calibrated": "with calibrated criteria",
    "no criteria": "without criteria: the baseline",
    "style": "asked in another style",
    "imported": "imported",
    "metric": "a metric, no judge of meaning",
    "repeval": "read from hidden states",
    "fused": "several judges fused",
}
HERE, REPLIES = "The judges", "A judge's replies or scores"
WAYS = {
    REPLIES: import_view.draw,
    "Classical metrics": metrics_view.draw,
    "Judging styles": styles_view.draw,
    "A RepEval file": judge_file_view.draw,
}


def draw_empty(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """No judge yet: what to do, and the ways to add one."""
    st.info(
        f"No judge has scored {plain(aspect)} of {plain(golden.name)} yet. Calibrate one: it arrives here with its "
        "held-out items, next to the same judge without criteria. Or add replies, scores or metrics below.",
        icon=":material/leaderboard:",
    )
    link_to("calibrate", "Calibrate a judge on it", icon=":material/tune:", golden=golden.golden_id)
    key = state.widget("compare_add_first")
    WAYS[st.segmented_control("Add judges", list(WAYS), default=REPLIES, required=True, key=key)](page, golden, aspect)


def draw(page: Opened, compared: Compared) -> None:
    """What each judge is, to be renamed or removed, and the ways to add more; only what is chosen is drawn."""
    part = st.segmented_control(
        "Add judges, or change those here",
        (HERE, *WAYS),
        default=REPLIES if import_view.waiting() else HERE,
        required=True,
        key=state.widget("compare_add"),
    )
    if part != HERE:
        WAYS[part](page, compared.view, compared.aspect)
        return
    judges = (*compared.shown.entries, *compared.shown.aside)
    ids = [entry.judge_id for entry in judges]
    names = dict(zip(ids, unique_names([entry.judge for entry in judges]), strict=True))
    frame = pd.DataFrame(
        {
            "judge": list(names.values()),
            "kind": [KINDS[entry.judge.kind] for entry in judges],
            "what it is": [entry.judge.note for entry in judges],
            "scored": [entry.judge.n_scored for entry in judges],
            "labels seen": [len(entry.judge.seen) for entry in judges],
            "added": [tables.ago(entry.created_at) for entry in judges],
        }
    )
    grid.draw(frame, alt="Judges of this golden set and aspect")
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        with st.popover("Rename or remove", icon=":material/edit:", key=state.closing("compare_changes")):
            _draw_changes(page, names)
        golden_id = compared.view.golden_id
        link_to("calibrate", "Calibrate another", icon=":material/tune:", golden=golden_id, section="new")


def _draw_changes(page: Opened, names: dict[str, str]) -> None:
    key = state.widget("compare_change")
    if st.session_state.get(key) not in names:
        st.session_state.pop(key, None)
    judge_id = st.selectbox("Judge", list(names), format_func=lambda judge_id: names[judge_id], key=key)
    name = st.text_input("New name", value=names[judge_id], max_chars=120, key=state.widget(f"compare_name_{judge_id}"))
    off = not name.strip() or name == names[judge_id]
    rename = people.button(page, "reviewer", "Rename", disabled=off, icon=":material/save:")
    sure = st.checkbox("I want this judge and its scores gone", key=state.widget(f"compare_sure_{judge_id}"))
    remove = people.button(page, "reviewer", "Remove", icon=":material/delete:", disabled=not sure)
    if not rename and not remove:
        return
    try:
        if remove:
            projects.remove_judge(page.store, page.project.project_id, judge_id)
            state.leave_notice("The judge is removed; the run that made it stays.", good=True)
        else:
            projects.rename_judge(page.store, page.project.project_id, judge_id, name)
            state.leave_notice(f"The judge is now called {name.strip()}.", good=True)
    except ConcordError as error:
        state.leave_notice(f"Nothing was changed: {error}", good=False)
    st.rerun()
