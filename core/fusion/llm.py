"""LLM fusion (004 §2): one call an item rates all aspects at once, with the assistants' numbers beside the item.

The prompt has the paper's blocks in words of ours: the task, the assistants and their use by the plan, how to weigh
them, a preview of the input, the output form, then the filled input.  The reply is read aspect by aspect: what is
missing, off its scale or cut off is unscored alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from core.errors import UsageError
from core.fusion.plan import FusionPlan, aspects_block, assistants_block, filled, plain_line
from core.judging.parse import read_rating
from core.judging.render import KINDS, SCORING, item_block, neutral, range_words
from core.providers.base import Completion, Failure, Message, Reply, Request
from core.records import Item, JudgeScores, Scale, Scored, Task, Unscored, UnscoredReason, Verdict
from core.verdicts import Reading

EVALUATE_PROMPT = "evaluate.v1"
OVERALL = "overall"
TOKENS_AN_ASPECT = 160
CHARACTERS_PER_TOKEN = 4
_FENCE = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class FusionJudge:
    """What an LLM fusion asks: aspects in `tasks` (one kind of item), the assistants `parts` and the `plan` of their
    use."""

    tasks: tuple[Task, ...]
    parts: tuple[JudgeScores, ...]
    plan: FusionPlan

    def __post_init__(self) -> None:
        if not self.tasks:
            raise UsageError("An LLM fusion needs at least one aspect.")
        known = {part.name for part in self.parts}
        strange = [name for name in self.plan.assistants if name not in known]
        if strange:
            raise UsageError(f"The plan names assistants that are not chosen: {', '.join(strange)}.")
        if self.plan.aspects != tuple(task.aspect for task in self.tasks):
            raise UsageError(f"The plan is about {', '.join(self.plan.aspects)}, which are not the aspects asked for.")
        assistants_block(self.parts)  # each has a score to be introduced with

    @cached_property
    def _fixed(self) -> dict[str, str]:
        return {
            "thing": KINDS[self.tasks[0].kind].thing,
            "aspects": aspects_block(self.tasks),
            "assistants": assistants_block([part for part in self.parts if part.name in self.plan.assistants]),
            "plan": neutral(self.plan.text),
            "form": self._form(),
        }

    @cached_property
    def scales(self) -> dict[str, Scale]:
        """What a reply is read for: each aspect, and `OVERALL` on the scale of the first."""
        scales = {task.aspect: task.scale for task in self.tasks}
        return scales | {OVERALL: scales.get(OVERALL, self.tasks[0].scale)}

    def messages(self, item: Item, position: int) -> tuple[Message, ...]:
        """The evaluation prompt of the item at `position`, with what each assistant gave it on its own scale."""
        given = {part.name: part.values[position] for part in self.parts}
        lines = [
            f"- {plain_line(name)}: "
            f"{format(given[name], '.4g') if np.isfinite(given[name]) else 'no number for this item'}"
            for name in self.plan.assistants
        ]
        values = self._fixed | {
            "item": item_block(self.tasks[0].kind, item, SCORING),
            "numbers": "\n".join(lines) or "- none",
        }
        return (Message("user", filled(EVALUATE_PROMPT, values)),)

    def request(self, model: str, item: Item, position: int) -> Request:
        """One call at temperature 0."""
        return Request(model, self.messages(item, position), 0.0, TOKENS_AN_ASPECT * (len(self.tasks) + 1))

    def tokens(self, items: Sequence[Item], positions: Sequence[int]) -> tuple[int, int]:
        """(prompt, completion) tokens of rating `items` at `positions`, about 4 characters each."""
        characters = sum(len(message.content) for k in positions for message in self.messages(items[k], k))
        return characters // CHARACTERS_PER_TOKEN, len(positions) * (len(self.tasks) + 1) * TOKENS_AN_ASPECT // 2

    def read(self, item_id: str, reply: Reply) -> dict[str, Verdict]:
        """A verdict for each aspect, and under `OVERALL` for all in all; each is read by itself."""
        if isinstance(reply, Failure):
            return {name: Unscored(item_id, "provider error", reply.message) for name in self.scales}
        return {
            name: _verdict(item_id, reading, words, reply)
            for name, (reading, words) in read_sections(reply, self.scales).items()
        }

    def _form(self) -> str:
        asked = [(plain_line(task.aspect), task.scale) for task in self.tasks]
        return "\n".join(
            f"Aspect: {name}\nExplanation: <two or three sentences>\nScore: <a number {range_words(scale)}>"
            for name, scale in [*asked, (OVERALL, self.tasks[0].scale)]
        )


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


def read_sections(reply: Completion, scales: Mapping[str, Scale]) -> dict[str, tuple[Reading, str]]:
    """(reading, the words it was read from) of every aspect in `scales`.

    A reply that is one JSON object is read by its fields, any other by its headings.  In a reply that was cut off the
    section it was cut in is truncated, and the aspects after it too; the sections before are read.
    """
    if reply.finish == "refusal" or not reply.text.strip():
        return {name: (read_rating(reply.text, scale, name, reply.finish), "") for name, scale in scales.items()}
    if (fields := _json_fields(reply.text)) is not None:
        return {name: _of_field(fields, name, scale) for name, scale in scales.items()}
    cut = reply.finish == "length"
    sections = _sections(reply.text, tuple(scales))
    last = max((start for start, _, _ in sections), default=-1)
    readings: dict[str, tuple[Reading, str]] = {}
    for start, name, words in sections:
        reading = Reading(None, "truncated") if cut and start == last else read_rating(words, scales[name], name)
        if name not in readings or reading.value is not None:  # a later section that can be read replaces the earlier
            readings[name] = (reading, words.strip())
    nothing: UnscoredReason = "truncated" if cut else _silence(reply.text, scales)
    return {name: readings.get(name, (Reading(None, nothing), "")) for name in scales}


def _silence(text: str, scales: Mapping[str, Scale]) -> UnscoredReason:
    """Why an aspect without a section has none: the reply refused, or just says nothing on it."""
    reason = read_rating(text, next(iter(scales.values()))).reason
    return "refused" if reason == "refused" else "no verdict"


def _sections(text: str, names: Sequence[str]) -> list[tuple[int, str, str]]:
    """(start, aspect, words) of each stretch that begins with a line headed by an aspect's name."""
    by_fold = {" ".join(name.casefold().split()): name for name in names}
    either = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in sorted(by_fold, key=len, reverse=True))
    head = re.compile(
        rf"(?mi)^[ \t#>*_\-\[(\"'`]*(?:\d{{1,2}}[.)][ \t]*)?(?:aspect[ \t]*[:\-])?[ \t*_\[\"'`]*(?P<name>{either})"
        r"[ \t*_\]\"'`]*"
        r"(?=(?:score|rating)?[ \t*_]*(?:[:=\-–—(\]]|$))"
    )
    heads = [
        (match.start(), _words_from(text, match), " ".join(match["name"].casefold().split()))
        for match in head.finditer(text)
    ]
    ends = [*(start for start, _, _ in heads[1:]), len(text)][: len(heads)]
    return [(start, by_fold[name], text[begin:end]) for (start, begin, name), end in zip(heads, ends, strict=True)]


def _words_from(text: str, head: re.Match[str]) -> int:
    """Where the words of a section begin: after a heading that stands alone, at the name of one that goes on."""
    line_end = text.find("\n", head.end())
    if line_end >= 0 and not re.search(r"\w", text[head.end() : line_end]):
        return line_end + 1
    return head.start("name")


def _json_fields(text: str) -> dict[str, Any] | None:
    """The fields of a reply that is one JSON object, fenced or bare, with folded names; None for any other."""
    fenced = _FENCE.search(text)
    bare = text.strip()
    for candidate in ([fenced[1]] if fenced else []) + ([bare] if bare.startswith("{") else []):
        try:
            body = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        if isinstance(body, dict):
            inner = body.get("scores", body.get("aspects"))
            return _folded(inner if isinstance(inner, dict) else body)
    return None


def _folded(body: Mapping[str, Any]) -> dict[str, Any]:
    return {" ".join(str(name).casefold().replace("_", " ").split()): value for name, value in body.items()}


def _of_field(fields: Mapping[str, Any], name: str, scale: Scale) -> tuple[Reading, str]:
    folded = " ".join(name.casefold().split())
    value = fields.get(folded, fields.get(f"{folded} score"))
    if isinstance(value, bool) or value is None or isinstance(value, list):
        return Reading(None, "no verdict"), ""
    if isinstance(value, dict):
        inner = _folded(value)
        words = str(inner.get("explanation") or inner.get("reasons") or inner.get("reason") or "")
        stated = inner.get("score", inner.get("rating", inner.get("value")))
        if stated is None:
            return Reading(None, "no verdict"), words
        return read_rating(f"Score: {stated}", scale, name), words
    return read_rating(f"Score: {value}", scale, name), str(value)


def _verdict(item_id: str, reading: Reading, words: str, reply: Completion) -> Verdict:
    if reading.value is None:
        reason = reading.reason or "no verdict"
        detail = words or "The reply says nothing on this aspect."
        return Unscored(item_id, reason, detail[:500], (reply.text,))
    return Scored(item_id, reading.value, explanation=words, raw=(reply.text,))
