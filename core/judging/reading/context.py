"""What stands around a stated value: whether it is supposed, quoted, or leads its line.

Each looks back over a window of bounded length, so that a reply of one endless line is read in linear time.
"""

from __future__ import annotations

import re

_SENTENCE = 120
_LINE = 1_000
_BULLET = 40

_SUPPOSED_BEFORE = re.compile(
    r"(?:\bnot(?: quite)?|n't|\brather than|\binstead of|\bthan|\bshort of|\bbelow|\babove|"
    r"\bto (?:reach|get|earn|merit|deserve|achieve|receive|be)|"
    r"\b(?:would|could|might) (?:have|be|need|require|merit|deserve|earn|get|reach)[\w\s]{0,12}|"
    r"\bif\b[^.,!?\n]{0,60}|\bfor|\b(?:keine?|statt|als|fur|no|pas|pour|para|que)) ?(?:a|an|the|eine?|una?|une?)? ?"
    r"(?:score of|rating of|score|rating)? ?$"
)
_MILD_WOULD = re.compile(r"\b(?:would|could|might) be ?(?:a|an)? ?$")
_SUPPOSED_AFTER = re.compile(
    r"[^.!?\n]{0,12}?\b(?:would (?:require|need|mean|be (?:given|reserved|for))|requires?|needs?|means|represents|"
    r"is (?:reserved|for|given|defined)|indicates|corresponds|if (?:it|the|this|there|they)\b|"
    r"(?:wurde|ware|brauchte|hiesse|bedeutet)\b|(?:requeriria|necesitaria|significa|seria para)\b|"
    r"(?:exigerait|demanderait|signifie|serait pour)\b)"
)
_JSON_NAME = re.compile(r"[\w ]{1,40}[\"']\s{0,3}:")


def is_supposed(text: str, start: int, end: int) -> bool:
    """Whether [start, end) is a supposition ("a 5 would need ...", "would be a 5 if ...", "rather than a 5")."""
    floor = max(0, start - _SENTENCE)
    sentence = max(text.rfind(mark, floor, start) for mark in (". ", "\n", "! ", "? ")) + 1
    before = text[max(sentence, floor) : start]
    if _SUPPOSED_AFTER.match(text, end):
        return True
    if _MILD_WOULD.search(before) and " if " not in before:
        return False
    return bool(_SUPPOSED_BEFORE.search(before))


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
    return not before or (before in ('"', "'") and bool(_JSON_NAME.match(text, start)))
