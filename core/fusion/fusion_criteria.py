"""The criteria of an LLM fusion (004 §2.1): given, calibrated, or written by the model where none are given.

They are plain text that a person can write and edit: a line ``aspect:`` and beneath it the criteria.  ``none`` beneath
an aspect rates it without.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from core.errors import UsageError
from core.fusion.plan import FENCED, HEAD_AT_MOST, NONE, aspect_headed, aspects_block, filled, folded
from core.judging.parse import without_thoughts
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
_BULLET = re.compile(r"[ \t]*[-•*+][ \t]")


@dataclass(frozen=True, slots=True)
class AspectCriteria:
    """What earns a high and what a low number on an aspect; an empty `text` rates it without criteria."""

    aspect: str
    text: str
    origin: CriteriaOrigin = "person"


@dataclass(frozen=True)
class FusionCriteria:
    """The criteria of the aspects that have any said of them, one entry each."""

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
        """Which happened, e.g. ``coherence: written by the model; fluency: none``."""
        said = ((entry.aspect, ORIGIN_WORDS[entry.origin] if entry.text else "none") for entry in self.entries)
        return "; ".join(f"{aspect}: {words}" for aspect, words in said)

    def lacking(self, tasks: Sequence[Task]) -> list[Task]:
        """Those of `tasks` of which nothing is said: the model writes their criteria."""
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

    Of a single aspect the criteria need no heading.  `origins` by aspect; a person's where nothing (or nothing known)
    is said.

    UsageError in words for text under no aspect, an aspect that comes twice or has nothing beneath it, and for criteria
    without end.
    """
    if folded(text) == NONE:
        return no_criteria(aspects)
    if len(text) > LONGEST:
        raise UsageError(f"Criteria may have {LONGEST:,} characters in all; these have {len(text):,}.")
    entries: dict[str, list[str]] = {}
    lines = _without_json(without_thoughts(text), aspects).splitlines()
    bare = [line.strip() for line in lines if line.strip()]
    heads = [aspect_headed(line[:HEAD_AT_MOST], aspects) for line in bare]
    if len(aspects) == 1 and bare and heads[0] is None and (aspects[0], "") not in heads:
        lines = [f"{aspects[0]}:", *lines]
    for line in lines:
        headed = aspect_headed(line[:HEAD_AT_MOST].strip(), aspects)
        if headed is not None and not (headed[1] and _BULLET.match(line)):
            aspect, rest = headed
            if aspect in entries:
                raise UsageError(f"{aspect} stands twice in the criteria; write its criteria once, beneath one line.")
            entries[aspect] = [rest + line[HEAD_AT_MOST:]] if rest else []
        elif entries:
            entries[next(reversed(entries))].append(line.rstrip())
        elif line.strip():
            raise UsageError(
                f"The criteria begin with {line.strip()[:60]!r}, which stands under no aspect. Write a line "
                f"'{aspects[0]}:' and the criteria beneath it; the aspects rated are: {', '.join(aspects)}."
            )
    texts = {aspect: "\n".join(lines).strip() for aspect, lines in entries.items()}
    if bare := [aspect for aspect, words in texts.items() if not words]:
        raise UsageError(
            f"Nothing stands beneath {', '.join(bare)} in the criteria. Write the criteria there, or '{NONE}' to rate "
            "without, or leave the line out and let the model write them."
        )
    return FusionCriteria(
        tuple(
            AspectCriteria(aspect, "" if folded(words) == NONE else words, _origin(origins.get(aspect, "person")))
            for aspect in aspects
            if (words := texts.get(aspect))
        )
    )


def _origin(said: str) -> CriteriaOrigin:
    return next((origin for origin in ORIGIN_WORDS if origin == said), "person")


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


def _without_json(text: str, aspects: Sequence[str]) -> str:
    """`text`, or in the usual form what is one JSON object of aspect to criteria."""
    fenced = FENCED.search(text)
    try:
        body: Any = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return text
    body = body.get("criteria", body) if isinstance(body, dict) else None
    if not isinstance(body, dict):
        return text
    known = {folded(aspect) for aspect in aspects}
    blocks = []
    for aspect, rules in body.items():
        if folded(str(aspect)) in known:
            lines = rules if isinstance(rules, list) else [rules]
            blocks.append("\n".join([f"{aspect}:", *(f"- {' '.join(str(line).split())}" for line in lines)]))
    return "\n\n".join(blocks)
