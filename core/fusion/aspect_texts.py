"""Texts in blocks, each headed by an aspect: plans, criteria and replies, as people and models write them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from core.judging.parse import read_rating, without_thoughts
from core.providers.completions import Completion
from core.records import Scale, UnscoredReason
from core.verdicts import Reading

NONE = "none"
OVERALL = "overall"
"""What a model says all in all, next to the aspects."""

HEAD_AT_MOST = 300
_HEAD = re.compile(
    r"[ \t>*#_\-]*(?:\(?\d{1,2}[.):][ \t]*)?[*_`\"'\[]*(?:aspect[ \t]*[:\-][ \t]*)?"
    r"(?P<aspect>(?P<bare>[^:=|(\[\]–—]+?)(?:[ \t]+(?:score|rating))?[*_`\"'\]]*"
    r"(?:[ \t]*[(\[][^)\]]*[)\]])?)[*_`\"'\]]*"
    r"(?:[ \t]*(?:[:=|–—]|->|→|[ ]-[ ])[*_`]*[ \t]*(?P<rest>.*)|[ \t]*)",
    re.IGNORECASE,
)
"""A line that begins with an aspect, as "1. **Coherence** (1-5): overlap": marks, number, its name, what follows."""
_FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL | re.IGNORECASE)
_BULLET = re.compile(r"[ \t]*[-•*+][ \t]")


def folded(name: str) -> str:
    """Without case and needless white space: equal names in whatever way they are written."""
    return " ".join(name.casefold().split())


def json_object(text: str, *wrappers: str) -> dict[str, Any] | None:
    """The JSON object that `text` is, bare or fenced, or the object in its field `wrappers`; None for other texts."""
    fenced = _FENCED.search(text)
    try:
        body = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict):
        return None
    return next((body[name] for name in wrappers if isinstance(body.get(name), dict)), body)


def headed_blocks(
    text: str, aspects: Sequence[str], *, bullets: bool = True
) -> tuple[list[str], list[tuple[str, str, list[str]]]]:
    """(lines before the first heading, blocks) of `text`; a block is (aspect, what follows on its line, more lines).

    `bullets`: a bulleted line on which more follows than the aspect is a heading too.
    """
    known, before = {folded(aspect): aspect for aspect in aspects}, list[str]()
    blocks: list[tuple[str, str, list[str]]] = []
    for line in without_thoughts(text).splitlines():
        bare = line.strip().strip("|").strip()
        head = _HEAD.fullmatch(bare[:HEAD_AT_MOST])
        aspect = head and (known.get(folded(head["aspect"])) or known.get(folded(head["bare"])))
        if head and aspect and (bullets or not head["rest"] or not _BULLET.match(line)):
            blocks.append((aspect, (head["rest"] or "") + bare[HEAD_AT_MOST:], []))
        else:
            (blocks[-1][2] if blocks else before).append(line.rstrip())
    return before, blocks


def read_sections(reply: Completion, scales: Mapping[str, Scale]) -> dict[str, tuple[Reading, str]]:
    """(reading, the words it was read from) of every aspect in `scales`, each by itself.

    A reply that is one JSON object is read by its fields, any other by its headings.  In a reply that was cut off the
    section it was cut in is truncated, and the aspects after it too; the sections before are read.
    """
    text, cut = reply.text, reply.finish == "length"
    if reply.finish == "refusal" or not text.strip():
        return {name: (read_rating(text, scale, name, reply.finish), "") for name, scale in scales.items()}
    if (fields := json_object(text, "scores", "aspects")) is not None:
        fields = _by_folded_name(fields)
        return {
            name: _read_field(fields.get(folded(name), fields.get(f"{folded(name)} score")), name, scale)
            for name, scale in scales.items()
        }
    readings: dict[str, tuple[Reading, str]] = {}
    blocks = headed_blocks(text, tuple(scales))[1]
    for k, (name, first, lines) in enumerate(blocks):
        words = "\n".join([f"{name}: {first}", *lines] if first.strip() else lines).strip()
        is_cut = cut and k == len(blocks) - 1
        reading = Reading(None, "truncated") if is_cut else read_rating(words, scales[name], name)
        if name not in readings or reading.value is not None:  # a later section that can be read replaces the earlier
            readings[name] = (reading, words)
    refused = read_rating(text, next(iter(scales.values()))).reason == "refused"
    nothing: UnscoredReason = "truncated" if cut else "refused" if refused else "no verdict"
    return {name: readings.get(name, (Reading(None, nothing), "")) for name in scales}


def _read_field(value: Any, name: str, scale: Scale) -> tuple[Reading, str]:
    words = str(value)
    if isinstance(value, dict):
        inner = _by_folded_name(value)
        words = str(inner.get("explanation") or inner.get("reason") or "")
        value = inner.get("score", inner.get("rating"))
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return Reading(None, "no verdict"), ""
    return read_rating(f"Score: {value}", scale, name), words


def _by_folded_name(body: Mapping[str, Any]) -> dict[str, Any]:
    return {folded(str(name).replace("_", " ")): value for name, value in body.items()}
