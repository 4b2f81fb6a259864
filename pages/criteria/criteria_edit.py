"""Editing criteria: the form, what came second beside what came first, and undoing an edit."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import streamlit as st

from core import projects
from core.errors import ConcordError, ConflictError
from core.project_records import CriteriaEntry
from core.word_diff import word_diff
from pages.criteria import comments_view, criteria_effect
from pages.ui import diff_view, drafts, people, state
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

EDITING = "1"
RESTORE = "Makes the parent's text the newest version again; this version stays in the list."


@dataclass(frozen=True, slots=True)
class _Edit:
    """What a person typed; `run_id` is the run beside which it is re-scored."""

    text: str
    author: str
    note: str
    held_out: bool
    run_id: str | None


@dataclass(frozen=True, slots=True)
class _Conflict:
    """An edit that came second, with both texts."""

    criteria_id: str
    edit: _Edit
    theirs: str
    yours: str


def is_open(page: Opened, view: CriteriaEntry) -> bool:
    """Whether the text is being edited, which stands in the URL; locked criteria are read."""
    return bool(state.url_id("edit")) and not comments_view.locked_words(page, view)


def draw_way_in(page: Opened, view: CriteriaEntry) -> None:
    """The button that opens the form, or why there is none; and that unsaved text waits."""
    subject = drafts.of_criteria(view.criteria_id)
    if locked_by := comments_view.locked_words(page, view):
        st.info(plain(locked_by), icon=":material/lock:")
        drafts.draw_left(page, subject)
        return
    draft = projects.draft_of(page.store, page.project.project_id, subject)
    unsaved = draft is not None and draft.text.strip() != view.text.strip()
    people.button(
        page,
        "reviewer",
        "Continue editing" if unsaved else "Edit",
        icon=":material/edit_note:",
        key=state.widget("edit_open"),
        type="secondary" if view.origin == "edit" else "primary",
        on_click=partial(state.put_in_url, edit=EDITING),
    )
    if view.head != view.criteria_id:
        link_to("criteria", f"Newest edit ({len(view.edits)})", icon=":material/edit:", criteria=view.head)
    if unsaved and draft is not None:
        st.caption(f"Your unsaved text of {plain(drafts.clock(draft.kept_at))} is kept.")


def draw_form(page: Opened, view: CriteriaEntry, run_id: str | None) -> None:
    """Saves a new version that names its parent and author, then re-scores it beside its parent."""
    subject, name = drafts.of_criteria(view.criteria_id), state.widget(f"edit_{view.criteria_id}")
    editing = drafts.begin(page, subject, view.text, name, base=view.head)
    drafts.draw_kept(page, editing, view.head)
    drafts.draw_others(page, subject)
    with st.form(f"edit_form_{view.criteria_id}", border=False):
        height = min(280, max(120, 24 * (view.text.count("\n") + len(view.text) // 60 + 2)))
        text = st.text_area("Criteria", value=editing.text, height=height, key=editing.key)
        words = {"placeholder": "Note (optional)", "label_visibility": "collapsed"}
        note = st.text_input("Note (optional)", max_chars=300, key=state.widget(f"note_{view.criteria_id}"), **words)
        held_out = st.checkbox(
            "Also compare on held-out items",
            key=state.widget("held_out"),
            help="Each look at held-out items makes their number a little less honest: keep it for the last version.",
        )
        with st.container(horizontal=True, key="shown_above"):
            submitted = people.submit(page, "reviewer", "Save and re-score", type="primary", icon=":material/save:")
            st.form_submit_button("Close", on_click=state.put_in_url, kwargs={"edit": None})
    if submitted:
        edit = _Edit(text or "", page.actor.name, (note or "").strip(), held_out, run_id)
        _save(page, view, edit, editing, editing.base)
    drafts.watch(page, editing)
    if (clash := st.session_state.get(state.CONFLICT)) and clash.criteria_id == view.criteria_id:
        _draw_conflict(page, view, clash, editing)


def _save(page: Opened, view: CriteriaEntry, edit: _Edit, editing: drafts.Editing, expected_head: str) -> None:
    """Saves and sets the re-scoring going; a conflict is kept for `_draw_conflict` instead."""
    st.session_state.pop(state.CONFLICT, None)
    where = (page.project.project_id, view.criteria_id)
    try:
        new_id = projects.save_edit(
            page.store, *where, edit.text, edit.author, note=edit.note, expected_head=expected_head
        )
    except ConflictError as clash:
        st.session_state[state.CONFLICT] = _Conflict(view.criteria_id, edit, clash.theirs, clash.yours)
        return
    except ConcordError as error:
        st.error(plain(str(error)), title="Nothing was saved", icon=":material/error:")
        return
    drafts.done(page, editing)
    state.leave_notice("Saved as a new version.", good=True)
    rescore_id = criteria_effect.start(page, view, new_id, edit.run_id, held_out=edit.held_out)
    state.put_in_url(criteria=new_id, rescore=rescore_id, edit=None)
    st.rerun()


def _draw_conflict(page: Opened, view: CriteriaEntry, clash: _Conflict, editing: drafts.Editing) -> None:
    """Both texts and the words between them; nothing is lost and nothing is decided by itself."""
    st.warning(
        "Somebody saved another version of these criteria first. Both texts are here.", icon=":material/call_split:"
    )
    theirs, yours = st.columns(2)
    with theirs:
        st.markdown("**Theirs** (saved)")
        st.text(clash.theirs)
    with yours:
        st.markdown("**Yours** (not saved yet)")
        st.text(clash.yours)
    st.markdown("**From theirs to yours**")
    diff_view.draw(word_diff(clash.theirs, clash.yours))
    with st.container(horizontal=True):
        if people.button(page, "reviewer", "Save mine as a version of its own", type="primary", key="conflict_save"):
            _save(page, view, clash.edit, editing, view.head)
        if st.button("Drop mine", key="conflict_drop"):
            del st.session_state[state.CONFLICT]
            drafts.done(page, editing)
            st.rerun()


def draw_restore(page: Opened, view: CriteriaEntry) -> None:
    """Undoing an edit: the parent's text as one more version."""
    if view.parents and people.button(
        page,
        "reviewer",
        "Restore the parent's text",
        icon=":material/undo:",
        key=state.widget("restore"),
        help=RESTORE,
    ):
        _restore(page, view)


def _restore(page: Opened, view: CriteriaEntry) -> None:
    where, author = (page.project.project_id, view.criteria_id), page.actor.name
    try:
        parent = page.store.criteria.get(page.project.project_id, view.parents[0])
        note = "the parent's text restored"
        new_id = projects.save_edit(page.store, *where, parent.text, author, note=note, expected_head=view.head)
    except ConcordError as error:
        st.error(plain(f"Nothing was changed: {error}"), icon=":material/error:")
        return
    state.leave_notice("Restored. The version that was undone stays among the versions.", good=True)
    state.put_in_url(criteria=new_id, rescore=None)
    st.rerun()
