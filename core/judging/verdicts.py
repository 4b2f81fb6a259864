"""Replies to one item → its verdict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from core.judging.parse import Reading, read_rating
from core.judging.weighted import Weighted, weighted_rating
from core.providers.base import Completion, Failure, Reply
from core.records import Scale, Scored, Task, Unscored, UnscoredReason, Usage, Verdict


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, and how many of its readable replies could not be weighted (0 where no weights were wanted)."""

    verdict: Verdict
    n_unweighted: int = 0


def total_usage(replies: Sequence[Reply]) -> Usage:
    """The usage of all completions among `replies`."""
    return sum((reply.usage for reply in replies if isinstance(reply, Completion)), Usage())


def verdict_of(
    item_id: str, replies: Sequence[Reply], task: Task, *, weighted: bool = False, notes: Sequence[str] = ()
) -> Judged:
    """The mean of the readable replies, or Unscored with the reason of the first that was not.

    With `weighted` each readable reply counts with its probability-weighted score, and with its read rating where it
    came without probabilities; the explanation says which.  `notes` are put after it.
    """
    readings = [_read(reply, task) for reply in replies]
    raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    read = [reading.value for reading in readings if reading.value is not None]
    if not read:
        reason = readings[0].reason or "no verdict"
        return Judged(Unscored(item_id, reason, _detail(replies[0], reason, task), raw))
    first = next(text for text, reading in zip(_texts(replies), readings, strict=True) if reading.value is not None)
    weights = _weights(replies, readings, task.scale) if weighted else []
    missing = sum(one is None for one in weights)
    values = [one.value if one else value for value, one in zip(read, weights or [None] * len(read), strict=True)]
    verdict = Scored(
        item_id,
        sum(values) / len(values),
        explanation="\n".join([_reasons(first), *_on_weights(weights, read, task.scale), *notes]),
        raw=raw,
        n_read=len(values),
        n_unread=len(readings) - len(values),
    )
    return Judged(verdict, missing)


def _weights(replies: Sequence[Reply], readings: Sequence[Reading], scale: Scale) -> list[Weighted | None]:
    """The weighted score of each readable reply, None where it has none."""
    return [
        weighted_rating(reply, reading, scale)
        for reply, reading in zip(replies, readings, strict=True)
        if isinstance(reply, Completion) and reading.value is not None
    ]


def _on_weights(weights: Sequence[Weighted | None], read: Sequence[float], scale: Scale) -> list[str]:
    """In words: how much of the probability lay on the scale, and how many replies came without any."""
    found = [one for one in weights if one is not None]
    lines = []
    if found:
        value = sum(one.value for one in found) / len(found)
        share = sum(one.on_scale for one in found) / len(found)
        said = ", ".join(f"{value:g}" for value in read[:5]) + (", …" if len(read) > 5 else "")
        lines = [f"Weighted by probability: {value:.2f}; {share:.0%} of it on the scale {scale}. Said: {said}."]
    if len(found) < len(weights):
        missing = len(weights) - len(found)
        lines.append(f"Without usable probabilities: {missing} of {len(weights)} replies; the stated rating counts.")
    return lines


def _reasons(reply: str) -> str:
    """What a reply gives for its rating: the words of a JSON reply's reasons, else the whole of it."""
    try:
        fields = json.loads(reply)
    except (ValueError, RecursionError):
        return reply.strip()
    said = [fields.get(name) for name in ("reasons", "analysis")] if isinstance(fields, dict) else []
    return next((words.strip() for words in said if isinstance(words, str) and words.strip()), reply.strip())


def _read(reply: Reply, task: Task) -> Reading:
    if isinstance(reply, Failure):
        return Reading(None, "provider error")
    return read_rating(reply.text, task.scale, task.aspect, reply.finish)


def _texts(replies: Sequence[Reply]) -> list[str]:
    return [reply.text if isinstance(reply, Completion) else "" for reply in replies]


def _detail(reply: Reply, reason: UnscoredReason, task: Task) -> str:
    if isinstance(reply, Failure):
        return reply.message
    return f"The reply states a number outside {task.scale}." if reason == "out of range" else ""
