"""Where criteria stand with the people: who acts, badges, sign-off with its evidence, lock, comments by line."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

import streamlit as st

from core import projects
from core.calibration.records import Calibration
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.report.figures import describe, measure_name
from core.review.criteria import NEXT_STATES, Comment, Review, ReviewState, StateChange
from core.review.judge_versions import Evidence
from pages.components import people, state, tables
from pages.components.page import Opened
from pages.components.screens import plain

COLOURS: dict[ReviewState, Literal["gray", "blue", "green", "orange"]] = {
    "draft": "gray",
    "proposed": "blue",
    "approved": "green",
    "retired": "orange",
}
ICONS: dict[ReviewState, str] = {
    "draft": ":material/edit_note:",
    "proposed": ":material/how_to_vote:",
    "approved": ":material/verified:",
    "retired": ":material/archive:",
}
STEPS: dict[ReviewState, str] = {
    "draft": "Send back to draft",
    "proposed": "Propose for approval",
    "approved": "Approve",
    "retired": "Retire",
}
LONGEST = 5_000
PROBLEM = state.widget("review_problem")


def attempt(act: Callable[[], None], place: str = PROBLEM) -> bool:
    """Does it; a refusal is kept, to be told where it was asked for."""
    try:
        act()
    except ConcordError as error:
        st.session_state[place] = str(error)
        return False
    return True


def locked_words(page: Opened, view: CriteriaEntry) -> str:
    """Why these criteria cannot be edited, "" when they can."""
    by = projects.review_of(page.store, page.project.project_id, view.criteria_id).locked_by
    return f"{by} locked these criteria: they are read, not edited, until somebody unlocks them." if by else ""


# ── badges ───────────────────────────────────────────────────────────────────────────────────────────────────


def draw_badges(review: Review) -> None:
    """The state, a lock, and open comments, as badges."""
    st.badge(review.state, color=COLOURS[review.state], icon=ICONS[review.state])
    if review.locked:
        st.badge(plain(f"locked by {review.locked_by}"), color="orange", icon=":material/lock:")
    if n := sum(not comment.settled_by for comment in review.comments):
        st.badge(tables.count_words(n, "open comment"), color="blue", icon=":material/comment:")


def when(moment: datetime) -> str:
    """Date and time of day where the reader sits."""
    return f"{moment.astimezone():%d %b %Y %H:%M}"


def evidence_words(evidence: Evidence) -> str:
    """On which items, by which measure, how well: what an approval rests on."""
    alignment = evidence.alignment
    measure = measure_name(alignment.statistic, alignment.level)
    return f"{evidence.side} items, {measure} {tables.describe_n(alignment)}"


def evidence_in_short(evidence: Evidence) -> str:
    """The same on one line of a list."""
    return f"{evidence.side} {describe(evidence.alignment)}, n = {evidence.alignment.n:,}"


def judge_file_label(page: Opened, result: Calibration) -> str:
    """What the button says that hands out a judge: that its criteria are not approved, unless all are."""
    reviews = projects.list_reviews(page.store, page.project.project_id)
    states = [
        reviews[candidate.criteria_id].state if candidate.criteria_id in reviews else "draft"
        for candidate in result.chosen
    ]
    approved = bool(states) and all(state_ == "approved" for state_ in states)
    return "Download judge.yaml" if approved else "Download judge.yaml (not approved)"


# ── sign-off ─────────────────────────────────────────────────────────────────────────────────────────────────


def draw_sign_off(page: Opened, view: CriteriaEntry, review: Review) -> None:
    """The state with who, when, why and on which evidence; the steps that may come next, each with its reason."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            newest = review.changes[-1] if review.changes else None
            st.markdown(_change_words(newest) if newest else "Nobody has proposed this version yet.", width="content")
            st.space("stretch")
            st.button(
                "Unlock" if review.locked else "Lock",
                icon=":material/lock_open:" if review.locked else ":material/lock:",
                type="tertiary",
                key=state.widget("lock"),
                on_click=_lock,
                args=(page, view, not review.locked),
                **people.gate(page, "reviewer", help="Locked criteria are read and commented on, not edited."),
            )
        if problem := st.session_state.pop(PROBLEM, ""):
            st.warning(plain(problem), icon=":material/error:")
        if newest is not None:
            _draw_grounds(newest)
        _draw_steps(page, view, review)
        if len(review.changes) > 1:
            with st.expander(f"Before that: {tables.count_words(len(review.changes) - 1, 'step')}"):
                for change in reversed(review.changes[:-1]):
                    st.markdown(_change_words(change))
                    _draw_grounds(change)


def _change_words(change: StateChange) -> str:
    return f"**{change.state.capitalize()}** by {plain(change.actor or 'somebody')}, {plain(when(change.at))}"


def _draw_grounds(change: StateChange) -> None:
    st.text(f"“{change.reason}”")
    if change.evidence is not None:
        st.text(f"Evidence: {evidence_words(change.evidence)}.")


def _draw_steps(page: Opened, view: CriteriaEntry, review: Review) -> None:
    steps = NEXT_STATES[review.state]
    key = state.widget(f"sign_{view.criteria_id}_{review.seen}")
    runs = _runs_to_approve_on(view)
    if "approved" in steps and not runs:
        st.info("No run has measured this version: score it first, then it can be approved.", icon=":material/science:")
    with st.form(f"{key}_form", border=False):
        if "approved" in steps and runs:
            st.selectbox(
                "Evidence to approve on",
                runs,
                key=f"{key}_run",
                format_func=lambda run_id: evidence_in_short(_evidence(view, run_id)),
                help="Held-out items where the run measured them, else calibration items.",
            )
        reason = "Reason, for those who read it later"
        words = {"placeholder": reason, "label_visibility": "collapsed"}
        st.text_input(reason, key=f"{key}_reason", max_chars=2_000, **words)
        with st.container(horizontal=True):
            for place, step in enumerate(steps):
                st.form_submit_button(
                    STEPS[step],
                    type="primary" if place == 0 else "secondary",
                    icon=ICONS[step],
                    on_click=_step,
                    args=(page, view, review, step, key),
                    **people.gate(page, "reviewer", disabled=step == "approved" and not runs),
                )


def _runs_to_approve_on(view: CriteriaEntry) -> list[str]:
    """Runs that measured these criteria, those with held-out items first, else newest first."""
    held_out = {alignment.run_id for alignment in view.alignments if alignment.side == "held-out"}
    ordered = sorted(view.runs, key=lambda run_id: run_id not in held_out)
    return list({evidence_in_short(_evidence(view, run_id)): run_id for run_id in reversed(ordered)}.values())[::-1]


def _evidence(view: CriteriaEntry, run_id: str) -> Evidence:
    """What the run gives as evidence: held-out where it was measured, else calibration."""
    alignments = [alignment for alignment in view.alignments if alignment.run_id == run_id]
    best = next((alignment for alignment in alignments if alignment.side == "held-out"), alignments[0])
    return Evidence(best.run_id, best.side, best.alignment)


def _step(page: Opened, view: CriteriaEntry, review: Review, step: ReviewState, key: str) -> None:
    reason, run_id = str(st.session_state.get(f"{key}_reason") or ""), str(st.session_state.get(f"{key}_run") or "")
    where = (page.project.project_id, view.criteria_id, step)
    attempt(lambda: projects.set_state(page.store, *where, reason=reason, seen=review.seen, run_id=run_id))


def _lock(page: Opened, view: CriteriaEntry, locked: bool) -> None:
    attempt(lambda: projects.set_lock(page.store, page.project.project_id, view.criteria_id, locked=locked))


# ── comments ─────────────────────────────────────────────────────────────────────────────────────────────────


def draw_comments(page: Opened, view: CriteriaEntry, review: Review) -> None:
    """Open comments with the line that each is on, and settled ones folded away."""
    lines = view.text.splitlines()
    waiting = sorted(
        (comment for comment in review.comments if not comment.settled_by),
        key=lambda comment: (comment.line or 0, comment.at),
    )
    settled = [comment for comment in review.comments if comment.settled_by]
    if problem := st.session_state.pop(f"{PROBLEM}_comment", ""):
        st.warning(plain(problem), icon=":material/error:")
    for comment in waiting:
        with st.container(border=True, gap="xsmall"):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(_comment_head(comment, lines), width="content")
                st.space("stretch")
                st.button(
                    "Settle",
                    icon=":material/check:",
                    type="tertiary",
                    key=state.widget(f"settle_{comment.number}"),
                    on_click=_settle,
                    args=(page, view, comment.number),
                    **people.gate(page, "annotator"),
                )
            st.text(comment.text)
    if settled:
        with st.expander(f"Settled: {len(settled)}"):
            for comment in settled:
                st.markdown(f"{_comment_head(comment, lines)} · settled by {plain(comment.settled_by)}")
                st.text(comment.text)


def _comment_head(comment: Comment, lines: Sequence[str]) -> str:
    quoted = lines[comment.line - 1].strip()[:60] if comment.line and comment.line <= len(lines) else ""
    where = f"“{plain(quoted)}”" if quoted else f"line {comment.line}" if comment.line else "the whole text"
    return f"**{plain(comment.actor or 'somebody')}** on {where}, {plain(tables.ago(comment.at))}"


def draw_comment_form(page: Opened, view: CriteriaEntry) -> None:
    """The form for another comment, behind a press."""
    lines, key = view.text.splitlines(), state.widget(f"comment_{view.criteria_id}")
    with (
        st.popover("Comment", icon=":material/add_comment:"),
        st.form(f"{key}_form", border=False),
    ):
        st.selectbox(
            "On",
            [0, *range(1, len(lines) + 1)],
            key=f"{key}_line",
            format_func=lambda k: lines[k - 1].strip()[:80] or f"line {k}, empty" if k else "the whole text",
        )
        st.text_input("Comment", key=f"{key}_text", max_chars=LONGEST)
        form = st.session_state.setdefault(f"{key}_id", f"comment:{uuid.uuid4().hex}")
        st.form_submit_button(
            "Add comment",
            icon=":material/add_comment:",
            on_click=_comment,
            args=(page, view, key, form),
            **people.gate(page, "annotator"),
        )


def _comment(page: Opened, view: CriteriaEntry, key: str, form: str) -> None:
    text, line = str(st.session_state.get(f"{key}_text") or ""), int(st.session_state.get(f"{key}_line") or 0)
    where = (page.project.project_id, view.criteria_id)
    if attempt(
        lambda: projects.add_comment(page.store, *where, text, line=line or None, form=form), f"{PROBLEM}_comment"
    ):
        st.session_state[f"{key}_text"] = ""
        st.session_state.pop(f"{key}_id", None)


def _settle(page: Opened, view: CriteriaEntry, number: int) -> None:
    where = (page.project.project_id, view.criteria_id, number)
    attempt(lambda: projects.settle_comment(page.store, *where), f"{PROBLEM}_comment")
