"""How a judge is asked where a person has chosen it: a style, and what its model is told besides."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from core.errors import JudgeError, UsageError
from core.judging.styles import USUAL_TOKENS, Sampling, Style, sampling_of

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

MODEL_WRITES = "model"
"""In the place of a text that a person may give (a definition, a plan): the model writes it."""

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

    def sampling(self, max_tokens: int | None) -> Sampling | None:
        """The style with its prompts, None for the judge's usual.

        `max_tokens` is this installation's limit, for a style that keeps to the usual one and writes more than a score.
        """
        if self.style is None:
            return None
        own = self.style.max_tokens if self.style.max_tokens != USUAL_TOKENS else max_tokens or USUAL_TOKENS
        return sampling_of(replace(self.style, max_tokens=own))


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
