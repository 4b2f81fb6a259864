"""Replies to one item → its verdict: each is read, weighed by its probabilities if wanted, and the mean is taken.

*The probability-weighted score* (G-Eval, section 2) is what the model would have said on average, from one reply: where
the endpoint tells the likeliest tokens in the place of the rating, it is sum p(s) · s over the ratings s of the scale,
with the probabilities renormalised to those that stand on the scale.  Only ratings of one digit stand in one token with
every tokenizer, so the scale must be of whole numbers from 0 to 9.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.errors import UsageError
from core.judging.parse import read_rating
from core.judging.render import whole_ratings
from core.providers.base import Completion, Failure, Reply, TokenLogprobs
from core.records import Scale, Scored, Task, Usage, Verdict
from core.verdicts import Reading, mean_verdict

LOGPROBS = 20
"""Likeliest tokens to ask for: ten ratings at most, some of them written in several ways."""

_SPACE_MARKS = "\u2581\u0120\u010a"
"""How tokenizers write a space or a line end in front of a word."""

_SCALE_BEFORE = re.compile(r"(?:[/–-]|\b(?:out )?of|\bto)\s*\Z")
_SCALE_AFTER = re.compile(r"\s*(?:[–-]|to\b)\s*\d")
"""Around the ends of a scale that the reply repeats ("1-5", "4/5", "4 out of 5")."""


@dataclass(frozen=True, slots=True)
class Weighted:
    """The score, and the share (0 to 1) of the probability told for its place that lay on the scale."""

    value: float
    on_scale: float


def total_usage(replies: Sequence[Reply]) -> Usage:
    """The usage of all completions among `replies`."""
    return sum((reply.usage for reply in replies if isinstance(reply, Completion)), Usage())


def verdict_of(
    item_id: str, replies: Sequence[Reply], task: Task, *, weighted: bool = False, notes: Sequence[str] = ()
) -> Verdict:
    """The mean of the readable replies, or Unscored with the reason of the first that was not.

    With `weighted` each readable reply counts with its probability-weighted score, and with its read rating where it
    came without probabilities; the explanation says which.  `notes` are put after it.
    """
    readings = [_read(reply, task) for reply in replies]
    raw = tuple(reply.text for reply in replies if isinstance(reply, Completion))
    read = [
        (reply, reading)
        for reply, reading in zip(replies, readings, strict=True)
        if isinstance(reply, Completion) and reading.value is not None
    ]
    unread = [reading for reading in readings if reading.value is None]
    weights = [weighted_rating(reply, reading, task.scale) if weighted else None for reply, reading in read]
    counted = [Reading(w.value) if w else reading for w, (_, reading) in zip(weights, read, strict=True)]
    lines = [_reasons(reply.text) for reply, _ in read[:1]]
    if weighted:
        lines += _on_weights(weights, [reading.value for _, reading in read if reading.value is not None], task.scale)
    verdict = mean_verdict(item_id, [*counted, *unread], explanation="\n".join([*lines, *notes]), raw=raw)
    if weighted and isinstance(verdict, Scored):
        return replace(verdict, n_unweighted=weights.count(None))
    return verdict


def _read(reply: Reply, task: Task) -> Reading:
    if isinstance(reply, Failure):
        return Reading(None, "provider error", detail=reply.message)
    reading = read_rating(reply.text, task.scale, task.aspect, reply.finish)
    if reading.reason == "out of range":
        return replace(reading, detail=f"The reply states a number outside {task.scale}.")
    return reading


def _reasons(reply: str) -> str:
    """What a reply gives for its rating: the words of a JSON reply's reasons, else the whole of it."""
    try:
        fields = json.loads(reply)
    except (ValueError, RecursionError):
        return reply.strip()
    said = [fields.get(name) for name in ("reasons", "analysis")] if isinstance(fields, dict) else []
    return next((words.strip() for words in said if isinstance(words, str) and words.strip()), reply.strip())


def _on_weights(weights: Sequence[Weighted | None], stated: Sequence[float], scale: Scale) -> list[str]:
    """In words: how much of the probability lay on the scale, and how many replies came without any."""
    known = [weight for weight in weights if weight is not None]
    lines = []
    if known:
        value = sum(weight.value for weight in known) / len(known)
        share = sum(weight.on_scale for weight in known) / len(known)
        said = ", ".join(f"{value:g}" for value in stated[:5]) + (", …" if len(stated) > 5 else "")
        lines = [f"Weighted by probability: {value:.2f}; {share:.0%} of it on the scale {scale}. Said: {said}."]
    if missing := len(weights) - len(known):
        lines.append(f"Without usable probabilities: {missing} of {len(weights)} replies; the stated rating counts.")
    return lines


def require_weightable(scale: Scale) -> None:
    """UsageError when no weighted score can be made on `scale`."""
    if not whole_ratings(scale):
        raise UsageError(
            f"The probability-weighted score needs a scale of whole numbers from 0 to 9, and this one is {scale}"
            f"{'' if scale.step is None else f' in steps of {scale.step:g}'}. Take the read rating (weighted off)."
        )


def weighted_rating(reply: Completion, reading: Reading, scale: Scale) -> Weighted | None:
    """The weighted score in the place of the rating that was read; None where that cannot be told.

    That is so without logprobs, and where the rating read is none of the whole ratings ("3.5").
    """
    ratings = {str(rating): float(rating) for rating in whole_ratings(scale)}
    place = None if reading.value is None else _place(reply, reading, ratings)
    if place is None:
        return None
    mass: dict[float, float] = {}
    for token, logprob in place.top:
        if (rating := ratings.get(_bare(token))) is not None:
            mass[rating] = mass.get(rating, 0.0) + math.exp(min(0.0, logprob))
    total = sum(mass.values())
    if total <= 0.0:
        return None
    return Weighted(sum(rating * share for rating, share in mass.items()) / total, min(1.0, total))


def _place(reply: Completion, reading: Reading, ratings: dict[str, float]) -> TokenLogprobs | None:
    """The first token that is the rating read, where the reply states it; an end of a quoted scale is not meant."""
    text = "".join(place.token for place in reply.logprobs)
    low, high = reading.span if reading.span and reply.text.startswith(text) else (0, len(text))
    start = 0
    for place in reply.logprobs:
        end = start + len(place.token)
        stated = ratings.get(_bare(place.token)) == reading.value and start < high and end > low
        if stated and not _SCALE_BEFORE.search(text[:start]) and not _SCALE_AFTER.match(text[end:]):
            return place
        start = end
    return None


def _bare(token: str) -> str:
    return token.strip().strip(_SPACE_MARKS)
