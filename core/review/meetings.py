"""A criteria review meeting: an agenda, one point at a time, votes by name, decisions with their reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from core.errors import UsageError
from core.review.criteria import ProposalDecided
from core.review.log import Entry

AgendaKind = Literal["disagreement", "change", "question"]
Choice = Literal["for", "against", "abstain"]
CHOICES: tuple[Choice, ...] = ("for", "against", "abstain")
Verdict = Literal["accepted", "rejected", "postponed"]
VERDICTS: tuple[Verdict, ...] = ("accepted", "rejected", "postponed")


@dataclass(frozen=True, slots=True)
class AgendaItem:
    """One thing to talk about.

    A "disagreement" names an item (`item_id`) and the criteria or judge it is about (`subject_id`); a "change" names
    proposed criteria (`subject_id`), their parent (`parent_id`) and the round that proposed them (`run_id`, "" for
    none); a "question" is its title and `text` alone.
    """

    kind: AgendaKind
    title: str
    item_id: str = ""
    subject_id: str = ""
    parent_id: str = ""
    text: str = ""
    run_id: str = ""


# ── what is logged of a meeting ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class MeetingEntry(Entry):
    """Something done in a meeting, which is the subject."""

    @property
    def meeting_id(self) -> str:
        return self.subject


@dataclass(frozen=True)
class MeetingBegun(MeetingEntry):
    """A meeting on the criteria for an aspect of a golden set, with its agenda."""

    kind = "meeting"
    does = "opened the meeting {0.name}"
    name: str
    golden_id: str
    aspect: str
    agenda: tuple[AgendaItem, ...]


@dataclass(frozen=True)
class ParticipantsSet(MeetingEntry):
    """The names of those who have a vote to give, in place of those before."""

    kind = "meeting table"
    names: tuple[str, ...]

    @property
    def did(self) -> str:
        return f"said who votes: {', '.join(self.names)[:2_000] or 'nobody'}"


@dataclass(frozen=True)
class PointOpened(MeetingEntry):
    """The meeting came to a point (from 0) of its agenda."""

    kind = "meeting point"
    point: int

    @property
    def did(self) -> str:
        return f"came to point {self.point + 1}"


@dataclass(frozen=True)
class Vote(MeetingEntry):
    """What somebody voted on a point; whoever acts may enter the votes of others."""

    kind = "vote"
    does = "voted {0.choice}"
    point: int
    voter: str
    choice: Choice
    note: str = ""


@dataclass(frozen=True)
class Decision(MeetingEntry):
    """What was decided on a point, and why; the subject is ``MEETING_ID:POINT``.

    `number` is 0 for a proposal that somebody decided on outside the meeting.
    """

    kind = "decision"
    does = "decided: {0.verdict}"
    point: int
    verdict: Verdict
    reason: str

    @property
    def meeting_id(self) -> str:
        return self.subject.partition(":")[0]


@dataclass(frozen=True)
class MeetingClosed(MeetingEntry):
    kind = "meeting closed"
    does = "closed the meeting"


# ── what it adds up to ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Point:
    """An agenda item with what came of it; `votes` has one (the last) a voter.

    `opened_at` is when the meeting last came to it, None for never.
    """

    item: AgendaItem
    votes: tuple[Vote, ...]
    decision: Decision | None
    opened_at: datetime | None = None

    @property
    def tally(self) -> Mapping[Choice, int]:
        """Choice → votes."""
        return {choice: sum(vote.choice == choice for vote in self.votes) for choice in CHOICES}


@dataclass(frozen=True)
class Meeting:
    """`closed_at` None while it goes on; `first_open` is the first point without a decision, None when all have one.

    `at` is the point that the meeting last came to; `voters` are the participants, and whoever voted besides.
    `newest` grows whenever anything of the meeting changes, as far as its own log goes.
    """

    meeting_id: str
    project_id: str
    name: str
    golden_id: str
    aspect: str
    points: tuple[Point, ...]
    author: str
    began_at: datetime
    closed_at: datetime | None
    at: int = 0
    voters: tuple[str, ...] = ()
    newest: int = 0

    @property
    def first_open(self) -> int | None:
        return next((k for k, point in enumerate(self.points) if point.decision is None), None)

    def going_on(self, point: int) -> Point:
        """A point of the agenda, while the meeting goes on.  UsageError for another, or once it is over."""
        if not 0 <= point < len(self.points):
            raise UsageError(f"The agenda has {len(self.points)} points; there is no point {point + 1}.")
        if self.closed_at is not None:
            raise UsageError("This meeting is over; its minutes stand.")
        return self.points[point]


def meetings_from(entries: Sequence[MeetingEntry], proposals: Sequence[ProposalDecided] = ()) -> list[Meeting]:
    """The meetings that the entries, oldest first, add up to, oldest first.

    `proposals` are decisions on proposals of rounds: what was decided elsewhere stands in a meeting that did not.
    """
    by_meeting: dict[str, list[MeetingEntry]] = {}
    for entry in entries:
        by_meeting.setdefault(entry.meeting_id, []).append(entry)
    elsewhere = {one.subject: one for one in proposals}
    return [
        _meeting(begun, by_meeting[begun.meeting_id], elsewhere) for begun in entries if isinstance(begun, MeetingBegun)
    ]


def _meeting(begun: MeetingBegun, own: Sequence[MeetingEntry], elsewhere: Mapping[str, ProposalDecided]) -> Meeting:
    at, closed_at = 0, None
    participants: tuple[str, ...] = ()
    for entry in own:
        match entry:
            case ParticipantsSet():
                participants = entry.names
            case PointOpened() if 0 <= entry.point < len(begun.agenda):
                at = entry.point
            case MeetingClosed():
                closed_at = closed_at or entry.at
    return Meeting(
        meeting_id=begun.meeting_id,
        project_id=begun.project_id,
        name=begun.name,
        golden_id=begun.golden_id,
        aspect=begun.aspect,
        points=tuple(_point(k, item, own, elsewhere) for k, item in enumerate(begun.agenda)),
        author=begun.actor,
        began_at=begun.at,
        closed_at=closed_at,
        at=at,
        voters=tuple(dict.fromkeys([*participants, *(one.voter for one in own if isinstance(one, Vote))])),
        newest=own[-1].number,
    )


def _point(k: int, item: AgendaItem, own: Sequence[MeetingEntry], elsewhere: Mapping[str, ProposalDecided]) -> Point:
    votes: dict[str, Vote] = {}
    decision, opened_at = None, None
    for entry in own:
        match entry:
            case PointOpened(point=at) if at == k:
                opened_at = entry.at
            case Vote(point=at) if at == k:
                votes[entry.voter] = entry
            case Decision(point=at) if at == k:
                decision = entry
    if decision is None and (made := elsewhere.get(f"{item.run_id}:{item.subject_id}")):
        decision = Decision(k, made.verdict, made.reason, actor=made.actor, role=made.role, at=made.at)
    return Point(item, tuple(votes.values()), decision, opened_at)
