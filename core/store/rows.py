"""Rows of people's labels, drafts, consents and log, as the store hands them out; times are seconds since 1970."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConsentRow:
    """Somebody allowed the imported project to ask `endpoint` (a base URL), with the key or without it."""

    project_id: str
    endpoint: str
    with_key: bool
    actor: str
    role: str
    created_at: float
