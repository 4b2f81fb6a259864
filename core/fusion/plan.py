"""The plan of an LLM fusion (004 §2.1): which assistants serve which aspect, and how their numbers are to be read.

A plan is plain text that a person can write and edit: a line ``aspect: assistant, assistant`` and beneath it how to use
them.  It comes from a person, from the LLM, or (without any call) from the assistants' measured alignment on the items
to fit on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from string import Template
from types import MappingProxyType

import numpy as np

from core.errors import JudgeError, UsageError
from core.fusion.fusion_settings import FusionSettings
from core.fusion.stack import Agreement, beats_chance
from core.judging.parse import without_thoughts
from core.judging.render import KINDS, neutral, plain, range_words
from core.providers.completions import Message
from core.records import Alignment, GoldenSet, JudgeScores, Task

PROMPTS = Path(__file__).parent / "prompts"
PLAN_PROMPT = "plan.v1"
LONGEST = 8_000
NONE = "none"
OVERALL = "overall"
"""What a model says all in all, beside the aspects."""


TO_BE_MENDED = "model, to be mended"
"""Origin of a model's plan that cannot be used as it stands: it is kept for a person."""


class PlanError(JudgeError):
    """What the model wrote, its plan or its `criteria`, cannot be used, asked twice; a person may mend its `text`.

    `written` are the criteria of a plan that came after them: they are paid for.
    """

    def __init__(self, fault: str, text: str, *, criteria: bool = False, written: str = "") -> None:
        what = "criteria" if criteria else "plan"
        way_out = "give others" if criteria else "let one be proposed from the measured alignment"
        super().__init__(
            f"The model's {what} cannot be used: {fault} It was asked twice. Mend its {what} by hand, or {way_out}. "
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
    def aspects(self) -> tuple[str, ...]:
        return tuple(use.aspect for use in self.uses)

    @property
    def assistants(self) -> tuple[str, ...]:
        """Every assistant that the plan names, once."""
        return tuple(dict.fromkeys(name for use in self.uses for name in use.assistants))

    def without(self, name: str) -> FusionPlan:
        """The plan as it is without an assistant: its name taken out, and every sentence and line that speaks of it."""
        return replace(self, uses=tuple(_use_without(use, name) for use in self.uses))

    @cached_property
    def text(self) -> str:
        """The plan as people edit it; `NONE` where there is none."""
        if self.origin == NONE:
            return NONE
        return "\n\n".join(
            f"{use.aspect}: {', '.join(use.assistants) or NONE}" + (f"\n{use.how}" if use.how else "")
            for use in self.uses
        )


def _use_without(use: AspectUse, name: str) -> AspectUse:
    speaks = re.compile(rf"(?<!\w){_spelt(name)}(?!\w)", re.IGNORECASE)
    rest = tuple(assistant for assistant in use.assistants if assistant != name)
    if rest == use.assistants and not speaks.search(use.how):
        return use
    if not rest:
        return AspectUse(use.aspect, (), NO_ASSISTANT if use.assistants else use.how)
    lines = (" ".join(s for s in _SENTENCE.split(line) if not speaks.search(s)) for line in use.how.splitlines())
    return AspectUse(use.aspect, rest, "\n".join(line for line in lines if line.strip()))


NO_ASSISTANT = "No assistant is at hand for this aspect; rate it from the item alone."
_SENTENCE = re.compile(r"(?<=[.!?;])\s+")


def read_plan(text: str, aspects: Sequence[str], assistants: Sequence[str], origin: str = "person") -> FusionPlan:
    """The plan that `text` states.

    UsageError in words for an aspect that is missing, comes twice or is not asked for, for an assistant that there is
    not (with those that there are), and for a plan that is empty or endless.  A bare ``none`` plans nothing: the model
    is shown what every assistant gave, and no word on how to use them.
    """
    if folded(text) == NONE:
        return FusionPlan(tuple(AspectUse(aspect, tuple(assistants)) for aspect in aspects), NONE)
    if not text.strip():
        raise UsageError("The plan is empty. Write a line 'aspect: assistant, assistant' for each aspect.")
    if len(text) > LONGEST:
        raise UsageError(f"A plan may have {LONGEST:,} characters; this one has {len(text):,}.")
    blocks = _blocks(without_thoughts(text), aspects, assistants)
    named = [aspect for aspect, _, _ in blocks]
    if twice := sorted({aspect for aspect in named if named.count(aspect) > 1}):
        raise UsageError(f"Each aspect may stand once in a plan; these stand twice: {', '.join(twice)}.")
    missing = [aspect for aspect in aspects if aspect not in named]
    if missing:
        raise UsageError(
            f"The plan says nothing on {', '.join(missing)}. Write a line '{missing[0]}: assistant, assistant' (or "
            f"'{missing[0]}: {NONE}')."
        )
    uses = {aspect: AspectUse(aspect, names, how) for aspect, names, how in blocks}
    return FusionPlan(tuple(uses[aspect] for aspect in aspects), origin)


def _blocks(text: str, aspects: Sequence[str], assistants: Sequence[str]) -> list[tuple[str, tuple[str, ...], str]]:
    """(aspect, assistants, how) of each block, in the order of the text."""
    blocks: list[tuple[str, list[str]]] = []
    for line in (row.strip().strip("|").strip() for row in _without_json(text).splitlines()):
        if (headed := aspect_headed(line[:HEAD_AT_MOST], aspects)) is not None:
            blocks.append((headed[0], [headed[1] + line[HEAD_AT_MOST:]]))
        elif blocks and line:
            blocks[-1][1].append(line)
    return [(aspect, *_use(lines, aspect, assistants)) for aspect, lines in blocks]


def aspect_headed(line: str, aspects: Sequence[str]) -> tuple[str, str] | None:
    """(aspect, what follows) of a line that is headed by one of `aspects`, else None."""
    known = {folded(aspect): aspect for aspect in aspects}
    head = _HEAD.fullmatch(line)
    if head is None:
        return None
    aspect = known.get(folded(head["aspect"])) or known.get(folded(head["bare"] or ""))
    return None if aspect is None else (aspect, head["rest"] or "")


HEAD_AT_MOST = 300
_HEAD = re.compile(
    r"[ \t>*#_\-]*(?:\(?\d{1,2}[.):][ \t]*)?[*_`\"'\[]*(?:aspect[ \t]*[:\-][ \t]*)?"
    r"(?P<aspect>(?P<bare>[^:=|(\[–—]+?)[*_`\"'\]]*(?:[ \t]*[(\[][^)\]]*[)\]])?)[*_`\"'\]]*"
    r"(?:[ \t]*(?:[:=|–—]|->|→|[ ]-[ ])[*_`]*[ \t]*(?P<rest>.*)|[ \t]*)",
    re.IGNORECASE,
)
"""A line that begins with an aspect, as "1. **Coherence** (1-5): overlap": marks, number, its name, what follows."""

_LABEL = re.compile(r"[ \t*_\-]*(?:assistants?|names?|parts?|uses?|used)[ \t*_]*[:=][ \t*_]*", re.IGNORECASE)
_MARKS = " \t*_`.\"'[]|-•"


def _use(lines: list[str], aspect: str, assistants: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Assistants and how to use them: on the line of the aspect, or on the next where that says nothing more."""
    first, *how = lines
    if not first.strip(_MARKS) and how and (_LABEL.match(how[0]) or _named(how[0], aspect, assistants, lenient=True)):
        first, *how = _LABEL.sub("", how[0], count=1), *how[1:]
        while how and (more := _named(how[0], aspect, assistants, lenient=True)):
            first, how = f"{first}, {', '.join(more)}", how[1:]
    names = _named(first, aspect, assistants)
    rest = _words_after(first, assistants)
    return names, "\n".join([*([rest] if rest else []), *how])


def _words_after(names: str, assistants: Sequence[str]) -> str:
    """What stands after the last name of a line, where a mark ends the list of names."""
    ends = [
        match.end() for name in assistants if (match := re.search(_ENDED.format(_spelt(name)), names, re.IGNORECASE))
    ]
    return names[max(ends) :].strip(" \t*_|-–—") if ends else ""


_ENDED = r"(?<!\w){0}[*_`\"']*(?:[.:|]|[ ][-–—])[ \t]+(?=\S)"


def _spelt(name: str) -> str:
    return re.sub(r"(?:\\\s)+|\s+", r"\\s+", re.escape(name))


def _named(names: str, aspect: str, assistants: Sequence[str], *, lenient: bool = False) -> tuple[str, ...]:
    """The assistants named on a line; UsageError for one that there is not, or () where that is `lenient`."""
    known = {folded(name.strip(_MARKS)): name for name in assistants}
    if rest := _words_after(names, assistants):
        names = names[: names.rindex(rest)]
    chosen: list[str] = []
    for part in re.split(r"[,;]", re.sub(r"\([^)]*\)", lambda m: m[0] if folded(m[0]) in str(known) else "", names)):
        whole = folded(part.strip(_MARKS))
        each = [whole] if whole in known else [folded(word.strip(_MARKS)) for word in _AND.split(part)]
        for name in each:
            if not name or name == NONE:
                continue
            if name not in known:
                if lenient:
                    return ()
                raise UsageError(
                    f"The plan names {name[:60]!r} for {aspect}, and there is no such assistant. Those chosen are: "
                    f"{', '.join(assistants) or NONE}."
                )
            chosen.append(known[name])
    return tuple(dict.fromkeys(chosen))


_AND = re.compile(r"(?:^|\s+)(?:and|&|\+|plus|then)\s+", re.IGNORECASE)
FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL | re.IGNORECASE)


def _without_json(text: str) -> str:
    """`text`, or in the usual form what is one JSON object: aspect to names, or to an object of names and how."""
    fenced = FENCED.search(text)
    try:
        body = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return text
    body = body.get("plan", body) if isinstance(body, dict) else None
    if not isinstance(body, dict):
        return text
    lines = []
    for aspect, use in body.items():
        names, how = (use, "") if not isinstance(use, dict) else [*use.values(), "", ""][:2]
        listed = ", ".join(map(str, names)) if isinstance(names, list) else str(names)
        lines += [f"{aspect}: {listed or NONE}", " ".join(str(how).split())]
    return "\n".join(lines)


def folded(name: str) -> str:
    """Without case and needless white space: equal names in whatever way they are written."""
    return " ".join(name.casefold().split())


# ── who writes it ────────────────────────────────────────────────────────────────────────────────────────────


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
    level = "dataset" if settings.level == "system" else settings.level
    settings = replace(settings, level=level, resamples=500)
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
    values = "\n".join(f"- {name} {alignment.value:.2f}" for name, alignment in better)
    return (
        f"Agreement with people on {best.n} other items ({best.statistic}, {best.level} level), best first:\n{values}\n"
        "Trust them in that order, and the item before any of them."
    )


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
