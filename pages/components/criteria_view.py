"""Criteria on screen: one version whole, what made it, the edit form, a conflict, and an edit beside its parent."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core import projects
from core.errors import ConcordError, ConflictError
from core.project_records import CriteriaEntry
from core.projects.kinds import RunDetail
from core.projects.rescore import MOST_CHANGED, PairedDifference, RescoreRequest, RescoreResult
from core.records import Alignment
from core.report.figures import describe, measure_name
from core.review.criteria import Review
from core.stats import claim, difference_figures
from core.wording import word_diff
from pages.components import diff_view, drafts, people, review_view, state, tables
from pages.components.page import Opened, link_to
from pages.components.screens import plain

MOST_NUMBERED = 400
NO_BREAK = "\u00a0"


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


def draw_whole(page: Opened, view: CriteriaEntry, review: Review) -> None:
    """State, text by numbered lines, where it came from, and how it stood in every run that scored it."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            name = f"**{plain(tables.name_of(view.criteria))}** · {plain(view.criteria.aspect)}"
            st.markdown(name, width="content")
            review_view.draw_badges(review)
        draw_lines(view.text, review)
        author = f" by {view.author}" if view.author else ""
        st.caption(plain(f"Saved {view.created_at.astimezone():%d %b %Y %H:%M}{author} · {view.criteria_id}"))
    _draw_origin(view)
    _draw_alignments(view)


def draw_lines(text: str, review: Review | None = None) -> None:
    """The text by numbered lines, as comments name them; a line with open comments says how many."""
    if not text.strip():
        st.text("No criteria: the judge is asked for a rating without any. This is the baseline.")
        return
    lines = text.splitlines()
    if len(lines) > MOST_NUMBERED:
        st.text(text)
        return
    open_at = [] if review is None else [comment.line for comment in review.comments if not comment.settled_by]
    shown = []
    for number, line in enumerate(lines, 1):
        body = line.replace("\t", "    ")
        indent = NO_BREAK * (len(body) - len(body.lstrip(" ")))
        n = open_at.count(number)
        mark = f" :blue-badge[:material/comment: {n}]" if n else ""
        shown.append(f"{number}. {indent}{plain(body.strip()) or NO_BREAK}{mark}")
    st.markdown("\n".join(shown))


def draw_made_from(page: Opened, view: CriteriaEntry) -> None:
    """What made this version: the words that changed against its parent, beside the items it was made from."""
    origin = view.provenance
    if not view.parents and not origin.item_ids:
        return
    st.subheader("What made this version", anchor=False)
    parent = _parent(page, view)
    left, right = st.columns(2, gap="large") if view.parents and origin.item_ids else [st.container()] * 2
    if view.parents:
        with left:
            _draw_parent_diff(page, view, parent)
    if origin.item_ids:
        with right:
            shown = (
                "The misaligned items it was shown" if origin.origin == "refine" else "The items it was drafted from"
            )
            st.markdown(f"**{shown}**")
            _draw_items(page, view, parent)


def _parent(page: Opened, view: CriteriaEntry) -> CriteriaEntry | None:
    try:
        return projects.get_criteria(page.store, page.project.project_id, view.parents[0]) if view.parents else None
    except ConcordError:
        return None


def _draw_parent_diff(page: Opened, view: CriteriaEntry, parent: CriteriaEntry | None) -> None:
    st.markdown("**Changed against its parent**")
    if parent is None:
        st.caption("Its parent is not kept in this project.")
        return
    diff_view.draw(word_diff(parent.text, view.text))
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        link_to("criteria", "Its parent", icon=":material/arrow_upward:", criteria=parent.criteria_id)
        if st.button(
            "Restore the parent's text",
            icon=":material/undo:",
            key=state.widget("restore"),
            **people.gate(page, "reviewer", help=RESTORE),
        ):
            restore(page, view, parent.text, note="the parent's text restored")


RESTORE = "Makes the parent's text the newest version again; this version stays in the list."


def restore(page: Opened, view: CriteriaEntry, text: str, *, note: str) -> None:
    """Undo as one more version: `text` becomes the newest edit of `view`."""
    where, author = (page.project.project_id, view.criteria_id), page.actor.name
    try:
        new_id = projects.save_edit(page.store, *where, text, author, note=note, expected_head=view.head)
    except ConcordError as error:
        st.error(plain(f"Nothing was changed: {error}"), icon=":material/error:")
        return
    state.leave_notice("Restored. The version that was undone stays among the versions.", good=True)
    state.put_in_url(criteria=new_id, rescore=None)
    st.rerun()


def edit_form(page: Opened, view: CriteriaEntry, run_id: str | None) -> None:
    """Edit by hand: saves a new version that names its parent and author, then re-scores it beside its parent."""
    subject, name = drafts.of_criteria(view.criteria_id), state.widget(f"edit_{view.criteria_id}")
    if locked_by := review_view.locked_words(page, view):
        st.info(plain(locked_by), icon=":material/lock:")
        drafts.draw_left(page, subject)
        return
    editing = drafts.begin(page, subject, view.text, name, base=view.head)
    drafts.draw_kept(page, editing, view.head)
    drafts.draw_others(page, subject)
    with st.form(f"edit_form_{view.criteria_id}"):
        st.markdown("**Edit by hand** (saved as a new version; this one stays as it is)")
        text = st.text_area("Criteria", value=editing.text, height=320, key=editing.key)
        note = st.text_input("Note (optional)", max_chars=300, key=state.widget(f"note_{view.criteria_id}"))
        held_out = st.checkbox(
            "Also compare on held-out items",
            key=state.widget("held_out"),
            help="Each look at held-out items makes their number a little less honest: keep it for the last version.",
        )
        submitted = st.form_submit_button(
            "Save and re-score", type="primary", icon=":material/save:", **people.gate(page, "reviewer")
        )
    if submitted:
        edit = _Edit(text or "", page.actor.name, (note or "").strip(), held_out, run_id)
        _save(page, view, edit, editing, editing.base)
    drafts.watch(page, editing)
    if (clash := st.session_state.get(state.CONFLICT)) and clash.criteria_id == view.criteria_id:
        _draw_conflict(page, view, clash, editing)


def draw_rescore(page: Opened, view: RunDetail) -> None:
    """An edit beside its parent: before → after, the paired difference, changed items, changed words."""
    result = view.rescore
    if result is None:
        return
    with st.container(border=True):
        st.subheader("Edited beside its parent", anchor=False)
        _before_after("Calibration items", result.parent, result.new, result.difference)
        if result.new_held_out is not None and result.held_out_difference is not None:
            _before_after("Held-out items", result.parent_held_out, result.new_held_out, result.held_out_difference)
        _draw_changed(result)
        old = projects.get_criteria(page.store, page.project.project_id, result.parent_id)
        new = projects.get_criteria(page.store, page.project.project_id, result.criteria_id)
        st.markdown("**Words that changed**")
        diff_view.draw(word_diff(old.text, new.text))
        link_to("criteria", "Open the edited version", icon=":material/rule:", criteria=result.criteria_id)


def difference_words(difference: PairedDifference) -> str:
    """Whether the difference can be told from chance on these items, in words."""
    figures = difference_figures(difference.value, difference.interval, difference.p)
    words = f"{figures}, n = {difference.n:,}"
    return {
        "undefined": "The difference is undefined on these items.",
        "untested": f"{words}.",
        "higher": f"{words}: a gain beyond chance on these items.",
        "lower": f"{words}: a loss beyond chance on these items.",
        "open": f"{words}: not to be told from chance on these items.",
    }[claim(difference.value, difference.interval, difference.p)]


def _draw_origin(view: CriteriaEntry) -> None:
    origin = view.provenance
    labelled, misaligned = (tables.count_words(origin.size, f"{kind} item") for kind in ("labelled", "misaligned"))
    words = {
        "none": "No criteria were given.",
        "given": "Given from outside." + (f" Note: {origin.note}" if origin.note else ""),
        "draft": f"Drafted from {labelled} (trial {origin.trial + 1}, sample {origin.sample + 1}).",
        "refine": f"Refined in round {origin.round} from {misaligned}.",
        "edit": f"Edited by {origin.author or 'somebody'}." + (f" Note: {origin.note}" if origin.note else ""),
    }[origin.origin]
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.text(words)
        if view.edits and view.head != view.criteria_id:
            link_to("criteria", f"Newest edit ({len(view.edits)})", icon=":material/edit:", criteria=view.head)


def _draw_alignments(view: CriteriaEntry) -> None:
    if not view.alignments:
        st.caption("Not scored yet.")
        return
    known = view.alignments[0].alignment
    st.markdown(f"**Alignment**: {measure_name(known.statistic, known.level)}")
    st.dataframe(
        {
            "items": [a.side for a in view.alignments],
            "alignment": [describe(a.alignment) for a in view.alignments],
            "n": [a.alignment.n for a in view.alignments],
            "unread": [a.alignment.n_unscored for a in view.alignments],
            "measure": [tables.measure_heading(a.alignment) for a in view.alignments],
            "status": [a.status for a in view.alignments],
            "run": [a.run_id[:8] for a in view.alignments],
        },
        hide_index=True,
        height=tables.height_for(len(view.alignments), 5),
        alt="Alignments of these criteria",
    )


def draw_shown_items(page: Opened, view: CriteriaEntry) -> None:
    """The items that a version was made from, if any."""
    if view.provenance.item_ids:
        _draw_items(page, view, _parent(page, view))


def _draw_items(page: Opened, view: CriteriaEntry, parent: CriteriaEntry | None) -> None:
    """The items a version was made from; where a run scored it and its parent, what each gave them."""
    golden = projects.load_golden_set(page.store, view.golden_id)
    labels = golden.aspects.get(view.criteria.aspect)
    places = {item_id: place for place, item_id in enumerate(golden.item_ids)}
    known = [item_id for item_id in view.provenance.item_ids if item_id in places]
    run_id = None if parent is None else next((run for run in view.runs if run in parent.runs), None)
    before = {} if parent is None or run_id is None else _scores(page, run_id, parent.criteria_id)
    after = {} if run_id is None else _scores(page, run_id, view.criteria_id)
    st.dataframe(
        {
            "item": known,
            "people": [None if labels is None else labels.values[places[i]] for i in known],
            **({"under the parent": [before.get(i) for i in known]} if before else {}),
            **({"now": [after.get(i) for i in known]} if after else {}),
            "judged text": [golden.items[places[i]].target for i in known],
            "source": [golden.items[places[i]].source for i in known],
        },
        hide_index=True,
        row_height=tables.TALL_ROW,
        height=tables.height_for(len(known), 5, tables.TALL_ROW),
        column_config={
            **{name: st.column_config.NumberColumn(format="%.2f") for name in ("people", "under the parent", "now")},
            "item": st.column_config.TextColumn(width=110),
            "judged text": st.column_config.TextColumn(width=300),
        },
        placeholder=tables.DASH,
        alt="Items this version was made from",
    )
    link_to("golden_set", "The golden set", icon=":material/dataset:", golden=view.golden_id)


def _scores(page: Opened, run_id: str, criteria_id: str) -> dict[str, float | None]:
    try:
        return {
            item_score.item_id: item_score.score for item_score in projects.item_scores(page.store, run_id, criteria_id)
        }
    except ConcordError:
        return {}


def _before_after(where: str, before: Alignment | None, after: Alignment, difference: PairedDifference) -> None:
    st.markdown(f"**{where}**, {measure_name(after.statistic, after.level)}")
    with st.container(horizontal=True, gap="large"):
        st.metric("Parent", describe(before), width="content")
        st.metric("Edited", describe(after), width="content")
    st.text(difference_words(difference))


def _draw_changed(result: RescoreResult) -> None:
    mended = sum(c.now == "mended" for c in result.changed)
    which = f", the {MOST_CHANGED} that moved most" if len(result.changed) == MOST_CHANGED else ""
    counted = f"{mended} now aligned, {len(result.changed) - mended} now misaligned"
    st.markdown(f"**Items that changed sides**{which}: {counted}")
    if result.changed:
        st.dataframe(
            tables.changed_frame(result.changed),
            hide_index=True,
            height=tables.height_for(len(result.changed), 8),
            column_config={
                name: st.column_config.NumberColumn(format="%.2f")
                for name in ("people", "parent", "edited", "gap before", "gap now")
            },
            alt="Items that changed sides",
        )


def _save(page: Opened, view: CriteriaEntry, edit: _Edit, editing: drafts.Editing, expected_head: str) -> None:
    """Saves and sets the re-scoring going; a conflict is kept for `_draw_conflict` instead."""
    st.session_state.pop(state.CONFLICT, None)
    try:
        new_id = projects.save_edit(
            page.store,
            page.project.project_id,
            view.criteria_id,
            edit.text,
            edit.author,
            note=edit.note,
            expected_head=expected_head,
        )
    except ConflictError as clash:
        st.session_state[state.CONFLICT] = _Conflict(view.criteria_id, edit, clash.theirs, clash.yours)
        return
    except ConcordError as error:
        st.error(plain(str(error)), title="Nothing was saved", icon=":material/error:")
        return
    drafts.done(page, editing)
    state.leave_notice("Saved as a new version.", good=True)
    state.put_in_url(criteria=new_id, rescore=_start(page, view, edit, new_id))
    st.rerun()


def _start(page: Opened, view: CriteriaEntry, edit: _Edit, new_id: str) -> str | None:
    run_id = edit.run_id if edit.run_id in view.runs else next(iter(view.runs), None)
    if run_id is None:
        state.leave_notice("Saved. It was not re-scored, for no run has scored its parent yet.", good=True)
        return None
    request = RescoreRequest(
        page.project.project_id,
        view.golden_id,
        view.criteria.aspect,
        criteria_id=new_id,
        parent_id=view.criteria_id,
        run_id=run_id,
        held_out=edit.held_out,
    )
    try:
        return projects.start_rescore(page.store, page.settings, request)
    except ConcordError as error:
        state.leave_notice(f"Saved, but not re-scored: {error}", good=False)
        return None


def _draw_conflict(page: Opened, view: CriteriaEntry, clash: _Conflict, editing: drafts.Editing) -> None:
    """Both texts and the words between them; nothing is lost and nothing is decided by itself."""
    with st.container(border=True):
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
            gate = people.gate(page, "reviewer")
            if st.button("Save mine as a version of its own", type="primary", key="conflict_save", **gate):
                _save(page, view, clash.edit, editing, view.head)
            if st.button("Drop mine", key="conflict_drop"):
                del st.session_state[state.CONFLICT]
                drafts.done(page, editing)
                st.rerun()
