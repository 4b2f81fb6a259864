"""Holistic or specific: which of the two patterns a text of criteria follows (001 §5, Table 6 and Figure 4).

Holistic criteria say what good and bad items have in common; specific ones hold a rubric, a line for each number of the
scale.  001 sorted its criteria by reading them.  Here a rule decides, so that the same text always falls on the same
side: *specific* is a text with rubric lines for at least half of the scale's steps, and for at least two of them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Literal

from core.records import Scale

Pattern = Literal["holistic", "specific"]
PATTERNS: tuple[Pattern, ...] = ("holistic", "specific")
MOST_STEPS = 10
"""A scale of more whole numbers than this is cut into `BANDS` equal parts: nobody writes 101 lines."""
BANDS = 5

_SEGMENT = re.compile(r"\n+|(?<=[.;!?])[\s-]+|:\s+(?=[-*•]\s)|,\s+(?=\d+(?:\.\d+)?\s*[=:])")
_DECORATION = re.compile(r"^(?:[\s*_`#>|•▪·]+|[-–—]\s+|\(?\d{1,2}\)\s+(?=[*_]*[A-Za-z]))+")
_NUMBER = r"[-−]?\d+(?:[.,]\d+)?"
_VALUE = (
    rf"(?P<low>{_NUMBER})(?:\s*(?:-|–|—|to|or|and|through)\s*(?P<high>{_NUMBER}))?"
    rf"(?:\s*(?:/|out\s+of)\s*\d+(?:[.,]\d+)?)?(?P<unit>\s*(?:points?|stars?|marks?)\b)?(?:\s*[(\[][^)\]]{{1,60}}[)\]])?"
)
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        rf"^{_VALUE}\s*(?::|=|\||[-–—](?=\s)|\b(?:means|indicates|stands\s+for|goes\s+to)\b|(?(unit)$|(?!)))",
        rf"\ban?\s+{_VALUE}\s*\b(?:if|when|for|to|means|is|goes|indicates|describes)\b",  # A 5 goes to …
        r"\b(?:score|rating|grade|mark|level|point|star|rate|get|give|assign|award|receive|earn|deserve|reserve)s?\b"
        r"(?:\s+(?:it|them|texts?|an?|the|score|rating|grade|mark|of|is|from|between|at|as)\b)*"
        rf"\s*[:=]?\s*{_VALUE}",  # Score 3 - …, with a rating of 2, gets a 4
        rf"^[A-Za-z ]{{1,40}}[(\[]{_VALUE}[)\]]\s*[:=–—-]",  # Excellent (4-5): …
    )
)


def pattern_of(text: str, scale: Scale) -> Pattern:
    """The pattern of a text of criteria on `scale`; a text without rubric lines, the empty one too, is holistic.

    A rubric line is a line or sentence that opens with a number or a range within the scale ("5:", "4-5:"), or that
    names one as a score ("Score 3 -", "a text with a rating of 2", "gets a 4").  A range over the whole scale only
    names the scale; a bare "3." numbers a list.
    """
    lines = list(_rubric_lines(text, scale))
    steps = _steps(scale)
    covered = sum(any(low <= step_high and high >= step_low for low, high in lines) for step_low, step_high in steps)
    return "specific" if len(lines) >= 2 and covered >= max(2, math.ceil(len(steps) / 2)) else "holistic"


def _rubric_lines(text: str, scale: Scale) -> Iterator[tuple[float, float]]:
    """(low, high) of the numbers that each rubric line of `text` is about."""
    for segment in _SEGMENT.split(text):
        line = re.sub(r"[*_`]", "", _DECORATION.sub("", segment))
        number = next((hit for form in _FORMS if (hit := form.search(line))), None)
        if number is None:
            continue
        low = _number(number["low"])
        low, high = sorted((low, _number(number["high"]) if number["high"] else low))
        whole = low <= scale.low and high >= scale.high
        if scale.holds(low) and scale.holds(high) and not whole:
            yield low, high


def _number(text: str) -> float:
    return float(text.replace("−", "-").replace(",", "."))


def _steps(scale: Scale) -> list[tuple[float, float]]:
    """(low, high) of the steps: whole numbers, `BANDS` parts of a long scale, the two ends of a short one."""
    first, last = math.ceil(scale.low), math.floor(scale.high)
    if last - first + 1 > MOST_STEPS:
        ends = [scale.low + k * (scale.high - scale.low) / BANDS for k in range(BANDS)]
        upper = [math.nextafter(end, scale.low) for end in ends[1:]]  # an edge belongs to the part above it
        return list(zip(ends, [*upper, scale.high], strict=True))
    if last <= first:
        return [(scale.low, scale.low), (scale.high, scale.high)]
    return [(float(step), float(step)) for step in range(first, last + 1)]
