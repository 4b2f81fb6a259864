"""Plans and criteria of an LLM fusion: read from text, and put into its prompts.

Both are texts in blocks, each headed by an aspect; whatever departs from that form is refused with a reason.  A *plan*
has a line ``aspect: assistant, assistant`` and beneath it how to use them.  It comes from a person, from the LLM, or
(without any call) from the assistants' measured alignment.  *Criteria* have a line ``aspect:`` and beneath it by what
the aspect is rated: given, calibrated, or written by the model where none are given.  ``none`` beneath an aspect rates
it without.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Literal

import numpy as np

from core.errors import JudgeError, UsageError
from core.judging.parse import without_thoughts
from core.judging.scoring_styles import KINDS, neutral, plain, range_words
from core.providers.completions import Message
from core.records import JudgeScores, Task

NONE = "none"
OVERALL = "overall"
"""What a model says all in all, next to the aspects."""
PROMPTS = Path(__file__).parent / "prompts"
PLAN_PROMPT, CRITERIA_PROMPT = "plan.v1", "criteria.v1"
LONGEST, LONGEST_CRITERIA = 8_000, 20_000
CriteriaOrigin = Literal["model", "person", "calibrated"]
ORIGIN_WORDS: Mapping[CriteriaOrigin, str] = {
    "model": "written by the model",
    "person": "as given",
    "calibrated": "calibrated",
}


class UnusableTextError(JudgeError):
    """The model's plan or `criteria` cannot be used, after two attempts; a person may edit them.

    `plan` and `criteria` are the texts as far as they were written: criteria before an unusable plan are paid for.
    """

    def __init__(self, fault: str, text: str, *, criteria: bool = False, written: str = "") -> None:
        what = "criteria" if criteria else "plan"
        way_out = "give others" if criteria else "let one be proposed from the measured alignment"
        super().__init__(
            f"The model's {what} cannot be used: {fault} It was asked twice. Edit its {what} by hand, or {way_out}. "
            f"The {what}:\n{text[:LONGEST]}"
        )
        self.plan, self.criteria = ("", text) if criteria else (text, written)


# ── blocks headed by an aspect ───────────────────────────────────────────────────────────────────────────────────

MARKS = " \t#>*_`[]."
"""What may stand around a name: marks of Markdown, and a full stop."""
_BULLET = re.compile(r"[ \t]*[-•*+][ \t]")
_NUMBER = re.compile(r"(?:\d{1,2}[.)][ \t]|aspect:)[ \t*_`]*", re.IGNORECASE)


def folded(name: str) -> str:
    """Without case and needless white space: equal names in whatever way they are written."""
    return " ".join(name.casefold().split())


def bare(name: str) -> str:
    """Folded, without the marks around it."""
    return folded(name.strip(MARKS))


def headed_blocks(text: str, aspects: Sequence[str]) -> tuple[list[str], list[tuple[str, str, list[str]]]]:
    """(lines before the first heading, blocks) of `text`; a block is (aspect, what follows on its line, more lines).

    A heading is a line that begins with an aspect: ``coherence: …``, ``## Coherence``, ``1. **Coherence** (1-5): …``.
    A bulleted line is none.
    """
    known, before = {bare(aspect): aspect for aspect in aspects}, list[str]()
    blocks: list[tuple[str, str, list[str]]] = []
    for line in without_thoughts(text).splitlines():
        name, _, rest = _NUMBER.sub("", line.lstrip(MARKS), count=1).partition(":")
        aspect = known.get(bare(name)) or known.get(bare(name.partition("(")[0]))
        if aspect and not _BULLET.match(line):
            blocks.append((aspect, rest.lstrip(" \t*_`"), []))
        else:
            (blocks[-1][2] if blocks else before).append(line.rstrip())
    return before, blocks


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class AspectUse:
    """How one aspect is served: `assistants` by name, best first, and `how` in words."""

    aspect: str
    assistants: tuple[str, ...]
    how: str = ""


@dataclass(frozen=True)
class FusionPlan:
    """Which assistants serve which aspect.  `origin` is "measured", "model" or "person", or `NONE`: every assistant,
    unplanned.
    """

    uses: tuple[AspectUse, ...]
    origin: str = "person"

    @property
    def assistants(self) -> tuple[str, ...]:
        """Every assistant that the plan names, once."""
        return tuple(dict.fromkeys(name for use in self.uses for name in use.assistants))

    @cached_property
    def text(self) -> str:
        """The plan as people edit it; `NONE` where there is none."""
        if self.origin == NONE:
            return NONE
        return "\n\n".join(
            f"{use.aspect}: {', '.join(use.assistants) or NONE}" + (f"\n{use.how}" if use.how else "")
            for use in self.uses
        )


def read_plan(text: str, aspects: Sequence[str], assistants: Sequence[str], origin: str = "person") -> FusionPlan:
    """Read the plan that `text` states: beneath each aspect's line, which lists its assistants, how to use them.

    UsageError in words for an aspect that is missing or comes twice, for a name on the list that is not an assistant,
    and for a plan that is empty or too long.  A bare ``none`` plans nothing: the model is shown what every assistant
    gave, and no word on how to use them.
    """
    if folded(text) == NONE:
        return FusionPlan(tuple(AspectUse(aspect, tuple(assistants)) for aspect in aspects), NONE)
    if not text.strip():
        raise UsageError("The plan is empty. Write a line 'aspect: assistant, assistant' for each aspect.")
    if len(text) > LONGEST:
        raise UsageError(f"A plan may have {LONGEST:,} characters; this one has {len(text):,}.")
    known = {bare(name): (name,) for name in assistants} | {NONE: ()}
    uses: dict[str, AspectUse] = {}
    for aspect, listed, lines in headed_blocks(text, aspects)[1]:
        if aspect in uses:
            raise UsageError(f"Each aspect may be planned once; {aspect} comes twice.")
        chosen = listed.split(",")
        if unknown := [name.strip() for name in chosen if bare(name) not in known]:
            raise UsageError(
                f"The plan names {(unknown[0] or 'nothing')[:60]!r} for {aspect}, which is not a chosen assistant. "
                f"Those chosen are: {', '.join(assistants) or NONE}."
            )
        names = dict.fromkeys(own for name in chosen for own in known[bare(name)])
        uses[aspect] = AspectUse(aspect, tuple(names), "\n".join(line.strip() for line in lines if line.strip()))
    if missing := [aspect for aspect in aspects if aspect not in uses]:
        raise UsageError(
            f"The plan says nothing on {', '.join(missing)}. Write a line '{missing[0]}: assistant, assistant' (or "
            f"'{missing[0]}: {NONE}')."
        )
    return FusionPlan(tuple(uses[aspect] for aspect in aspects), origin)


# ── criteria ─────────────────────────────────────────────────────────────────────────────────────────────────────


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
        """The `tasks` without given criteria, which the model writes."""
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
    if len(text) > LONGEST_CRITERIA:
        raise UsageError(f"Criteria may have {LONGEST_CRITERIA:,} characters in all; these have {len(text):,}.")
    before, found = headed_blocks(text, aspects)
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
    if empty := [aspect for aspect, rules in texts.items() if not rules]:
        raise UsageError(
            f"There are no criteria beneath {', '.join(empty)}. Write the criteria there, or '{NONE}' to rate without, "
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
    if missing := [aspect for aspect in aspects if not criteria.by_aspect.get(aspect)]:
        raise UsageError(f"There are no criteria for {', '.join(missing)}. Write a line '{missing[0]}:' and criteria.")
    return criteria


def criteria_messages(tasks: Sequence[Task]) -> tuple[Message, ...]:
    """Ask the LLM for criteria of all `tasks`."""
    values = {"thing": KINDS[tasks[0].kind].thing, "aspects": aspects_block(tasks)}
    return (Message("user", filled(CRITERIA_PROMPT, values)),)


# ── the prompts' blocks ──────────────────────────────────────────────────────────────────────────────────────


def plan_messages(
    tasks: Sequence[Task], parts: Sequence[JudgeScores], criteria: Mapping[str, str] = MappingProxyType({})
) -> tuple[Message, ...]:
    """Ask the LLM for a plan, with the `criteria` by aspect that the plan is to serve."""
    values = {
        "thing": KINDS[tasks[0].kind].thing,
        "aspects": aspects_block(tasks, criteria),
        "assistants": assistants_block(parts),
    }
    return (Message("user", filled(PLAN_PROMPT, values)),)


def aspects_block(tasks: Sequence[Task], criteria: Mapping[str, str] = MappingProxyType({})) -> str:
    """A line for each aspect: its name, scale and meaning; beneath it its criteria, by aspect, where there are any."""
    lines = []
    for task in tasks:
        meaning = " ".join(neutral(task.definition).split())
        lines.append(
            f"- {plain_line(task.aspect)}: a number {range_words(task.scale)}.{f' {meaning}' if meaning else ''}"
        )
        if rules := neutral(criteria.get(task.aspect, "")):
            lines += ["  Criteria:", *(f"    {line}" for line in rules.splitlines() if line.strip())]
    return "\n".join(lines)


def assistants_block(parts: Sequence[JudgeScores]) -> str:
    """A line for each assistant: its name, meaning, range and direction.  UsageError for one without a score."""
    lines = []
    for part in parts:
        known = part.values[~np.isnan(part.values)]
        if not known.size:
            raise UsageError(f"{part.name} has no score, so it cannot assist.")
        better = "higher is better" if part.higher_is_better else "lower is better"
        measures = " ".join(neutral(part.note).split()) or "A number from elsewhere."
        lie = f"Its numbers lie between {known.min():.3g} and {known.max():.3g}"
        lines.append(f"- {plain_line(part.name)}: {measures} {lie}; {better}.")
    return "\n".join(lines) or "- none"


def plain_line(name: str) -> str:
    """A name on one line of a prompt."""
    return " ".join(plain(name).split())


def filled(prompt: str, values: Mapping[str, str]) -> str:
    """The prompt file with `values` in their places; values are never read as templates."""
    return Template((PROMPTS / f"{prompt}.txt").read_text(encoding="utf-8")).substitute(values).strip()
