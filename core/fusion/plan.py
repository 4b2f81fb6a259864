"""The plan of an LLM fusion: which assistants serve which aspect, and how their numbers are to be read.

A plan is plain text that a person can write and edit: a line ``aspect: assistant, assistant`` and beneath it how to use
them.  It comes from a person, from the LLM, or (without any call) from the assistants' measured alignment on the items
to fit on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from string import Template
from types import MappingProxyType

import numpy as np

from core.errors import JudgeError, UsageError
from core.fusion.aspect_texts import NONE, folded, headed_blocks
from core.fusion.fusion_settings import FusionSettings
from core.fusion.stack import Agreement, beats_chance
from core.judging.render import KINDS, neutral, plain, range_words
from core.providers.completions import Message
from core.records import GoldenSet, JudgeScores, Task

PROMPTS = Path(__file__).parent / "prompts"
PLAN_PROMPT = "plan.v1"
LONGEST = 8_000
TO_BE_MENDED = "model, to be mended"
"""Origin of a model's plan that cannot be used as it is: it is stored for a person to edit."""


class PlanError(JudgeError):
    """The model's plan or `criteria` cannot be used, after two attempts; a person may edit the `text`.

    `written` are the criteria of a plan that came after them: they are paid for.
    """

    def __init__(self, fault: str, text: str, *, criteria: bool = False, written: str = "") -> None:
        what = "criteria" if criteria else "plan"
        way_out = "give others" if criteria else "let one be proposed from the measured alignment"
        super().__init__(
            f"The model's {what} cannot be used: {fault} It was asked twice. Edit its {what} by hand, or {way_out}. "
            f"The {what}:\n{text[:LONGEST]}"
        )
        self.text, self.plan, self.criteria = text, "" if criteria else text, text if criteria else written


@dataclass(frozen=True, slots=True)
class AspectUse:
    """How one aspect is served: `assistants` by name, best first, and `how` in words."""

    aspect: str
    assistants: tuple[str, ...]
    how: str = ""


@dataclass(frozen=True)
class FusionPlan:
    """What serves which aspect.  `origin` is "measured", "model" or "person", or `NONE`: every assistant, unplanned."""

    uses: tuple[AspectUse, ...]
    origin: str = "person"

    @property
    def assistants(self) -> tuple[str, ...]:
        """Every assistant that the plan names, once."""
        return tuple(dict.fromkeys(name for use in self.uses for name in use.assistants))

    def without(self, name: str) -> FusionPlan:
        """The plan without an assistant: its name taken out, and every sentence and line that mentions it."""
        mentions = re.compile(rf"(?<!\w){_pattern(name)}(?!\w)", re.IGNORECASE)
        uses = []
        for use in self.uses:
            rest = tuple(assistant for assistant in use.assistants if assistant != name)
            lines = (
                " ".join(sentence for sentence in _SENTENCE.split(line) if not mentions.search(sentence))
                for line in use.how.splitlines()
            )
            how = "\n".join(line for line in lines if line.strip())
            uses.append(AspectUse(use.aspect, rest, how if rest or not use.assistants else NO_ASSISTANT))
        return replace(self, uses=tuple(uses))

    @cached_property
    def text(self) -> str:
        """The plan as people edit it; `NONE` where there is none."""
        if self.origin == NONE:
            return NONE
        return "\n\n".join(
            f"{use.aspect}: {', '.join(use.assistants) or NONE}" + (f"\n{use.how}" if use.how else "")
            for use in self.uses
        )


NO_ASSISTANT = "No assistant is at hand for this aspect; rate it from the item alone."
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")
_LABEL = re.compile(r"[ \t*_\-]*(?:assistants?|names?|parts?|uses?|used)[ \t*_]*[:=][ \t*_]*", re.IGNORECASE)
_BETWEEN = re.compile(r"(?:\([^)]*\)|\b(?:and|plus|then)\b|[\s,;&+*_`.\"'\[\]|•-])*", re.IGNORECASE)
_HOW = re.compile(r"(?:\s*\([^)]*\))?[*_`\"']*(?:[.:|]|\s[-–—])\s+(?=\S)(?P<how>.*)", re.DOTALL)


def read_plan(text: str, aspects: Sequence[str], assistants: Sequence[str], origin: str = "person") -> FusionPlan:
    """Read the plan that `text` states.

    UsageError in words for an aspect that is missing or comes twice, for an unknown assistant (with the known ones),
    and for a plan that is empty or too long.  A bare ``none`` plans nothing: the model is shown what every assistant
    gave, and no word on how to use them.
    """
    if folded(text) == NONE:
        return FusionPlan(tuple(AspectUse(aspect, tuple(assistants)) for aspect in aspects), NONE)
    if not text.strip():
        raise UsageError("The plan is empty. Write a line 'aspect: assistant, assistant' for each aspect.")
    if len(text) > LONGEST:
        raise UsageError(f"A plan may have {LONGEST:,} characters; this one has {len(text):,}.")
    uses: dict[str, AspectUse] = {}
    for aspect, first, more in headed_blocks(text, aspects)[1]:
        if aspect in uses:
            raise UsageError(f"Each aspect may be planned once; {aspect} comes twice.")
        lines = [line.strip().strip("|").strip() for line in more if line.strip()]
        chosen, how, unknown = _names(first, assistants)
        if not first.strip(" *_`"):  # the names are on the lines below
            while lines and not how:
                more_chosen, how, unknown = _names(_LABEL.sub("", lines[0], count=1), assistants)
                if unknown and not _LABEL.match(lines[0]):
                    unknown = ""
                    break
                chosen, lines = [*chosen, *more_chosen], lines[1:]
        if unknown:
            raise UsageError(
                f"The plan names {unknown[:60]!r} for {aspect}, which is not a chosen assistant. Those chosen are: "
                f"{', '.join(assistants) or NONE}."
            )
        uses[aspect] = AspectUse(aspect, tuple(dict.fromkeys(chosen)), "\n".join([*([how] if how else []), *lines]))
    if missing := [aspect for aspect in aspects if aspect not in uses]:
        raise UsageError(
            f"The plan says nothing on {', '.join(missing)}. Write a line '{missing[0]}: assistant, assistant' (or "
            f"'{missing[0]}: {NONE}')."
        )
    return FusionPlan(tuple(uses[aspect] for aspect in aspects), origin)


def _names(line: str, assistants: Sequence[str]) -> tuple[list[str], str, str]:
    """(assistants that a line lists, the words after the list, a name on the list that is not an assistant)."""
    known = {folded(name): name for name in assistants}
    either = "|".join(map(_pattern, sorted((*assistants, NONE), key=len, reverse=True)))
    found, end = list[str](), 0
    for match in re.finditer(rf"(?<!\w)(?:{either})(?!\w)", line, re.IGNORECASE):
        if not _BETWEEN.fullmatch(line, end, match.start()):
            break
        end = match.end()
        found += [known[folded(match[0])]] if folded(match[0]) in known else []
    rest = line[end:]
    if end and (how := _HOW.fullmatch(rest)):
        return found, how["how"].strip(" \t*_|-–—"), ""
    return found, "", "" if _BETWEEN.fullmatch(rest) else re.split(r"[,;]", rest.lstrip(" ,;"))[0].strip(" *_`.\"'")


def _pattern(name: str) -> str:
    return re.sub(r"(?:\\\s)+|\s+", r"\\s+", re.escape(name))


# ── a plan from what was measured ────────────────────────────────────────────────────────────────────────────


def measured_plan(
    golden: GoldenSet,
    parts: Mapping[str, Sequence[JudgeScores]],
    positions: Sequence[int],
    settings: FusionSettings,
) -> FusionPlan:
    """A plan without any call: for each aspect the assistants that align beyond chance at `positions`, best first.

    `parts` holds the assistants by aspect; none of them may have seen labels at `positions` (the caller sees to it).
    For system level they are measured over items: a dozen systems are too few to choose by.
    """
    settings = replace(settings, level="dataset" if settings.level == "system" else settings.level, resamples=500)
    uses = []
    for aspect, judges in parts.items():
        at = np.asarray(positions, dtype=np.intp)
        at, better = at[~np.isnan(golden.labels(aspect)[at])], []
        if judges and at.size:
            matrix = np.array([judge.upward for judge in judges])
            aligned = Agreement(golden, aspect, settings).align(matrix, at, stream=5)
            better = [(judge.name, a) for judge, a in zip(judges, aligned, strict=True) if beats_chance(a)]
        better.sort(key=lambda pair: -(pair[1].value or 0.0))
        how = "No assistant agrees with people here beyond chance; judge from the item alone."
        if better:
            best, values = better[0][1], "\n".join(f"- {name} {alignment.value:.2f}" for name, alignment in better)
            how = (
                f"Agreement with people on {best.n} other items ({best.statistic}, {best.level} level), best first:\n"
                f"{values}\nTrust them in that order, and the item before any of them."
            )
        uses.append(AspectUse(aspect, tuple(name for name, _ in better), how))
    return FusionPlan(tuple(uses), "measured")


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
