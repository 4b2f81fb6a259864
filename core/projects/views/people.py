"""What people did, as the log shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the log: `actor` ("" = nobody said) of that role did something to `subject`; `body` says more."""

    number: int
    kind: str
    subject: str
    actor: str
    role: str
    body: Mapping[str, Any]
    at: datetime

    @property
    def sentence(self) -> str:
        """What was done, without who and when."""
        did = str(self.body.get("did") or self.kind)
        about = str(self.body.get("aspect") or "")
        return f"{did} ({about})" if about else did


@dataclass(frozen=True, slots=True)
class LogPage:
    """A part of the log, newest first: `n` entries fit the filters; `people` and `kinds` are what the whole log has."""

    entries: tuple[Entry, ...]
    n: int
    people: tuple[str, ...]
    kinds: tuple[str, ...]
