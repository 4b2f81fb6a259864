"""What the reader gathers: a value stated somewhere in the reply, with the rank that says how firmly."""

from __future__ import annotations

from dataclasses import dataclass

STRUCTURED, ALONE, LABELLED, PROSE, QUOTED = 4, 3, 2, 1, 0
"""Ranks: a JSON field; a line or start of its own, or a "final" label; a label elsewhere; prose; in quotation marks."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A value (None: the reply says that there is none) stated at [start, end) of the reply."""

    rank: int
    start: int
    end: int
    value: float | None
