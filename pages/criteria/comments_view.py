"""What people say of criteria: badges, the lock, comments by line."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from datetime import datetime

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.criteria import Comment, Review
from core.projects.run_kinds import RunDetail
from core.wording import counted
from pages.ui import people, state, tables
from pages.ui.page import Opened
from pages.ui.screens import plain

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
    """A lock and open comments, as badges."""
    if review.locked:
        st.badge(plain(f"locked by {review.locked_by}"), color="orange", icon=":material/lock:")
    if n := sum(not comment.settled_by for comment in review.comments):
        st.badge(counted(n, "open comment"), color="blue", icon=":material/comment:")


def when(moment: datetime) -> str:
    """Date and time of day where the reader sits."""
    return f"{moment.astimezone():%d %b %Y %H:%M}"


def judge_file_label(page: Opened, run: RunDetail) -> str:
    """What the button says that hands out the judge of a run: that nobody approved the version, unless somebody did."""
    version = projects.judge_line(page.store, run.project_id, run.aspect).of_run(run.run_id)
    approved = version is not None and version.in_force
    return "Download judge.yaml" if approved else "Download judge.yaml (not approved)"


def draw_lock(page: Opened, view: CriteriaEntry, review: Review) -> None:
    """Locks the text against edits, or unlocks it; why that was refused."""
    people.button(
        page,
        "reviewer",
        "Unlock" if review.locked else "Lock",
        icon=":material/lock_open:" if review.locked else ":material/lock:",
        type="tertiary",
        key=state.widget("lock"),
        on_click=_lock,
        args=(page, view, not review.locked),
        help="Locked criteria are read and commented on, not edited.",
    )
    if problem := st.session_state.pop(PROBLEM, ""):
        st.warning(plain(problem), icon=":material/error:")


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
                people.button(
                    page,
                    "annotator",
                    "Settle",
                    icon=":material/check:",
                    type="tertiary",
                    key=state.widget(f"settle_{comment.number}"),
                    on_click=_settle,
                    args=(page, view, comment.number),
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
    form = st.session_state.setdefault(f"{key}_id", f"comment:{uuid.uuid4().hex}")
    with (
        st.popover("Comment", icon=":material/add_comment:", key=f"{key}_{form}"),
        st.form(f"{key}_form", border=False),
    ):
        st.selectbox(
            "On",
            [0, *range(1, len(lines) + 1)],
            key=f"{key}_line",
            format_func=lambda k: lines[k - 1].strip()[:80] or f"line {k}, empty" if k else "the whole text",
        )
        st.text_input("Comment", key=f"{key}_text", max_chars=LONGEST)
        people.submit(
            page,
            "annotator",
            "Add comment",
            icon=":material/add_comment:",
            on_click=_comment,
            args=(page, view, key, form),
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
