"""A criteria review meeting on the projector: one point at a time, votes by name, a clock, decisions, minutes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.rounds import ListedProposal
from core.review.meetings import CHOICES, Choice, Decision, Meeting, Point, Verdict
from pages.components import drafts, meeting_start, meeting_table, people, review_view, state
from pages.components.page import Opened
from pages.components.screens import plain

PROBLEM = state.widget("meeting_problem")
TICK_SECONDS = 1.0
CHANGE_WORDS: dict[Verdict, str] = {
    "accepted": "Accept the change",
    "rejected": "Reject it",
    "postponed": "Postpone",
}
ANSWER_WORDS: dict[Verdict, str] = {"accepted": "Yes, agreed", "rejected": "No", "postponed": "Postpone"}
REASON, TEXT = "Decision: the reason, for the minutes", "Text"
COLOURS = {"accepted": "green", "rejected": "red", "postponed": "gray"}
ICONS = {"accepted": ":material/check_circle:", "rejected": ":material/cancel:", "postponed": ":material/schedule:"}
KEYS: dict[Choice, str] = {"for": "F", "against": "A", "abstain": "X"}


def draw(page: Opened) -> None:
    """The meeting in the URL where it stands, or the way to begin one."""
    wanted = state.url_id("meeting")
    if wanted in (None, meeting_start.NEW):
        meeting_start.draw(page)
        return
    try:
        meeting = projects.get_meeting(page.store, page.project.project_id, str(wanted))
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/link_off:")
        meeting_start.draw(page)
        return
    if meeting.closed_at is not None:
        meeting = replace(meeting, at=int(st.session_state.get(_page_key(meeting), meeting.at)))
    _draw_head(page, meeting)
    if problem := st.session_state.pop(PROBLEM, ""):
        st.warning(plain(problem), icon=":material/error:")
    _draw_point(page, meeting)
    _draw_minutes(page, meeting)


# ── the head: where the meeting stands, the clock, the way on ────────────────────────────────────────────────


def _draw_head(page: Opened, meeting: Meeting) -> None:
    n, decided = len(meeting.points), sum(point.decision is not None for point in meeting.points)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f"**{plain(meeting.name)}** · {plain(meeting.aspect)}", width="content")
        if meeting.closed_at is not None:
            st.badge("closed", color="gray", icon=":material/lock:")
        st.space("stretch")
        with st.container(width="content"):
            _clock(page, meeting)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _way(page, meeting, "Previous", meeting.at - 1, key="Left", icon=":material/arrow_back:")
        st.markdown(f"**Point {meeting.at + 1} of {n}**, {decided} decided", width="content")
        _way(page, meeting, "Next", meeting.at + 1, key="Right", icon=":material/arrow_forward:")
        first = meeting.first_open
        if first is not None and first != meeting.at:
            _way(page, meeting, f"To the first open one ({first + 1})", first, icon=":material/skip_next:")
        st.space("stretch")
        st.button(
            "Leave the meeting",
            icon=":material/logout:",
            type="tertiary",
            key=state.widget("meeting_leave"),
            on_click=lambda: state.put_in_url(meeting=meeting_start.NEW),
        )


def _way(page: Opened, meeting: Meeting, label: str, point: int, *, icon: str, key: str | None = None) -> None:
    st.button(
        label,
        icon=icon,
        shortcut=key,
        key=state.widget(f"meeting_{label.partition(' ')[0].lower()}"),
        on_click=go_to,
        args=(page, meeting, point),
        **people.gate(page, "reviewer", disabled=not 0 <= point < len(meeting.points)),
    )


def go_to(page: Opened, meeting: Meeting, point: int) -> None:
    """Puts a point on the table for everybody; in a closed meeting only this screen turns the page."""
    if meeting.closed_at is not None:
        st.session_state[_page_key(meeting)] = point
        return
    _do(page, lambda: projects.set_current_point(page.store, *_where(page, meeting), point))


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
    left, right = st.columns([3, 2], gap="medium")
    with left:
        meeting_table.draw_subject(page, meeting, point)
    with right:
        if point.decision is None and meeting.closed_at is None:
            _draw_votes(page, meeting, point)
            _draw_decision_form(page, meeting, point, 0)
        else:
            _draw_decision(page, meeting, point)


def _draw_votes(page: Opened, meeting: Meeting, point: Point) -> None:
    said = {vote.voter: vote.choice for vote in point.votes}
    with st.container(horizontal=True, gap="large"):
        for choice in CHOICES:
            st.metric(choice.capitalize(), point.tally[choice], width="content")
    waiting = next((name for name in meeting.voters if name not in said), None)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if waiting is not None:
            st.markdown(f"Next to vote: **{plain(waiting)}**", width="content")
        elif meeting.voters:
            st.markdown("All have voted.", width="content")
        else:
            st.markdown("Say who is here:", width="content")
        st.space("stretch")
        _draw_people(page, meeting)
    if waiting is not None:
        _draw_keys(page, meeting, waiting)
    for name in meeting.voters:
        key = state.widget(f"vote_{meeting.meeting_id}_{meeting.at}_{name}")
        st.session_state[key] = said.get(name)
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.segmented_control(
                f"Vote of {plain(name)}",
                CHOICES,
                key=key,
                format_func=str.capitalize,
                label_visibility="collapsed",
                **people.gate(page, "annotator"),
                on_change=_vote_by_row,
                args=(page, meeting, name, key),
            )
            st.text(name)


def _draw_keys(page: Opened, meeting: Meeting, waiting: str) -> None:
    """Three keys that count for whoever votes next."""
    with st.container(horizontal=True, gap="small"):
        for choice, key in KEYS.items():
            st.button(
                choice.capitalize(),
                shortcut=key,
                key=state.widget(f"vote_{meeting.meeting_id}_{meeting.at}_{waiting}_{choice}"),
                on_click=_vote,
                args=(page, meeting, waiting, choice),
                **people.gate(page, "annotator"),
            )


def _draw_people(page: Opened, meeting: Meeting) -> None:
    key = state.widget(f"people_{meeting.meeting_id}_{len(meeting.voters)}")
    with st.popover("People", icon=":material/group:"), st.form(f"{key}_form", border=False):
        st.text_area("Who votes: a name a line", value="\n".join(meeting.voters), key=key, height=160)
        gate = people.gate(page, "reviewer")
        st.form_submit_button("Keep", type="primary", on_click=_seat, args=(page, meeting, key), **gate)


def _draw_decision(page: Opened, meeting: Meeting, point: Point) -> None:
    with st.container(border=True):
        if point.decision is None:
            st.badge("not decided", color="gray", icon=":material/help:")
        else:
            _draw_verdict(point.decision)
        tally = point.tally
        if point.votes:
            st.text(f"{tally['for']} for, {tally['against']} against, {tally['abstain']} abstained")
            st.caption(plain(", ".join(f"{vote.voter}: {vote.choice}" for vote in point.votes)))
        meeting_table.draw_then(page, point)
    if meeting.closed_at is not None:
        return
    with st.container(horizontal=True):
        following = meeting.first_open
        if following is not None:
            st.button(
                "Go on to the next open point",
                type="primary",
                icon=":material/arrow_forward:",
                key=state.widget("meeting_on"),
                on_click=go_to,
                args=(page, meeting, following),
                **people.gate(page, "reviewer"),
            )
        if point.decision is not None:
            with st.popover("Decide again", icon=":material/undo:"):
                _draw_decision_form(page, meeting, point, point.decision.number)


def _draw_verdict(decision: Decision) -> None:
    st.badge(decision.verdict, color=COLOURS[decision.verdict], icon=ICONS[decision.verdict])  # type: ignore[arg-type]
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
        st.text_area(REASON, value=typed[REASON].text, key=typed[REASON].key, height=80, max_chars=2_000)
        if TEXT in typed:
            with st.expander("Change the text before accepting", icon=":material/edit:"):
                st.text_area(TEXT, value=typed[TEXT].text, key=typed[TEXT].key, height=200, max_chars=8_000)
        with st.container(horizontal=True, gap="small"):
            for verdict, label in words.items():
                st.form_submit_button(
                    label,
                    type="primary" if verdict == "accepted" else "secondary",
                    icon=ICONS[verdict],
                    on_click=_decide,
                    args=(page, meeting, verdict, typed),
                    kwargs={"seen": seen, "proposal": proposal},
                    **people.gate(page, "reviewer"),
                )
    with st.container(horizontal=True):
        for name, editing in typed.items():
            drafts.watch(page, editing, "not yet decided" if name == REASON else "not yet a version")


# ── what a press does ────────────────────────────────────────────────────────────────────────────────────────


def _where(page: Opened, meeting: Meeting) -> tuple[str, str]:
    return page.project.project_id, meeting.meeting_id


def _do(page: Opened, act: Callable[[], None]) -> bool:
    return review_view.attempt(act, PROBLEM)


def _vote(page: Opened, meeting: Meeting, voter: str, choice: Choice) -> None:
    _do(page, lambda: projects.cast_vote(page.store, *_where(page, meeting), meeting.at, voter=voter, choice=choice))


def _vote_by_row(page: Opened, meeting: Meeting, voter: str, key: str) -> None:
    choice = st.session_state.get(key)
    if choice in CHOICES:
        _vote(page, meeting, voter, choice)


def _seat(page: Opened, meeting: Meeting, key: str) -> None:
    names = re.split(r"[\n,;]", str(st.session_state.get(key) or ""))
    _do(page, lambda: projects.set_participants(page.store, *_where(page, meeting), names))


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
            edited_id = projects.edit_proposal(page.store, page.settings, *which, text, note=reason)
        shown = 0 if proposal is None else proposal.seen
        projects.decide(
            page.store, *where, verdict=verdict, reason=reason, seen=seen, proposal_seen=shown, edited_id=edited_id
        )

    if _do(page, act):
        for name, editing in typed.items():
            if name == REASON or verdict == "accepted":
                drafts.done(page, editing)


# ── minutes ──────────────────────────────────────────────────────────────────────────────────────────────────


def _draw_minutes(page: Opened, meeting: Meeting) -> None:
    part = st.expander("Minutes", icon=":material/description:", on_change="rerun", key=state.widget("minutes"))
    with st.container(horizontal=True):
        st.download_button(
            "Download the minutes",
            data=lambda: projects.meeting_minutes(page.store, *_where(page, meeting)),
            file_name="minutes.md",
            mime="text/markdown",
            icon=":material/download:",
            on_click="ignore",
        )
        if meeting.closed_at is None:
            st.button(
                "Close the meeting",
                icon=":material/lock:",
                key=state.widget("meeting_close"),
                on_click=lambda: _do(page, lambda: projects.close_meeting(page.store, *_where(page, meeting))),
                **people.gate(page, "reviewer"),
            )
    if part.open:
        with part, st.container(border=True):
            st.markdown(as_preview(projects.meeting_minutes(page.store, *_where(page, meeting))), anchors=False)


def as_preview(minutes: str) -> str:
    """Minutes as this program's Markdown shows them: what elsewhere is plain (`$`, `:`, addresses) stays plain here."""
    joined = re.sub(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?=@)", "\u2060", minutes)
    return re.sub(r"([$:])", r"\\\1", joined)
