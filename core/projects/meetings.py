"""Criteria review meetings: one point at a time, votes by name, decisions with their reasons, minutes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from textwrap import shorten

from core.errors import AccessError, ConflictError, NotFoundError, UsageError
from core.kept import moment
from core.projects.access import requires
from core.projects.rounds import PROPOSAL, ListedProposal, decide_proposal, list_proposals
from core.projects.triage import list_triage
from core.projects.views.meetings import (
    CHOICES,
    VERDICTS,
    AgendaItem,
    Choice,
    Decision,
    MeetingView,
    Point,
    Verdict,
    Vote,
)
from core.projects.views.reviews import Triage
from core.store.rows import EventRow
from core.store.store import Store
from core.wording import word_diff

MEETING, VOTE, DECISION, CLOSED = "meeting", "vote", "decision", "meeting closed"
AT, TABLE = "meeting point", "meeting table"
_LONGEST, _LONGEST_NAME, _MOST_VOTERS, _TITLE = 2_000, 80, 40, 110


@requires("viewer")
def suggest_agenda(store: Store, project_id: str, golden_id: str, aspect: str) -> list[AgendaItem]:
    """What waits for a meeting: open proposals of finished rounds, newest round first, then triaged items.

    Of the triaged items those that somebody picked, called ambiguous, or whose label somebody called wrong.
    """
    changes = [
        AgendaItem(
            "change",
            _change_title(one),
            text=_change_text(store, project_id, one),
            subject_id=one.criteria.criteria_id,
            parent_id=one.parent.criteria_id,
            run_id=one.run_id,
        )
        for run in store.runs.all(project_id)
        if (run.kind, run.golden_id, run.aspect) == ("round", golden_id, aspect)
        for one in list_proposals(store, run.run_id)
        if one.state == "open"
    ]
    triaged = list_triage(store, project_id, golden_id, aspect).values()
    return changes + [_disagreement(one) for one in triaged if one.picked or one.verdict != "judge wrong"]


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
    body = {
        **{"did": f"opened the meeting {title}", "name": title, "golden_id": golden_id, "aspect": aspect},
        "agenda": [asdict(item) for item in agenda],
    }
    store.events.add(project_id, MEETING, meeting_id, store.actor, body)
    return meeting_id


@requires("viewer")
def list_meetings(store: Store, project_id: str) -> list[MeetingView]:
    """The project's meetings, newest first."""
    later = _later(store, project_id)
    return [_view(event, later) for event in reversed(store.events.all(project_id, MEETING))]


@requires("viewer")
def get_meeting(store: Store, project_id: str, meeting_id: str) -> MeetingView:
    """NotFoundError for an unknown id."""
    found = store.events.all(project_id, MEETING, meeting_id)
    if not found:
        raise NotFoundError(f"There is no meeting {meeting_id[:24]!r} in this project.")
    return _view(found[0], _later(store, project_id))


@requires("annotator")
def cast_vote(
    store: Store, project_id: str, meeting_id: str, point: int, *, voter: str, choice: Choice, note: str = ""
) -> None:
    """Vote on a point by name; a second vote of the same name replaces the first.

    Around one screen a reviewer enters everybody's votes; who signed in otherwise votes for themselves (AccessError).
    UsageError for a vote that there is not, a point that was decided, or a meeting that is over.
    """
    _open_point(get_meeting(store, project_id, meeting_id), point)
    name = " ".join(voter.split())
    if not 1 <= len(name) <= 80:
        raise UsageError("A vote needs the name of who votes, of up to 80 characters.")
    if store.actor.subject and not store.actor.may("reviewer") and name != store.actor.name:
        raise AccessError(f"{store.actor.name} can only vote as {store.actor.name}.")
    if choice not in CHOICES:
        raise UsageError(f"A vote is {', '.join(CHOICES)}; {choice!r} came.")
    body = {"did": f"voted {choice}", "point": point, "voter": name, "choice": choice, "note": note.strip()[:_LONGEST]}
    store.events.add(project_id, VOTE, meeting_id, store.actor, body)


@requires("reviewer")
def set_table(store: Store, project_id: str, meeting_id: str, names: Sequence[str]) -> None:
    """Say who sits at the table, so that each has a vote to give.  UsageError for an endless name or list."""
    get_meeting(store, project_id, meeting_id)
    seated = list(dict.fromkeys(name for name in (" ".join(one.split()) for one in names) if name))
    if len(seated) > _MOST_VOTERS or any(len(name) > _LONGEST_NAME for name in seated):
        raise UsageError(f"Up to {_MOST_VOTERS} people vote, under names of up to {_LONGEST_NAME} characters.")
    body = {"did": f"said who votes: {', '.join(seated)[:_LONGEST] or 'nobody'}", "names": seated}
    store.events.add(project_id, TABLE, meeting_id, store.actor, body)


@requires("reviewer")
def come_to(store: Store, project_id: str, meeting_id: str, point: int) -> None:
    """Put a point on the table: every screen of the meeting shows it, and its clock starts.

    UsageError for a point that there is not, or a meeting that is over.
    """
    meeting = get_meeting(store, project_id, meeting_id)
    _known_point(meeting, point)
    if meeting.closed_at is not None:
        raise UsageError("This meeting is over; its minutes stand.")
    body = {"did": f"came to point {point + 1}", "point": point}
    store.events.add(project_id, AT, meeting_id, store.actor, body)


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
    and accepts in its place (`edit_proposal`).  UsageError without a reason or once the meeting
    is over, ConflictError when somebody else has decided on this point or its proposal meanwhile; nothing is written
    then.
    """
    meeting = get_meeting(store, project_id, meeting_id)
    _known_point(meeting, point)
    if meeting.closed_at is not None:
        raise UsageError("This meeting is over; its minutes stand.")
    if verdict not in VERDICTS:
        raise UsageError(f"A decision is {', '.join(VERDICTS)}; {verdict!r} came.")
    if not reason.strip():
        raise UsageError("A decision needs a reason, so that people can follow it later.")
    earlier = meeting.points[point].decision
    if earlier is not None and earlier.number != seen and earlier.number:
        raise ConflictError(
            f"{earlier.actor or 'Somebody'} decided on this point while you were looking at it: {earlier.verdict}, "
            f"{earlier.reason}. Nothing was overwritten.",
            theirs=f"{earlier.verdict}: {earlier.reason}",
            yours=f"{verdict}: {reason.strip()}",
        )
    item = meeting.points[point].item
    if item.run_id and verdict != "postponed":
        accepted = verdict == "accepted"
        _decide_proposal(store, item, accepted=accepted, reason=reason, seen=proposal_seen, edited_id=edited_id)
    body = {"did": f"decided: {verdict}", "point": point, "verdict": verdict, "reason": reason.strip()[:_LONGEST]}
    store.events.add(project_id, DECISION, f"{meeting_id}:{point}", store.actor, body, expected=seen)


@requires("reviewer")
def close_meeting(store: Store, project_id: str, meeting_id: str) -> None:
    """End a meeting; a second call changes nothing."""
    get_meeting(store, project_id, meeting_id)
    store.events.add(
        project_id, CLOSED, meeting_id, store.actor, {"did": "closed the meeting"}, form=f"closed:{meeting_id}"
    )


@requires("viewer")
def meeting_minutes(store: Store, project_id: str, meeting_id: str) -> str:
    """The minutes as Markdown: every point with its texts, votes and decision."""
    from core.export.minutes import minutes

    meeting = get_meeting(store, project_id, meeting_id)
    named = {one for point in meeting.points for one in (point.item.subject_id, point.item.parent_id) if one}
    texts: Mapping[str, str] = {
        row.criteria.criteria_id: row.criteria.text
        for row in store.criteria.all(project_id)
        if row.criteria.criteria_id in named
    }
    return minutes(meeting, texts)


def _change_title(one: ListedProposal) -> str:
    """The change in a few words: what comes in, else what goes."""
    pieces = word_diff(one.parent.text, one.criteria.text)
    for change, verb in (("added", "Add"), ("removed", "Leave out")):
        words = " … ".join(piece.text.strip(" .,;:\n") for piece in pieces if piece.change == change)
        if words.strip(" …"):
            return f"{verb} “{shorten(words, _TITLE, placeholder=' …')}”?"
    return "Take this change of the criteria?"


def _change_text(store: Store, project_id: str, one: ListedProposal) -> str:
    """How the proposal did against its parent, for the minutes; the screen shows the same as it stands."""
    found, stood = one.inner, store.criteria.alignments(project_id, one.criteria.criteria_id)
    measure = f" ({stood[0].alignment.statistic}, {stood[0].alignment.level} level)" if stood else ""
    if found.value is None or found.interval is None:
        return f"Proposal minus parent in alignment{measure} on the inner fold: undefined on {found.n} items."
    low, high = found.interval.low, found.interval.high
    return (
        f"Proposal minus parent in alignment{measure} on the inner fold, items that no refiner saw: "
        f"{found.value:+.3f} [{low:+.3f}, {high:+.3f}], n = {found.n}."
    )


def _disagreement(one: Triage) -> AgendaItem:
    asked = {
        "ambiguous": "Do the criteria need a rule for this?",
        "judge wrong": "Is the judge wrong here?",
        "label wrong": "Is the label wrong here?",
    }[one.verdict]
    said = f"{one.actor or 'Somebody'} called it {one.verdict}" + (f": {one.note}" if one.note else ".")
    return AgendaItem("disagreement", asked, item_id=one.item_id, subject_id=one.subject_id, text=said)


def _decide_proposal(store: Store, item: AgendaItem, *, accepted: bool, reason: str, seen: int, edited_id: str) -> None:
    """Decide on the round's proposal too, unless it already stands so."""
    now = next((one for one in list_proposals(store, item.run_id) if one.criteria.criteria_id == item.subject_id), None)
    if now is None or now.state != ("accepted" if accepted else "rejected") or edited_id:
        where = (item.run_id, item.subject_id)
        decide_proposal(store, *where, accepted=accepted, reason=reason, seen=seen, edited_id=edited_id)


def _later(store: Store, project_id: str) -> list[EventRow]:
    kinds = (VOTE, DECISION, CLOSED, AT, TABLE, PROPOSAL)
    return [one for kind in kinds for one in store.events.all(project_id, kind)]


def _known_point(meeting: MeetingView, point: int) -> None:
    if not 0 <= point < len(meeting.points):
        raise UsageError(f"The agenda has {len(meeting.points)} points; there is no point {point + 1}.")


def _open_point(meeting: MeetingView, point: int) -> None:
    _known_point(meeting, point)
    if meeting.closed_at is not None:
        raise UsageError("This meeting is over; its minutes stand.")
    if meeting.points[point].decision is not None:
        raise UsageError("This point has been decided; vote on the next one.")


def _view(event: EventRow, later: Sequence[EventRow]) -> MeetingView:
    body = event.body
    own = [one for one in later if one.subject.partition(":")[0] == event.subject and one.kind != PROPOSAL]
    elsewhere = {one.subject: one for one in later if one.kind == PROPOSAL}
    closed = next((moment(one.created_at) for one in own if one.kind == CLOSED), None)
    points = tuple(
        _point(
            item := AgendaItem(**kept),
            [one for one in own if one.body.get("point") == k],
            elsewhere.get(f"{item.run_id}:{item.subject_id}"),
        )
        for k, kept in enumerate(body["agenda"])
    )
    tables = [one for one in own if one.kind == TABLE]
    voted = [str(one.body["voter"]) for one in own if one.kind == VOTE]
    return MeetingView(
        meeting_id=event.subject,
        project_id=event.project_id,
        name=str(body["name"]),
        golden_id=str(body["golden_id"]),
        aspect=str(body["aspect"]),
        points=points,
        author=event.actor,
        began_at=moment(event.created_at),
        closed_at=closed,
        at=next((int(one.body["point"]) for one in reversed(own) if one.kind == AT), 0),
        voters=tuple(dict.fromkeys([*(tables[-1].body["names"] if tables else ()), *voted])),
        newest=max(one.number for one in (event, *own)),
    )


def _point(item: AgendaItem, events: Sequence[EventRow], elsewhere: EventRow | None) -> Point:
    votes = {
        str(one.body["voter"]): Vote(str(one.body["voter"]), one.body["choice"], str(one.body["note"]))
        for one in events
        if one.kind == VOTE
    }
    decisions = [
        Decision(one.number, one.body["verdict"], str(one.body["reason"]), one.actor, moment(one.created_at))
        for one in events
        if one.kind == DECISION
    ]
    if not decisions and elsewhere is not None:
        at, reason = moment(elsewhere.created_at), str(elsewhere.body["reason"])
        decisions = [Decision(0, elsewhere.body["to"], reason, elsewhere.actor, at)]
    opened = [moment(one.created_at) for one in events if one.kind == AT]
    return Point(item, tuple(votes.values()), decisions[-1] if decisions else None, opened[-1] if opened else None)
