"""Criteria review meetings: one point at a time, votes by name, decisions with their reasons, minutes."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import AccessError, ConflictError, NotFoundError, UsageError
from core.projects.criteria import list_criteria
from core.projects.judge_line import judge_line
from core.projects.roles import requires
from core.projects.rounds import ListedProposal, decide_proposal, list_proposals
from core.projects.triage import list_triage
from core.review.agenda import change_question, opening
from core.review.criteria import ProposalDecided
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
    Point,
    PointOpened,
    Verdict,
    Vote,
    meetings_from,
    minutes,
)
from core.review.triage import Triage
from core.stats.claims import change_figures
from core.store.store import Store

_LONGEST, _LONGEST_NAME, _MOST_VOTERS = 2_000, 80, 40


def suggest_agenda(store: Store, project_id: str, golden_id: str, aspect: str) -> list[AgendaItem]:
    """What waits for a meeting: open proposals of finished rounds (newest first), edits, triaged items.

    Of the triaged items those that somebody picked, called ambiguous, or whose label somebody called wrong.
    `losing_changes` says which proposals the figures speak against.
    """
    changes = [
        AgendaItem(
            "change",
            change_question(proposal.parent.text, proposal.criteria.text),
            text=_change_text(store, project_id, proposal),
            subject_id=proposal.criteria.criteria_id,
            parent_id=proposal.parent.criteria_id,
            run_id=proposal.run_id,
        )
        for proposal in _open_proposals(store, project_id, golden_id, aspect)
    ]
    triaged = list_triage(store, project_id, golden_id, aspect).values()
    return [
        *changes,
        *_edits(store, project_id, golden_id, aspect),
        *(_disagreement(item) for item in triaged if item.picked or item.verdict not in ("", "judge wrong")),
    ]


def losing_changes(store: Store, project_id: str, golden_id: str, aspect: str) -> frozenset[str]:
    """Criteria ids of the open proposals whose alignment is lower than their parent's.

    On the items that no refiner saw; on all calibration items where that is undefined.
    """
    differences = {
        proposal.criteria.criteria_id: next(
            (paired.value for paired in (proposal.inner, proposal.calibration) if paired.value is not None), 0.0
        )
        for proposal in _open_proposals(store, project_id, golden_id, aspect)
    }
    return frozenset(criteria_id for criteria_id, difference in differences.items() if difference < 0)


def _open_proposals(store: Store, project_id: str, golden_id: str, aspect: str) -> list[ListedProposal]:
    return [
        proposal
        for run in store.runs.all(project_id)
        if (run.kind, run.golden_id, run.aspect) == ("round", golden_id, aspect)
        for proposal in list_proposals(store, run.run_id)
        if proposal.state == "open"
    ]


def _edits(store: Store, project_id: str, golden_id: str, aspect: str) -> list[AgendaItem]:
    """The newest edits and merges by hand that are no version of the judge yet, and that nobody has decided on."""
    taken = {decided.edited_id for decided in store.events.all(project_id, ProposalDecided)}
    for meeting in list_meetings(store, project_id):
        taken |= {
            point.item.subject_id
            for point in meeting.points
            if point.decision is not None and point.decision.verdict != "postponed"
        }
    for version in judge_line(store, project_id, aspect).versions:
        taken |= set(version.criteria_ids)
    listed = {entry.criteria_id: entry for entry in list_criteria(store, project_id, aspect, golden_id)}
    return [
        AgendaItem(
            "change",
            change_question(listed[entry.parents[0]].text, entry.text),
            text=f"{entry.author or 'Somebody'} changed it by hand" + (f": {entry.note}" if entry.note else "."),
            subject_id=entry.criteria_id,
            parent_id=entry.parents[0],
        )
        for entry in listed.values()
        if entry.origin == "edit" and entry.parents[0] in listed and entry.criteria_id not in taken
        if not entry.edits
    ]


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

    A reason is needed where the votes do not speak for themselves (`Point.wants_reason`); elsewhere they are it.
    A proposal of a round that is accepted or rejected here is decided on there too (`decide_proposal`);
    `proposal_seen` is its `ListedProposal.seen` as the meeting saw it, `edited_id` the text that the meeting made of it
    and accepts in its place (`edit_proposal`).
    UsageError without the reason or once the meeting is over, ConflictError when somebody else has decided on this
    point or its proposal meanwhile; nothing is written then.
    """
    about = get_meeting(store, project_id, meeting_id).going_on(point)
    if verdict not in VERDICTS:
        raise UsageError(f"A decision is {', '.join(VERDICTS)}; {verdict!r} came.")
    why = reason.strip() or _reason_from_votes(about, verdict)
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


def _reason_from_votes(point: Point, verdict: Verdict) -> str:
    """UsageError where the votes are not reason enough."""
    if cause := point.wants_reason(verdict):
        raise UsageError(f"This decision needs a reason, as {cause}.")
    return f"{point.tally_words}." if point.votes and point.revealed else "Put off to a later meeting."


@dataclass(frozen=True, slots=True)
class DecidedCriteria:
    """Criteria that a meeting took: at `point` (from 0) of its agenda, in answer to `title`; `edited` on the spot."""

    point: int
    title: str
    criteria_id: str
    reason: str
    edited: bool


def decided_criteria(store: Store, project_id: str, meeting_id: str) -> list[DecidedCriteria]:
    """What a meeting decided that a judge can follow: each text once, in the order of the agenda."""
    edits = {decided.subject: decided.edited_id for decided in store.events.all(project_id, ProposalDecided)}
    taken: dict[str, DecidedCriteria] = {}
    for k, point in enumerate(get_meeting(store, project_id, meeting_id).points):
        item, decision = point.item, point.decision
        if item.kind == "change" and decision is not None and decision.verdict == "accepted":
            edited_id = edits.get(f"{item.run_id}:{item.subject_id}", "")
            criteria_id = edited_id or item.subject_id
            entry = DecidedCriteria(k, item.title, criteria_id, decision.reason, bool(edited_id))
            taken.setdefault(criteria_id, entry)
    return list(taken.values())


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


def _change_text(store: Store, project_id: str, proposal: ListedProposal) -> str:
    """How the proposal did against its parent, for the agenda and the minutes."""
    gain, measured = proposal.inner, store.criteria.alignments(project_id, proposal.criteria.criteria_id)
    how = f" ({measured[0].alignment.statistic}, {measured[0].alignment.level} level)" if measured else ""
    first = opening(proposal.parent.text)
    about = f" The criteria now begin: {first}." if first else ""
    if gain.value is None or gain.interval is None:
        return f"Change of alignment{how}: undefined on {gain.n} items that no refiner saw.{about}"
    figures = f"{change_figures(gain.value, gain.interval)}, n = {gain.n} items that no refiner saw"
    return f"Change of alignment{how}: {figures}.{about}"


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
