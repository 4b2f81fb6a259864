"""The task of rating one aspect of a golden set."""

from __future__ import annotations

from core.errors import AspectError
from core.records import GoldenSet, Scale, Task


def task_of(golden: GoldenSet, aspect: str, definition: str = "", scale: Scale | None = None) -> Task:
    """The task of rating `aspect`; AspectError lists the aspects there are when it is absent."""
    if aspect not in golden.aspects:
        names = ", ".join(golden.aspects) or "none"
        raise AspectError(f"there is no aspect {aspect!r}; it has {names}. Name one of them.", file=golden.name)
    return Task(aspect, golden.kind, scale or golden.aspects[aspect].scale, definition)
