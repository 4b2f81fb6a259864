"""The probability-weighted score (G-Eval, section 2): what the model would have said on average, from one reply.

Where the endpoint tells the likeliest tokens in the place of the rating, it is sum p(s) · s over the ratings s of the
scale, with the probabilities renormalised to those that stand on the scale.  Only ratings of one digit stand in one
token with every tokenizer, so the scale must be of whole numbers from 0 to 9.  A model in the process knows its own
tokens: there other whole numbers do as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from core.errors import UsageError
from core.judging.render import whole_numbers, whole_ratings
from core.judging.styles import Sampling
from core.providers.base import Completion, TokenLogprobs
from core.records import Scale
from core.verdicts import Reading
from core.wording import percent

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


def require_askable(sampling: Sampling, spec: str, scale: Scale) -> None:
    """UsageError where no endpoint can be asked so: for a likelihood; weighted, or in stars, on a `scale` of others."""
    if sampling.form == "likelihood":
        raise UsageError(
            f"How likely a text is can be asked of a model in the process (hf:ID_OR_PATH), not of {spec}: endpoints "
            "tell the probabilities of what they write themselves."
        )
    if sampling.form == "stars" and not whole_numbers(scale):
        raise UsageError(f"Stars are whole numbers, and this scale is {scale}. Ask for a number (another form).")
    if sampling.weighted and not whole_ratings(scale):
        raise UsageError(
            f"The probability-weighted score needs a scale of whole numbers from 0 to 9, and this one is {scale}"
            f"{'' if scale.step is None else f' in steps of {scale.step:g}'}. Take the read rating (weighted off)."
        )


def weighted_rating(reply: Completion, reading: Reading, scale: Scale) -> Weighted | None:
    """The weighted score in the place of the rating that was read; None where that cannot be told.

    That is so without logprobs, and where the rating read is none of the whole ratings ("3.5").
    """
    ratings = {str(rating): float(rating) for rating in whole_numbers(scale)}
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


def weights_in_words(weights: Sequence[Weighted | None], stated: Sequence[float], scale: Scale) -> list[str]:
    """How much of the probability lay on the scale, and how many replies came without any."""
    known = [weight for weight in weights if weight is not None]
    lines = []
    if known:
        value = sum(weight.value for weight in known) / len(known)
        share = sum(weight.on_scale for weight in known) / len(known)
        ratings = ", ".join(f"{value:g}" for value in stated[:5]) + (", …" if len(stated) > 5 else "")
        lines = [f"Weighted by probability: {value:.2f}; {percent(share)} of it on the scale {scale}. Said: {ratings}."]
    if missing := len(weights) - len(known):
        lines.append(f"Without usable probabilities: {missing} of {len(weights)} replies; the stated rating counts.")
    return lines
