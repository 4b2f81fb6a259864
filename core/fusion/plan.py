"""The plan of an LLM fusion (004 §2.1): which assistants serve which aspect, and how their numbers are to be read.

A plan is plain text that a person can write and edit: a line ``aspect: assistant, assistant`` and beneath it how to use
them.  It comes from a person, from the LLM, or (without any call) from the assistants' measured alignment on the items
to fit on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template

import numpy as np

from core.errors import UsageError
from core.fusion.stack import beats_chance
from core.judging.render import KINDS, neutral, plain, range_words
from core.providers.base import Message
from core.records import Alignment, GoldenSet, JudgeScores, Level, Statistic, Task, content_digest
from core.stats import align_with_intervals

PROMPTS = Path(__file__).parent / "prompts"
PLAN_PROMPT = "plan.v1"
LONGEST = 8_000
NONE = "none"


@dataclass(frozen=True, slots=True)
class AspectUse:
    """How one aspect is served: `assistants` by name, best first, and `how` in words."""

    aspect: str
    assistants: tuple[str, ...]
    how: str = ""


@dataclass(frozen=True)
class FusionPlan:
    """What serves which aspect.  `origin` is "measured", "model" or "person"."""

    uses: tuple[AspectUse, ...]
    origin: str = "person"

    @property
    def aspects(self) -> tuple[str, ...]:
        return tuple(use.aspect for use in self.uses)

    @property
    def assistants(self) -> tuple[str, ...]:
        """Every assistant that the plan names, once."""
        return tuple(dict.fromkeys(name for use in self.uses for name in use.assistants))

    @cached_property
    def text(self) -> str:
        """The plan as people edit it."""
        return "\n\n".join(
            f"{use.aspect}: {', '.join(use.assistants) or NONE}" + (f"\n{use.how}" if use.how else "")
            for use in self.uses
        )

    @property
    def plan_id(self) -> str:
        """``"f" + 12 hex digits`` of what it says."""
        return "f" + content_digest("fusion plan", self.text).split(":")[1][:12]


@dataclass(frozen=True, slots=True)
class Helper:
    """An assistant as a prompt introduces it; `low` and `high` end what it gave, `measures` is one sentence."""

    name: str
    measures: str
    low: float
    high: float
    higher_is_better: bool = True

    @property
    def words(self) -> str:
        """One line: name, meaning, range and direction."""
        better = "higher is better" if self.higher_is_better else "lower is better"
        measures = " ".join(neutral(self.measures).split()) or "A number from elsewhere."
        return (
            f"- {_inline(self.name)}: {measures} Its numbers lie between {self.low:.3g} and {self.high:.3g}; {better}."
        )


def helper_of(judge: JudgeScores) -> Helper:
    """A judge or metric of the shelf as an assistant.  UsageError when it has no score."""
    known = judge.values[~np.isnan(judge.values)]
    if not known.size:
        raise UsageError(f"{judge.name} has no score, so it cannot assist.")
    return Helper(judge.name, judge.note, float(known.min()), float(known.max()), judge.higher_is_better)


def read_plan(text: str, aspects: Sequence[str], assistants: Sequence[str], origin: str = "person") -> FusionPlan:
    """The plan that `text` states.

    UsageError in words for an aspect that is missing, comes twice or is not asked for, for an assistant that there is
    not (with those that there are), and for a plan that is empty or endless.
    """
    if not text.strip():
        raise UsageError("The plan is empty. Write a line 'aspect: assistant, assistant' for each aspect.")
    if len(text) > LONGEST:
        raise UsageError(f"A plan may have {LONGEST:,} characters; this one has {len(text):,}.")
    heads = _heads(text, aspects)
    twice = sorted({aspect for aspect, _, _ in heads if [one[0] for one in heads].count(aspect) > 1})
    if twice:
        raise UsageError(f"Each aspect may stand once in a plan; these stand twice: {', '.join(twice)}.")
    missing = [aspect for aspect in aspects if aspect not in {one[0] for one in heads}]
    if missing:
        raise UsageError(
            f"The plan says nothing on {', '.join(missing)}. Write a line '{missing[0]}: assistant, assistant' (or "
            f"'{missing[0]}: {NONE}')."
        )
    uses = {aspect: AspectUse(aspect, _named(names, aspect, assistants), how) for aspect, names, how in heads}
    return FusionPlan(tuple(uses[aspect] for aspect in aspects), origin)


def _heads(text: str, aspects: Sequence[str]) -> list[tuple[str, str, str]]:
    """(aspect, names, how) of each block, in the order of the text."""
    known = {_folded(aspect): aspect for aspect in aspects}
    found: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        head, colon, rest = line.strip(" \t*#-_").partition(":")
        aspect = known.get(_folded(head.strip(" *_`")))
        if colon and aspect is not None:
            found.append((aspect, rest, []))
        elif found and line.strip():
            found[-1][2].append(line.strip())
    return [(aspect, names, "\n".join(how)) for aspect, names, how in found]


def _named(names: str, aspect: str, assistants: Sequence[str]) -> tuple[str, ...]:
    known = {_folded(name): name for name in assistants}
    given = [name.strip(" \t*_`.\"'") for name in re.split(r"[,;]", names)]
    found = []
    for name in (one for one in given if one and _folded(one) != NONE):
        if _folded(name) not in known:
            raise UsageError(
                f"The plan names {name[:60]!r} for {aspect}, and there is no such assistant. Those chosen are: "
                f"{', '.join(assistants) or NONE}."
            )
        found.append(known[_folded(name)])
    return tuple(dict.fromkeys(found))


def _folded(name: str) -> str:
    return " ".join(name.casefold().split())


def _inline(name: str) -> str:
    return " ".join(plain(name).split())


# ── who writes it ────────────────────────────────────────────────────────────────────────────────────────────


def measured_plan(
    golden: GoldenSet,
    parts: Mapping[str, Sequence[JudgeScores]],
    positions: Sequence[int],
    *,
    statistic: Statistic = "spearman",
    level: Level = "dataset",
    seed: int = 0,
) -> FusionPlan:
    """A plan without any call: for each aspect the assistants that align beyond chance at `positions`, best first.

    `parts` holds the assistants by aspect; none of them may have seen labels at `positions` (the caller sees to it).
    """
    uses = []
    at = np.asarray(positions, dtype=np.intp)
    for aspect, judges in parts.items():
        labels = golden.labels(aspect)
        here = at[~np.isnan(labels[at])]
        found: list[Alignment] = []
        if judges and here.size:
            found = align_with_intervals(
                np.array([judge.upward[here] for judge in judges]),
                labels[here],
                golden.source_codes[here],
                golden.system_codes[here],
                statistic=statistic,
                level=level,
                generator=np.random.default_rng([seed, 5]),
                resamples=500,
            )
        told = [(judge.name, one) for judge, one in zip(judges, found, strict=False) if beats_chance(one)]
        told.sort(key=lambda pair: -(pair[1].value or 0.0))
        uses.append(AspectUse(aspect, tuple(name for name, _ in told), _measured_words(told)))
    return FusionPlan(tuple(uses), "measured")


def _measured_words(told: Sequence[tuple[str, Alignment]]) -> str:
    if not told:
        return "No assistant agrees with people here beyond chance; judge from the item alone."
    first = told[0][1]
    values = ", ".join(f"{name} {one.value:.2f}" for name, one in told)
    return (
        f"Agreement with people on {first.n} other items ({first.statistic}, {first.level} level): {values}. Trust "
        "them in that order, and the item before any of them."
    )


def plan_messages(tasks: Sequence[Task], helpers: Sequence[Helper]) -> tuple[Message, ...]:
    """Ask the LLM for a plan."""
    values = {
        "thing": KINDS[tasks[0].kind].thing,
        "aspects": aspects_block(tasks),
        "assistants": helpers_block(helpers),
    }
    return (Message("user", filled(PLAN_PROMPT, values)),)


def aspects_block(tasks: Sequence[Task]) -> str:
    """A line for each aspect: its name, scale and meaning."""
    lines = []
    for task in tasks:
        meaning = " ".join(neutral(task.definition).split())
        lines.append(f"- {_inline(task.aspect)}: a number {range_words(task.scale)}.{f' {meaning}' if meaning else ''}")
    return "\n".join(lines)


def helpers_block(helpers: Sequence[Helper]) -> str:
    """A line for each assistant."""
    return "\n".join(helper.words for helper in helpers) or "- none"


def filled(prompt: str, values: Mapping[str, str]) -> str:
    """The prompt file with `values` in their places; values are never read as templates."""
    return Template((PROMPTS / f"{prompt}.txt").read_text(encoding="utf-8")).substitute(values).strip()
