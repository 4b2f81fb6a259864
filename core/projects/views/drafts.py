"""Texts that people are typing and have not saved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class DraftView:
    """What somebody has typed and not saved.

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
