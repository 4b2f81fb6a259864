"""How a judge is asked for a score: the styles that a person chooses between, and the prompts that each comes to.

The forms are those of A Closer Look (002, section 3.2) and their mix; steps and the weighted score are G-Eval's, the
personas are 002's robustness check (appendix F.3).  A `Style` says how to ask, never what for: it goes with any
criteria, with or without calibration.  `Sampling` is what a judge keeps in its state and what a judge file pins.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, Self

from core.errors import JudgeError, UsageError
from core.judging.render import DRAFT_PROMPT, PERSONAS, REFINE_PROMPT, OutputForm, Persona, score_prompt

MOST_STEPS = 8_000
"""Longest evaluation steps that may be put into force, in characters."""

StyleForm = Literal["score_only", "free_text", "rate_explain", "analyze_rate", "mix"]
STYLE_FORMS: tuple[StyleForm, ...] = ("score_only", "free_text", "rate_explain", "analyze_rate", "mix")
MIXED: tuple[OutputForm, ...] = ("analyze_rate", "rate_explain")
"""The forms of the mix, in turn, so that an odd number gives the extra sample to the first."""

WEIGHTED_PROMPT = "score_weighted.v1"

REPLY_TOKENS: Mapping[OutputForm, int] = {"rate_explain": 90, "analyze_rate": 120, "score_only": 4, "free_text": 20}
"""Typical length of a reply, for estimates."""


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
class Place:
    """One sample of a score: the prompt it is asked for with, its form, its number there, the JSON schema or ""."""

    prompt: str
    form: OutputForm
    sample: int
    schema: str


@dataclass(frozen=True)
class Sampling:
    """How a score is asked for.  `samples` replies are averaged; more than one makes sense above temperature 0.

    `prompt` names the scoring prompt (several, joined by "+", take turns: sample 0 the first, sample 1 the second).
    `steps` are evaluation steps shown after the criteria, `weighted` takes the probability-weighted score from the
    endpoint's logprobs, `structured` asks for JSON.
    """

    output: StyleForm = "rate_explain"
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    max_tokens: int = 512
    prompt: str = ""
    draft_prompt: str = DRAFT_PROMPT
    refine_prompt: str = REFINE_PROMPT
    persona: Persona = "none"
    steps: str = ""
    weighted: bool = False
    structured: bool = False

    def __post_init__(self) -> None:
        if self.output not in STYLE_FORMS:
            raise JudgeError(f"The output form must be one of {', '.join(STYLE_FORMS)}, not {self.output!r}.")
        if self.persona not in PERSONAS:
            raise JudgeError(f"The persona must be one of {', '.join(PERSONAS)}, not {self.persona!r}.")
        if self.samples < 1:
            raise JudgeError(f"A score needs at least 1 sample, not {self.samples}.")
        if problem := misfit(self.output, self.samples, weighted=self.weighted, structured=self.structured):
            raise UsageError(problem)
        if not self.prompt:
            object.__setattr__(self, "prompt", "+".join(_prompts(self)))
        if len(self.prompt.split("+")) != len(_forms(self.output)):
            raise JudgeError(f"The form {self.output} takes {len(_forms(self.output))} prompts, not {self.prompt!r}.")

    @property
    def prompts(self) -> tuple[str, ...]:
        """The scoring prompts in use; a mix has two."""
        return tuple(dict.fromkeys(place.prompt for place in self.places))

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Where each sample of a score is asked for, in order.

        A sample keeps its place when more are asked for, and the mix shares its samples with both of its forms.
        """
        prompts, forms = self.prompt.split("+"), _forms(self.output)
        turns = len(prompts)
        schema = {form: SCHEMAS.get(form, "") if self.structured else "" for form in forms}
        return tuple(
            Place(prompts[k % turns], forms[k % turns], k // turns, schema[forms[k % turns]])
            for k in range(self.samples)
        )

    def shares(self) -> list[tuple[str, OutputForm, int]]:
        """(scoring prompt, its form, how many samples of a score are asked for with it)."""
        counts = Counter((place.prompt, place.form) for place in self.places)
        return [(prompt, form, n) for (prompt, form), n in counts.items()]


def misfit(form: StyleForm, samples: int, *, weighted: bool, structured: bool) -> str:
    """Why these do not go together, in words; empty when they do."""
    if form == "mix" and samples < 2:
        return "The mix averages rate-explain and analyze-rate, so it needs at least 2 samples; 1 came."
    if weighted and form != "score_only":
        return f"The probability-weighted score needs the form score_only, not {form}: a bare number to weigh."
    if structured and (weighted or form == "free_text"):
        return "JSON is asked for with score_only, rate_explain, analyze_rate and mix, and without weighting."
    return ""


def _forms(output: StyleForm) -> tuple[OutputForm, ...]:
    return MIXED if output == "mix" else (output,)


def _prompts(sampling: Sampling) -> list[str]:
    if sampling.weighted:
        return [WEIGHTED_PROMPT]
    return [score_prompt(form, structured=sampling.structured) for form in _forms(sampling.output)]


MOST_SAMPLES = 200
MOST_TOKENS = 32_768


@dataclass(frozen=True, slots=True)
class Style:
    """One way to ask for a score; the mean of `samples` replies.  UsageError for values out of range.

    `steps` are the evaluation steps in force (see `LLMJudge.write_steps`), `weighted` takes the probability-weighted
    score where the endpoint gives logprobs (score_only alone), `structured` asks for JSON where the endpoint takes a
    schema.
    """

    form: StyleForm = "rate_explain"
    samples: int = 1
    temperature: float = 0.0
    top_p: float = 1.0
    persona: Persona = "none"
    steps: str = ""
    weighted: bool = False
    max_tokens: int = 512
    structured: bool = False

    def __post_init__(self) -> None:
        _one_of("form", self.form, STYLE_FORMS)
        _one_of("persona", self.persona, PERSONAS)
        _whole("samples", self.samples, MOST_SAMPLES)
        _whole("max_tokens", self.max_tokens, MOST_TOKENS)
        _number("temperature", self.temperature, 0.0, 2.0)
        _number("top_p", self.top_p, 0.0, 1.0)
        if self.top_p == 0.0:
            raise UsageError("A style's top_p must lie above 0 and up to 1; 0 came. Leave it at 1 to keep all tokens.")
        for name in ("temperature", "top_p"):  # 1 and 1.0 are one style and one reply in the cache
            object.__setattr__(self, name, float(getattr(self, name)))
        for name in ("weighted", "structured"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"A style's {name} must be true or false, not {getattr(self, name)!r}.")
        if not isinstance(self.steps, str) or len(self.steps) > MOST_STEPS:
            raise UsageError(f"A style's steps must be a text of at most {MOST_STEPS:,} characters.")
        if problem := misfit(self.form, self.samples, weighted=self.weighted, structured=self.structured):
            raise UsageError(problem)

    @property
    def name(self) -> str:
        """Short, for people: "analyze-rate · 5 samples at t=1 · steps · annotator"; what is usual is left out."""
        samples = "1 sample" if self.samples == 1 else f"{self.samples} samples"
        parts = [self.form.replace("_", "-"), f"{samples} at t={self.temperature:g}"]
        parts += [f"top-p {self.top_p:g}"] * (self.top_p < 1.0)
        parts += ["steps"] * bool(self.steps.strip())
        parts += ["weighted"] * self.weighted
        parts += ["JSON"] * self.structured
        parts += [self.persona] * (self.persona != "none")
        parts += [f"up to {self.max_tokens} tokens"] * (self.max_tokens != _USUAL_TOKENS)
        return " · ".join(parts)

    def as_json(self) -> dict[str, Any]:
        """All fields by name, JSON-able; `from_json` takes them back."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The style that `given` describes; what it leaves out is as usual.

        UsageError for an unknown name or a value out of range.
        """
        if not isinstance(given, Mapping):
            raise UsageError(f"A style is an object with fields such as form and samples, not {given!r}.")
        known = [field.name for field in fields(cls)]
        if unknown := [str(name) for name in given if name not in known]:
            raise UsageError(f"A style has no field {unknown[0]!r}; there are {', '.join(known)}.")
        return cls(**given)


_USUAL_TOKENS = 512


def sampling_of(style: Style) -> Sampling:
    """What an `LLMJudge` needs to judge in this style (prompts at their newest version)."""
    chosen = style.as_json()
    return Sampling(output=chosen.pop("form"), **chosen)


def calls_per_item(style: Style) -> int:
    """Replies that one score of one item takes."""
    return style.samples


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise UsageError(f"A style's {name} must be one of {', '.join(allowed)}, not {value!r}.")


def _whole(name: str, value: object, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise UsageError(f"A style's {name} must be a whole number from 1 to {most:,}, not {value!r}.")


def _number(name: str, value: object, low: float, high: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not number or not low <= value <= high:  # type: ignore[operator]  # a number by now
        raise UsageError(f"A style's {name} must be a number from {low:g} to {high:g}, not {value!r}.")
