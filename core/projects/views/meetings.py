"""A criteria review meeting: an agenda, votes by name, decisions with their reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

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


@dataclass(frozen=True, slots=True)
class Vote:
    voter: str
    choice: Choice
    note: str


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided, by whom it was entered, and why.

    `number` is that of the log's entry: 0 for a proposal that somebody decided on outside the meeting.
    """

    number: int
    verdict: Verdict
    reason: str
    actor: str
    at: datetime


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
class MeetingView:
    """`closed_at` None while it goes on; `first_open` is the first point without a decision, None when all have one.

    `at` is the point that the meeting last came to; `voters` are the names at the table, with those that voted.
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
