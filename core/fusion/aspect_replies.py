"""Replies of an LLM fusion, read aspect by aspect: what is missing, off its scale or cut off is unread alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.fusion.plan import folded
from core.judging.parse import read_rating
from core.providers.completions import Completion
from core.records import Scale, UnscoredReason
from core.verdicts import Reading

_FENCE = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL | re.IGNORECASE)


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
    by_fold = {folded(name): name for name in names}
    either = "|".join(re.escape(name).replace(r"\ ", r"\s+") for name in sorted(by_fold, key=len, reverse=True))
    head = re.compile(
        rf"(?mi)^[ \t#>*_\-\[(\"'`]*(?:\d{{1,2}}[.)][ \t]*)?(?:aspect[ \t]*[:\-])?[ \t*_\[\"'`]*(?P<name>{either})"
        r"[ \t*_\]\"'`]*"
        r"(?=(?:score|rating)?[ \t*_]*(?:[:=\-–—(\]]|$))"
    )
    heads = [(match.start(), _words_from(text, match), folded(match["name"])) for match in head.finditer(text)]
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
            return _by_folded_name(inner if isinstance(inner, dict) else body)
    return None


def _by_folded_name(body: Mapping[str, Any]) -> dict[str, Any]:
    return {folded(str(name).replace("_", " ")): value for name, value in body.items()}


def _of_field(fields: Mapping[str, Any], name: str, scale: Scale) -> tuple[Reading, str]:
    value = fields.get(folded(name), fields.get(f"{folded(name)} score"))
    if isinstance(value, bool) or value is None or isinstance(value, list):
        return Reading(None, "no verdict"), ""
    if isinstance(value, dict):
        inner = _by_folded_name(value)
        words = str(inner.get("explanation") or inner.get("reasons") or inner.get("reason") or "")
        stated = inner.get("score", inner.get("rating", inner.get("value")))
        if stated is None:
            return Reading(None, "no verdict"), words
        return read_rating(f"Score: {stated}", scale, name), words
    return read_rating(f"Score: {value}", scale, name), str(value)
