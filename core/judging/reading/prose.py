"""Values stated in running text: "a score of 4", "4 von 5", "una nota de 4", "three stars"."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from itertools import islice

from core.judging.reading import wording
from core.judging.reading.context import is_quoted, is_supposed
from core.judging.reading.numerals import matched_value
from core.judging.reading.statements import PROSE, QUOTED, Statement
from core.judging.reading.wording import Grammar
from core.records import Scale

_MOST = 500
"""Statements that are looked at in one reply, the last ones."""


def from_prose(text: str, grammar: Grammar, scale: Scale) -> list[Statement]:
    """Statements in English; in German, Spanish and French where English finds none; at last a number in brackets."""
    found = [*_stated(text, grammar.prose, scale), *_stated(text, grammar.ratio, scale)]
    return found or [*_stated(text, grammar.other_prose, scale)] or [*_in_brackets(text, scale)]


def _stated(text: str, pattern: re.Pattern[str], scale: Scale) -> Iterator[Statement]:
    for match in deque(pattern.finditer(text), _MOST):
        value = matched_value(match, scale)
        if value is None or not wording.NO_COUNT.match(text, match.end()) or not _fits(match, value, scale):
            continue
        if not is_supposed(text, match.start(), match.end()):
            yield Statement(QUOTED if is_quoted(text, match.start()) else PROSE, *match.span(), value)


def _in_brackets(text: str, scale: Scale) -> Iterator[Statement]:
    """ "somewhat interesting (2)." where it is the only such number; and the one under an empty "Rating:" line."""
    for pattern in (wording.IN_BRACKETS, wording.AFTER_EMPTY_LABEL):
        matches = list(islice(pattern.finditer(text), 2))
        if len(matches) == 1:
            value = matched_value(matches[0], scale)
            if value is not None and scale.holds(value):
                yield Statement(QUOTED, *matches[0].span(), value)


def _fits(match: re.Match[str], value: float, scale: Scale) -> bool:
    """Prose speaks of many numbers: one beyond ten times the scale is a year or a count."""
    return value <= 10 * max(scale.high, 1) or match.groupdict().get("top") is not None
