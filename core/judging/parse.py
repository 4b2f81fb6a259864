"""Reading the rating out of a reply (METHODS §2).

Every place where a value is *stated as the verdict* is collected with a rank; the last one of the highest rank wins.
So an explanation that follows "Rating: 3" cannot outvote it with "a 5 would need ...", and an analysis that precedes
"Rating: 2" cannot either.  Ranks:

4  a field of the reply's JSON object
3  a line of its own, the very start of the reply, a tag, or a "final" / "overall" label
2  a label with colon ("score: 4") elsewhere
1  prose: "a score of 4", "I give it a 4", "4/5", "4 out of 5", "four stars", a number that closes the reply
0  the same inside quotation marks (a judge quoting the text it rates), or a lone number in brackets

Left out: scales quoted from the prompt ("1-5"), counts ("3 errors"), years, and suppositions ("would be a 5 if").
English, German, Spanish, French and Chinese wordings are known; digits may be full-width, decimals have point or comma.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from core.judging.patterns import REFUSAL, Grammar, cased, grammar, levelled, plain
from core.judging.stated import (
    ALONE,
    LABELLED,
    PROSE,
    STRUCTURED,
    Statement,
    from_any_name,
    from_chinese,
    from_labels,
    from_marks,
    from_prose,
    standing_alone,
)
from core.records import Scale, UnscoredReason
from core.verdicts import Reading

PARSER = "concord.v1"
"""Name and version of this reader, as judge files state it: one that reads some reply otherwise gets a new number."""

_CUT_OFF_FROM = 80
"""A reply at least this long that states nothing and stops in the middle of a sentence was cut off."""

_CLOSES = tuple(".!?:;)]}\"'*>`…。！？」")


def read_rating(reply: str, scale: Scale, aspect: str = "", finish: str = "stop", *, letters: bool = False) -> Reading:
    """The rating stated in `reply` on `scale`, or why there is none.

    `aspect` may stand as the label ("Coherence: 4").  `finish` is the provider's: a reply that was cut off
    ("length") or refused ("refusal") is never read.  Yes and no count on scales from 0 to 1 only.  `letters` says that
    the judge was offered letters, A for the low end: they are then looked for first; otherwise a letter is an answer
    only where no number is stated.  Time is linear in the length of the reply.
    """
    if finish == "refusal":
        return Reading(None, "refused")
    if not reply.strip():
        return Reading(None, "truncated" if finish == "length" else "empty")
    if finish == "length":
        return Reading(None, "truncated")
    chosen = _choose(reply.rstrip(), scale, aspect, letters=letters)
    if chosen is None or chosen.value is None:
        return Reading(None, _silence(reply, scale, aspect) if chosen is None else "no verdict")
    span = (chosen.start, chosen.end)
    return Reading(chosen.value, None, span) if scale.holds(chosen.value) else Reading(None, "out of range", span)


def _choose(reply: str, scale: Scale, aspect: str, *, letters: bool) -> Statement | None:
    if letters:
        return _firmest(from_letters(reply, scale) or _numbers(reply, scale, aspect))
    return _firmest(_numbers(reply, scale, aspect) or from_letters(reply, scale))


def _firmest(stated: Sequence[Statement]) -> Statement | None:
    return max(stated, key=lambda statement: (statement.rank, statement.start), default=None)


def _numbers(reply: str, scale: Scale, aspect: str) -> list[Statement]:
    if "{" in reply and (fields := from_json(reply, scale, aspect, lambda text: _value(text, scale))):
        return fields
    patterns = grammar(scale.low, scale.high, aspect)
    return _in_text(levelled(reply, patterns), scale, patterns)


def _in_text(text: str, scale: Scale, patterns: Grammar) -> list[Statement]:
    stated = [*from_labels(text, patterns, scale), *from_marks(text, patterns, scale)]
    stated += [*standing_alone(text, scale), *from_chinese(text, scale)]
    if not any(statement.rank > LABELLED for statement in stated):
        stated += from_any_name(text, scale)
    if not any(statement.rank > PROSE for statement in stated):
        stated += from_prose(text, patterns, scale)
    return stated


def _value(text: str, scale: Scale) -> float | None:
    """What a JSON field's words state ("4/5", "four stars")."""
    patterns = grammar(scale.low, scale.high, "")
    chosen = _firmest(_in_text(levelled(text, patterns), scale, patterns) or from_letters(text, scale))
    return None if chosen is None else chosen.value


def _silence(reply: str, scale: Scale, aspect: str) -> UnscoredReason:
    """Why a reply that states nothing does so."""
    text = levelled(reply, grammar(scale.low, scale.high, aspect))
    if REFUSAL.search(text):
        return "refused"
    cut_off = len(reply) >= _CUT_OFF_FROM and not reply.rstrip().endswith(_CLOSES)
    return "truncated" if cut_off else "no verdict"


def read_rating_as_paper(reply: str) -> Reading:
    """The digit 002's tables are built on (Chiang and Lee 2023), only to reproduce them: `read_rating` for all else.

    Lower case; every "1-3" dropped; what follows the last "rating:"; its first digit.  None with "empty" or "no
    verdict"; no span, since characters are dropped, and no scale is checked.  So "0.5" is 0, "2.5" is 2, a reply that
    repeats its prompt gives the first digit there, even of a year, and words are no numbers.  The paper prints its
    method nowhere; these steps bring its Tables 2 to 4 out to the last printed digit.
    """
    if not reply.strip():
        return Reading(None, "empty")
    text = reply.lower().replace("1-3", "").rpartition("rating:")[2]
    digit = re.search("[0-9]", text)
    return Reading(None, "no verdict") if digit is None else Reading(float(digit[0]))


# ── fields of JSON: the whole reply, a code fence, or what stands between the outermost braces, to any depth ──

ReadText = Callable[[str], float | None]

_NAMES = frozenset(
    "rating score verdict grade mark label answer evaluation assessment stars points result value choice "
    "bewertung note punktzahl wertung puntuacion calificacion valoracion nota puntaje notation "
    "评分 得分 分数 评级 打分".split()
)
_FINAL = frozenset("final overall total 最终 总".split())
_PARTS = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class _Field:
    strength: int
    value: Any


def from_json(reply: str, scale: Scale, aspect: str, read_text: ReadText) -> list[Statement]:
    """The rating field of the reply's JSON object, if it has one; `read_text` reads fields that hold words.

    A field named after the aspect is taken before "final" or "overall", that before "rating", "score" and the like;
    of equals the last.  A field of null states that there is no rating.
    """
    start, end = reply.find("{"), reply.rfind("}") + 1
    if start < 0 or end <= start or '"' not in reply:
        return []
    body = _parsed(reply[start:end])
    if body is None:
        return []
    fields = list(_fields(body, frozenset(_words(aspect)), named=False))
    if not fields:
        return []
    best = max(field.strength for field in fields)
    value = [field.value for field in fields if field.strength == best][-1]
    return _statement(value, start, end, scale, read_text)


def _parsed(text: str) -> Any | None:
    """The JSON object, or None when it is none (prose with braces, cut off, nested past the parser's depth)."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _words(name: str) -> list[str]:
    return _PARTS.findall(plain(_HUMP.sub(" ", name)))


def _fields(body: Any, own: frozenset[str], *, named: bool) -> Iterator[_Field]:
    """Fields that may hold the rating, in document order; walked with a stack, so depth is no danger."""
    stack: list[tuple[str, Any, bool]] = [("", body, named)]
    while stack:
        name, value, inside = stack.pop()
        words = frozenset(_words(name))
        strength = _strength(words, own)
        if isinstance(value, dict):
            stack += [(str(key), part, inside or bool(strength == 3)) for key, part in reversed(value.items())]
        elif isinstance(value, list):
            stack += [(name, part, inside) for part in (reversed(value) if len(value) == 1 or _records(value) else ())]
        elif strength:
            yield _Field(strength + (2 if inside else 0), value)


def _records(values: list[Any]) -> bool:
    return any(isinstance(value, dict) for value in values)


def _strength(words: frozenset[str], own: frozenset[str]) -> int:
    if own and own <= words:
        return 3
    if not words & _NAMES:
        return 0
    return 2 if words & _FINAL else 1


def _statement(value: Any, start: int, end: int, scale: Scale, read_text: ReadText) -> list[Statement]:
    if value is None:
        return [Statement(STRUCTURED, start, end, None)]
    if isinstance(value, bool):
        return [Statement(STRUCTURED, start, end, float(value))] if (scale.low, scale.high) == (0, 1) else []
    if isinstance(value, (int, float)):
        return [Statement(STRUCTURED, start, end, float(value) if abs(value) < 1e15 else float("inf"))]
    read = read_text(str(value))
    return [] if read is None else [Statement(STRUCTURED, start, end, read)]


# ── letters of multiple choice: A is the low end of the scale, B the next, and so on ───────────────────────────

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
