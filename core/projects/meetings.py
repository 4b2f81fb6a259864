"""Criteria review meetings: one point at a time, votes by name, decisions with their reasons, minutes."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from textwrap import shorten

from core.errors import AccessError, ConflictError, NotFoundError, UsageError
from core.projects.roles import requires
from core.projects.rounds import ListedProposal, decide_proposal, list_proposals
from core.projects.triage import list_triage
from core.review.criteria import ProposalDecided
from core.review.log import given_reason
from core.review.meetings import (
    CHOICES,
    VERDICTS,
    AgendaItem,
    Choice,
    Decision,
    Meeting,
    MeetingBegun,
    MeetingClosed,
    MeetingEntry,
    ParticipantsSet,
    PointOpened,
    Verdict,
    Vote,
    meetings_from,
    minutes,
)
from core.review.triage import Triage
from core.store.store import Store
from core.wording import word_diff

_LONGEST, _LONGEST_NAME, _MOST_VOTERS, _TITLE = 2_000, 80, 40, 110


def suggest_agenda(store: Store, project_id: str, golden_id: str, aspect: str) -> list[AgendaItem]:
    """What waits for a meeting: open proposals of finished rounds, newest round first, then triaged items.

    Of the triaged items those that somebody picked, called ambiguous, or whose label somebody called wrong.
    """
    changes = [
        AgendaItem(
            "change",
            _change_title(proposal),
            text=_change_text(store, project_id, proposal),
            subject_id=proposal.criteria.criteria_id,
            parent_id=proposal.parent.criteria_id,
            run_id=proposal.run_id,
        )
        for run in store.runs.all(project_id)
        if (run.kind, run.golden_id, run.aspect) == ("round", golden_id, aspect)
        for proposal in list_proposals(store, run.run_id)
        if proposal.state == "open"
    ]
    triaged = list_triage(store, project_id, golden_id, aspect).values()
    return changes + [_disagreement(item) for item in triaged if item.picked or item.verdict not in ("", "judge wrong")]


@requires("reviewer")
def start_meeting(
    store: Store, project_id: str, name: str, *, golden_id: str, aspect: str, agenda: Sequence[AgendaItem]
) -> str:
    """Open a meeting on an agenda and return its id.  UsageError without a name or without anything to talk about."""
    title = " ".join(name.split())
    if not 1 <= len(title) <= 120:
        raise UsageError("A meeting has a name of 1 to 120 characters.")
    if not agenda:
        raise UsageError("A meeting needs something to talk about: pick misaligned items or proposed criteria.")
    meeting_id = f"m{uuid.uuid4().hex[:12]}"
    store.events.add(project_id, MeetingBegun(title, golden_id, aspect, tuple(agenda), subject=meeting_id), store.actor)
    return meeting_id


def list_meetings(store: Store, project_id: str) -> list[Meeting]:
    """The project's meetings, newest first."""
    decided = store.events.all(project_id, ProposalDecided)
    return meetings_from(store.events.all(project_id, MeetingEntry), decided)[::-1]


def get_meeting(store: Store, project_id: str, meeting_id: str) -> Meeting:
    """NotFoundError for an unknown id."""
    meeting = next((listed for listed in list_meetings(store, project_id) if listed.meeting_id == meeting_id), None)
    if meeting is None:
        raise NotFoundError(f"There is no meeting {meeting_id[:24]!r} in this project.")
    return meeting


@requires("annotator")
def cast_vote(
    store: Store, project_id: str, meeting_id: str, point: int, *, voter: str, choice: Choice, note: str = ""
) -> None:
    """Vote on a point by name; a second vote of the same name replaces the first.

    Around one screen a reviewer enters everybody's votes; who signed in otherwise votes for themselves (AccessError).
    UsageError for a vote that there is not, a point that was decided, or a meeting that is over.
    """
    if get_meeting(store, project_id, meeting_id).going_on(point).decision is not None:
        raise UsageError("This point has been decided; vote on the next one.")
    name = " ".join(voter.split())
    if not 1 <= len(name) <= _LONGEST_NAME:
        raise UsageError(f"A vote needs the name of who votes, of up to {_LONGEST_NAME} characters.")
    if store.actor.subject and not store.actor.may("reviewer") and name != store.actor.name:
        raise AccessError(f"{store.actor.name} can only vote as {store.actor.name}.")
    if choice not in CHOICES:
        raise UsageError(f"A vote is {', '.join(CHOICES)}; {choice!r} came.")
    vote = Vote(point, name, choice, note.strip()[:_LONGEST], subject=meeting_id)
    store.events.add(project_id, vote, store.actor)


@requires("reviewer")
def set_participants(store: Store, project_id: str, meeting_id: str, names: Sequence[str]) -> None:
    """Set the participants, so that each has a vote to give.  UsageError for an endless name or list."""
    get_meeting(store, project_id, meeting_id)
    participants = tuple(dict.fromkeys(name for name in (" ".join(typed.split()) for typed in names) if name))
    if len(participants) > _MOST_VOTERS or any(len(name) > _LONGEST_NAME for name in participants):
        raise UsageError(f"Up to {_MOST_VOTERS} people vote, under names of up to {_LONGEST_NAME} characters.")
    store.events.add(project_id, ParticipantsSet(participants, subject=meeting_id), store.actor)


@requires("reviewer")
def set_current_point(store: Store, project_id: str, meeting_id: str, point: int) -> None:
    """Open a point: every screen of the meeting shows it, and its clock starts.

    UsageError for a point that there is not, or a meeting that is over.
    """
    get_meeting(store, project_id, meeting_id).going_on(point)
    store.events.add(project_id, PointOpened(point, subject=meeting_id), store.actor)


@requires("reviewer")
def decide(
    store: Store,
    project_id: str,
    meeting_id: str,
    point: int,
    *,
    verdict: Verdict,
    reason: str,
    seen: int = 0,
    proposal_seen: int = 0,
    edited_id: str = "",
) -> None:
    """Record what was decided on a point, and why; `seen` is the number of the decision it replaces, 0 for none.

    A proposal of a round that is accepted or rejected here is decided on there too (`decide_proposal`);
    `proposal_seen` is its `ListedProposal.seen` as the meeting saw it, `edited_id` the text that the meeting made of it
    and accepts in its place (`edit_proposal`).  UsageError without a reason or once the meeting is over,
    ConflictError when somebody else has decided on this point or its proposal meanwhile; nothing is written then.
    """
    about = get_meeting(store, project_id, meeting_id).going_on(point)
    if verdict not in VERDICTS:
        raise UsageError(f"A decision is {', '.join(VERDICTS)}; {verdict!r} came.")
    why = given_reason(reason)
    earlier = about.decision
    if earlier is not None and earlier.number not in (0, seen):
        raise ConflictError(
            f"{earlier.actor or 'Somebody'} decided on this point while you were looking at it: {earlier.verdict}, "
            f"{earlier.reason}. Nothing was overwritten.",
            theirs=f"{earlier.verdict}: {earlier.reason}",
            yours=f"{verdict}: {why}",
        )
    if about.item.run_id and verdict != "postponed":
        run_id, criteria_id = about.item.run_id, about.item.subject_id
        states = {proposal.criteria.criteria_id: proposal.state for proposal in list_proposals(store, run_id)}
        if edited_id or states.get(criteria_id) != verdict:  # unless it was decided just so
            accepted = verdict == "accepted"
            where = (store, run_id, criteria_id)
            decide_proposal(*where, accepted=accepted, reason=why, seen=proposal_seen, edited_id=edited_id)
    decision = Decision(point, verdict, why[:_LONGEST], subject=f"{meeting_id}:{point}")
    store.events.add(project_id, decision, store.actor, expected=seen)


@requires("reviewer")
def close_meeting(store: Store, project_id: str, meeting_id: str) -> None:
    """End a meeting; a second call changes nothing."""
    get_meeting(store, project_id, meeting_id)
    store.events.add(project_id, MeetingClosed(subject=meeting_id), store.actor, form=f"closed:{meeting_id}")


def meeting_minutes(store: Store, project_id: str, meeting_id: str) -> str:
    """The minutes as Markdown: every point with its texts, votes and decision."""
    meeting = get_meeting(store, project_id, meeting_id)
    texts = {row.criteria.criteria_id: row.criteria.text for row in store.criteria.all(project_id)}
    return minutes(meeting, texts)


def _change_title(proposal: ListedProposal) -> str:
    """The change in a few words: what comes in, else what goes."""
    pieces = word_diff(proposal.parent.text, proposal.criteria.text)
    for change, verb in (("added", "Add"), ("removed", "Leave out")):
        words = " … ".join(piece.text.strip(" .,;:\n") for piece in pieces if piece.change == change)
        if words.strip(" …"):
            return f"{verb} “{shorten(words, _TITLE, placeholder=' …')}”?"
    return "Take this change of the criteria?"


def _change_text(store: Store, project_id: str, proposal: ListedProposal) -> str:
    """How the proposal did against its parent, for the minutes; the screen shows the same as it stands."""
    gain, measured = proposal.inner, store.criteria.alignments(project_id, proposal.criteria.criteria_id)
    how = f" ({measured[0].alignment.statistic}, {measured[0].alignment.level} level)" if measured else ""
    if gain.value is None or gain.interval is None:
        return f"Proposal minus parent in alignment{how} on the inner fold: undefined on {gain.n} items."
    low, high = gain.interval.low, gain.interval.high
    return (
        f"Proposal minus parent in alignment{how} on the inner fold, items that no refiner saw: "
        f"{gain.value:+.3f} [{low:+.3f}, {high:+.3f}], n = {gain.n}."
    )


def _disagreement(triage: Triage) -> AgendaItem:
    question = {
        "ambiguous": "Do the criteria need a rule for this?",
        "judge wrong": "Is the judge wrong here?",
        "label wrong": "Is the label wrong here?",
        "": "Who is right here, judge or people?",
    }[triage.verdict]
    did = f"called it {triage.verdict}" if triage.verdict else "picked it for the next round"
    text = f"{triage.actor or 'Somebody'} {did}" + (f": {triage.note}" if triage.note else ".")
    return AgendaItem("disagreement", question, item_id=triage.item_id, subject_id=triage.subject_id, text=text)
