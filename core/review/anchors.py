"""Anchors: what each level of an aspect's scale means for this project, in a sentence that raters see as they rate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.errors import UsageError
from core.review.log import Entry

LONGEST_ANCHOR = 200
MOST_ANCHORS = 100


@dataclass(frozen=True, slots=True)
class Anchor:
    """A level of the scale and what it stands for."""

    value: float
    text: str


@dataclass(frozen=True)
class AnchorsSet(Entry):
    """The anchors of an aspect of a golden set, the subject, as a person wrote them; the newest entry counts."""

    kind = "anchors"
    does = "wrote what the levels of the scale mean"
    aspect: str
    anchors: tuple[Anchor, ...]

    def __post_init__(self) -> None:
        values = [anchor.value for anchor in self.anchors]
        if len(values) > MOST_ANCHORS or len({*values}) < len(values) or not all(map(math.isfinite, values)):
            raise UsageError(f"A scale has at most {MOST_ANCHORS} anchors, each for a level of its own.")
        longest = max((len(anchor.text) for anchor in self.anchors), default=0)
        if longest > LONGEST_ANCHOR:
            raise UsageError(f"An anchor may have {LONGEST_ANCHOR} characters; one of these has {longest:,}.")


@dataclass(frozen=True, slots=True)
class Anchors:
    """The anchors of one aspect, level → text; `number` is that of the entry which set them, 0 for none yet."""

    texts: Mapping[float, str]
    number: int = 0
    actor: str = ""


def anchors_from(entries: Iterable[AnchorsSet], aspect: str) -> Anchors:
    """What the entries about one golden set, oldest first, add up to for an aspect.

    `number` is that of the newest entry about the golden set: whoever writes holds it against what came since.
    """
    now, number = Anchors({}), 0
    for entry in entries:
        number = entry.number
        if entry.aspect == aspect:
            now = Anchors({anchor.value: anchor.text for anchor in entry.anchors if anchor.text}, 0, entry.actor)
    return Anchors(now.texts, number, now.actor)
