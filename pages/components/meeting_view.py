"""A criteria review meeting on the projector: one point at a time, votes by name, a clock, decisions, minutes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import is_demo
from core.projects.rounds import ListedProposal
from core.review.meetings import Decision, Meeting, Point, Verdict
from pages.components import (
    criteria_judge,
    drafts,
    meeting_close,
    meeting_start,
    meeting_table,
    meeting_votes,
    people,
    review_view,
    state,
)
from pages.components.meeting_votes import PROBLEM
from pages.components.page import Opened
from pages.components.screens import plain

TICK_SECONDS = 1.0
CHANGE_WORDS: dict[Verdict, str] = {
    "accepted": "Accept the change",
    "rejected": "Reject it",
    "postponed": "Put off",
}
ANSWER_WORDS: dict[Verdict, str] = {"accepted": "Yes, agreed", "rejected": "No", "postponed": "Put off"}
REASON, TEXT = "The reason, for the minutes", "Text"
EDITED = "Changed in the meeting."
ICONS = {"accepted": ":material/check_circle:", "rejected": ":material/cancel:", "postponed": ":material/schedule:"}


def is_open() -> bool:
    """Whether the URL names a meeting: it has the screen to itself."""
    return state.url_id("meeting") not in (None, meeting_start.NEW)


def draw(page: Opened) -> None:
    """The meeting in the URL where it stands, or the way to begin one."""
    if not is_open():
        meeting_start.draw(page)
        return
    try:
        meeting = projects.get_meeting(page.store, page.project.project_id, str(state.url_id("meeting")))
    except ConcordError as error:
        _draw_leave("Back to the menu")
        st.warning(plain(str(error)), icon=":material/link_off:")
        meeting_start.draw(page)
        return
    turned = st.session_state.get(_page_key(meeting)) if meeting.closed_at is not None else meeting.at
    if turned is not None:
        meeting = replace(meeting, at=int(turned))
    _draw_head(page, meeting, in_points=turned is not None)
    if problem := st.session_state.pop(PROBLEM, ""):
        st.warning(plain(problem), icon=":material/error:")
    if turned is None:
        meeting_close.draw(page, meeting, _draw_make_judge, lambda: go_to(page, meeting, 0))
    else:
        _draw_point(page, meeting)


def _draw_make_judge(page: Opened, criteria_id: str) -> None:
    """The way from criteria that a meeting took to a judge that follows them."""
    try:
        taken = projects.get_criteria(page.store, page.project.project_id, criteria_id)
    except ConcordError as error:
        st.caption(plain(f"It cannot be made the judge: {error}"))
    else:
        criteria_judge.draw_make_judge(page, taken, "meeting")


# ── the head: where the meeting stands, the clock, the way on ────────────────────────────────────────────────


def _draw_head(page: Opened, meeting: Meeting, *, in_points: bool) -> None:
    n, decided = len(meeting.points), sum(point.decision is not None for point in meeting.points)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(meeting.name)}** · {plain(meeting.aspect)}", width="content")
        if is_demo(page.project.project_id):
            st.badge("simulated labels", color="gray")
        if meeting.closed_at is not None:
            st.badge("over", color="gray", icon=":material/lock:")
        if in_points:
            _way(page, meeting, "Previous", meeting.at - 1, key="Left", icon=":material/arrow_back:")
            st.markdown(f"**Point {meeting.at + 1} of {n}**, {decided} decided", width="content")
            _way(page, meeting, "Next", meeting.at + 1, key="Right", icon=":material/arrow_forward:")
        st.space("stretch")
        with st.container(width="content"):
            _clock(page, meeting)
        if page.actor.name:
            st.caption(f"You are {plain(page.actor.name)}", width="content")
        if in_points and meeting.closed_at is None:
            _draw_close(page, meeting)
        elif in_points:
            st.button("To what was decided", key=state.widget("meeting_over"), on_click=_to_the_end, args=(meeting,))
        if not state.is_bare():
            icon, key = ":material/fullscreen:", state.widget("meeting_bare")
            st.button("Full screen", icon=icon, type="tertiary", key=key, on_click=_fill_screen)
        _draw_leave("Leave")


def _fill_screen() -> None:
    state.put_in_url(view=state.BARE)


def _draw_leave(label: str) -> None:
    st.button(
        label,
        icon=":material/logout:",
        type="tertiary",
        key=state.widget("meeting_leave"),
        on_click=lambda: state.put_in_url(meeting=meeting_start.NEW, view=None),
    )


def _draw_close(page: Opened, meeting: Meeting) -> None:
    people.button(
        page,
        "reviewer",
        "Close the meeting",
        icon=":material/lock:",
        type="primary" if meeting.first_open is None else "secondary",
        key=state.widget("meeting_close"),
        on_click=lambda: _do(lambda: projects.close_meeting(page.store, *_where(page, meeting))),
    )


def _way(page: Opened, meeting: Meeting, label: str, point: int, *, icon: str, key: str | None = None) -> None:
    people.button(
        page,
        "viewer" if meeting.closed_at is not None else "reviewer",
        label,
        disabled=not 0 <= point < len(meeting.points),
        icon=icon,
        shortcut=key,
        key=state.widget(f"meeting_{label.partition(' ')[0].lower()}"),
        on_click=go_to,
        args=(page, meeting, point),
    )


def go_to(page: Opened, meeting: Meeting, point: int) -> None:
    """Puts a point on the table for everybody; in a meeting that is over only this screen turns the page."""
    if meeting.closed_at is not None:
        st.session_state[_page_key(meeting)] = point
        return
    _do(lambda: projects.set_current_point(page.store, *_where(page, meeting), point))


def _to_the_end(meeting: Meeting) -> None:
    st.session_state.pop(_page_key(meeting), None)


def _page_key(meeting: Meeting) -> str:
    return state.widget(f"minutes_of_{meeting.meeting_id}")


@st.fragment(run_every=TICK_SECONDS)
def _clock(page: Opened, meeting: Meeting) -> None:
    """Counts the time on this point; where another screen changed the meeting, everything is drawn anew."""
    if meeting.closed_at is not None:
        st.caption(f"{plain(review_view.when(meeting.began_at))}, {_clock_words(meeting.closed_at - meeting.began_at)}")
        return
    now = projects.get_meeting(page.store, page.project.project_id, meeting.meeting_id)
    if now.newest != meeting.newest:
        st.rerun()
    point, moment = meeting.points[meeting.at], datetime.now(UTC)
    end = point.decision.at if point.decision is not None and point.decision.number else moment
    on_this = end - (point.opened_at or meeting.began_at)
    words = f"**{_clock_words(on_this)}** on this point · {_clock_words(moment - meeting.began_at)} in all"
    st.markdown(f":material/timer: {words.replace(':', chr(92) + ':')}", width="content")


def _clock_words(spent: timedelta) -> str:
    seconds = max(0, int(spent.total_seconds()))
    hours, rest = divmod(seconds, 3600)
    return (f"{hours}:{rest // 60:02d}" if hours else f"{rest // 60}") + f":{rest % 60:02d}"


# ── one point ────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_point(page: Opened, meeting: Meeting) -> None:
    point = meeting.points[meeting.at]
    left, right = st.columns([5, 3], gap="large")
    with left:
        meeting_table.draw_subject(page, meeting, point)
    with right:
        if point.decision is None and meeting.closed_at is None:
            meeting_votes.draw(page, meeting, point)
            _offer_decision(page, meeting, point)
        else:
            _draw_decision(page, meeting, point)


def _offer_decision(page: Opened, meeting: Meeting, point: Point) -> None:
    """The buttons that decide: in the open once all votes are in or nobody votes, behind a press before."""
    if not people.may(page, "reviewer"):
        st.caption("A reviewer enters what is decided.")
        return
    early = bool(meeting.voters) and not point.revealed
    with st.expander("Decide before all votes are in") if early else st.container(border=True):
        _draw_decision_form(page, meeting, point, 0)


def _draw_decision(page: Opened, meeting: Meeting, point: Point) -> None:
    with st.container(border=True):
        if point.decision is None:
            st.badge("not decided", color="gray", icon=":material/help:")
        else:
            _draw_verdict(point, point.decision)
        meeting_votes.draw_result(point)
        taken = projects.decided_criteria(page.store, *_where(page, meeting))
        for decided in taken:
            if decided.point == meeting.at:
                _draw_make_judge(page, decided.criteria_id)
    if meeting.closed_at is not None:
        return
    with st.container(horizontal=True):
        following = meeting.first_open
        if following is not None:
            people.button(
                page,
                "reviewer",
                "Go on to the next open point",
                type="primary",
                icon=":material/arrow_forward:",
                key=state.widget("meeting_on"),
                on_click=go_to,
                args=(page, meeting, following),
            )
        if point.decision is not None and people.may(page, "reviewer"):
            again = state.widget(f"decide_again_{meeting.meeting_id}_{point.decision.number}")
            with st.popover("Decide again", icon=":material/undo:", key=again):
                _draw_decision_form(page, meeting, point, point.decision.number)


def _draw_verdict(point: Point, decision: Decision) -> None:
    st.subheader(f"{ICONS[decision.verdict]} {meeting_votes.decided_words(point).capitalize()}", anchor=False)
    where = "" if decision.number else " outside this meeting"
    st.markdown(f"Decided{where} by **{plain(decision.actor or 'somebody')}**, {plain(review_view.when(decision.at))}:")
    st.text(f"“{decision.reason}”")


def _draw_decision_form(page: Opened, meeting: Meeting, point: Point, seen: int) -> None:
    words = CHANGE_WORDS if point.item.kind == "change" else ANSWER_WORDS
    key = state.widget(f"decide_{meeting.meeting_id}_{meeting.at}_{seen}")
    proposal = meeting_table.proposal_of(page, point)
    subject = f"reason:{meeting.meeting_id}:{meeting.at}"
    typed = {REASON: drafts.begin(page, subject, "", f"{key}_reason")}
    if proposal is not None:
        typed[TEXT] = drafts.begin(page, drafts.of_proposal(proposal), proposal.criteria.text, f"{key}_text")
        drafts.draw_kept(page, typed[TEXT])
    with st.form(f"{key}_form", border=False):
        with st.container(horizontal=True, gap="small"):
            for verdict, label in words.items():
                people.submit(
                    page,
                    "reviewer",
                    label,
                    type="primary" if not point.wants_reason(verdict) and verdict != "postponed" else "secondary",
                    icon=ICONS[verdict],
                    on_click=_decide,
                    args=(page, meeting, verdict, typed),
                    kwargs={"seen": seen, "proposal": proposal},
                )
        st.text_area(
            REASON,
            value=typed[REASON].text,
            key=typed[REASON].key,
            height=80,
            max_chars=2_000,
            placeholder=_reason_words(point),
        )
        if TEXT in typed:
            with st.expander("Change the text before accepting", icon=":material/edit:"):
                st.text_area(TEXT, value=typed[TEXT].text, key=typed[TEXT].key, height=200, max_chars=8_000)
    with st.container(horizontal=True):
        for name, editing in typed.items():
            drafts.watch(page, editing, "not yet decided" if name == REASON else "not yet a version")


def _reason_words(point: Point) -> str:
    """What the field for the reason asks for: nothing, where the votes are reason enough for some decision."""
    causes = {point.wants_reason("accepted"), point.wants_reason("rejected")}
    return "Not needed where the decision follows the votes" if "" in causes else f"Needed, as {min(causes)}"


# ── what a press does ────────────────────────────────────────────────────────────────────────────────────────


def _where(page: Opened, meeting: Meeting) -> tuple[str, str]:
    return page.project.project_id, meeting.meeting_id


def _do(act: Callable[[], None]) -> bool:
    return review_view.attempt(act, PROBLEM)


def _decide(
    page: Opened,
    meeting: Meeting,
    verdict: Verdict,
    typed: Mapping[str, drafts.Editing],
    *,
    seen: int,
    proposal: ListedProposal | None,
) -> None:
    """`seen` is the decision as the screen showed it, and so is `proposal`; its text may have been changed here."""
    reason, text = (
        str(st.session_state.get(typed[field].key) or "") if field in typed else "" for field in (REASON, TEXT)
    )
    where = (*_where(page, meeting), meeting.at)

    def act() -> None:
        edited_id = ""
        if proposal is not None and verdict == "accepted" and text.strip() != proposal.criteria.text.strip():
            which = (proposal.run_id, proposal.criteria.criteria_id)
            edited_id = projects.edit_proposal(page.store, page.settings, *which, text, note=reason.strip() or EDITED)
        shown = 0 if proposal is None else proposal.seen
        projects.decide(
            page.store, *where, verdict=verdict, reason=reason, seen=seen, proposal_seen=shown, edited_id=edited_id
        )

    if _do(act):
        for name, editing in typed.items():
            if name == REASON or verdict == "accepted":
                drafts.done(page, editing)
