"""Draw the effect of an edit or a refinement: changed words and items, and agreement compared with the parent."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.criteria import RescoreRequest
from core.projects.start_and_resume import RunDetail
from core.word_diff import word_diff
from core.wording import counted
from pages.ui import diff_view, run_panel, state, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

SOON = 0.3
"""Seconds between two looks at a re-scoring: an offline judge is done within two."""


def rescore_of(page: Opened, entry: CriteriaEntry) -> str | None:
    """Return the run that scored these criteria and their parent: the one in the URL, else the newest, else None."""
    about = f'"criteria_id":"{entry.criteria_id}"'
    runs = page.store.runs.all(page.project.project_id)
    # after a change of model, an earlier re-scoring says nothing about the judge of today
    judges = {run.judge_spec for run in runs if run.run_id in entry.runs[:1]}
    newest = (
        run.run_id
        for run in runs
        if run.kind == "rescore" and about in run.request_json and (run.judge_spec in judges or not judges)
    )
    return state.url_id("rescore") or next(newest, None)


def run_of(page: Opened, rescore_id: str | None) -> RunDetail | None:
    """Return the re-scoring of an edit on calibration items; None if it can't be read or `rescore_id` is None."""
    with suppress(ConcordError):
        return None if rescore_id is None else run_panel.read_run(page, rescore_id)
    return None


def draw(
    page: Opened, entry: CriteriaEntry, names: Mapping[str, str], rescore_id: str | None, *, scoring: bool
) -> None:
    """Draw the effect of an edit and the changed words, or the progress of the re-scoring.

    `scoring` says whether the re-scoring was running when the headline was drawn.
    """
    if rescore_id is None:
        parent_id = next(iter(entry.parents), "")
        _draw_known(page, entry, names, parent_id=parent_id, run_id=_scored_together(page, entry, parent_id))
        return
    try:
        if run_panel.read_run(page, rescore_id).finished and scoring:
            st.rerun()  # the headline is older than the result
    except ConcordError as error:
        st.error(plain(str(error)), title="Concord can't show the result of re-scoring", icon=":material/error:")
        return

    def show(now: RunDetail) -> None:
        if now.status == "done":
            parent_id = now.request.parent_id if isinstance(now.request, RescoreRequest) else ""
            if now.outcome.unread:
                st.warning(plain(now.outcome.unread), icon=":material/visibility_off:")
            _draw_known(page, entry, names, parent_id=parent_id, run_id=now.run_id)
            return
        st.markdown("**Not scored**" if now.finished else "**Scoring the edit and its parent version** …")
        run_panel.draw_status(page, now)

    run_panel.follow_run(page, rescore_id, show, every=SOON)


def _scored_together(page: Opened, entry: CriteriaEntry, parent_id: str) -> str:
    """Return the run that measured these criteria last, if it also scored the parent; else ""."""
    newest = tables.newest_calibration(entry)
    with suppress(ConcordError):
        if newest and newest.run_id in page.store.criteria.get(page.project.project_id, parent_id).runs:
            return newest.run_id
    return ""


@st.cache_resource(max_entries=128, show_spinner=False)
def _changes(run_id: str, criteria_id: str, parent_id: str, _page: Opened) -> dict[str, bool]:
    """Return the items that changed, cached because scores of a finished run don't change."""
    return projects.item_changes(_page.store, run_id, criteria_id, parent_id)


def _draw_known(
    page: Opened,
    entry: CriteriaEntry,
    names: Mapping[str, str],
    *,
    parent_id: str,
    run_id: str,
) -> None:
    if run_id:
        with suppress(ConcordError):
            became = _changes(run_id, entry.criteria_id, parent_id, page)
            n_broken = sum(became.values())
            fixed = f"{counted(len(became) - n_broken, 'misaligned item')} fixed, {n_broken} new"
            st.markdown(f"**{fixed}** compared with {plain(names.get(parent_id, 'its parent'))}")
    if parent_id:
        try:
            parent = page.store.criteria.get(page.project.project_id, parent_id)
        except ConcordError:
            st.caption("The parent version isn't in this project.")
            return
        diff_view.draw(word_diff(parent.text, entry.text), changed_only=True)
    with st.container(horizontal=True, vertical_alignment="center"):
        if parent_id:
            link_to("criteria", "Open the parent", icon=":material/arrow_upward:", criteria=parent_id)
        if entry.alignments:
            ids = {"criteria": entry.criteria_id} | ({"run": run_id} if run_id else {})
            link_to("misaligned", "Where the judge and raters disagree", icon=":material/difference:", **ids)
