"""Criteria on screen: one candidate whole, the edit form, a conflict, and an edit beside its parent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from core.errors import ConcordError, ConflictError
from core.figures import describe, measure_name
from core.jobs import tasks
from core.jobs.views import CriteriaView, DifferenceView, RescoreRequest, RescoreView, RunView
from core.records import Alignment
from core.wording import Piece, word_diff
from pages.components import state, tables
from pages.components.page import Opened, link_to, plain

MAX_CHARS = 8000


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


def draw_whole(page: Opened, view: CriteriaView) -> None:
    """Text, where it came from, and how it stood in every run that scored it."""
    with st.container(border=True):
        st.markdown(f"**{plain(tables.name_of(view.criteria))}** · {plain(view.criteria.aspect)}")
        st.text(view.text or "No criteria: the judge is asked for a rating without any. This is the baseline.")
    _draw_provenance(page, view)
    if not view.alignments:
        st.caption("Not scored yet.")
        return
    known = view.alignments[0].alignment
    st.markdown(f"**Alignment**: {measure_name(known.statistic, known.level)}")
    st.dataframe(
        {
            "items": [a.side for a in view.alignments],
            "alignment": [describe(a.alignment) for a in view.alignments],
            "measure": [tables.measure_heading(a.alignment) for a in view.alignments],
            "n": [a.alignment.n for a in view.alignments],
            "unread": [a.alignment.n_unscored for a in view.alignments],
            "status": [a.status for a in view.alignments],
            "run": [a.run_id[:8] for a in view.alignments],
        },
        hide_index=True,
        height=tables.height_for(len(view.alignments), 5),
        alt="Alignments of these criteria",
    )


def draw_parent_diff(page: Opened, view: CriteriaView) -> None:
    """What changed against the parent, word by word."""
    if not view.parents:
        return
    try:
        parent = tasks.get_criteria(page.store, page.project.project_id, view.parents[0])
    except ConcordError as error:
        st.caption(plain(f"Its parent cannot be shown: {error}"))
        return
    st.markdown("**Changed against its parent**")
    draw_diff(word_diff(parent.text, view.text))


def draw_diff(pieces: Sequence[Piece]) -> None:
    """Removed words struck out on red, added ones bold on green; every word is escaped."""
    marks = {"same": "{}", "removed": ":red-background[~~{}~~]", "added": ":green-background[**{}**]"}
    lines: list[str] = []
    for piece in pieces:
        shown = []
        for line in piece.text.split("\n"):
            body = line.strip()
            lead, tail = (" " if line[:1].isspace() else ""), (" " if line[-1:].isspace() else "")
            shown.append(f"{lead}{marks[piece.change].format(plain(body))}{tail}" if body else line)
        lines.append("  \n".join(shown))
    with st.container(border=True):
        st.markdown("".join(lines))


def edit_form(page: Opened, view: CriteriaView, run_id: str | None) -> None:
    """Edit by hand: saves a new version that names its parent and author, then re-scores it beside its parent."""
    bases = st.session_state.setdefault(state.EDIT_BASE, {})
    base = bases.setdefault(view.criteria_id, view.head)
    with st.form(f"edit_form_{view.criteria_id}"):
        st.markdown("**Edit by hand** (saved as a new version; this one stays as it is)")
        text = st.text_area(
            "Criteria", value=view.text, height=320, max_chars=MAX_CHARS, key=state.widget(f"edit_{view.criteria_id}")
        )
        left, right = st.columns(2)
        author = left.text_input("Your name", key=state.AUTHOR, max_chars=80, persist_state="session")
        note = right.text_input("Note (optional)", max_chars=300, key=state.widget(f"note_{view.criteria_id}"))
        held_out = st.checkbox(
            "Also compare on held-out items",
            key=state.widget("held_out"),
            help="Each look at held-out items makes their number a little less honest: keep it for the last version.",
        )
        submitted = st.form_submit_button("Save and re-score", type="primary", icon=":material/save:")
    if submitted:
        if not author.strip():
            st.warning("Give your name: every version names its author.", icon=":material/person:")
        else:
            _save(page, view, _Edit(text, author.strip(), note.strip(), held_out, run_id), base)
    if (clash := st.session_state.get(state.CONFLICT)) and clash.criteria_id == view.criteria_id:
        _draw_conflict(page, view, clash)


def draw_rescore(page: Opened, view: RunView) -> None:
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
        old = tasks.get_criteria(page.store, page.project.project_id, result.parent_id)
        new = tasks.get_criteria(page.store, page.project.project_id, result.criteria_id)
        st.markdown("**Words that changed**")
        draw_diff(word_diff(old.text, new.text))
        link_to("criteria", "Open the edited version", icon=":material/rule:", criteria=result.criteria_id)


def difference_words(difference: DifferenceView) -> str:
    """Whether the difference can be told from chance on these items, in words."""
    if difference.value is None or difference.interval is None:
        return "The difference is undefined on these items."
    low, high = difference.interval.low, difference.interval.high
    p = "" if difference.p is None else f", p = {difference.p:.3f}" if difference.p >= 0.001 else ", p < .001"
    told = f"{difference.value:+.3f} [{low:+.3f}, {high:+.3f}]{p}, n = {difference.n:,}"
    if low > 0:
        return f"{told}: a gain beyond chance on these items."
    if high < 0:
        return f"{told}: a loss beyond chance on these items."
    return f"{told}: not to be told from chance on these items."


def _draw_provenance(page: Opened, view: CriteriaView) -> None:
    origin = view.provenance
    labelled, misaligned = (tables.count_words(origin.size, f"{kind} item") for kind in ("labelled", "misaligned"))
    told = {
        "none": "No criteria were given.",
        "given": "Given from outside.",
        "draft": f"Drafted from {labelled} (trial {origin.trial + 1}, sample {origin.sample + 1}).",
        "refine": f"Refined in round {origin.round} from {misaligned}.",
        "edit": f"Edited by {origin.author or 'somebody'}." + (f" Note: {origin.note}" if origin.note else ""),
    }[origin.origin]
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.text(told)
        if view.parents:
            link_to("criteria", "Its parent", icon=":material/arrow_upward:", criteria=view.parents[0])
        if view.edits:
            link_to("criteria", f"Newest edit ({len(view.edits)})", icon=":material/edit:", criteria=view.head)
    if origin.item_ids:
        part = st.expander(f"Made from {tables.count_words(len(origin.item_ids), 'item')}", on_change="rerun")
        if part.open:
            with part:
                _draw_exemplars(page, view)


def _draw_exemplars(page: Opened, view: CriteriaView) -> None:
    golden = tasks.load_golden_set(page.store, view.golden_id)
    labels = golden.aspects.get(view.criteria.aspect)
    places = {item_id: place for place, item_id in enumerate(golden.item_ids)}
    known = [item_id for item_id in view.provenance.item_ids if item_id in places]
    st.dataframe(
        {
            "item": known,
            "label": [None if labels is None else labels.values[places[i]] for i in known],
            "target": [golden.items[places[i]].target for i in known],
            "source": [golden.items[places[i]].source for i in known],
        },
        hide_index=True,
        height=tables.height_for(len(known), 8),
        alt="Exemplars",
    )
    link_to("golden_set", "The golden set", icon=":material/dataset:", golden=view.golden_id)


def _before_after(where: str, before: Alignment | None, after: Alignment, difference: DifferenceView) -> None:
    st.markdown(f"**{where}**, {measure_name(after.statistic, after.level)}")
    with st.container(horizontal=True, gap="large"):
        st.metric("Parent", describe(before), width="content")
        st.metric("Edited", describe(after), width="content")
    st.text(difference_words(difference))


def _draw_changed(result: RescoreView) -> None:
    mended = sum(c.now == "mended" for c in result.changed)
    st.markdown(f"**Items that changed sides**: {mended} now aligned, {len(result.changed) - mended} now misaligned")
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


def _save(page: Opened, view: CriteriaView, edit: _Edit, expected_head: str) -> None:
    """Saves and sets the re-scoring going; a conflict is kept for `_draw_conflict` instead."""
    st.session_state.pop(state.CONFLICT, None)
    try:
        new_id = tasks.save_edit(
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
    st.session_state[state.EDIT_BASE].pop(view.criteria_id, None)
    state.leave_notice("Saved as a new version.", good=True)
    state.put_in_url(criteria=new_id, rescore=_start(page, view, edit, new_id))
    st.rerun()


def _start(page: Opened, view: CriteriaView, edit: _Edit, new_id: str) -> str | None:
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
        return tasks.start_rescore(page.store, page.settings, request)
    except ConcordError as error:
        state.leave_notice(f"Saved, but not re-scored: {error}", good=False)
        return None


def _draw_conflict(page: Opened, view: CriteriaView, clash: _Conflict) -> None:
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
        draw_diff(word_diff(clash.theirs, clash.yours))
        with st.container(horizontal=True):
            if st.button("Save mine as a version of its own", type="primary", key="conflict_save"):
                _save(page, view, clash.edit, view.head)
            if st.button("Drop mine", key="conflict_drop"):
                del st.session_state[state.CONFLICT]
                st.session_state[state.EDIT_BASE].pop(view.criteria_id, None)
                st.rerun()
