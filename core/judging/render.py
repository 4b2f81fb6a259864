"""Render tasks, items and criteria into messages.  Nothing is sent from here.

The structure of the prompts is that of AutoCalibrate (appendix D: instructions, item, criteria, output form), with
evaluation steps after the criteria (G-Eval).  Their words are in `prompts/`, one versioned file each.  Every line of an
item is quoted with "> ", so that headings, verdicts or closing tags forged inside it cannot pass for ours.  Criteria,
steps and definitions lose the marks that would make a line a heading.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from string import Template
from typing import Any, Literal, NamedTuple, get_args

from core.errors import JudgeError
from core.judging.judge_protocol import DraftRequest
from core.providers.completions import Message
from core.records import Item, ItemKind, Scale, Task

OutputForm = Literal["rate_explain", "analyze_rate", "score_only", "free_text", "stars"]
Persona = Literal["none", "helpful", "annotator"]
PERSONAS: tuple[Persona, ...] = get_args(Persona)
PROMPTS = Path(__file__).parent / "prompts"
DRAFT_PROMPT = "draft.v2"
REFINE_PROMPT = "refine.v3"
STEPS_PROMPT = "steps.v1"

MOST_NUMBERS = 21
"""Ratings that a prompt lists one by one, such as those from -10 to 10."""

_CRITERIA_HERE = "\x00"
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")
_CHOICE = re.compile(r"(?m)^(?P<mark>[?!])(?P<name>[a-z]+) (?P<line>.*\n?)")
_HEADING = re.compile(r"\s*(?:#+(?:\s+|\Z)|#{2,})+")
_CHAT_TOKEN = re.compile(r"<(?=\|)|\|(?=>)|<(?=/?(?:s|system|user|assistant|think)>)|\[(?=/?INST\])", re.IGNORECASE)


def score_prompt(form: OutputForm, *, structured: bool = False) -> str:
    """Name of the scoring prompt in force for an output form; `structured` asks for a JSON object."""
    if structured:
        return f"score_{form}_json.v1"
    return f"score_{form}.v2" if form in ("free_text", "stars") else f"score_{form}.v1"


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Longest text of each part, in characters; what is longer loses its middle, and a mark says how much."""

    source: int = 24_000
    context: int = 12_000
    target: int = 12_000
    reference: int = 4_000
    references: int = 3


SCORING = TextLimits()
EXEMPLARS = TextLimits(source=4_000, context=2_000, target=3_000, reference=1_000, references=1)
"""Tighter, since a drafting or refining prompt shows up to 16 items."""


class KindWording(NamedTuple):
    """How a kind of item is spoken of: the thing rated, and a heading for each part."""

    thing: str
    source: str
    context: str
    target: str


KINDS: Mapping[ItemKind, KindWording] = {
    "single": KindWording("a text", "Source", "Context", "Text"),
    "source_target": KindWording("a text that was written from a source", "Source", "Context", "Text"),
    "source_context_target": KindWording(
        "a response, given what came before it and some background", "What came before", "Background", "Response"
    ),
    "conversation": KindWording("a conversation", "Earlier turns", "Background", "Conversation"),
    "data_text": KindWording("a text that puts structured data into words", "Data", "Context", "Text"),
    "pair": KindWording(
        "text B beside text A (the lowest number: A is better; the middle: neither; the highest: B is better)",
        "What both answer, or were written from",
        "Text B",
        "Text A",
    ),
}


@dataclass(frozen=True, slots=True)
class ScoreFrame:
    """A scoring prompt of one item with the place for the criteria left open; made once per item."""

    before: str
    after: str
    without_criteria: str
    leading: tuple[Message, ...] = ()

    def messages(self, criteria: str) -> tuple[Message, ...]:
        text = neutral(criteria)
        content = f"{self.before}{text}{self.after}" if text else self.without_criteria
        return (*self.leading, Message("user", content))


def score_frame(task: Task, item: Item, prompt: str, *, steps: str = "", persona: Persona = "none") -> ScoreFrame:
    """The frame of `item` in the scoring prompt named `prompt` (see `score_prompt`); empty `steps` leave no section.

    JudgeError for a name of no scoring prompt, which a file may hold.
    """
    if not prompt.startswith("score_"):
        raise JudgeError(f"{prompt[:80]!r} is no scoring prompt; the names of those begin with score_.")
    values = {**_task_values(task), "item": item_block(task.kind, item, SCORING), "steps": neutral(steps)}
    before, after = _fill(prompt, {**values, "criteria": _CRITERIA_HERE}).split(_CRITERIA_HERE)
    leading = () if persona == "none" else (Message("system", _fill(f"persona_{persona}.v1", {})),)
    return ScoreFrame(before, after, _fill(prompt, {**values, "criteria": ""}), leading)


def steps_messages(task: Task, criteria: str) -> tuple[Message, ...]:
    """Ask for the evaluation steps that lead a judge to its number (auto-CoT; G-Eval)."""
    return (Message("user", _fill(STEPS_PROMPT, {**_task_values(task), "criteria": neutral(criteria)})),)


def score_messages(task: Task, item: Item, criteria: str, form: OutputForm = "rate_explain") -> tuple[Message, ...]:
    """The scoring prompt of one item; empty `criteria` leave their section out."""
    return score_frame(task, item, score_prompt(form)).messages(criteria)


def draft_messages(
    task: Task, request: DraftRequest, prompt: str = DRAFT_PROMPT, refine_prompt: str = REFINE_PROMPT
) -> tuple[Message, ...]:
    """Ask for the criteria that account for the labels shown, or for better ones than those that got them wrong."""
    refines, blocks = request.criteria is not None, []
    for number, shown in enumerate(request.exemplars, 1):
        by_judge = f"Rating by the judge ({task.scale}): {_number(shown.score)}\n" if refines else ""
        blocks.append(
            f"### {'Item' if refines else 'Example'} {number}\n{item_block(task.kind, shown.item, EXEMPLARS)}\n"
            f"{by_judge}Rating by people ({task.scale}): {_number(shown.label)}"
        )
    values = {**_task_values(task), "examples": "\n\n".join(blocks)}
    if request.criteria is not None:
        prompt = refine_prompt
        values["criteria"] = neutral(request.criteria.text) or "(none yet: the judge had only the name of the aspect)"
    return (Message("user", _fill(prompt, values)),)


def item_block(kind: ItemKind, item: Item, limits: TextLimits) -> str:
    """The parts of an item under their headings, every line quoted; absent parts are left out."""
    _, source, context, target = KINDS[kind]
    parts = [
        (source, item.source, limits.source),
        (context, item.context, limits.context),
        *(("Reference", reference, limits.reference) for reference in item.references[: limits.references]),
        (f"{target} to rate", item.target, limits.target),
    ]
    if kind == "pair":
        parts = [parts[0], (target, item.target, limits.target), (context, item.context, limits.target)]
    return "\n\n".join(f"{heading}:\n{quoted(shortened(text, limit))}" for heading, text, limit in parts if text)


def shown_item(item: Item, *, references: bool) -> Item:
    """`item` as a judge sees it: with its references only where somebody asked for them."""
    return item if references or not item.references else replace(item, references=())


def shortened_parts(item: Item, limits: TextLimits = SCORING) -> tuple[str, ...]:
    """In words, which parts of an item a scoring prompt shows without their middle."""
    return tuple(
        f"The {name} was shortened from {len(getattr(item, name)):,} to {getattr(limits, name):,} characters."
        for name in ("source", "context", "target")
        if len(getattr(item, name)) > getattr(limits, name)
    )


def shortened(text: str, limit: int) -> str:
    """`text`, or its first two thirds and last third of `limit` characters around a mark that tells what is missing."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]}\n[{len(text) - limit} characters left out here]\n{text[len(text) - (limit - head) :]}"


def plain(text: str) -> str:
    """`text` without control characters, and with the special tokens of chat templates broken up."""
    return _CHAT_TOKEN.sub(lambda match: f"{match[0]} ", _CONTROL.sub("", text))


@lru_cache(maxsize=4096)
def neutral(text: str) -> str:
    """`text` of a person or a model for a section of its own: `plain`, and no line of it is a heading."""
    return "\n".join(_HEADING.sub("", line, count=1) for line in plain(text).splitlines()).strip()


def quoted(text: str) -> str:
    """Every line of `text` (by any of Unicode's line ends) behind "> "."""
    return "\n".join(f"> {line}" for line in plain(text).splitlines()) or "> "


def range_words(scale: Scale) -> str:
    """The scale in words, to follow "a number"; between whole labels a judge may say more, and breaks ties by it."""
    low, high = _number(scale.low), _number(scale.high)
    if scale.two_steps:
        return f"that is {high} (the item holds up) or {low} (it does not), nothing between"
    if scale.step not in (None, 1.0):
        return f"from {low} (lowest) to {high} (highest), in steps of {scale.step:g}"
    middle = _number((scale.low + scale.high) / 2 + (scale.high - scale.low) / 8)
    return f"from {low} (lowest) to {high} (highest); decimals such as {middle} are welcome"


def whole_ratings(scale: Scale) -> tuple[int, ...]:
    """The ratings of a scale of whole numbers, each one digit; empty where the scale has others (decimals, 10, -1)."""
    return whole_numbers(scale) if scale.low >= 0 and scale.high <= 9 else ()


def whole_numbers(scale: Scale) -> tuple[int, ...]:
    """The ratings of a scale of whole numbers, `MOST_NUMBERS` at most; empty where it has others, or more."""
    step = 1.0 if scale.step is None else scale.step
    if step < 1 or not all(float(end).is_integer() for end in (scale.low, scale.high, step)):
        return ()
    numbers = range(int(scale.low), int(scale.high) + 1, int(step))
    return tuple(numbers) if len(numbers) <= MOST_NUMBERS else ()


def whole_words(scale: Scale) -> str:
    """The whole ratings of a scale in words, to follow "a number"; empty where it has none."""
    ratings = whole_numbers(scale)
    if not ratings:
        return ""
    return f"from {ratings[0]} (lowest) to {ratings[-1]} (highest): one of {', '.join(map(str, ratings))}"


def _task_values(task: Task) -> dict[str, str]:
    aspect, questions = " ".join(plain(task.aspect).split()), _questions()
    own: str | None = questions.get(task.kind, {}).get(aspect.lower())
    return {
        "aspect": aspect,
        "thing": KINDS[task.kind][0],
        "range": range_words(task.scale),
        "whole": whole_words(task.scale),
        "definition": neutral(task.definition),
        "question": own or Template(questions["any"]).substitute(aspect=aspect),
    }


@cache
def _questions() -> Mapping[str, Any]:
    import yaml

    body: Mapping[str, Any] = yaml.safe_load((PROMPTS / "questions.yaml").read_text("utf-8"))
    return body


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


@cache
def _text_of(prompt: str) -> str:
    known = {file.stem: file for file in PROMPTS.glob("*.txt")}
    if prompt not in known:  # a name out of a judge file could be the path of any text on this machine
        raise JudgeError(
            f"There is no prompt {str(prompt)[:80]!r}; this version of Concord has {', '.join(sorted(known))}."
        )
    return known[prompt].read_text(encoding="utf-8")


def _fill(prompt: str, values: Mapping[str, str]) -> str:
    """The sections of a prompt, without those that would hold an empty value; values are never read as templates.

    A line that begins with "?name " is there where the value of that name is not empty, one with "!name " where it is.
    """
    text = _CHOICE.sub(lambda m: m["line"] if bool(values[m["name"]]) == (m["mark"] == "?") else "", _text_of(prompt))
    sections = (Template(part.strip()) for part in re.split(r"(?m)^(?=## )", text) if part.strip())
    return "\n\n".join(s.substitute(values) for s in sections if all(values[name] for name in s.get_identifiers()))
