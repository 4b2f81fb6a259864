"""Criteria tried on one item: what the judge is asked, and what it replies. Nothing is saved."""

from __future__ import annotations

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import WITH_RESULT, CriteriaEntry
from core.projects.refining import TrialRequest
from core.projects.run_kinds import RunDetail
from core.wording import number
from pages.label import label_item
from pages.ui import run_panel, state
from pages.ui.page import Opened
from pages.ui.screens import plain

SOON = 0.3
SCORING = ("calibration", "version", "rescore", "round")


def judge_of(page: Opened, entry: CriteriaEntry) -> str:
    """The run whose judge is asked: that in the URL, the newest that scored the criteria, or the newest calibration."""
    scored = [page.store.runs.get(run_id) for run_id in entry.runs]
    others = projects.calibrations_of(page.store, page.project.project_id, entry.golden_id, entry.aspect)
    able = (
        run.run_id
        for run in (*scored, *others)
        if run.kind in SCORING and run.status in WITH_RESULT and run.golden_id == entry.golden_id
        if not page.project.came_with(run)
    )
    return min(able, key=lambda run_id: run_id != state.url_id("run"), default="")


@st.cache_data(max_entries=32, show_spinner=False)
def items_of(run_id: str, _page: Opened) -> tuple[str, ...]:
    """The items that the judge of a run may be tried on: all that are not held out."""
    return projects.trial_items(_page.store, run_id)


def choose_item(page: Opened, entry: CriteriaEntry, run_id: str) -> str:
    """The item in the URL, else the first; held-out ones are not offered."""
    ids, wanted = items_of(run_id, page), state.url_id("item")
    if wanted and wanted not in ids:
        st.caption("The linked item is held out or not in this golden set. Choose a calibration item.")

    def words(item_id: str) -> str:
        target = label_item.item_of(entry.golden_id, page.store, item_id).target
        return f"{' '.join(target[:80].split())} … · {item_id}"

    place = ids.index(wanted) if wanted in ids else 0
    return str(st.selectbox("Item to try it on", ids, place, key=state.widget(f"trial_{wanted}"), format_func=words))


def start(page: Opened, entry: CriteriaEntry, run_id: str, item_id: str, text: str) -> None:
    """Ask the judge for the score of one item under `text`."""
    where = (page.project.project_id, entry.golden_id, entry.aspect)
    request = TrialRequest(*where, run_id, item_id, text, criteria_id=entry.criteria_id)
    trial_id = projects.start_trial(page.store, page.settings, request)
    state.put_in_url(trial=trial_id, item=item_id)


def draw(page: Opened, entry: CriteriaEntry) -> bool:
    """The trial in the URL with its item, while the text is edited also an item without one; whether there is such."""
    trial_id, item_id = state.url_id("trial"), state.url_id("item") if state.url_id("edit") else None
    if trial_id:
        try:
            request = run_panel.read_run(page, trial_id).request
        except ConcordError as error:
            st.error(plain(str(error)), title="This trial cannot be shown", icon=":material/error:")
            return True
        item_id = request.item_id if isinstance(request, TrialRequest) else None
        run_panel.follow_run(page, trial_id, lambda now: _draw_result(page, entry, now), every=SOON)
    offered = judge_of(page, entry)
    if item_id is None or not offered or item_id not in items_of(offered, page):
        return bool(trial_id)
    with st.container(border=True):
        item = label_item.item_of(entry.golden_id, page.store, item_id)
        label_item.draw_parts(item, label_item.kind_of(entry.golden_id, page.store))
    return True


def _draw_result(page: Opened, entry: CriteriaEntry, now: RunDetail) -> None:
    result, request = now.trial, now.request
    if result is None or not isinstance(request, TrialRequest):
        st.markdown("**The judge was not asked**" if now.finished else "**Asking the judge** …")
        run_panel.draw_status(page, now)
        return
    golden = label_item.kept_golden(entry.golden_id, page.store)
    label = golden.labels(entry.aspect)[golden.item_ids.index(request.item_id)]
    st.markdown(f"**The judge gives {number(result.score)}; raters gave {number(label)}.**")
    if result.score is None:
        st.warning(plain(f"No score: {result.reason}"), icon=":material/help:")
    st.caption(plain(f"Item {request.item_id}. {result.notice}"))
    if result.explanation:
        st.text(result.explanation)
    for reply in result.replies:
        with st.expander("Raw reply", expanded=not result.explanation):
            st.text(reply)
    for prompt in result.prompts:
        with st.expander("Prompt as sent", icon=":material/send:"):
            for message in prompt:
                st.caption(plain(message.role))
                st.text(message.content)
