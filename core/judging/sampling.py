"""How an LLM judge is asked for a score: prompt by prompt, sample by sample.

`Sampling` is what a judge keeps in its state and what a judge file pins; `core.judging.styles.Style` is what a person
chooses.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

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
