"""Values behind a label ("score: 4"), in a tag ("<score>4</score>"), and values that stand alone."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from core.judging.reading import wording
from core.judging.reading.context import is_quoted, is_supposed, leads_its_line
from core.judging.reading.numerals import matched_value, out_of
from core.judging.reading.statements import ALONE, LABELLED, PROSE, QUOTED, Statement
from core.judging.reading.wording import SHY_NAMES, Grammar
from core.records import Scale

_TAIL, _CLOSING, _BEFORE = 120, 48, 24
_MOST = 500
"""Labels that are looked at in one reply, the last ones: a verdict has few, an attack has a hundred thousand."""


def from_labels(text: str, grammar: Grammar, scale: Scale) -> Iterator[Statement]:
    """Labels with a value behind them; "n/a" there is a statement that there is none."""
    for match in deque(grammar.label.finditer(text), _MOST):
        if match["name"] in SHY_NAMES and not wording.VERDICT_ENDS.match(text, match.end()):
            continue
        if match["inside"] is not None:
            value: float | None = out_of(match["inside"], None, match["inside_top"], scale)
        else:
            value = matched_value(match, scale)
            if value is None and match["nothing"] is None:
                continue
        head = text[max(0, match.start() - _BEFORE) : match.start()]
        before = wording.BEFORE_LABEL.search(head)
        start = match.start() - (len(before[0]) if before else 0)
        if (before and before["final"]) or leads_its_line(text, start):
            yield Statement(ALONE, start, match.end(), value)
        elif is_quoted(text, start):
            yield Statement(QUOTED, start, match.end(), value)
        elif not is_supposed(text, start, match.end()):
            yield Statement(LABELLED, start, match.end(), value)


def from_marks(text: str, grammar: Grammar, scale: Scale) -> Iterator[Statement]:
    """Values in tags and in TeX boxes; on a scale from 0 to 1 also "the answer is no"."""
    if "<" in text or "[" in text:
        yield from _each(grammar.tag, text, ALONE, scale)
    if "\\boxed" in text:
        yield from _each(wording.BOXED, text, ALONE, scale)
    if (scale.low, scale.high) == (0, 1):
        yield from _each(wording.ANSWERS, text, LABELLED, scale)


def _each(pattern: re.Pattern[str], text: str, rank: int, scale: Scale) -> Iterator[Statement]:
    for match in deque(pattern.finditer(text), _MOST):
        yield from _alone(match, rank, scale)


def _named(text: str) -> list[re.Match[str]]:
    lines = deque(wording.ANY_NAME.finditer(text), _MOST)
    names = [match for match in lines if match["name"].strip() not in wording.RUBRICS]
    return [match for match in names if not wording.COUNTED.search(match["name"])]


def from_any_name(text: str, scale: Scale) -> Iterator[Statement]:
    """Lines "Engagingness: 2" under a name that is no count; none where several different names have values."""
    matches = _named(text)
    if len({match["name"].strip() for match in matches}) == 1:
        for match in matches:
            yield from _alone(match, LABELLED, scale)


def standing_alone(text: str, scale: Scale) -> Iterator[Statement]:
    """The reply's first words, lines that hold nothing but a value, and a value that closes the reply."""
    first = wording.START.match(text)
    if first and _opens_reply(text, first):
        yield from _alone(first, ALONE, scale)
    for line in deque(wording.LINE.finditer(text), _MOST):
        yield from _alone(line, ALONE, scale)
    last = wording.CLOSING.search(text, max(0, len(text) - _CLOSING))
    if last and not _is_of_another_name(text, last.start()):
        yield from _alone(last, PROSE, scale)


def _is_of_another_name(text: str, start: int) -> bool:
    """Whether a label stands before `start` that counts something, or is one of several ("Fluency: 4, Style: 2")."""
    line = text[max(0, start - _TAIL) : start]
    if not line.endswith(":"):
        return False
    return bool(wording.COUNTED.search(line[line.rfind("\n") + 1 :])) or len({one["name"] for one in _named(text)}) > 1


def _alone(match: re.Match[str], rank: int, scale: Scale) -> Iterator[Statement]:
    value = matched_value(match, scale)
    if value is not None:
        yield Statement(rank, *match.span(), value)


def _opens_reply(text: str, match: re.Match[str]) -> bool:
    """Whether the reply starts with its verdict: "4. The text ...", "Three stars.", "yes, ...", but no list."""
    bare = match["number"] is not None and match["top"] is None
    if bare and (wording.LIST_GOES_ON.search(text, match.end()) or wording.NUMBERED_NAME.match(text, match.end())):
        return False
    return bool(wording.STAR_WORD.match(text, match.end()) or wording.VERDICT_ENDS.match(text, match.end()))
