"""Misaligned items that people looked at, and looks at held-out items."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.review.log import Entry

TriageVerdict = Literal["judge wrong", "label wrong", "ambiguous"]
TRIAGE_VERDICTS: tuple[TriageVerdict, ...] = ("judge wrong", "label wrong", "ambiguous")


@dataclass(frozen=True)
class Triage(Entry):
    """What somebody found on a misaligned item, which is the subject; `picked`: to be shown in the next round.

    `subject_id` is the criteria or judge that was looked at; `verdict` is "" where nobody has decided yet, as on an
    item that was only picked, or whose verdict was taken back.
    """

    kind = "triage"
    does = "triaged an item: {0.verdict}"
    golden_id: str
    aspect: str
    subject_id: str
    verdict: TriageVerdict | Literal[""]
    note: str = ""
    picked: bool = False

    @property
    def item_id(self) -> str:
        return self.subject

    @property
    def is_blank(self) -> bool:
        """Whether it says nothing: all that stood there was taken back."""
        return not (self.verdict or self.picked or self.note)

    @property
    def did(self) -> str:
        if self.verdict:
            return super().did
        if self.picked:
            return "picked an item for the next round"
        return "noted something on an item" if self.note else "took back what was said of an item"

    def is_about(self, golden_id: str, aspect: str) -> bool:
        return (self.golden_id, self.aspect) == (golden_id, aspect)


EDIT_SCORED = "an edit was scored on them"
"""Why held-out items were opened: edited criteria were compared with their parent."""


@dataclass(frozen=True)
class HeldOutAccess(Entry):
    """One look at the held-out items of a golden set, the subject: a set looked at often is no longer held out."""

    kind = "held-out opened"
    does = "opened the held-out items: {0.why}"
    aspect: str
    why: str
