"""Voting on a point of a meeting: each in their own browser or by a show of hands; hidden until all votes are in."""

from __future__ import annotations

import re

import streamlit as st

from core import projects
from core.review.meetings import CHOICES, Choice, Meeting, Point, Verdict
from pages.components import people, review_view, state
from pages.components.page import Opened
from pages.components.screens import plain

PROBLEM = state.widget("meeting_problem")
KEYS: dict[Choice, str] = {"for": "F", "against": "A", "abstain": "X"}
DECIDED: dict[Verdict, str] = {"accepted": "accepted", "rejected": "rejected", "postponed": "put off"}
AGREED: dict[Verdict, str] = {"accepted": "agreed", "rejected": "not agreed", "postponed": "put off"}
ENDINGS: dict[Choice, str] = {"for": "for", "against": "against", "abstain": "abstained"}


def draw(page: Opened, meeting: Meeting, point: Point) -> None:
    """Who has voted, or, once all have, who voted what; and the way to vote."""
    if point.revealed:
        draw_result(point)
    elif meeting.voters:
        n = len(meeting.voters)
        st.markdown(f"**{len(point.votes)} of {n} votes are in.** They are shown once all are.")
        with st.container(horizontal=True, gap="small"):
            for name in meeting.voters:
                voted = name not in point.waiting
                icon = ":material/check:" if voted else ":material/hourglass_empty:"
                st.badge(plain(name), icon=icon, color="green" if voted else "gray")
    else:
        st.markdown("**Say who is here**, so that the votes can be shown once all are in.")
    now = _voting_now(page, meeting, point)
    if now and page.actor.is_unnamed:
        if st.button("Enter your name to vote", icon=":material/person:", key=state.widget("meeting_name")):
            people.ask(page)
    elif now:
        _draw_ballot(page, meeting, now)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _draw_people(page, meeting)
        if point.votes:
            _draw_changes(page, meeting, point)
        if _has_seat(page, meeting) and point.waiting and people.may(page, "reviewer"):
            st.toggle("Enter the others’ votes here", key=_for_others(meeting))


def decided_words(point: Point) -> str:
    """What was decided, in a word or two: a change is accepted, a question is agreed on."""
    if point.decision is None:
        return "not decided"
    return (DECIDED if point.item.kind == "change" else AGREED)[point.decision.verdict]


def draw_result(point: Point) -> None:
    """The votes with their names, the larger side first."""
    for choice in sorted(CHOICES, key=lambda choice: (choice == "abstain", -point.tally[choice])):
        names = [vote.voter for vote in point.votes if vote.choice == choice]
        if names:
            st.markdown(f"**{len(names)} {ENDINGS[choice]}**: {plain(', '.join(names))}")


def _has_seat(page: Opened, meeting: Meeting) -> bool:
    """Whether who acts votes for themselves; a reviewer who is not among the voters enters everybody's votes."""
    return bool(page.actor.name) and (page.actor.name in meeting.voters or not people.may(page, "reviewer"))


def _for_others(meeting: Meeting) -> str:
    return state.widget(f"votes_of_others_{meeting.meeting_id}")


def _voting_now(page: Opened, meeting: Meeting, point: Point) -> str:
    """Whose vote the buttons count for; "" when none is to be given in this browser."""
    me, voted = page.actor.name, {vote.voter for vote in point.votes}
    if _has_seat(page, meeting):
        if me not in voted:
            return me
        if not people.may(page, "reviewer") or not st.session_state.get(_for_others(meeting)):
            return ""
    return next((name for name in point.waiting if name != me), "")


def _draw_ballot(page: Opened, meeting: Meeting, name: str) -> None:
    """Three buttons with their keys, for one vote."""
    st.markdown("**Your vote**" if name == page.actor.name else f"Vote of **{plain(name)}**")
    with st.container(horizontal=True, gap="small"):
        for choice, key in KEYS.items():
            people.button(
                page,
                "annotator",
                choice.capitalize(),
                shortcut=key,
                width=150,
                key=state.widget(f"vote_{meeting.meeting_id}_{meeting.at}_{name}_{choice}"),
                on_click=_vote,
                args=(page, meeting, name, choice),
            )


def _draw_changes(page: Opened, meeting: Meeting, point: Point) -> None:
    """The votes that may be changed from here: one's own, or for whoever enters them all of them."""
    with st.popover("Change a vote", icon=":material/undo:"):
        for vote in point.votes:
            if vote.voter != page.actor.name and not people.may(page, "reviewer"):
                continue
            key = state.widget(f"vote_{meeting.meeting_id}_{meeting.at}_{vote.voter}")
            st.session_state[key] = vote.choice if point.revealed else None
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.segmented_control(
                    f"Vote of {plain(vote.voter)}",
                    CHOICES,
                    key=key,
                    format_func=str.capitalize,
                    label_visibility="collapsed",
                    on_change=people.once_named(
                        page, lambda of=vote.voter, at=key: _vote_by_row(page, meeting, of, at)
                    ),
                    **people.gate(page, "annotator"),
                )
                st.text(vote.voter)


def _draw_people(page: Opened, meeting: Meeting) -> None:
    key = state.widget(f"people_{meeting.meeting_id}_{len(meeting.voters)}")
    with st.popover("Who is here", icon=":material/group:", key=f"{key}_opened"), st.form(f"{key}_form", border=False):
        st.text_area("Who votes: a name a line", value="\n".join(meeting.voters), key=key, height=160)
        people.submit(page, "reviewer", "Keep", type="primary", on_click=_seat, args=(page, meeting, key))


def names_in(typed: object) -> list[str]:
    """Names as they are typed: a line each, or parted by commas."""
    return re.split(r"[\n,;]", str(typed or ""))


def _vote(page: Opened, meeting: Meeting, voter: str, choice: Choice) -> None:
    where = (page.project.project_id, meeting.meeting_id, meeting.at)
    review_view.attempt(lambda: projects.cast_vote(page.store, *where, voter=voter, choice=choice), PROBLEM)


def _vote_by_row(page: Opened, meeting: Meeting, voter: str, key: str) -> None:
    choice = st.session_state.get(key)
    if choice in CHOICES:
        _vote(page, meeting, voter, choice)


def _seat(page: Opened, meeting: Meeting, key: str) -> None:
    where = (page.project.project_id, meeting.meeting_id)
    names = names_in(st.session_state.get(key))
    review_view.attempt(lambda: projects.set_participants(page.store, *where, names), PROBLEM)
