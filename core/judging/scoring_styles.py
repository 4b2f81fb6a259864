"""Scoring styles and the prompts behind each.

The forms are those of A Closer Look (section 3.2), their mix, and the stars of AutoCalibrate. Evaluation steps and the
weighted score are G-Eval's; the personas are a robustness check of A Closer Look (appendix F.3).

The structure of the prompts is that of AutoCalibrate (appendix D: instructions, item, criteria, output form), with
evaluation steps after the criteria (G-Eval).  Level descriptions and rated examples stand before the item: they are the
same for every item and all criteria, so an endpoint that caches prefixes reads them once.  The words are in `prompts/`,
one versioned file each.  Every line of an item is quoted with "> ", so that headings, verdicts or closing tags forged
inside it cannot pass for ours.  Criteria, steps, levels and definitions lose the marks that make a line a heading.
Nothing is sent from here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

from core.errors import JudgeError, UsageError
from core.judging.judge_protocol import DraftRequest
from core.providers.completions import Message
from core.records import Item, ItemKind, RatedExample, Scale, Task, check_settings, setting
from core.wording import counted

if TYPE_CHECKING:
    from pydantic import TypeAdapter

OutputForm = Literal["rate_explain", "analyze_rate", "score_only", "free_text", "stars"]
Persona = Literal["none", "helpful", "annotator"]
PERSONAS: tuple[Persona, ...] = get_args(Persona)
PROMPTS = Path(__file__).parent / "prompts"
DRAFT_PROMPT = "draft.v3"
REFINE_PROMPT = "refine.v4"
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
_WITHOUT_REASONS = {DRAFT_PROMPT: "draft.v2", REFINE_PROMPT: "refine.v3"}
"""Prompts that show no reasons stay as they were, so that replies paid for earlier are found in the cache."""
MOST_REASONS, LONGEST_REASON = 5, 600
"""How many reasons of raters a prompt quotes for each item, and their characters."""


class KindWording(NamedTuple):
    """Wording for a kind of item: the thing rated, and a heading for each part."""

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


def score_frame(
    task: Task,
    item: Item,
    prompt: str,
    *,
    steps: str = "",
    persona: Persona = "none",
    examples: tuple[RatedExample, ...] = (),
) -> ScoreFrame:
    """The frame of `item` in the scoring prompt named `prompt` (see `score_prompt`).

    Empty `steps`, levels of the task, and `examples` leave no section.  Examples of the item's own source are replaced.
    JudgeError for a name of no scoring prompt, which a file may hold.
    """
    if not prompt.startswith("score_"):
        raise JudgeError(f"{prompt[:80]!r} is not a scoring prompt; their names begin with score_.")
    values = {
        **task_values(task),
        "item": item_block(task.kind, item, SCORING),
        "steps": neutral(steps),
        "levels": levels_block(task),
        "examples": _examples_block(task.kind, task.scale, examples_for(item, examples)),
    }
    before, after = filled(prompt, {**values, "criteria": _CRITERIA_HERE}).split(_CRITERIA_HERE)
    leading = () if persona == "none" else (Message("system", filled(f"persona_{persona}.v1", {})),)
    return ScoreFrame(before, after, filled(prompt, {**values, "criteria": ""}), leading)


def steps_messages(task: Task, criteria: str) -> tuple[Message, ...]:
    """Ask for the evaluation steps that lead a judge to its number (auto-CoT; G-Eval)."""
    return (Message("user", filled(STEPS_PROMPT, {**task_values(task), "criteria": neutral(criteria)})),)


def score_messages(task: Task, item: Item, criteria: str, form: OutputForm = "rate_explain") -> tuple[Message, ...]:
    """The scoring prompt of one item; empty `criteria` leave their section out."""
    return score_frame(task, item, score_prompt(form)).messages(criteria)


def draft_messages(
    task: Task, request: DraftRequest, prompt: str = DRAFT_PROMPT, refine_prompt: str = REFINE_PROMPT
) -> tuple[Message, ...]:
    """Ask for the criteria that account for the labels shown, or for better ones than those that got them wrong.

    Reasons and explanations are quoted on one line each, so that nothing in them can pass for a heading or a rating.
    """
    refines, blocks = request.criteria is not None, []
    says_why = any(shown.reasons or shown.explanation for shown in request.exemplars)
    for number, shown in enumerate(request.exemplars, 1):
        lines = [f"### {'Item' if refines else 'Example'} {number}", item_block(task.kind, shown.item, EXEMPLARS)]
        if refines:
            lines.append(f"Rating by the judge ({task.scale}): {_number(shown.score)}")
        lines.append(f"Rating by people ({task.scale}): {_number(shown.label)}")
        if refines and says_why:
            lines.append(f"Gap: {_number(round(shown.score - shown.label, 2))} (above 0: the judge rates too high)")
        if any(character.isalpha() for character in shown.explanation):  # a bare number explains nothing
            lines += ["Reason of the judge:", _on_one_line(shown.explanation)]
        if shown.reasons:
            lines += ["Reasons of the people:", *map(_on_one_line, shown.reasons[:MOST_REASONS])]
        blocks.append("\n".join(lines))
    values = {**task_values(task), "examples": "\n\n".join(blocks)}
    if request.criteria is not None:
        prompt = refine_prompt
        values["criteria"] = neutral(request.criteria.text) or "(none yet: the judge had only the name of the aspect)"
    return (Message("user", filled(prompt if says_why else _WITHOUT_REASONS.get(prompt, prompt), values)),)


def _on_one_line(text: str) -> str:
    return quoted(" ".join(shortened(" ".join(text.split()), LONGEST_REASON).split()))


def levels_block(task: Task) -> str:
    """A line for each described level; "" for none."""
    texts = [(level.value, " ".join(neutral(level.text).split())) for level in task.levels]
    return "\n".join(f"- {_number(value)}: {text}" for value, text in texts if text)


def examples_for(item: Item, examples: Sequence[RatedExample]) -> tuple[RatedExample, ...]:
    """The examples to show with `item`, in order: none is of its own source.

    The spare with the nearest label takes the place of one that is.  Without a spare left, an example falls away.
    """
    spares, shown = [each for each in examples if each.spare], list[RatedExample]()
    # one source text for all says nothing about where an item comes from
    texts_differ = len({each.item.source for each in examples}) > 1

    def own(example: RatedExample) -> bool:
        other = example.item
        same_id = other.source_id == item.source_id != ""
        same_source = texts_differ and other.source == item.source != ""
        return same_id or same_source or other.target in (item.target, item.context)  # a pair is shown both ways round

    for example in (each for each in examples if not each.spare):
        if not own(example):
            shown.append(example)
        elif left := [spare for spare in spares if spare not in shown and not own(spare)]:
            gaps = [abs(spare.label - example.label) for spare in left]
            shown.append(left[gaps.index(min(gaps))])
    return tuple(shown)


@lru_cache(maxsize=256)
def _examples_block(kind: ItemKind, scale: Scale, examples: tuple[RatedExample, ...]) -> str:
    return "\n\n".join(
        f"### Example {k}\n{item_block(kind, each.item, EXEMPLARS, to_rate=False)}\n"
        f"Rating by people ({scale}): {_number(each.label)}"
        for k, each in enumerate(examples, 1)
    )


def item_block(kind: ItemKind, item: Item, limits: TextLimits, *, to_rate: bool = True) -> str:
    """The parts of an item under their headings, every line quoted; absent parts are left out."""
    _, source, context, target = KINDS[kind]
    parts = [
        (source, item.source, limits.source),
        (context, item.context, limits.context),
        *(("Reference", reference, limits.reference) for reference in item.references[: limits.references]),
        (f"{target} to rate" if to_rate else target, item.target, limits.target),
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


def task_values(task: Task) -> dict[str, str]:
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


def filled(prompt: str, values: Mapping[str, str]) -> str:
    """The sections of a prompt, without those that would hold an empty value; values are never read as templates.

    A line that begins with "?name " is there where the value of that name is not empty, one with "!name " where it is.
    """
    text = _CHOICE.sub(lambda m: m["line"] if bool(values[m["name"]]) == (m["mark"] == "?") else "", _text_of(prompt))
    sections = (Template(part.strip()) for part in re.split(r"(?m)^(?=## )", text) if part.strip())
    return "\n\n".join(s.substitute(values) for s in sections if all(values[name] for name in s.get_identifiers()))


MOST_SAMPLES = 200
MOST_TOKENS = 32_768
USUAL_TOKENS, SCORE_TOKENS = 512, 20
"""Longest reply: with words in it, and of a score alone.  A model that thinks has room of its own."""
MOST_STEPS = 8_000
"""Characters of evaluation steps."""
MOST_EXAMPLES = 32
"""Examples that a style holds, half of them spares."""

StyleForm = Literal["score_only", "free_text", "stars", "rate_explain", "analyze_rate", "mix"]
STYLE_FORMS: tuple[StyleForm, ...] = get_args(StyleForm)
MIXED: tuple[OutputForm, ...] = ("analyze_rate", "rate_explain")
"""The forms of the mix, in turn; an odd number of samples gives the extra one to the first."""

WEIGHTED_PROMPT = "score_weighted.v1"

REPLY_TOKENS: Mapping[OutputForm, int] = {
    "rate_explain": 90,
    "analyze_rate": 120,
    "score_only": 4,
    "free_text": 20,
    "stars": 50,
}
"""Typical length of a reply, for estimates."""


def usual_tokens(form: StyleForm) -> int:
    """The longest reply of that form unless somebody chooses another."""
    return SCORE_TOKENS if form == "score_only" else USUAL_TOKENS


def _schema(**fields: str) -> str:
    """The JSON schema of an object with these fields and no others."""
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return json.dumps(
        {"type": "object", "properties": properties, "required": list(fields), "additionalProperties": False}
    )


SCHEMAS: Mapping[OutputForm, str] = {
    "score_only": _schema(score="number"),
    "rate_explain": _schema(score="number", reasons="string"),
    "analyze_rate": _schema(analysis="string", score="number"),
}
"""What a structured reply holds, in the order in which it is to be written."""


@dataclass(frozen=True, slots=True)
class SampleSlot:
    """One sample of a score: its prompt, form, number among the samples of that prompt, and JSON schema or ""."""

    prompt: str
    form: OutputForm
    sample: int
    schema: str


@dataclass(frozen=True)
class Style:
    """One way to ask for a score, the mean of `samples` replies.

    Attributes:
        temperature: None is not sent: the model draws at its own.
        max_tokens: 0 becomes what is usual for the form.
        prompt: The scoring prompt; several, joined by "+", take turns.  This version's prompts if "".
        steps: Evaluation steps, shown after the criteria (see `LLMJudge.write_steps`).
        weighted: Take the probability-weighted score if the endpoint gives logprobs (score_only alone).
        structured: Ask for JSON if the endpoint takes a schema.
        references: Show an item's references.  Items without any are then left unscored.
        examples: Labelled items that every prompt shows, spares behind them (`core.calibration.proposals`).

    Raises:
        UsageError: A value is out of range, or settings do not go together.
        JudgeError: `prompt` names more or fewer prompts than the form takes.
    """

    form: StyleForm = "rate_explain"
    samples: int = setting(1, low=1, high=MOST_SAMPLES)
    temperature: float | None = setting(0.0, low=0, high=2)
    top_p: float = setting(1.0, low=0, high=1)
    max_tokens: int = setting(0, low=1, high=MOST_TOKENS)
    prompt: str = ""
    draft_prompt: str = DRAFT_PROMPT
    refine_prompt: str = REFINE_PROMPT
    persona: Persona = "none"
    steps: str = ""
    weighted: bool = False
    structured: bool = False
    references: bool = False
    examples: tuple[RatedExample, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_tokens", self.max_tokens or usual_tokens(self.form))
        check_settings(self)
        for name in ("temperature", "top_p"):  # 1 and 1.0 are one style and one reply in the cache
            object.__setattr__(self, name, None if (value := getattr(self, name)) is None else float(value))
        if problem := self._misfit():
            raise UsageError(problem)
        if not self.prompt:
            names = [score_prompt(form, structured=self.structured) for form in self._forms]
            object.__setattr__(self, "prompt", WEIGHTED_PROMPT if self.weighted else "+".join(names))
        if len(self.prompt.split("+")) != len(self._forms):
            raise JudgeError(f"The form {self.form} takes {len(self._forms)} prompts, not {self.prompt!r}.")

    def _misfit(self) -> str:
        """Why these settings do not go together; "" if they do."""
        if len(self.steps) > MOST_STEPS:
            return f"Evaluation steps have at most {MOST_STEPS:,} characters."
        if len(self.examples) > MOST_EXAMPLES:
            return f"A judging prompt shows at most {MOST_EXAMPLES // 2} examples."
        if self.top_p == 0.0:
            return "top_p must lie above 0 and up to 1; got 0. Leave it at 1 to keep all tokens."
        if self.form == "mix" and self.samples < 2:
            return "The mix averages rate-explain and analyze-rate, so it needs at least 2 samples; got 1."
        if self.weighted and self.form != "score_only":
            return f"The probability-weighted score needs the form score_only, not {self.form}: a bare number to weigh."
        if self.structured and (self.weighted or self.form in ("free_text", "stars")):
            return "JSON works only with score_only, rate_explain, analyze_rate and mix, without weighting."
        return ""

    @property
    def name(self) -> str:
        """Short, for people, without what is usual: "analyze-rate · 5 samples at t=1 · steps · annotator"."""
        samples = "1 sample" if self.samples == 1 else f"{self.samples} samples"
        heat = "the model's temperature" if self.temperature is None else f"t={self.temperature:g}"
        parts = [self.form.replace("_", "-"), f"{samples} at {heat}"]
        parts += [f"top-p {self.top_p:g}"] * (self.top_p < 1.0)
        parts += ["steps"] * bool(self.steps.strip())
        parts += ["weighted"] * self.weighted
        parts += ["JSON"] * self.structured
        parts += ["references"] * self.references
        parts += [counted(self.n_examples, "example")] * bool(self.n_examples)
        parts += [self.persona] * (self.persona != "none")
        parts += [f"up to {self.max_tokens} tokens"] * (self.max_tokens != usual_tokens(self.form))
        return " · ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """All fields by name, JSON-able; `from_json` takes them back.  Examples only where there are any."""
        body = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "examples"}
        shown = [
            {"item": {name: text for name, text in asdict(each.item).items() if text}}
            | {"label": each.label, "spare": each.spare}
            for each in self.examples
        ]
        return body | ({"examples": json.loads(json.dumps(shown))} if shown else {})

    @property
    def n_examples(self) -> int:
        """Examples that a prompt shows."""
        return sum(not each.spare for each in self.examples)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Style:
        """The style that `body` describes; what it leaves out is as usual.

        UsageError for an unknown name, a value of another type or out of range.
        """
        from pydantic import ValidationError

        try:
            return _style_form().validate_json(json.dumps(body, default=repr))  # of JSON, strict takes an object
        except ValidationError as error:
            fault = error.errors()[0]
            name = str(fault["loc"][-1] if fault["loc"] else "style")
            raise UsageError(f"A style's {name} cannot be {fault['input']!r}: {fault['msg']}.") from None

    @property
    def _forms(self) -> tuple[OutputForm, ...]:
        return MIXED if self.form == "mix" else (self.form,)

    @property
    def prompts(self) -> tuple[str, ...]:
        """The scoring prompts in use; a mix has two."""
        return tuple(dict.fromkeys(slot.prompt for slot in self.slots))

    @cached_property
    def slots(self) -> tuple[SampleSlot, ...]:
        """The samples of a score, in order.  Each keeps its slot when more are asked for, and shares it with a mix."""
        turns = list(zip(self.prompt.split("+"), self._forms, strict=True))
        return tuple(
            SampleSlot(prompt, form, k // len(turns), SCHEMAS.get(form, "") if self.structured else "")
            for k in range(self.samples)
            for prompt, form in [turns[k % len(turns)]]
        )

    def as_state(self) -> dict[str, Any]:
        """As a judge's state and a judge file hold it: the form is called `output` there."""
        return {"output" if name == "form" else name: value for name, value in self.as_json().items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Style:
        """What `as_state` gave, or a part of it; UsageError as `from_json`."""
        return cls.from_json({"form" if name == "output" else name: value for name, value in state.items()})


@cache
def _style_form() -> TypeAdapter[Style]:
    from pydantic import ConfigDict, TypeAdapter, with_config

    return TypeAdapter(with_config(ConfigDict(strict=True, extra="forbid"))(Style))


# ── how a person wants a judge asked ─────────────────────────────────────────────────────────────────────────

OWN_FIELDS = frozenset(
    "model messages temperature top_p max_tokens max_completion_tokens n seed stream stream_options logprobs "
    "top_logprobs response_format reasoning_effort".split()
)
"""What Concord itself writes into a request; there are settings for it."""

HARMLESS_FIELDS = frozenset(
    "chat_template_kwargs thinking enable_thinking thinking_budget reasoning verbosity top_k min_p repetition_penalty "
    "presence_penalty frequency_penalty extra_body".split()
)
"""What a judge file alone may add: how its model thinks and draws.  Others may cost, keep or fetch something."""

MOST_EXTRA = 4_000
STEPS_LIKE = "x" * 6 * 120
"""Stands for evaluation steps that are not written yet: about 120 words."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a judge is asked; unset fields keep their defaults.  UsageError for what cannot be sent.

    `style` None is the judge's usual; with `writes_steps` its model writes evaluation steps once, before the first
    score, where the style brings none.  `effort` says how long the model thinks, `extra` is a JSON object of further
    fields of every request, such as {"chat_template_kwargs": {"enable_thinking": false}}.
    """

    style: Style | None = None
    writes_steps: bool = False
    effort: str = ""
    extra: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z]{0,20}", self.effort):
            raise UsageError(f"The reasoning effort is a word such as low, medium or high, not {self.effort!r}.")
        object.__setattr__(self, "extra", checked_extra(self.extra))

    @classmethod
    def of(
        cls,
        spec: str,
        *,
        temperature: float | Literal["none"] | None = None,
        max_tokens: int | None = None,
        steps: bool | str = False,
        effort: str = "",
        extra: str = "",
        **style: Any,
    ) -> Self:
        """What a person chose for the judge `spec`; None leaves a setting to what goes with the others.

        `style` holds fields of `Style`.  The temperature is 0 for one sample and 1 for several, "none" is not sent; a
        model in the process is weighed in one pass unless a form is named.  `steps` is a text, or whether the model
        writes them.
        """
        chosen = {name: value for name, value in style.items() if value is not None}
        chosen |= {"max_tokens": max_tokens} if max_tokens is not None else {}
        chosen |= {"steps": steps.strip()} if isinstance(steps, str) and steps.strip() else {}
        if "form" not in chosen and (chosen.get("weighted") or spec.startswith("hf:")):
            chosen |= {"form": "score_only", "weighted": True}
        if chosen.get("form") == "mix":
            chosen.setdefault("samples", 2)
        usual = 1.0 if chosen.get("samples", 1) > 1 else 0.0
        chosen["temperature"] = None if temperature == "none" else usual if temperature is None else temperature
        wanted = Style.from_json(chosen)
        as_usual = wanted == (Style("score_only", weighted=True) if spec.startswith("hf:") else Style())
        return cls(None if as_usual else wanted, writes_steps=steps is True, effort=effort, extra=extra)

    @property
    def usual(self) -> bool:
        """Whether nothing was chosen."""
        return self == Asking()

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, named: bool) -> Self:
        """Extra settings of a stored judge.  JudgeError for fields that a file alone may not set, unless a person has
        `named` the judge."""
        told = cls(effort=str(state.get("effort", "")), extra=str(state.get("extra", "")))
        fields = json.loads(told.extra).keys() if told.extra else set()
        if not named and (beyond := sorted(fields - HARMLESS_FIELDS)):
            raise JudgeError(
                f"The judge comes out of a file, and by it each request would say {', '.join(beyond)}, which may cost, "
                f"keep or fetch something; nothing was sent. If you want that, name the judge: --judge {state['spec']}"
            )
        return told

    def require_for(self, kind: str) -> None:
        """UsageError where judges of that kind cannot be asked so."""
        if not self.usual and kind == "offline":
            raise UsageError("The offline judge takes no prompt: form, samples and similar options are for models.")
        if (self.effort or self.extra) and kind != "openai":
            raise UsageError("Reasoning effort and extra body are for endpoints (openai:MODEL[@BASE_URL]).")

    def within(self, max_tokens: int | None) -> Style | None:
        """The style, None for the judge's usual.

        `max_tokens` is this installation's limit, for a style that keeps to the usual one and writes more than a score.
        """
        if self.style is None:
            return None
        own = self.style.max_tokens if self.style.max_tokens != USUAL_TOKENS else max_tokens or USUAL_TOKENS
        return replace(self.style, max_tokens=own)


def checked_extra(text: str) -> str:
    """The canonical text of further fields of a request; "" for none.  UsageError for what is no object of them."""
    if not text.strip():
        return ""
    try:
        fields = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f'The extra body is a JSON object such as {{"verbosity": "low"}}; it cannot be parsed: {error}.'
        ) from error
    if not isinstance(fields, dict) or len(text) > MOST_EXTRA:
        raise UsageError(f"The extra body is one JSON object of at most {MOST_EXTRA:,} characters.")
    if own := sorted(OWN_FIELDS & fields.keys()):
        raise UsageError(f"The extra body may not hold {', '.join(own)}: Concord writes that itself, by its settings.")
    return json.dumps(fields, sort_keys=True, ensure_ascii=False) if fields else ""


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is not a JSON number")
