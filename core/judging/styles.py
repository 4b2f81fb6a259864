"""Judging styles: the ways of asking one judge for a score that a person may choose between and compare.

The forms are those of A Closer Look (002, section 3.2) and their mix; steps and the weighted score are G-Eval's, the
personas are 002's robustness check (appendix F.3).  A style says how to ask, never what for: it goes with any criteria,
with or without calibration.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from core.errors import UsageError
from core.judging.render import PERSONAS, Persona
from core.judging.sampling import MOST_STEPS, STYLE_FORMS, Sampling, StyleForm, misfit

__all__ = ["MOST_STEPS", "PERSONAS", "STYLE_FORMS", "Persona", "Style", "StyleForm", "calls_per_item", "sampling_of"]

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
