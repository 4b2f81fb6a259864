"""What a model writes when asked for more than a number: criteria and evaluation steps, without their wrapping."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from core.judging.base import Drafted
from core.providers.base import Failure, Reply
from core.records import Criteria, Provenance, Usage

MOST_STEPS = 8_000
"""Longest evaluation steps that may be put into force, in characters."""


@dataclass(frozen=True, slots=True)
class WrittenSteps:
    """Evaluation steps as the model wrote them, or "" with the reason in words; and what asking cost."""

    text: str
    problem: str = ""
    usage: Usage = field(default_factory=Usage)


def drafted_from(reply: Reply, aspect: str, provenance: Provenance) -> Drafted:
    """The criteria in a reply, without the wrapping that models add against instructions."""
    text, problem = _written(reply, aspect)
    return Drafted(None, problem) if problem else Drafted(Criteria(text, aspect, provenance))


def steps_from(reply: Reply, aspect: str) -> WrittenSteps:
    """The evaluation steps in a reply, as `drafted_from`."""
    text, problem = _written(reply, aspect)
    if len(text) > MOST_STEPS:
        text, problem = "", f"The steps were {len(text):,} characters long; {MOST_STEPS:,} are the most."
    return WrittenSteps(text, problem, Usage() if isinstance(reply, Failure) else reply.usage)


def _written(reply: Reply, aspect: str) -> tuple[str, str]:
    """(text, "") or ("", why there is none)."""
    if isinstance(reply, Failure):
        return "", reply.message
    if reply.finish == "length":
        return "", "The reply was cut off at the token limit."
    text = unwrapped(reply.text, aspect)
    if reply.finish == "refusal":
        return "", "The model refused."
    return (text, "") if text else ("", "The reply was empty.")


_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"\A```\w*\n(?P<inside>.*?)\n?```\Z", re.DOTALL)


_TITLES = ("criteria", "scoring criteria", "steps", "evaluation steps")


def unwrapped(text: str, aspect: str) -> str:
    """`text` without thoughts, a code fence around it, or a first line that only announces what follows."""
    text = _THOUGHT.sub("", text).strip()
    if fenced := _FENCE.match(text):
        text = fenced["inside"].strip()
    first, _, rest = text.partition("\n")
    title = re.sub(r"[#*_:\s]+", " ", first).strip().lower()
    announces = first.rstrip("* ").endswith(":") and any(word in title for word in ("criteria", "here ", "steps"))
    if rest.strip() and (announces or title in (f"criteria for {aspect.lower()}", *_TITLES)):
        text = rest.strip()
    return text
