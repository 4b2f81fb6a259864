"""Edit criteria: the form, conflicting edits, and undo."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from core import projects
from core.errors import ConcordError, ConflictError
from core.project_records import CriteriaEntry
from core.projects.criteria import RescoreRequest
from core.word_diff import word_diff
from pages.ui import diff_view, drafts, people, state, tables
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator


def draw_edit_button(page: Opened, entry: CriteriaEntry, *, primary: bool) -> None:
    """Draw the Edit button, a link to the newest edit, and a note if an edit is unsaved."""
    subject = drafts.criteria_subject(entry.criteria_id)
    draft = projects.get_draft(page.store, page.project.project_id, subject)
    if draft is not None and draft.text.strip() == entry.text.strip():
        draft = None
    people.button(
        page,
        "reviewer",
        "Continue editing" if draft else "Edit",
        icon=":material/edit_note:",
        key=state.widget("edit_open"),
        type="primary" if primary else "secondary",
        on_click=lambda: state.put_in_url(edit="1"),
    )
    if entry.head != entry.criteria_id:
        link_to("criteria", f"Newest edit ({len(entry.edits)})", icon=":material/edit:", criteria=entry.head)
    if draft:
        st.caption(f"You have an unsaved edit from {plain(tables.when(draft.kept_at))}.")


def draw_form(page: Opened, entry: CriteriaEntry, beside: DeltaGenerator) -> bool:
    """Draw the form, which saves the text as a new version and scores it next to its parent.

    If someone else saved first, draw the changes in `beside` and return True.
    """
    subject, name = drafts.criteria_subject(entry.criteria_id), state.widget(f"edit_{entry.criteria_id}")
    editing = drafts.begin(page, subject, entry.text, name, base=entry.head)
    drafts.draw_draft_notice(page, editing, entry.head)
    with st.form(f"edit_form_{entry.criteria_id}", border=False):
        height = min(280, max(120, 24 * (entry.text.count("\n") + len(entry.text) // 60 + 2)))
        text = st.text_area("Criteria", value=editing.text, height=height, key=editing.key) or ""
        words = {"placeholder": "Note (optional)", "label_visibility": "collapsed"}
        note = st.text_input("Note (optional)", max_chars=300, key=state.widget(f"note_{entry.criteria_id}"), **words)
        with st.container(horizontal=True, key="shown_above"):
            submitted = people.submit(page, "reviewer", "Save and re-score", type="primary", icon=":material/save:")
            st.form_submit_button("Close", on_click=state.put_in_url, kwargs={"edit": None})

    def save(expected_head: str) -> None:
        st.session_state.pop(state.CONFLICT, None)
        where = (page.store, page.project.project_id, entry.criteria_id)
        try:
            edited = projects.save_edit(
                *where, text, page.actor.name, note=(note or "").strip(), expected_head=expected_head
            )
        except ConflictError as clash:
            st.session_state[state.CONFLICT] = entry.criteria_id, clash.theirs, str(clash)
            return
        except ConcordError as error:
            st.error(plain(str(error)), title="Nothing was saved", icon=":material/error:")
            return
        drafts.done(page, editing)
        state.put_in_url(criteria=edited, rescore=_rescore(page, entry, edited), edit=None)
        st.rerun()

    if submitted:
        save(editing.base)
    drafts.watch(page, editing)
    about, theirs, words = st.session_state.get(state.CONFLICT, ("", "", ""))
    if about != entry.criteria_id:
        return False
    with beside:
        st.warning(plain(words), icon=":material/call_split:")
        st.markdown("**Changes from their version to yours**")
        diff_view.draw(word_diff(theirs, text))
        with st.container(horizontal=True):
            if people.button(page, "reviewer", "Save my version separately", type="primary", key="conflict_save"):
                save(entry.head)
            if st.button("Discard my version", key="conflict_drop"):
                del st.session_state[state.CONFLICT]
                drafts.done(page, editing)
                st.rerun()
    return True


def _rescore(page: Opened, parent: CriteriaEntry, edited: str) -> str | None:
    """Score an edit and its parent with the judge that scored the parent; leave a notice if there is none."""
    run_id = min(parent.runs, key=lambda run_id: run_id != state.url_id("run"), default=None)
    if run_id is None:
        state.set_notice(
            "The edit was saved but not re-scored, because no run has scored its parent version yet.", good=True
        )
        return None
    where = (page.project.project_id, parent.golden_id, parent.aspect)
    try:
        rescore_id = projects.start_run(
            page.store,
            page.settings,
            RescoreRequest(*where, edited, parent.criteria_id, run_id),
        )
    except ConcordError as error:
        state.set_notice(f"The edit was saved but not re-scored: {error}", good=False)
        return None
    state.set_notice("Edit saved.", good=True)
    return rescore_id


def draw_restore(page: Opened, entry: CriteriaEntry) -> None:
    """Draw the button that undoes an edit by saving the parent's text as a new version."""
    if not entry.parents:
        return

    def restore() -> None:
        project_id = page.project.project_id
        text = page.store.criteria.get(project_id, entry.parents[0]).text
        where = (page.store, project_id, entry.criteria_id, text, page.actor.name)
        restored = projects.save_edit(*where, note="restored the parent's text", expected_head=entry.head)
        state.put_in_url(criteria=restored, rescore=None)
        state.set_notice("The text of the parent version was restored as a new version.", good=True)

    words = "Restore the parent's text"
    if people.button(page, "reviewer", words, icon=":material/undo:", key=state.widget("restore")):
        state.attempt("Nothing was changed", restore)
        st.rerun()
