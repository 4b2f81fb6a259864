"""The criteria of an LLM fusion (§2.1): given, calibrated, or written by the model where none are given.

They are plain text that a person can write and edit: a line ``aspect:`` and beneath it the criteria.  ``none`` beneath
an aspect rates it without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from core.errors import UsageError
from core.fusion.aspect_texts import NONE, folded, headed_blocks
from core.fusion.plan import aspects_block, filled
from core.judging.render import KINDS
from core.providers.completions import Message
from core.records import Task

CRITERIA_PROMPT = "criteria.v1"
LONGEST = 20_000
CriteriaOrigin = Literal["model", "person", "calibrated"]
ORIGIN_WORDS: Mapping[CriteriaOrigin, str] = {
    "model": "written by the model",
    "person": "as given",
    "calibrated": "calibrated",
}


@dataclass(frozen=True, slots=True)
class AspectCriteria:
    """What earns a high and what a low number on an aspect; an empty `text` rates it without criteria."""

    aspect: str
    text: str
    origin: CriteriaOrigin = "person"


@dataclass(frozen=True)
class FusionCriteria:
    """The criteria of the aspects for which any are given, one entry each."""

    entries: tuple[AspectCriteria, ...] = ()

    @property
    def text(self) -> str:
        """As people edit them."""
        return "\n\n".join(f"{entry.aspect}:\n{entry.text or NONE}" for entry in self.entries)

    @property
    def by_aspect(self) -> dict[str, str]:
        return {entry.aspect: entry.text for entry in self.entries}

    @property
    def origins(self) -> dict[str, CriteriaOrigin]:
        return {entry.aspect: entry.origin for entry in self.entries}

    @property
    def words(self) -> str:
        """Where they come from, e.g. ``coherence: written by the model; fluency: none``."""
        return "; ".join(f"{e.aspect}: {ORIGIN_WORDS[e.origin] if e.text else NONE}" for e in self.entries)

    def lacking(self, tasks: Sequence[Task]) -> list[Task]:
        """Those of `tasks` for which nothing is given: the model writes their criteria."""
        return [task for task in tasks if task.aspect not in self.by_aspect]

    def with_more(self, more: FusionCriteria, aspects: Sequence[str]) -> FusionCriteria:
        """These and those of `more` for other aspects, in the order of `aspects`."""
        known = {entry.aspect: entry for entry in (*more.entries, *self.entries)}
        return FusionCriteria(tuple(known[aspect] for aspect in aspects if aspect in known))


def no_criteria(aspects: Sequence[str]) -> FusionCriteria:
    """Every aspect is rated without criteria."""
    return FusionCriteria(tuple(AspectCriteria(aspect, "") for aspect in aspects))


def read_criteria(
    text: str, aspects: Sequence[str], origins: Mapping[str, str] = MappingProxyType({})
) -> FusionCriteria:
    """The criteria that `text` states, for the aspects it names; "" is none of them, a bare ``none`` all without.

    A single aspect needs no heading.  `origins` by aspect; a person's where nothing known is given.

    UsageError in words for text under no aspect, an aspect that comes twice or has nothing beneath it, and for criteria
    that are too long.
    """
    if folded(text) == NONE:
        return no_criteria(aspects)
    if len(text) > LONGEST:
        raise UsageError(f"Criteria may have {LONGEST:,} characters in all; these have {len(text):,}.")
    before, found = headed_blocks(text, aspects, bullets=False)
    if any(before):
        if len(aspects) > 1 or found:
            first = next(line.strip() for line in before if line)
            raise UsageError(
                f"The criteria begin with {first[:60]!r}, which is under no aspect. Write a line '{aspects[0]}:' and "
                f"the criteria beneath it; the aspects rated are: {', '.join(aspects)}."
            )
        found = [(aspects[0], "", before)]
    texts: dict[str, str] = {}
    for aspect, rest, lines in found:
        if aspect in texts:
            raise UsageError(f"{aspect} comes twice in the criteria; write its criteria once, beneath one line.")
        texts[aspect] = "\n".join([rest, *lines]).strip()
    if bare := [aspect for aspect, rules in texts.items() if not rules]:
        raise UsageError(
            f"There are no criteria beneath {', '.join(bare)}. Write the criteria there, or '{NONE}' to rate without, "
            "or leave the line out and let the model write them."
        )
    by: dict[str, CriteriaOrigin] = {
        aspect: next((origin for origin in ORIGIN_WORDS if origin == origins.get(aspect)), "person")
        for aspect in aspects
    }
    return FusionCriteria(
        tuple(
            AspectCriteria(aspect, "" if folded(texts[aspect]) == NONE else texts[aspect], by[aspect])
            for aspect in aspects
            if aspect in texts
        )
    )


def read_written(text: str, aspects: Sequence[str]) -> FusionCriteria:
    """The criteria that the model wrote for all of `aspects`; UsageError in words where some are missing."""
    criteria = read_criteria(text, aspects, dict.fromkeys(aspects, "model"))
    missing = [aspect for aspect in aspects if not criteria.by_aspect.get(aspect)]
    if missing:
        raise UsageError(f"There are no criteria for {', '.join(missing)}. Write a line '{missing[0]}:' and criteria.")
    return criteria


def criteria_messages(tasks: Sequence[Task]) -> tuple[Message, ...]:
    """Ask the LLM for criteria of all `tasks`."""
    values = {"thing": KINDS[tasks[0].kind].thing, "aspects": aspects_block(tasks)}
    return (Message("user", filled(CRITERIA_PROMPT, values)),)
