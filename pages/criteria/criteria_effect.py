"""What an edit or a refinement changed: the words, the items, and the agreement next to the parent's."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.edit_scoring import MOST_CHANGED, ChangedItem, PairedDifference, RescoreResult
from core.projects.run_kinds import RunDetail
from core.records import Alignment
from core.report.figures import measure_name
from core.stats import claim
from core.word_diff import word_diff
from core.wording import counted, difference_figures, number
from pages.ui import diff_view, run_panel, state, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

SOON = 0.3
"""Seconds between two looks at a re-scoring: an offline judge is done within two."""


def difference_words(difference: PairedDifference) -> str:
    """Whether the difference is significant on these items, with its figures."""
    figures = difference_figures(difference.value, difference.interval, difference.p)
    words = f"{figures}, n = {difference.n:,}"
    return {
        "undefined": "The difference is undefined on these items.",
        "untested": f"{words}.",
        "higher": f"{words}: a significant gain on these items.",
        "lower": f"{words}: a significant loss on these items.",
        "open": f"{words}: not significant on these items.",
    }[claim(difference.value, difference.interval, difference.p)]


def rescore_of(page: Opened, entry: CriteriaEntry) -> str | None:
    """The run that scored these criteria next to their parent: the one in the URL, else the newest."""
    about = f'"criteria_id":"{entry.criteria_id}"'
    runs = projects.list_runs(page.store, page.project.project_id)
    newest = next((run.run_id for run in runs if run.kind == "rescore" and about in run.request_json), None)
    return state.url_id("rescore") or newest


def is_scoring(page: Opened, rescore_id: str | None) -> bool:
    """Whether that run has not finished yet."""
    try:
        return rescore_id is not None and not run_panel.read_run(page, rescore_id).finished
    except ConcordError:
        return False


def draw(page: Opened, entry: CriteriaEntry, names: Mapping[str, str], rescore_id: str | None) -> None:
    """The effect and the words that changed, or how far the scoring is."""
    if rescore_id is None:
        _draw_known(page, entry, names, "", _scored_together(page, entry))
        return
    try:
        run_panel.read_run(page, rescore_id)
    except ConcordError as error:
        st.error(plain(str(error)), title="This re-scoring cannot be shown", icon=":material/error:")
        return

    def show(now: RunDetail) -> None:
        if now.status == "done":
            _draw_known(page, entry, names, now.run_id, now.rescore)
            return
        st.markdown("**Not scored**" if now.finished else "**Scoring the edit and its parent** …")
        run_panel.draw_status(page, now)

    run_panel.follow_run(page, rescore_id, show, every=SOON)


def _scored_together(page: Opened, entry: CriteriaEntry) -> RescoreResult | None:
    """What the newest round or calibration that scored both gave criteria and parent; no difference was tested."""

    def measured(each: CriteriaEntry) -> dict[str, Alignment]:
        return {a.run_id: a.alignment for a in each.alignments if a.side == "calibration"}

    try:
        for parent_id in entry.parents[:1]:
            before, after = measured(page.store.criteria.get(page.project.project_id, parent_id)), measured(entry)
            for run_id in after:
                if run_id in before and before[run_id].n == after[run_id].n:
                    changed = _changes(run_id, entry.criteria_id, parent_id, page)
                    untested = PairedDifference(None, None, None, 0)
                    ids = (entry.criteria_id, parent_id)
                    return RescoreResult(*ids, before[run_id], after[run_id], untested, changed)
    except ConcordError:
        pass
    return None


@st.cache_resource(max_entries=128, show_spinner=False)
def _changes(run_id: str, criteria_id: str, parent_id: str, _page: Opened) -> tuple[ChangedItem, ...]:
    """The scores of a finished run do not change."""
    return projects.item_changes(_page.store, run_id, criteria_id, parent_id)


def _draw_known(
    page: Opened, entry: CriteriaEntry, names: Mapping[str, str], rescore_id: str, result: RescoreResult | None
) -> None:
    parent_id = result.parent_id if result is not None else next(iter(entry.parents), None)
    if result is not None:
        fixed, n = sum(item.now == "mended" for item in result.changed), len(result.changed)
        most = f" of the {MOST_CHANGED} that moved most" if n == MOST_CHANGED else ""
        compared = plain(names.get(result.parent_id, "its parent"))
        st.markdown(f"**{counted(fixed, 'item')} fixed, {n - fixed} broken{most}** compared with “{compared}”")
        sides = [("Calibration set", result.parent, result.new, result.difference)]
        if result.new_held_out and result.held_out_difference:
            sides.append(("Held-out set", result.parent_held_out, result.new_held_out, result.held_out_difference))
        for side, before, after, difference in sides:
            for column, name, aligned in zip(st.columns(2), ("Before", "After"), (before, after), strict=True):
                interval = tables.interval_of(aligned)
                heading = name if interval == tables.DASH else f"{name}, 95 % {interval}"
                column.metric(heading, number(tables.value_of(aligned)))
            tested = f" {difference_words(difference)}" if difference.n else ""
            st.caption(plain(f"{side}: {measure_name(after.statistic, after.level)}, n = {after.n:,}.{tested}"))
    if parent_id is not None:
        try:
            parent = page.store.criteria.get(page.project.project_id, parent_id)
        except ConcordError:
            st.caption("The parent is not in this project.")
            return
        diff_view.draw(word_diff(parent.text, entry.text), changed_only=True)
    with st.container(horizontal=True):
        if parent_id is not None:
            link_to("criteria", "Open the parent", icon=":material/arrow_upward:", criteria=parent_id)
        if entry.alignments:
            ids = {"criteria": entry.criteria_id} | ({"run": rescore_id} if rescore_id else {})
            link_to("misaligned", "Where judge and raters disagree", icon=":material/difference:", **ids)
