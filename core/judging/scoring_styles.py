"""How a judge is asked for a score: the styles that a person chooses between, and the prompts behind each.

The forms are those of A Closer Look (section 3.2), their mix, and the stars of AutoCalibrate. Evaluation steps and the
weighted score are G-Eval's; the personas are a robustness check of A Closer Look (appendix F.3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

from core.errors import JudgeError, UsageError
from core.judging.render import DRAFT_PROMPT, REFINE_PROMPT, OutputForm, Persona, score_prompt
from core.records import check_settings, setting

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MOST_SAMPLES = 200
MOST_TOKENS = 32_768
USUAL_TOKENS, SCORE_TOKENS = 512, 20
"""Longest reply: with words in it, and of a score alone.  A model that thinks has room of its own."""
MOST_STEPS = 8_000
"""Characters of evaluation steps."""

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
        if self.top_p == 0.0:
            return "top_p must lie above 0 and up to 1; 0 came. Leave it at 1 to keep all tokens."
        if self.form == "mix" and self.samples < 2:
            return "The mix averages rate-explain and analyze-rate, so it needs at least 2 samples; 1 came."
        if self.weighted and self.form != "score_only":
            return f"The probability-weighted score needs the form score_only, not {self.form}: a bare number to weigh."
        if self.structured and (self.weighted or self.form in ("free_text", "stars")):
            return "JSON is asked for with score_only, rate_explain, analyze_rate and mix, and without weighting."
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
        parts += [self.persona] * (self.persona != "none")
        parts += [f"up to {self.max_tokens} tokens"] * (self.max_tokens != usual_tokens(self.form))
        return " · ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """All fields by name, JSON-able; `from_json` takes them back."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

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
    """How a judge is asked; all of it as usual where nothing is said.  UsageError for what cannot be sent.

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
        """What a kept judge is told besides.  JudgeError for fields that a file alone may not set, unless a person has
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
            raise UsageError("The offline judge is asked in no words: form, samples and the like are for models.")
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
            f'The extra body is a JSON object such as {{"verbosity": "low"}}; it does not read: {error}.'
        ) from error
    if not isinstance(fields, dict) or len(text) > MOST_EXTRA:
        raise UsageError(f"The extra body is one JSON object of at most {MOST_EXTRA:,} characters.")
    if own := sorted(OWN_FIELDS & fields.keys()):
        raise UsageError(f"The extra body may not hold {', '.join(own)}: Concord writes that itself, by its settings.")
    return json.dumps(fields, sort_keys=True, ensure_ascii=False) if fields else ""


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")
