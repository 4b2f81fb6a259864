"""What an edit or a refinement changed: the words, the items, and the alignment beside its parent's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry, Run
from core.projects.edit_scoring import MOST_CHANGED, ChangedItem, PairedDifference, RescoreRequest, RescoreResult
from core.projects.run_kinds import RunDetail
from core.records import Alignment
from core.report.figures import measure_name
from core.stats import claim
from core.word_diff import word_diff
from core.wording import counted, difference_figures, number
from pages.ui import diff_view, grid, run_panel, state, tables
from pages.ui.grid import Column
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

SOON = 0.3
"""Seconds between two looks at a re-scoring: an offline judge is done within two."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Criteria beside their parent on the same items; the difference is None where no run tested it."""

    run_id: str
    parent_id: str
    before: Alignment
    after: Alignment
    changed: Sequence[ChangedItem]
    difference: PairedDifference | None = None
    held_out: RescoreResult | None = None


def difference_words(difference: PairedDifference) -> str:
    """Say whether the difference is significant on these items."""
    figures = difference_figures(difference.value, difference.interval, difference.p)
    words = f"{figures}, n = {difference.n:,}"
    return {
        "undefined": "The difference is undefined on these items.",
        "untested": f"{words}.",
        "higher": f"{words}: a significant gain on these items.",
        "lower": f"{words}: a significant loss on these items.",
        "open": f"{words}: not significant on these items.",
    }[claim(difference.value, difference.interval, difference.p)]


# ── what is known of it ──────────────────────────────────────────────────────────────────────────────────────


def rescore_of(page: Opened, view: CriteriaEntry, wanted: str | None) -> str | None:
    """The run that scored these criteria beside their parent: the one in the link, else the newest."""
    if wanted:
        return wanted
    runs = [run for run in projects.list_runs(page.store, page.project.project_id) if _is_about(run, view)]
    return runs[0].run_id if runs else None


def _is_about(run: Run, view: CriteriaEntry) -> bool:
    return run.kind == "rescore" and f'"criteria_id":"{view.criteria_id}"' in run.request_json


def is_scoring(page: Opened, rescore_id: str | None) -> bool:
    """Whether that run is still at it."""
    try:
        return rescore_id is not None and not run_panel.read_run(page, rescore_id).finished
    except ConcordError:
        return False


def effect_of(page: Opened, view: CriteriaEntry, rescore_id: str | None) -> Effect | None:
    """Out of a re-scoring, else out of a run that scored both (a round, a calibration); None where none did."""
    if rescore_id and (result := _finished(page, rescore_id)) is not None:
        held_out = result if result.new_held_out is not None else None
        changed, difference = result.changed, result.difference
        return Effect(rescore_id, result.parent_id, result.parent, result.new, changed, difference, held_out)
    if not view.parents:
        return None
    try:
        parent = page.store.criteria.get(page.project.project_id, view.parents[0])
        before, after = _on_calibration(parent), _on_calibration(view)
        run_id = next((run_id for run_id in after if run_id in before and before[run_id].n == after[run_id].n), None)
        if run_id is None:
            return None
        changed = _changes(run_id, view.criteria_id, parent.criteria_id, page)
    except ConcordError:
        return None
    return Effect(run_id, parent.criteria_id, before[run_id], after[run_id], changed)


def _finished(page: Opened, rescore_id: str) -> RescoreResult | None:
    try:
        return run_panel.read_run(page, rescore_id).rescore
    except ConcordError:
        return None


def _on_calibration(view: CriteriaEntry) -> dict[str, Alignment]:
    return {a.run_id: a.alignment for a in view.alignments if a.side == "calibration"}


@st.cache_resource(max_entries=128, show_spinner=False)
def _changes(run_id: str, criteria_id: str, parent_id: str, _page: Opened) -> tuple[ChangedItem, ...]:
    """Kept, because a finished run does not change."""
    return projects.item_changes(_page.store, run_id, criteria_id, parent_id)


def counts(changed: Sequence[ChangedItem]) -> str:
    """`6 items fixed, 13 broken`."""
    mended = sum(item.now == "mended" for item in changed)
    most = f" of the {MOST_CHANGED} that moved most" if len(changed) == MOST_CHANGED else ""
    return f"{counted(mended, 'item')} fixed, {len(changed) - mended} broken{most}"


# ── on the screen ────────────────────────────────────────────────────────────────────────────────────────────


def draw(page: Opened, view: CriteriaEntry, names: Mapping[str, str], rescore_id: str | None) -> None:
    """The effect and the words that changed, or how far the scoring of them has come."""
    if rescore_id is None:
        _draw_known(page, view, names, None)
        return
    try:
        run_panel.read_run(page, rescore_id)
    except ConcordError as error:
        st.error(plain(str(error)), title="This re-scoring cannot be shown", icon=":material/error:")
        return

    def show(now: RunDetail) -> None:
        if now.status == "done":
            _draw_known(page, view, names, rescore_id)
            return
        st.markdown("**Scoring the edit and its parent** …" if not now.finished else "**Not scored**")
        run_panel.draw_status(page, now)

    run_panel.follow_run(page, rescore_id, show, every=SOON)


def _draw_known(page: Opened, view: CriteriaEntry, names: Mapping[str, str], rescore_id: str | None) -> None:
    effect = effect_of(page, view, rescore_id)
    if effect is not None:
        _draw_effect(effect, names)
    _draw_words(page, view, effect.parent_id if effect else next(iter(view.parents), None))


def _draw_effect(effect: Effect, names: Mapping[str, str]) -> None:
    measure = measure_name(effect.after.statistic, effect.after.level)
    st.markdown(f"**{counts(effect.changed)}** compared with “{plain(names.get(effect.parent_id, 'its parent'))}”")
    _before_after(effect.before, effect.after)
    tested = "" if effect.difference is None else f" {difference_words(effect.difference)}"
    st.caption(plain(f"{measure}, calibration items, n = {effect.after.n:,}.{tested}"))
    if (result := effect.held_out) is not None and result.new_held_out and result.held_out_difference:
        _before_after(result.parent_held_out, result.new_held_out)
        st.caption(plain(f"Held-out items. {difference_words(result.held_out_difference)}"))


def _before_after(before: Alignment | None, after: Alignment) -> None:
    for place, name, alignment in zip(st.columns(2), ("Before", "After"), (before, after), strict=True):
        interval = tables.interval_of(alignment)
        heading = f"{name}, 95 % {interval}" if interval != tables.DASH else name
        place.metric(heading, number(tables.value_of(alignment)))


def _draw_words(page: Opened, view: CriteriaEntry, parent_id: str | None) -> None:
    if parent_id is None:
        return
    try:
        parent = page.store.criteria.get(page.project.project_id, parent_id)
    except ConcordError:
        st.caption("Its parent is not kept in this project.")
        return
    diff_view.draw(word_diff(parent.text, view.text), changed_only=True)
    link_to("criteria", "Its parent", icon=":material/arrow_upward:", criteria=parent_id)


def draw_changed(effect: Effect | None) -> None:
    """The items that changed sides, for whoever wants them one by one."""
    if effect is None or not effect.changed:
        return
    st.markdown(f"**Items that changed sides**: {counts(effect.changed)}")
    columns = {name: Column(digits=2) for name in ("raters", "parent", "edited", "gap before", "gap now")}
    grid.draw(tables.changed_frame(effect.changed), columns, alt="Items that changed sides", rows=8)


def edited_in(page: Opened, rescore_id: str) -> str | None:
    """The criteria that a re-scoring was about.  ConcordError for an unknown run."""
    request = run_panel.read_run(page, rescore_id).request
    return request.criteria_id if isinstance(request, RescoreRequest) else None


def start(page: Opened, view: CriteriaEntry, new_id: str, run_id: str | None, *, held_out: bool) -> str | None:
    """Scores the edit `new_id` of `view` beside it; None, with a notice, where that cannot be."""
    of = run_id if run_id in view.runs else next(iter(view.runs), None)
    if of is None:
        state.leave_notice("Saved. It was not re-scored, for no run has scored its parent yet.", good=True)
        return None
    where = (page.project.project_id, view.golden_id, view.criteria.aspect)
    request = RescoreRequest(*where, criteria_id=new_id, parent_id=view.criteria_id, run_id=of, held_out=held_out)
    try:
        rescore_id = projects.start_rescore(page.store, page.settings, request)
        run_panel.give_a_moment(page, rescore_id)
    except ConcordError as error:
        state.leave_notice(f"Saved, but not re-scored: {error}", good=False)
        return None
    return rescore_id
