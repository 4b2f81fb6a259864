"""The judges on Compare: what is there, rename and remove, and the ways to add more."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from core import projects
from core.comparison import unique_names
from core.errors import ConcordError
from core.project_records import GoldenSummary
from pages.compare import import_view
from pages.compare.choices import Compared
from pages.ui import grid, judge_file_view, metrics_view, people, state, styles_view, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

KINDS = {
    "calibrated": "with calibrated criteria",
    "no criteria": "without criteria: the baseline",
    "style": "asked in another style",
    "imported": "brought in",
    "metric": "a metric, no judge of meaning",
    "repeval": "read from hidden states",
    "fused": "several judges fused",
}

HERE, REPLIES, METRICS, STYLES = "The judges", "A judge's replies or scores", "Classical metrics", "Judging styles"
FILE = "A RepEval file"
WAYS = (REPLIES, METRICS, STYLES, FILE)


def draw_empty(golden: GoldenSummary, aspect: str) -> None:
    """No judge yet: what to do."""
    st.info(
        f"No judge has scored {plain(aspect)} of {plain(golden.name)} yet. Calibrate one: it arrives here with its "
        "held-out items, beside the same judge without criteria. Or add replies, scores or metrics below.",
        icon=":material/leaderboard:",
    )
    link_to("calibrate", "Calibrate a judge on it", icon=":material/tune:", golden=golden.golden_id)


def draw_judges(page: Opened, compared: Compared) -> None:
    """What each judge is, to be renamed or removed, and the ways to add more; only what is chosen is drawn."""
    first = REPLIES if import_view.waiting() else HERE
    part = st.segmented_control(
        "Add judges, or change those here",
        (HERE, *WAYS),
        default=first,
        required=True,
        key=state.widget("compare_add"),
    )
    if part == HERE:
        _draw_listed(page, compared)
    else:
        _draw_way(page, compared.view, compared.aspect, part)


def _draw_listed(page: Opened, compared: Compared) -> None:
    """Each judge with where it came from, those that stand aside too."""
    judges = (*compared.shown.entries, *compared.shown.aside)
    names = dict(
        zip((entry.judge_id for entry in judges), unique_names([entry.judge for entry in judges]), strict=True)
    )
    grid.draw(
        pd.DataFrame(
            {
                "judge": list(names.values()),
                "kind": [KINDS[entry.judge.kind] for entry in judges],
                "what it is": [entry.judge.note for entry in judges],
                "scored": [entry.judge.n_scored for entry in judges],
                "labels seen": [len(entry.judge.seen) for entry in judges],
                "added": [tables.ago(entry.created_at) for entry in judges],
            }
        ),
        alt="Judges of this golden set and aspect",
    )
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        with st.popover("Rename or remove", icon=":material/edit:", key=state.closing("compare_changes")):
            _draw_changes(page, names)
        link_to("calibrate", "Calibrate another", icon=":material/tune:", golden=compared.view.golden_id,
                section="new")  # fmt: skip


def draw_adding(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """The ways to add judges where there is none."""
    way = st.segmented_control(
        "Add judges", WAYS, default=WAYS[0], required=True, key=state.widget("compare_add_first")
    )
    _draw_way(page, golden, aspect, way)


def _draw_way(page: Opened, golden: GoldenSummary, aspect: str, way: str) -> None:
    if way == REPLIES:
        import_view.draw(page, golden, aspect)
    elif way == METRICS:
        metrics_view.draw(page, golden, aspect)
    elif way == FILE:
        judge_file_view.draw(page, golden, aspect)
    else:
        styles_view.draw(page, golden, aspect)


def _draw_changes(page: Opened, names: dict[str, str]) -> None:
    key = state.widget("compare_change")
    if st.session_state.get(key) not in names:
        st.session_state.pop(key, None)
    judge_id = st.selectbox("Judge", list(names), format_func=lambda judge_id: names[judge_id], key=key)
    name = st.text_input("New name", value=names[judge_id], max_chars=120, key=state.widget(f"compare_name_{judge_id}"))
    off = not name.strip() or name == names[judge_id]
    if people.button(page, "reviewer", "Rename", disabled=off, icon=":material/save:"):
        _change(page, judge_id, name)
    sure = st.checkbox("I want this judge and its scores gone", key=state.widget(f"compare_sure_{judge_id}"))
    if people.button(page, "reviewer", "Remove", icon=":material/delete:", disabled=not sure):
        _change(page, judge_id, None)


def _change(page: Opened, judge_id: str, name: str | None) -> None:
    """Rename, or with None remove; then draw everything anew."""
    try:
        if name is None:
            projects.remove_judge(page.store, page.project.project_id, judge_id)
            state.leave_notice("The judge is removed; the run that made it stays.", good=True)
        else:
            projects.rename_judge(page.store, page.project.project_id, judge_id, name)
            state.leave_notice(f"The judge is now called {name.strip()}.", good=True)
    except ConcordError as error:
        state.leave_notice(f"Nothing was changed: {error}", good=False)
    st.rerun()
