"""A criteria review meeting: an agenda, one point at a time, votes by name, decisions with their reasons."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import zip_longest
from typing import Literal

from core.errors import UsageError
from core.review.criteria import ProposalDecided
from core.review.log import Entry
from core.wording import word_diff

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

    `opened_at` is when the meeting last came to it, None for never; `waiting` are the voters who have yet to vote.
    `revealed`: the votes may be shown with their names, as all are in, it was decided, or the meeting is over.
    """

    item: AgendaItem
    votes: tuple[Vote, ...]
    decision: Decision | None
    opened_at: datetime | None = None
    waiting: tuple[str, ...] = ()
    revealed: bool = True

    @property
    def tally(self) -> Mapping[Choice, int]:
        """Choice → votes."""
        return {choice: sum(vote.choice == choice for vote in self.votes) for choice in CHOICES}

    @property
    def tally_words(self) -> str:
        """E.g. "2 for, 1 against, 0 abstained"."""
        tally = self.tally
        return f"{tally['for']} for, {tally['against']} against, {tally['abstain']} abstained"

    def wants_reason(self, verdict: Verdict) -> str:
        """Why this decision needs a reason of its own; "" where the votes say it, or nothing is decided yet."""
        if verdict == "postponed":
            return ""
        if self.decision is not None and self.decision.verdict != "postponed":
            return "it replaces another"
        if not self.votes:
            return "nobody has voted"
        if self.waiting:
            return "not all votes are in"
        tally = self.tally
        ahead = tally["for"] - tally["against"]
        if ahead == 0:
            return "the votes are even"
        return "" if (ahead > 0) == (verdict == "accepted") else "the votes say otherwise"


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
    elsewhere = {decided.subject: decided for decided in proposals}
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
    voters = tuple(dict.fromkeys([*participants, *(entry.voter for entry in own if isinstance(entry, Vote))]))
    points = [_point(k, item, own, elsewhere) for k, item in enumerate(begun.agenda)]
    return Meeting(
        meeting_id=begun.meeting_id,
        project_id=begun.project_id,
        name=begun.name,
        golden_id=begun.golden_id,
        aspect=begun.aspect,
        points=tuple(_with_waiting(point, voters, bool(participants), closed_at is not None) for point in points),
        author=begun.actor,
        began_at=begun.at,
        closed_at=closed_at,
        at=at,
        voters=voters,
        newest=own[-1].number,
    )


def _with_waiting(point: Point, voters: Sequence[str], seated: bool, over: bool) -> Point:
    """The point with who has yet to vote on it; without participants nobody knows when all votes are in."""
    voted = {vote.voter for vote in point.votes}
    waiting = tuple(name for name in voters if name not in voted)
    revealed = over or point.decision is not None or (seated and not waiting)
    return replace(point, waiting=waiting, revealed=revealed)


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
    if decision is None and (proposal := elsewhere.get(f"{item.run_id}:{item.subject_id}")):
        decision = Decision(
            k, proposal.verdict, proposal.reason, actor=proposal.actor, role=proposal.role, at=proposal.at
        )
    return Point(item, tuple(votes.values()), decision, opened_at)


# ── minutes ──────────────────────────────────────────────────────────────────────────────────────────────────────

JOINER = "\u2060"
"""Neither seen nor a place to break a line."""
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def minutes(meeting: Meeting, texts: Mapping[str, str]) -> str:
    """Markdown of a meeting; `texts` maps criteria id → text, for the changes that were on the agenda.

    All text of people and models is escaped: it shows as it stands.
    """
    lines = [f"# {_plain(meeting.name)}", ""]
    when = f"{meeting.began_at:%Y-%m-%d %H:%M} UTC"
    until = f" to {meeting.closed_at:%H:%M}" if meeting.closed_at else ", still open"
    opened = f", opened by {_plain(meeting.author)}" if meeting.author else ""
    lines += [f"{when}{until}{opened}. Aspect: {_plain(meeting.aspect)}.", ""]
    voters = sorted({vote.voter for point in meeting.points for vote in point.votes})
    if voters:
        lines += [f"Voted: {', '.join(_plain(name) for name in voters)}.", ""]
    for number, point in enumerate(meeting.points, 1):
        lines += [f"## {number}. {_plain(point.item.title)}", "", *_body(point, texts)]
    decided = sum(point.decision is not None for point in meeting.points)
    lines += ["---", "", f"{decided} of {len(meeting.points)} points decided."]
    return "\n".join(lines) + "\n"


def _body(point: Point, texts: Mapping[str, str]) -> Iterator[str]:
    item = point.item
    if item.item_id:
        yield from (f"Item {_plain(item.item_id)}.", "")
    if item.text:
        yield from (*(f"> {_plain(line)}" for line in item.text.splitlines()), "")
    if item.subject_id in texts and item.parent_id in texts:
        yield from (_diff(texts[item.parent_id], texts[item.subject_id]), "")
    elif item.kind == "change" and item.subject_id in texts:
        yield from (*(f"> {_plain(line)}" for line in texts[item.subject_id].splitlines()), "")
    if point.votes and not point.revealed:
        voted, n = len(point.votes), len(point.votes) + len(point.waiting)
        yield from (f"Votes: {voted} of {n} are in; they are shown once all are.", "")
    elif point.votes:
        yield f"Votes: {point.tally_words}."
        yield ""
        for vote in point.votes:
            note = f": {_plain(vote.note)}" if vote.note else ""
            yield f"- {_plain(vote.voter)}, {vote.choice}{note}"
        yield ""
    if point.decision is None:
        yield from ("Not decided.", "")
        return
    by = f" (entered by {_plain(point.decision.actor)})" if point.decision.actor else ""
    yield from (f"**{point.decision.verdict.capitalize()}**{by}: {_plain(point.decision.reason)}", "")


def _diff(old: str, new: str) -> str:
    """One paragraph: what left struck through, what came in bold."""
    marks = {"same": "", "removed": "~~", "added": "**"}
    pieces = word_diff(old, new)
    paragraph = ""
    for piece, following in zip_longest(pieces, pieces[1:]):
        text, mark = _plain(piece.text).replace("\n", " / "), marks[piece.change]
        inner = text.strip()
        if not inner or not mark:
            paragraph += text
            continue
        lead, _, tail = text.partition(inner)
        after = tail or ("" if following is None else marks[following.change] or following.text)
        paragraph += lead
        paragraph += f"{mark}{_joined(paragraph[-1:], inner, after[:1])}{mark}{tail}"
    return paragraph


def _joined(before: str, inner: str, after: str) -> str:
    """`inner` so that marks around it count: between a letter and a full stop Markdown reads `**` as two stars."""
    opens = JOINER if before.isalnum() and not inner[0].isalnum() else ""
    closes = JOINER if after.isalnum() and not inner[-1].isalnum() else ""
    return f"{opens}{inner}{closes}"


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", text)
