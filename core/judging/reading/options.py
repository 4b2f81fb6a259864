"""Letters of multiple choice: A is the low end of the scale, B the next, and so on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.judging.reading.stated import ALONE, LABELLED, PROSE, Statement
from core.judging.reading.wording import cased
from core.records import Scale

_LETTER = r"[(\[\"'<{]{0,2}\s?(?P<letter>[A-J])(?![\w'’])"
_ALONE = re.compile(rf"(?m)^[\s\"'(\[]{{0,4}}(?:[Oo]ption\s)?{_LETTER}[\s\"').:\]>}}]{{0,4}}$")
_START = re.compile(rf"[\s\"'(\[]{{0,4}}(?:[Oo]ption\s)?{_LETTER}\s?[).:\],>\n-]")
_LABEL = re.compile(
    r"(?i:\b(?:answer|option|choice|verdict|rating|score|grade|antwort|respuesta|opcion|reponse|choix|"
    r"choose|chose|select|selected|pick|picked)\b|答案|选项|選項|选择|選擇|我选|評分|评分)"
    rf"(?:\s{{0,3}}(?::|=|-|\b(?i:is|would be|option|answer|ist|es|est|la|die|der)\b|是|为)){{0,3}}\s{{0,3}}{_LETTER}"
    r"(?=\s{0,2}(?:[.,;:!?)\]}\"'>\n。，-]|$|because\b|since\b|as\b|for\b))"
)
_BRACKETS = re.compile(r"\((?P<letter>[A-J])\)")
_LOWER = re.compile(r"\s{0,4}[(\[\"']?(?P<letter>[a-jA-J])[)\]\"'.:]?\s{0,4}")
_LONGEST_LONE = 12


def from_letters(reply: str, scale: Scale) -> list[Statement]:
    """Options stated in `reply`; letters beyond the scale's last option are none."""
    if len(reply) < _LONGEST_LONE and (lone := _LOWER.fullmatch(cased(reply))):
        return [*_option(lone, ALONE, scale)]
    text = cased(reply)
    options = [option for match in _LABEL.finditer(text) for option in _option(match, LABELLED, scale)]
    options += [option for match in _ALONE.finditer(text) for option in _option(match, LABELLED, scale)]
    first = _START.match(text)
    if first and not _is_list(text, first):
        options += _option(first, LABELLED, scale)
    return options or [option for match in _BRACKETS.finditer(text) for option in _option(match, PROSE, scale)]


def _is_list(text: str, match: re.Match[str]) -> bool:
    """Whether the options themselves are listed: the next letter begins a line further down."""
    follower = chr(ord(match["letter"]) + 1)
    return any(f"\n{follower}{mark}" in text for mark in ").:")


def _option(match: re.Match[str], rank: int, scale: Scale) -> Iterator[Statement]:
    value = scale.low + ord(match["letter"].upper()) - ord("A")
    if value <= scale.high:
        yield Statement(rank, *match.span(), float(value))
