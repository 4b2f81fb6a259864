"""The log of what people did: each kind of entry is one record, and nothing that was logged ever changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from core.errors import UsageError

KINDS: dict[str, type[Entry]] = {}
"""Name in the store → record; every kind of entry enters itself."""
UNWRITTEN = datetime.fromtimestamp(0, UTC)
IMPORTED = " (imported)"
"""Stands behind the role of who did something before the project was brought here; no action writes it."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Somebody did something to `subject`: who ("" = nobody said), in which role, and when.

    A kind of entry says how it is stored (`kind`) and how it reads (`does`, a format of the entry).  What it adds in
    positional fields is its *body*, stored as JSON; keyword fields are columns of the log, or follow from later
    entries.  `number` grows with time; it is 0, and `at` in 1970, until the entry is written.
    """

    kind: ClassVar[str]
    does: ClassVar[str]
    subject: str = ""
    number: int = 0
    project_id: str = ""
    actor: str = ""
    role: str = ""
    at: datetime = UNWRITTEN

    def __init_subclass__(cls) -> None:
        if "kind" in cls.__dict__:
            KINDS[cls.kind] = cls

    @classmethod
    def body_fields(cls) -> tuple[str, ...]:
        """The names of what is stored as JSON."""
        return tuple(entry_field.name for entry_field in fields(cls) if not entry_field.kw_only)

    @property
    def body(self) -> Mapping[str, Any]:
        """What the entry says beyond who, when and of what, as JSON."""
        return {name: _plain(getattr(self, name)) for name in self.body_fields()}

    @property
    def did(self) -> str:
        """What was done, as the end of a sentence that begins with who did it."""
        return self.does.format(self)

    @property
    def sentence(self) -> str:
        """What was done, and on which aspect, without who and when."""
        aspect = getattr(self, "aspect", "")
        return f"{self.did} ({aspect})" if aspect else self.did


def _plain(value: Any) -> Any:
    """A field of an entry as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


@dataclass(frozen=True)
class Action(Entry):
    """A change that is kept elsewhere: a run begun, a golden set added; `about` are the words it was asked with."""

    kind = "audit"
    does = "{0.done}"
    done: str
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def aspect(self) -> str:
        return str(self.about.get("aspect") or "")

    @property
    def body(self) -> Mapping[str, Any]:
        return {"did": self.done, **self.about}


@dataclass(frozen=True)
class FusionPlanSaved(Entry):
    """A version of the plan for a golden set, the subject, with the criteria by aspect that it serves.

    `seen` are the items whose labels plan or criteria were made from.
    """

    kind = "fusion plan"
    does = "fusion plan"
    text: str
    origin: str
    seen: tuple[int, ...]
    aspects: tuple[str, ...]
    criteria: str = ""
    criteria_origins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FusionKept(Entry):
    """A fusion entered as a judge, the subject: its parts, its estimator's state, its result as JSON."""

    kind = "fusion kept"
    does = "fusion kept"
    golden_id: str
    aspect: str
    parts: tuple[Mapping[str, Any], ...]
    state: Mapping[str, Any]
    told: Mapping[str, Any]


def given_reason(reason: str) -> str:
    """The reason for a decision, trimmed.  UsageError without one."""
    if not (trimmed := reason.strip()):
        raise UsageError("A decision needs a reason, so that people can follow it later.")
    return trimmed


@dataclass(frozen=True, slots=True)
class LogPage:
    """A part of the log, newest first: `n` entries fit the filters; `people` and `kinds` are what the whole log has."""

    entries: tuple[Entry, ...]
    n: int
    people: tuple[str, ...]
    kinds: tuple[str, ...]
