"""From matched text to a number: digits, decimals with point or comma, words, stars, yes and no."""

from __future__ import annotations

import math
import re

from core.judging.reading.wording import DIGIT_CHARACTERS, NO, NUMBER_WORDS, YES
from core.records import Scale

_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+")
_LONGEST = 24


def matched_value(match: re.Match[str], scale: Scale) -> float | None:
    """The value a pattern matched; None where it matched none, or yes / no on a scale other than 0 to 1.

    One given out of another top than the scale's is infinite, that is out of range: it is not converted.
    """
    groups = match.groupdict()
    if groups.get("number") is not None:
        return out_of(groups["number"], groups.get("half"), groups.get("top"), scale)
    if groups.get("glyphs") is not None:
        return float(len(groups["glyphs"]))
    answer = groups.get("answer")
    if answer is not None and (scale.low, scale.high) == (0, 1):
        return 1.0 if answer in YES else 0.0 if answer in NO else None
    return None


def out_of(number: str, half: str | None, top: str | None, scale: Scale) -> float:
    """`number`, plus a half if one was matched; infinite when it was given out of another top than `scale.high`."""
    value = plain_number(number) + (0.5 if half else 0.0)
    return math.inf if top is not None and plain_number(top) != scale.high else value


def plain_number(text: str) -> float:
    """The number written in digits or as a word; one of more than 24 characters is infinite."""
    if text in NUMBER_WORDS:
        return float(NUMBER_WORDS[text])
    if text in DIGIT_CHARACTERS:
        return float(DIGIT_CHARACTERS[text])
    if len(text) > _LONGEST:
        return math.inf
    return float(text.replace(",", "" if _THOUSANDS.fullmatch(text) else "."))
