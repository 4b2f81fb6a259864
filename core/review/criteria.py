"""A criteria document: its name, comments by line, a lock; unsaved drafts of it.

People sign off versions of the judge (`core.review.judge_versions`), not texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from core.errors import UsageError
from core.review.criteria_names import LONGEST_NAME
from core.review.log import Entry

LONGEST_TEXT = 20_000
"""Characters of criteria at most."""


# ── what is logged of criteria ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class CriteriaEvent(Entry):
    """Something done to criteria, which are the subject."""


@dataclass(frozen=True)
class Comment(CriteriaEvent):
    """A remark on line `line` (from 1) or, with None, on the whole; `settled_by` "" while it is open."""

    kind = "comment"
    does = "commented on criteria"
    text: str
    line: int | None = None
    settled_by: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class CommentSettled(CriteriaEvent):
    kind = "comment settled"
    does = "settled a comment"
    comment: int


@dataclass(frozen=True)
class LockChange(CriteriaEvent):
    kind = "lock"
    locked: bool

    @property
    def did(self) -> str:
        return "locked criteria" if self.locked else "unlocked criteria"


@dataclass(frozen=True)
class CriteriaNamed(Entry):
    """Somebody gave criteria, the subject, a name; the newest one counts.  UsageError for what is no name."""

    kind = "criteria name"
    does = "named criteria “{0.name}”"
    name: str

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= LONGEST_NAME:
            raise UsageError(f"A name has 1 to {LONGEST_NAME} characters; this one has {len(self.name):,}.")
        if self.name != " ".join(self.name.split()) or not self.name.isprintable():
            raise UsageError("A name is one line of visible characters, without spaces before or behind it.")


@dataclass(frozen=True)
class ProposalDecided(Entry):
    """A proposal of a refinement round was accepted or rejected; the subject is ``RUN_ID:CRITERIA_ID``.

    `edited_id` names the version that people made of it and accepted in its place, "" for none.
    """

    kind = "proposal"
    does = "{0.verdict} a proposal"
    verdict: Literal["accepted", "rejected"]
    reason: str
    edited_id: str = ""


# ── what it adds up to ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Review:
    """What people remarked on criteria, and who locked them ("" for nobody)."""

    criteria_id: str
    comments: tuple[Comment, ...]
    locked_by: str = ""

    @property
    def locked(self) -> bool:
        return bool(self.locked_by)


def review_from(criteria_id: str, entries: Iterable[CriteriaEvent]) -> Review:
    """The review that the entries about the criteria, oldest first, add up to."""
    comments: dict[int, Comment] = {}
    settled: dict[int, str] = {}
    locked_by = ""
    for entry in entries:
        who = entry.actor or "somebody"
        match entry:
            case Comment():
                comments[entry.number] = entry
            case CommentSettled():
                settled[entry.comment] = who
            case LockChange():
                locked_by = who if entry.locked else ""
    return Review(
        criteria_id=criteria_id,
        comments=tuple(replace(comment, settled_by=settled.get(number, "")) for number, comment in comments.items()),
        locked_by=locked_by,
    )


# ── what is typed and not saved ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody has typed and not saved: nobody's record, so it is not logged.

    `subject` says of what ("criteria:ID"), `author` "" where nobody said who it is, `base` the version it began from
    (`CriteriaView.head` as they saw it), so that a save can tell whether somebody else was faster.
    """

    subject: str
    author: str
    text: str
    base: str
    began_at: datetime
    kept_at: datetime


@dataclass(frozen=True, slots=True)
class Drafting:
    """That somebody is at a text, and since when; what they have typed stays theirs until they save it."""

    author: str
    began_at: datetime
