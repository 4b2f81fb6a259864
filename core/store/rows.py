"""Rows of people's labels, drafts, consents and log, as the store hands them out; times are seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ConsentRow:
    """Somebody allowed the imported project to ask `endpoint` (a base URL), with the key or without it."""

    project_id: str
    endpoint: str
    with_key: bool
    actor: str
    role: str
    created_at: float


@dataclass(frozen=True, slots=True)
class NewLabel:
    """What a rater says of one item on one aspect; `value` None = looked at, and no label can be given."""

    item_id: str
    aspect: str
    value: float | None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class LabelRow:
    """A label as it was saved in a pass; `taken_from` is the earlier pass that it was taken over from, "" for none."""

    pass_id: str
    rater: str
    item_id: str
    aspect: str
    value: float | None
    comment: str
    created_at: float
    taken_from: str


@dataclass(frozen=True, slots=True)
class EventRow:
    """One entry of the log; `number` grows with time, `body` is plain JSON that depends on `kind`."""

    number: int
    project_id: str
    kind: str
    subject: str
    actor: str
    role: str
    body: Mapping[str, Any]
    created_at: float


@dataclass(frozen=True, slots=True)
class DraftRow:
    """What `author` has typed of `subject` and not saved; `base` is the version they began from."""

    project_id: str
    subject: str
    author: str
    text: str
    base: str
    began_at: float
    kept_at: float
