"""What stands around a value in a reply: a supposition, a quotation, the aspect, or a part of it.

All looks back go over windows of bounded length.  The text is a reply in its plain form (`reply_patterns.levelled`).
"""

from __future__ import annotations

import re

from core.judging import reply_patterns as patterns

_SENTENCE, _LINE, _BULLET, _TAIL = 120, 1_000, 40, 120
"""Characters looked back over."""


def is_supposed(text: str, start: int, end: int) -> bool:
    """Whether [start, end) is a supposition ("a 5 would need ...", "would be a 5 if ...", "rather than a 5")."""
    before = text[_sentence_start(text, start) : start]
    if patterns.SUPPOSED_AFTER.match(text, end):
        return True
    if patterns.MILD_WOULD.search(before) and " if " not in before:
        return False
    return bool(patterns.SUPPOSED_BEFORE.search(before))


def _sentence_start(text: str, end: int) -> int:
    """Where the sentence around `end` begins, at most so many characters before it."""
    floor = max(0, end - _SENTENCE)
    return max(floor, max(text.rfind(mark, floor, end) for mark in (". ", "\n", "! ", "? ")) + 1)


def is_quoted(text: str, start: int) -> bool:
    """Whether an odd number of double quotes opens before `start` on its line, or a quote stands right before it."""
    floor = max(0, start - _LINE)
    line = text[max(floor, text.rfind("\n", floor, start) + 1) : start]
    return line.count('"') % 2 == 1 or line.endswith((' "', " '", "('", '("'))


def leads_its_line(text: str, start: int) -> bool:
    """Whether nothing but a bullet, a number, or the quote and brace of a JSON field stand before `start`."""
    floor = max(0, start - _BULLET)
    head = text.rfind("\n", floor, start) + 1
    if head == 0 and floor > 0:
        return False
    before = text[head:start].strip("{,[|-+>•()0123456789. \t")
    return not before or (before in ('"', "'") and bool(patterns.JSON_NAME.match(text, start)))


def is_of_the_aspect(text: str, start: int, end: int, own: re.Pattern[str]) -> bool:
    """Whether the aspect is named in the sentence up to `end`, or is what the mark at [start, end) is for."""
    if own.search(text, _sentence_start(text, start), end):
        return True
    after = patterns.AFTER_VALUE.match(text, end)
    return bool(after and own.match(text, after.start("word")))


def is_of_a_part(text: str, start: int, end: int, own: re.Pattern[str]) -> bool:
    """Whether another word than the aspect, or than a judge's own, says what the mark at [start, end) is for."""
    if own.search(text, start, end):
        return False
    if after := patterns.AFTER_VALUE.match(text, end):
        return not own.match(text, after.start("word")) and after["word"] not in patterns.NO_PARTS
    before = patterns.BEFORE_VALUE.search(text[max(0, start - _TAIL) : start])
    return before is not None and not own.search(before["word"]) and before["word"] not in patterns.NO_PARTS
