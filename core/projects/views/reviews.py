"""Criteria as reviewed documents: state, lock, comments; triage of items; openings of held-out sets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from core.records import Alignment

ReviewState = Literal["draft", "proposed", "approved", "retired"]
STATES: tuple[ReviewState, ...] = ("draft", "proposed", "approved", "retired")
NEXT_STATES: dict[ReviewState, tuple[ReviewState, ...]] = {
    "draft": ("proposed",),
    "proposed": ("approved", "draft"),
    "approved": ("retired",),
    "retired": ("proposed",),
}
TriageVerdict = Literal["judge wrong", "label wrong", "ambiguous"]
TRIAGE_VERDICTS: tuple[TriageVerdict, ...] = ("judge wrong", "label wrong", "ambiguous")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an approval rests on: how the criteria stood in a run, on one side of its split."""

    run_id: str
    side: str
    alignment: Alignment


@dataclass(frozen=True, slots=True)
class StateChange:
    """Who put criteria into which state, when, why, and on which evidence."""

    number: int
    state: ReviewState
    actor: str
    at: datetime
    reason: str
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Comment:
    """A remark on criteria, on line `line` (from 1) or, with None, on the whole."""

    number: int
    line: int | None
    text: str
    actor: str
    at: datetime
    settled_by: str = ""


@dataclass(frozen=True)
class Review:
    """Where criteria stand with the people.

    `changes` oldest first; `seen` is the number of the last one (0 for none): hand it back to `set_state`, so that
    nobody decides on what somebody else has changed meanwhile.  `locked_by` is "" unless locked.
    """

    criteria_id: str
    state: ReviewState
    changes: tuple[StateChange, ...]
    comments: tuple[Comment, ...]
    locked_by: str = ""

    @property
    def locked(self) -> bool:
        return bool(self.locked_by)

    @property
    def seen(self) -> int:
        return self.changes[-1].number if self.changes else 0

    @property
    def approval(self) -> StateChange | None:
        """The approval in force, or None."""
        return self.changes[-1] if self.state == "approved" else None


@dataclass(frozen=True, slots=True)
class Triage:
    """What somebody found when they looked at a misaligned item.  `picked`: to be shown in the next round."""

    number: int
    item_id: str
    aspect: str
    golden_id: str
    subject_id: str
    verdict: TriageVerdict
    note: str
    picked: bool
    actor: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Opening:
    """One look at a held-out set: a set looked at often is no longer held out."""

    golden_id: str
    aspect: str
    why: str
    actor: str
    at: datetime
