"""Prompts for scoring, drafting and refining, and the styles in which a judge can be asked for a score.

Prompts follow AutoCalibrate (appendix D: instructions, item, criteria, output form). The reply forms come from
"A Closer Look" (section 3.2), the form "stars" from AutoCalibrate, and the personas from "A Closer Look" (appendix
F.3). Evaluation steps, after the criteria, and the probability-weighted score come from G-Eval.

The prompt texts are versioned files in `prompts/`. Texts that are the same for all items come first, so that an
endpoint can cache them. Every line of an item is quoted with "> ", so that forged headings, verdicts or tags have no
effect. Heading marks in criteria, steps, levels and definitions are removed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

from core.errors import JudgeError, UsageError
from core.judging.judge_protocol import DraftRequest
from core.providers.completions import Message
from core.records import FloatArray, Item, ItemKind, RatedExample, Scale, Task, check_settings, setting
from core.wording import counted

if TYPE_CHECKING:
    from pydantic import TypeAdapter

StyleForm = Literal["score_only", "free_text", "stars", "rate_explain", "analyze_rate", "clauses", "mix"]
STYLE_FORMS: tuple[StyleForm, ...] = get_args(StyleForm)[:-1]
"""All forms that can be used. Stored runs of earlier versions may also have "mix", which can only be read."""
Persona = Literal["none", "helpful", "annotator"]
PERSONAS: tuple[Persona, ...] = get_args(Persona)
PROMPTS = Path(__file__).parent / "prompts"
DRAFT_PROMPT = "draft.v3"
REFINE_PROMPT = "refine.v4"
STEPS_PROMPT = "steps.v1"
WEIGHTED_PROMPT = "score_weighted.v1"
_WITHOUT_REASONS = {DRAFT_PROMPT: "draft.v2", REFINE_PROMPT: "refine.v3"}
"""Prompts without reasons keep their earlier version, so that cached replies stay usable."""
MOST_REASONS, LONGEST_REASON = 5, 600
"""Maximum number of raters' reasons per item in a prompt, and their maximum length in characters."""
MOST_NUMBERS = 21
"""Maximum number of ratings that a prompt lists, such as those from -10 to 10."""

_CRITERIA_HERE = "\x00"
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff]")
_HEADING = re.compile(r"\s*(?:#+(?:\s+|\Z)|#{2,})+")
_CHAT_TOKEN = re.compile(r"<(?=\|)|\|(?=>)|<(?=/?(?:s|system|user|assistant|think)>)|\[(?=/?INST\])", re.IGNORECASE)


def score_prompt(form: StyleForm, *, structured: bool = False) -> str:
    """Return the name of the current scoring prompt for a form. If `structured`, the prompt asks for JSON."""
    if structured:
        return f"score_{form}_json.v1"
    return f"score_{form}.v2" if form in ("free_text", "stars") else f"score_{form}.v1"


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Maximum length, in characters, of each part of an item.

    Longer texts are cut in the middle, and a mark says how much was cut.
    """

    source: int = 24_000
    context: int = 12_000
    target: int = 12_000
    reference: int = 4_000
    references: int = 3


SCORING = TextLimits()
EXEMPLARS = TextLimits(source=4_000, context=2_000, target=3_000, reference=1_000, references=1)
"""Lower limits, because a drafting or refining prompt shows up to 16 items."""


class KindWording(NamedTuple):
    """Wording for a kind of item: the name of the rated text, and a heading for each part."""

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

# ── scoring prompts ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class ScoreFrame:
    """A scoring prompt for an item, with a placeholder for the criteria. It is built once per item."""

    before: str
    after: str
    without_criteria: str
    leading: tuple[Message, ...] = ()

    def messages(self, criteria: str) -> tuple[Message, ...]:
        """Return the messages of the prompt with the criteria filled in."""
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
    nearest: int = 0,
) -> ScoreFrame:
    """Fill a scoring prompt with everything except the criteria.

    Args:
        prompt: Name of a scoring prompt, such as the result of `score_prompt`.
        steps: Evaluation steps, "" for none.
        examples: Rated examples, from which `examples_for` chooses.
        nearest: See `examples_for`.

    Raises:
        JudgeError: `prompt` is not the name of a scoring prompt.
    """
    if not prompt.startswith("score_"):
        raise JudgeError(f"Unknown scoring prompt {prompt[:80]!r}. The names of scoring prompts start with score_.")
    values = {
        **task_values(task),
        "item": item_block(task.kind, item, SCORING),
        "steps": neutral(steps),
        "levels": levels_block(task),
        "examples": _examples_block(task.kind, task.scale, examples_for(item, examples, nearest)),
    }
    before, after = filled(prompt, {**values, "criteria": _CRITERIA_HERE}).split(_CRITERIA_HERE)
    leading = () if persona == "none" else (Message("system", filled(f"persona_{persona}.v1", {})),)
    return ScoreFrame(before, after, filled(prompt, {**values, "criteria": ""}), leading)


def levels_block(task: Task) -> str:
    """Return the level descriptions of the scale, one per line; "" if there are none."""
    texts = [(level.value, " ".join(neutral(level.text).split())) for level in task.levels]
    return "\n".join(f"- {_number(value)}: {text}" for value, text in texts if text)


def examples_for(item: Item, examples: Sequence[RatedExample], nearest: int = 0) -> tuple[RatedExample, ...]:
    """Choose the rated examples to show in the prompt of `item`, in order.

    Examples from the item's own source are never shown. Each of them is replaced by the spare example with the closest
    label, or omitted if no spare example remains.

    If `nearest` is not 0, the result is that number of examples with the most similar texts, the most similar last.
    """
    spares, shown = [each for each in examples if each.spare], list[RatedExample]()
    # if all items have the same source text, it does not identify a source
    texts_differ = len({each.item.source for each in examples}) > 1

    def own(example: RatedExample) -> bool:
        other = example.item
        same_id = other.source_id == item.source_id != ""
        same_source = texts_differ and other.source == item.source != ""
        return same_id or same_source or other.target in (item.target, item.context)  # pairs are shown in both orders

    if nearest:
        cosines = _vectors(tuple(each.item.target for each in examples)) @ _vectors((item.target,))[0]
        likeness = dict(zip(examples, cosines.tolist(), strict=True))
        return tuple(sorted((each for each in examples if not own(each)), key=likeness.__getitem__)[-nearest:])
    for example in (each for each in examples if not each.spare):
        if not own(example):
            shown.append(example)
        elif left := [spare for spare in spares if spare not in shown and not own(spare)]:
            shown.append(min(left, key=lambda spare: abs(spare.label - example.label)))
    return tuple(shown)


@lru_cache(maxsize=4096)
def _vectors(texts: tuple[str, ...]) -> FloatArray:
    from core.metrics.checkpoints import sentence_vectors

    return sentence_vectors(texts)


@lru_cache(maxsize=256)
def _examples_block(kind: ItemKind, scale: Scale, examples: tuple[RatedExample, ...]) -> str:
    return "\n\n".join(
        f"### Example {k}\n{item_block(kind, each.item, EXEMPLARS, to_rate=False)}\n"
        f"Rating by people ({scale}): {_number(each.label)}"
        for k, each in enumerate(examples, 1)
    )


def item_block(kind: ItemKind, item: Item, limits: TextLimits, *, to_rate: bool = True) -> str:
    """Format the parts of an item under their headings, with all lines quoted. Missing parts are left out.

    With `to_rate`, the heading of the target says that it is the text to rate.
    """
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
    """Return `item`, with its references only if `references` is True."""
    return item if references or not item.references else replace(item, references=())


def shortened_parts(item: Item, limits: TextLimits = SCORING) -> tuple[str, ...]:
    """Return a sentence for each part of an item that a scoring prompt shortens."""
    return tuple(
        f"The {name} was shortened from {len(getattr(item, name)):,} to {getattr(limits, name):,} characters."
        for name in ("source", "context", "target")
        if len(getattr(item, name)) > getattr(limits, name)
    )


def shortened(text: str, limit: int) -> str:
    """Shorten a text to `limit` characters by cutting the middle.

    Two thirds of the kept text come from the start, and one third from the end. A mark says how much was cut.
    """
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head]}\n[{len(text) - limit} characters left out here]\n{text[len(text) - (limit - head) :]}"


# ── prompts for drafting, refining and steps ─────────────────────────────────────────────────────────────────────


def steps_messages(task: Task, criteria: str) -> tuple[Message, ...]:
    """Return the prompt that asks for evaluation steps (auto-CoT of G-Eval)."""
    return (Message("user", filled(STEPS_PROMPT, {**task_values(task), "criteria": neutral(criteria)})),)


def draft_messages(
    task: Task, request: DraftRequest, prompt: str = DRAFT_PROMPT, refine_prompt: str = REFINE_PROMPT
) -> tuple[Message, ...]:
    """Return the prompt for drafting criteria from labelled items, or for refining criteria that misjudged these items.

    If `request.criteria` is None, the prompt is for drafting. Reasons and explanations are quoted on one line each, so
    that nothing in them reads as a heading or rating.
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


# ── untrusted text, scales in words, and templates ───────────────────────────────────────────────────────────────


def plain(text: str) -> str:
    """Remove control characters from a text, and break up special tokens of chat templates."""
    return _CHAT_TOKEN.sub(lambda match: f"{match[0]} ", _CONTROL.sub("", text))


@lru_cache(maxsize=4096)
def neutral(text: str) -> str:
    """Apply `plain` to the text of a prompt section, and remove heading marks."""
    return "\n".join(_HEADING.sub("", line, count=1) for line in plain(text).splitlines()).strip()


def quoted(text: str) -> str:
    """Put "> " in front of each line of `text`; every Unicode line break starts a line."""
    return "\n".join(f"> {line}" for line in plain(text).splitlines()) or "> "


def range_words(scale: Scale) -> str:
    """Describe the range of the scale in words that follow "a number".

    If the scale has no steps or steps of 1, the words invite decimals, to break ties.
    """
    low, high = _number(scale.low), _number(scale.high)
    if scale.two_steps:
        return f"that is {high} (the item holds up) or {low} (it does not), nothing between"
    if scale.step not in (None, 1.0):
        return f"from {low} (lowest) to {high} (highest), in steps of {scale.step:g}"
    middle = _number((scale.low + scale.high) / 2 + (scale.high - scale.low) / 8)
    return f"from {low} (lowest) to {high} (highest); decimals such as {middle} are welcome"


def whole_numbers(scale: Scale) -> tuple[int, ...]:
    """Return the ratings of a whole-number scale; empty for other scales and for more than `MOST_NUMBERS` ratings."""
    step = 1.0 if scale.step is None else scale.step
    if step < 1 or not all(float(end).is_integer() for end in (scale.low, scale.high, step)):
        return ()
    numbers = range(int(scale.low), int(scale.high) + 1, int(step))
    return tuple(numbers) if len(numbers) <= MOST_NUMBERS else ()


def task_values(task: Task) -> dict[str, str]:
    """Return the task's values for prompt templates."""
    aspect, questions, ratings = " ".join(plain(task.aspect).split()), _questions(), whole_numbers(task.scale)
    own: str | None = questions.get(task.kind, {}).get(aspect.lower())
    listed = f"from {ratings[0]} (lowest) to {ratings[-1]} (highest): one of {', '.join(map(str, ratings))}"
    return {
        "aspect": aspect,
        "thing": KINDS[task.kind].thing,
        "range": range_words(task.scale),
        "whole": listed if ratings else "",
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
    if prompt not in known:  # a name from a judge file could be a path to any file on this machine
        raise JudgeError(f"Unknown prompt {str(prompt)[:80]!r}. Choose one of: {', '.join(sorted(known))}.")
    return known[prompt].read_text(encoding="utf-8")


def filled(prompt: str, values: Mapping[str, str]) -> str:
    """Fill in a prompt, and leave out sections whose values are empty.

    Values are never interpreted as templates.
    """
    sections = (Template(part.strip()) for part in re.split(r"(?m)^(?=## )", _text_of(prompt)) if part.strip())
    return "\n\n".join(s.substitute(values) for s in sections if all(values[name] for name in s.get_identifiers()))


# ── styles ───────────────────────────────────────────────────────────────────────────────────────────────────────

MOST_SAMPLES = 200
MOST_TOKENS = 32_768
USUAL_TOKENS, SCORE_TOKENS = 512, 20
"""Maximum tokens of a reply with words, and of a bare score. Reasoning tokens are extra."""
MOST_STEPS = 8_000
"""Maximum length of evaluation steps in characters."""
MOST_EXAMPLES = 32
"""Maximum number of examples in a style, half of them spares."""

REPLY_TOKENS: Mapping[StyleForm, int] = {
    "rate_explain": 90,
    "analyze_rate": 120,
    "score_only": 4,
    "clauses": 4,
    "free_text": 20,
    "stars": 50,
    "mix": 105,
}
"""Typical tokens of a reply by form, for estimates."""


def _schema(**fields: str) -> str:
    """Return the JSON schema of an object with exactly these fields."""
    properties = {name: {"type": kind} for name, kind in fields.items()}
    return json.dumps(
        {"type": "object", "properties": properties, "required": list(fields), "additionalProperties": False}
    )


SCHEMAS: Mapping[StyleForm, str] = {
    "score_only": _schema(score="number"),
    "rate_explain": _schema(score="number", reasons="string"),
    "analyze_rate": _schema(analysis="string", score="number"),
}
"""JSON schema of a structured reply by form. Fields are in the order in which the model writes them."""


@dataclass(frozen=True)
class Style:
    """How a judge asks for a score. The score is the mean of `samples` replies.

    Attributes:
        form: Form of the reply. "clauses" asks about each clause of the criteria separately (`core.judging.clauses`).
        temperature: None omits the temperature from the request, so that the model uses its default.
        max_tokens: Token limit of a reply; 0 means the default for the form.
        prompt: Name of the scoring prompt; "" means the current prompt of the form.
        steps: Evaluation steps in the prompt, after the criteria (see `LLMJudge.write_steps`).
        weighted: Use the probability-weighted score if the endpoint returns logprobs (only for score_only).
        structured: Ask for JSON if the endpoint accepts a schema.
        references: Show the references of an item. Items without references are then unscored.
        examples: Labelled items to show in every prompt, and spare items to replace some of them (see `examples_for`).
        nearest: Show only this number of examples, the most similar to the item. 0 shows the same examples for every
            item.

    Raises:
        UsageError: A value is out of range, or settings conflict.
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
    nearest: int = setting(0, low=0, high=16)

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_tokens", self.max_tokens or self._usual_tokens)
        check_settings(self)
        for name in ("temperature", "top_p"):  # so that 1 and 1.0 are the same style and the same cache key
            object.__setattr__(self, name, None if (value := getattr(self, name)) is None else float(value))
        if len(self.steps) > MOST_STEPS:
            raise UsageError(f"Evaluation steps can have at most {MOST_STEPS:,} characters. Shorten the steps.")
        if len(self.examples) > MOST_EXAMPLES:
            raise UsageError(f"A judging prompt can show at most {MOST_EXAMPLES // 2} examples. Choose fewer examples.")
        if self.top_p == 0.0:
            raise UsageError("top_p must be above 0 and at most 1; got 0. Leave it at 1 to keep all tokens.")
        if self.weighted and self.form != "score_only":
            raise UsageError(
                f"The probability-weighted score requires the form score_only, but the form is {self.form}."
            )
        if self.structured and (self.weighted or self.form not in (*SCHEMAS, "mix")):
            raise UsageError(
                "JSON replies require the form score_only, rate_explain or analyze_rate, without weighting. Change "
                "the form, or turn off JSON."
            )
        if not self.prompt:
            prompt = WEIGHTED_PROMPT if self.weighted else score_prompt(self.form, structured=self.structured)
            object.__setattr__(self, "prompt", prompt)

    @property
    def _usual_tokens(self) -> int:
        return SCORE_TOKENS if self.form in ("score_only", "clauses") else USUAL_TOKENS

    @property
    def name(self) -> str:
        """The name of the style with its settings, such as "analyze-rate · 5 samples at t=1 · steps"."""
        heat = "the model's temperature" if self.temperature is None else f"t={self.temperature:g}"
        parts = [self.form.replace("_", "-"), f"{counted(self.samples, 'sample')} at {heat}"]
        parts += [f"top-p {self.top_p:g}"] * (self.top_p < 1.0)
        parts += ["steps"] * bool(self.steps.strip())
        parts += ["weighted"] * self.weighted
        parts += ["JSON"] * self.structured
        parts += ["references"] * self.references
        example = "similar example" if self.nearest else "example"
        parts += [counted(self.n_examples, example)] * bool(self.n_examples)
        parts += [self.persona] * (self.persona != "none")
        parts += [f"up to {self.max_tokens} tokens"] * (self.max_tokens != self._usual_tokens)
        return " · ".join(parts)

    @property
    def n_examples(self) -> int:
        """Number of examples in a prompt."""
        return self.nearest or sum(not each.spare for each in self.examples)

    @property
    def schema(self) -> str:
        """The JSON schema of a reply; "" for free text."""
        return SCHEMAS.get(self.form, "") if self.structured else ""

    def as_json(self) -> dict[str, Any]:
        """Return all fields as JSON types; examples only if there are any."""
        body = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "examples"}
        if not self.nearest:
            del body["nearest"]
        shown = [
            {"item": {name: text for name, text in asdict(each.item).items() if text}}
            | {"label": each.label, "spare": each.spare}
            for each in self.examples
        ]
        return body | ({"examples": json.loads(json.dumps(shown))} if shown else {})

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Style:
        """Create a style from some or all fields of `as_json`.

        Raises UsageError for an unknown name, a wrong type, or a value out of range.
        """
        from pydantic import ValidationError

        try:
            return _style_form().validate_json(json.dumps(body, default=repr))  # objects need JSON in strict mode
        except ValidationError as error:
            fault = error.errors()[0]
            name = str(fault["loc"][-1] if fault["loc"] else "style")
            raise UsageError(f"A style's {name} can't be {fault['input']!r}: {fault['msg']}.") from None

    def as_state(self) -> dict[str, Any]:
        """Return the fields for a judge file, in which `form` is called `output`."""
        return {"output" if name == "form" else name: value for name, value in self.as_json().items()}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Style:
        """Create a style from some or all fields of `as_state`. Raises UsageError as in `from_json`."""
        return cls.from_json({"form" if name == "output" else name: value for name, value in state.items()})


@cache
def _style_form() -> TypeAdapter[Style]:
    from pydantic import ConfigDict, TypeAdapter, with_config

    return TypeAdapter(with_config(ConfigDict(strict=True, extra="forbid"))(Style))


# ── options that a user chose ────────────────────────────────────────────────────────────────────────────────────

OWN_FIELDS = frozenset(
    "model messages temperature top_p max_tokens max_completion_tokens n seed stream stream_options logprobs "
    "top_logprobs response_format reasoning_effort".split()
)
"""Fields of a request that Concord sets from its settings."""

HARMLESS_FIELDS = frozenset(
    "chat_template_kwargs thinking enable_thinking thinking_budget reasoning verbosity top_k min_p repetition_penalty "
    "presence_penalty frequency_penalty extra_body".split()
)
"""Fields that a judge file may add without consent, about reasoning and sampling.

Others could cost, store or fetch something.
"""

MOST_EXTRA = 4_000
STEPS_LIKE = "x" * 6 * 120
"""Placeholder for evaluation steps that are not written yet, of about 120 words."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Options that a user chose for a judge. All other options keep their defaults.

    Attributes:
        style: None for the judge's default style.
        writes_steps: Let the model write evaluation steps before the first score, unless the style has its own steps.
        effort: Reasoning effort, such as "low".
        extra: Additional fields of each request, as a JSON object, such as
            {"chat_template_kwargs": {"enable_thinking": false}}.

    Raises:
        UsageError: An option is not allowed.
    """

    style: Style | None = None
    writes_steps: bool = False
    effort: str = ""
    extra: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z]{0,20}", self.effort):
            raise UsageError(f"The reasoning effort must be a word such as low, medium or high; got {self.effort!r}.")
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
        """Create the options for a judge from a user's choices.

        Args:
            spec: The judge. A local model ("hf:…") rates in one forward pass unless a form is chosen.
            temperature: None means 0 for one sample and 1 for several; "none" omits the temperature from requests.
            max_tokens: None means the default of the form.
            steps: Text of the evaluation steps. True lets the model write them.
            style: Other fields of `Style`; None for a field that the user didn't choose.
        """
        chosen = {name: value for name, value in style.items() if value is not None}
        chosen |= {"max_tokens": max_tokens} if max_tokens is not None else {}
        chosen |= {"steps": steps.strip()} if isinstance(steps, str) and steps.strip() else {}
        if "form" not in chosen and (chosen.get("weighted") or spec.startswith("hf:")):
            chosen |= {"form": "score_only", "weighted": True}
        usual = 1.0 if chosen.get("samples", 1) > 1 else 0.0
        chosen["temperature"] = None if temperature == "none" else usual if temperature is None else temperature
        wanted = Style.from_json(chosen)
        as_usual = wanted == (Style("score_only", weighted=True) if spec.startswith("hf:") else Style())
        return cls(None if as_usual else wanted, writes_steps=steps is True, effort=effort, extra=extra)

    @classmethod
    def from_state(cls, state: Mapping[str, Any], *, named: bool) -> Self:
        """Restore the effort and the extra fields of a stored judge.

        Raises JudgeError for fields that a file may not set, unless the user has `named` the judge.
        """
        told = cls(effort=str(state.get("effort", "")), extra=str(state.get("extra", "")))
        fields = json.loads(told.extra).keys() if told.extra else set()
        if not named and (beyond := sorted(fields - HARMLESS_FIELDS)):
            raise JudgeError(
                f"This judge comes from a file, and each of its requests would contain {', '.join(beyond)}. That may "
                "cost money, or store or fetch data, so nothing was sent. To allow it, name the judge: --judge "
                f"{state['spec']}"
            )
        return told

    def require_for(self, kind: str) -> None:
        """Raise UsageError if the options don't apply to judges of this kind."""
        if kind == "offline" and self != Asking():
            raise UsageError(
                "The offline judge has no prompt, so form, samples and similar options don't apply. Remove them."
            )
        if (self.effort or self.extra) and kind != "openai":
            raise UsageError(
                "Reasoning effort and extra body apply only to endpoints (openai:MODEL[@BASE_URL]). Remove them."
            )

    def within(self, max_tokens: int | None) -> Style | None:
        """Return the style with the installation's limit `max_tokens`; None if no style is set.

        A style that sets its own limit, or asks for a bare score, keeps its limit.
        """
        if self.style is None or max_tokens is None or self.style.max_tokens != USUAL_TOKENS:
            return self.style
        return replace(self.style, max_tokens=max_tokens)


def checked_extra(text: str) -> str:
    """Return additional request fields as canonical JSON, "" for none. Raises UsageError if a field is not allowed."""
    if not text.strip():
        return ""
    try:
        fields = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f'The extra body must be a JSON object such as {{"verbosity": "low"}}, but parsing failed: {error}.'
        ) from error
    if not isinstance(fields, dict) or len(text) > MOST_EXTRA:
        raise UsageError(f"The extra body must be one JSON object of at most {MOST_EXTRA:,} characters.")
    if own := sorted(OWN_FIELDS & fields.keys()):
        raise UsageError(f"The extra body must not contain {', '.join(own)}, which Concord sets itself.")
    return json.dumps(fields, sort_keys=True, ensure_ascii=False) if fields else ""


def _no_number(name: str) -> float:
    raise ValueError(f"{name} isn't a JSON number")
