"""List, remove and add the judges on the Compare page."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.comparison import unique_names
from core.project_records import GoldenSummary
from core.projects.project_judges import JudgesShown
from pages.compare import import_view, styles_view
from pages.ui import grid, metrics_view, people, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

KINDS = {
    "calibrated": "with calibrated criteria",
    "no criteria": "baseline (the same judge without criteria)",
    "style": "prompted in another style",
    "imported": "imported",
    "metric": "metric (doesn't judge meaning)",
    "repeval": "predicted from hidden states",
    "fused": "fusion of several judges",
}
HERE, REPLIES = "The judges", "A judge's replies or scores"
WAYS = {
    REPLIES: import_view.draw,
    "Classical metrics": metrics_view.draw,
    "Judging styles": styles_view.draw,
}


def draw_empty(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """Draw the empty screen: the next step, and the ways to add a judge."""
    st.info(
        f"No judge has scored {plain(aspect)} in {plain(golden.name)} yet. Calibrate a judge, or add replies, scores "
        "or metrics below.",
        icon=":material/leaderboard:",
    )
    link_to("calibrate", "Calibrate a judge on this golden set", icon=":material/tune:", golden=golden.golden_id)
    key = state.widget("compare_add_first")
    WAYS[st.segmented_control("Add judges", list(WAYS), default=REPLIES, required=True, key=key)](page, golden, aspect)


def draw(page: Opened, golden: GoldenSummary, shown: JudgesShown) -> None:
    """Draw the list of judges with a Remove button, or the form that the user chose for adding a judge."""
    key = state.widget("compare_add")
    part = st.segmented_control("Add judges", (HERE, *WAYS), default=HERE, required=True, key=key)
    if part != HERE:
        WAYS[part](page, golden, shown.line.aspect)
        return
    judges = (*shown.entries, *shown.aside)
    ids = [entry.judge_id for entry in judges]
    names = dict(zip(ids, unique_names([entry.judge for entry in judges]), strict=True))
    frame = pd.DataFrame(
        {
            "judge": list(names.values()),
            "kind": [KINDS[entry.judge.kind] for entry in judges],
            "description": [entry.judge.note for entry in judges],
            "scored": [entry.judge.n_scored for entry in judges],
            "labels seen": [len(entry.judge.seen) for entry in judges],
            "added": [tables.when(entry.created_at) for entry in judges],
        }
    )
    grid.draw(frame, {"description": Column(width=200)}, alt="Judges for this golden set and aspect")
    with st.popover("Remove", icon=":material/delete:", key=state.closing("compare_changes")):
        _draw_changes(page, names)


def _draw_changes(page: Opened, names: dict[str, str]) -> None:
    project_id, key = page.project.project_id, state.widget("compare_change")
    if st.session_state.get(key) not in names:
        st.session_state.pop(key, None)
    judge_id = st.selectbox("Judge", list(names), format_func=lambda judge_id: names[judge_id], key=key)

    def remove() -> None:
        projects.remove_judge(page.store, project_id, judge_id)
        state.set_notice("The judge was deleted. Its run was kept.", good=True)

    sure = st.checkbox("Delete this judge and its scores", key=state.widget(f"compare_sure_{judge_id}"))
    people.button(page, "reviewer", "Remove", disabled=not sure, on_click=state.attempt, args=("Not removed", remove))
