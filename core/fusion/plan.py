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
from core.fusion.stack import Agreement, StackSettings, beats_chance
from core.judging.base import CallEstimate
from core.judging.render import KINDS, neutral, plain, range_words
from core.providers.base import Message
from core.records import Alignment, GoldenSet, JudgeScores, Level, Statistic, Task

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


def read_plan(text: str, aspects: Sequence[str], assistants: Sequence[str], origin: str = "person") -> FusionPlan:
    """The plan that `text` states.

    UsageError in words for an aspect that is missing, comes twice or is not asked for, for an assistant that there is
    not (with those that there are), and for a plan that is empty or endless.
    """
    if not text.strip():
        raise UsageError("The plan is empty. Write a line 'aspect: assistant, assistant' for each aspect.")
    if len(text) > LONGEST:
        raise UsageError(f"A plan may have {LONGEST:,} characters; this one has {len(text):,}.")
    blocks = _blocks(text, aspects)
    named = [aspect for aspect, _, _ in blocks]
    if twice := sorted({aspect for aspect in named if named.count(aspect) > 1}):
        raise UsageError(f"Each aspect may stand once in a plan; these stand twice: {', '.join(twice)}.")
    missing = [aspect for aspect in aspects if aspect not in named]
    if missing:
        raise UsageError(
            f"The plan says nothing on {', '.join(missing)}. Write a line '{missing[0]}: assistant, assistant' (or "
            f"'{missing[0]}: {NONE}')."
        )
    uses = {aspect: AspectUse(aspect, _named(names, aspect, assistants), how) for aspect, names, how in blocks}
    return FusionPlan(tuple(uses[aspect] for aspect in aspects), origin)


def _blocks(text: str, aspects: Sequence[str]) -> list[tuple[str, str, str]]:
    """(aspect, names, how) of each block, in the order of the text."""
    known = {folded(aspect): aspect for aspect in aspects}
    blocks: list[tuple[str, str, list[str]]] = []
    for line in text.splitlines():
        head, colon, rest = line.strip(" \t*#-_").partition(":")
        aspect = known.get(folded(head.strip(" *_`")))
        if colon and aspect is not None:
            blocks.append((aspect, rest, []))
        elif blocks and line.strip():
            blocks[-1][2].append(line.strip())
    return [(aspect, names, "\n".join(how)) for aspect, names, how in blocks]


def _named(names: str, aspect: str, assistants: Sequence[str]) -> tuple[str, ...]:
    known = {folded(name): name for name in assistants}
    given = [name.strip(" \t*_`.\"'") for name in re.split(r"[,;]", names)]
    chosen = []
    for name in given:
        if not name or folded(name) == NONE:
            continue
        if folded(name) not in known:
            raise UsageError(
                f"The plan names {name[:60]!r} for {aspect}, and there is no such assistant. Those chosen are: "
                f"{', '.join(assistants) or NONE}."
            )
        chosen.append(known[folded(name)])
    return tuple(dict.fromkeys(chosen))


def folded(name: str) -> str:
    """Without case and needless white space: equal names in whatever way they are written."""
    return " ".join(name.casefold().split())


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
    settings = StackSettings(statistic=statistic, level=level, seed=seed, resamples=500)
    uses = []
    for aspect, judges in parts.items():
        at = np.asarray(positions, dtype=np.intp)
        at = at[~np.isnan(golden.labels(aspect)[at])]
        alignments: list[Alignment] = []
        if judges and at.size:
            matrix = np.array([judge.upward for judge in judges])
            alignments = Agreement(golden, aspect, settings).align(matrix, at, stream=5)
        better = [(judge.name, a) for judge, a in zip(judges, alignments, strict=False) if beats_chance(a)]
        better.sort(key=lambda pair: -(pair[1].value or 0.0))
        uses.append(AspectUse(aspect, tuple(name for name, _ in better), _measured_words(better)))
    return FusionPlan(tuple(uses), "measured")


def _measured_words(better: Sequence[tuple[str, Alignment]]) -> str:
    if not better:
        return "No assistant agrees with people here beyond chance; judge from the item alone."
    best = better[0][1]
    values = ", ".join(f"{name} {alignment.value:.2f}" for name, alignment in better)
    return (
        f"Agreement with people on {best.n} other items ({best.statistic}, {best.level} level): {values}. Trust "
        "them in that order, and the item before any of them."
    )


# ── the prompts' blocks ──────────────────────────────────────────────────────────────────────────────────────


def plan_messages(tasks: Sequence[Task], parts: Sequence[JudgeScores]) -> tuple[Message, ...]:
    """Ask the LLM for a plan."""
    values = {
        "thing": KINDS[tasks[0].kind].thing,
        "aspects": aspects_block(tasks),
        "assistants": assistants_block(parts),
    }
    return (Message("user", filled(PLAN_PROMPT, values)),)


def aspects_block(tasks: Sequence[Task]) -> str:
    """A line for each aspect: its name, scale and meaning."""
    lines = []
    for task in tasks:
        meaning = " ".join(neutral(task.definition).split())
        lines.append(
            f"- {plain_line(task.aspect)}: a number {range_words(task.scale)}.{f' {meaning}' if meaning else ''}"
        )
    return "\n".join(lines)


def assistants_block(parts: Sequence[JudgeScores]) -> str:
    """A line for each assistant: its name, meaning, range and direction.  UsageError for one without a score."""
    return "\n".join(map(_introduced, parts)) or "- none"


def _introduced(part: JudgeScores) -> str:
    known = part.values[~np.isnan(part.values)]
    if not known.size:
        raise UsageError(f"{part.name} has no score, so it cannot assist.")
    better = "higher is better" if part.higher_is_better else "lower is better"
    measures = " ".join(neutral(part.note).split()) or "A number from elsewhere."
    lie = f"Its numbers lie between {known.min():.3g} and {known.max():.3g}"
    return f"- {plain_line(part.name)}: {measures} {lie}; {better}."


def plain_line(name: str) -> str:
    """A name on one line of a prompt."""
    return " ".join(plain(name).split())


def filled(prompt: str, values: Mapping[str, str]) -> str:
    """The prompt file with `values` in their places; values are never read as templates."""
    return Template((PROMPTS / f"{prompt}.txt").read_text(encoding="utf-8")).substitute(values).strip()


# ── LLM fusion in a project: what is asked for, what it will cost, what came of it ─────────────────────────────


@dataclass(frozen=True, slots=True)
class FusionRequest:
    """Let a language model fuse the judges `judge_ids` of the project on `aspects`, all of them in one call an item.

    `plan` is the plan's text; "" lets the model write it first.  `plan_seen` are the items whose labels the plan was
    made from (none for a person's or the model's): the fused judge has seen them.  `n_items` None rates all items,
    else about so many, of whole sources.  `budget` is the most calls, the plan's included.
    """

    project_id: str
    golden_id: str
    aspect: str
    aspects: tuple[str, ...]
    judge_ids: tuple[str, ...]
    judge_spec: str
    plan: str = ""
    plan_seen: tuple[int, ...] = ()
    n_items: int | None = None
    budget: int | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class FusionEstimate(CallEstimate):
    """What an LLM fusion will ask for: a call for each of `n_items`, and one for the plan where there is none."""

    n_items: int


@dataclass(frozen=True)
class FusionRunView:
    """Aspect → the judge entered, the plan in force, and what could not be read: aspect → reason → count.

    `overall` is the judge of the overall score, entered on the first aspect.
    """

    judges: Mapping[str, str]
    plan: str
    calls: int
    unscored: Mapping[str, Mapping[str, int]]
    stopped_early: str = ""
