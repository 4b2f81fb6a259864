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
All looks back go over windows of bounded length, so that a reply of one endless line is read in linear time.
"""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from core.judging import reply_patterns as patterns
from core.judging.reply_context import is_of_a_part, is_of_the_aspect, is_quoted, is_supposed, leads_its_line
from core.judging.reply_patterns import Grammar, cased, grammar, levelled, matched_value, out_of, plain
from core.records import Scale, UnscoredReason
from core.verdicts import Reading

PARSER = "concord.v3"
"""Name and version of this reader, as judge files state it: one that reads some reply otherwise gets a new number."""

STRUCTURED, ALONE, LABELLED, PROSE, QUOTED = 4, 3, 2, 1, 0
"""The ranks (above)."""

_TAIL, _CLOSING, _BEFORE = 120, 48, 24
"""Characters looked back over."""

_MOST = 500
"""Matches that are looked at in one reply, the last ones: a verdict has few, an attack has a hundred thousand."""

_CUT_OFF_FROM = 80
"""A reply at least this long that states nothing and stops in the middle of a sentence was cut off."""

_CLOSES = tuple(".!?:;)]}\"'*>`…。！？」")
_LONGEST_LONE_LETTER = 12


class Statement(NamedTuple):
    """A value (None: the reply says that there is none) stated at [start, end) of the reply."""

    rank: int
    start: int
    end: int
    value: float | None


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
    text = reply.rstrip()
    if letters:
        chosen = _firmest(from_letters(text, scale) or _numbers(text, scale, aspect))
    else:
        chosen = _firmest(_numbers(text, scale, aspect) or from_letters(text, scale))
    if chosen is None or chosen.value is None:
        return Reading(None, _silence(reply, scale, aspect) if chosen is None else "no verdict")
    span = (chosen.start, chosen.end)
    return Reading(chosen.value, None, span) if scale.holds(chosen.value) else Reading(None, "out of range", span)


def _firmest(stated: Sequence[Statement]) -> Statement | None:
    return max(stated, key=lambda statement: (statement.rank, statement.start), default=None)


def _numbers(reply: str, scale: Scale, aspect: str) -> list[Statement]:
    if "{" in reply and (fields := from_json(reply, scale, aspect)):
        return fields
    return _in_text(reply, scale, aspect)


def _in_text(reply: str, scale: Scale, aspect: str) -> list[Statement]:
    forms = grammar(scale.low, scale.high, aspect)
    text = levelled(reply, forms)
    stated = [*from_labels(text, forms, scale), *from_marks(text, forms, scale)]
    stated += [*standing_alone(text, scale), *from_chinese(text, scale)]
    if not any(statement.rank > LABELLED for statement in stated):
        stated += from_any_name(text, scale)
    if not any(statement.rank > PROSE for statement in stated):
        stated += from_prose(text, forms, scale)
    return _without_parts(text, stated, forms)


def _without_parts(text: str, stated: list[Statement], grammar: Grammar) -> list[Statement]:
    """Less the marks for parts of the aspect ("structure: 5", "a 3 for transitions") after a verdict on the aspect."""
    if grammar.own is None or len(stated) < 2:
        return stated
    parts = {statement for statement in stated if is_of_a_part(text, statement.start, statement.end, grammar.own)}
    starts = [
        statement.start
        for statement in stated
        if statement not in parts
        and statement.rank > QUOTED
        and is_of_the_aspect(text, statement.start, statement.end, grammar.own)
    ]
    if not starts:
        return stated
    return [statement for statement in stated if statement not in parts or statement.start < min(starts)]


def _silence(reply: str, scale: Scale, aspect: str) -> UnscoredReason:
    """Why a reply that states nothing does so."""
    text = levelled(reply, grammar(scale.low, scale.high, aspect))
    if patterns.REFUSAL.search(text):
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

_NAMES = frozenset(
    "rating score verdict grade mark label answer evaluation assessment stars points result value choice "
    "bewertung note punktzahl wertung puntuacion calificacion valoracion nota puntaje notation "
    "评分 得分 分数 评级 打分".split()
)
_FINAL = frozenset("final overall total 最终 总".split())
_PARTS = re.compile(r"[^\W\d_]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


def from_json(reply: str, scale: Scale, aspect: str) -> list[Statement]:
    """The rating field of the reply's JSON object, if it has one; words in it ("4/5") are read as a reply's.

    A field named after the aspect is taken before "final" or "overall", that before "rating", "score" and the like;
    of equals the last.  A field of null states that there is no rating.
    """
    start, end = reply.find("{"), reply.rfind("}") + 1
    if start < 0 or end <= start or '"' not in reply:
        return []
    try:
        fields = list(_fields(json.loads(reply[start:end]), frozenset(_words(aspect))))
    except (ValueError, RecursionError):  # prose with braces, cut off, nested past the parser's depth
        return []
    if not fields:
        return []
    best = max(strength for strength, _ in fields)
    value = [value for strength, value in fields if strength == best][-1]
    if isinstance(value, bool):
        if (scale.low, scale.high) != (0, 1):
            return []
        value = float(value)
    elif isinstance(value, (int, float)):
        value = float(value) if abs(value) < 1e15 else math.inf
    elif value is not None:
        words = str(value)
        stated = _firmest(_in_text(words, scale, "") or from_letters(words, scale))
        if stated is None or stated.value is None:
            return []
        value = stated.value
    return [Statement(STRUCTURED, start, end, value)]


def _words(name: str) -> list[str]:
    return _PARTS.findall(plain(_HUMP.sub(" ", name)))


def _fields(body: Any, own: frozenset[str]) -> Iterator[tuple[int, Any]]:
    """How surely a field holds the rating, and its value, in document order; a stack, so that depth is no danger."""
    stack: list[tuple[str, Any, bool]] = [("", body, False)]
    while stack:
        name, value, inside = stack.pop()
        words = frozenset(_words(name))
        named = bool(own) and own <= words
        if isinstance(value, dict):
            stack += [(str(key), part, inside or named) for key, part in reversed(value.items())]
        elif isinstance(value, list):
            if len(value) == 1 or any(isinstance(part, dict) for part in value):
                stack += [(name, part, inside) for part in reversed(value)]
        elif named or words & _NAMES:
            yield (3 if named else 2 if words & _FINAL else 1) + (2 if inside else 0), value


# ── letters of multiple choice: A is the low end of the scale, B the next, and so on ───────────────────────────


def from_letters(reply: str, scale: Scale) -> list[Statement]:
    """Options stated in `reply`; letters beyond the scale's last option are none."""
    text = cased(reply)
    if len(reply) < _LONGEST_LONE_LETTER and (lone := patterns.LETTER_ONLY.fullmatch(text)):
        return _options([lone], ALONE, scale)
    options = _options(patterns.LETTER_LABELLED.finditer(text), LABELLED, scale)
    options += _options(patterns.LETTER_ALONE.finditer(text), LABELLED, scale)
    first = patterns.LETTER_AT_START.match(text)
    if first and not _is_list(text, first):
        options += _options([first], LABELLED, scale)
    return options or _options(patterns.LETTER_IN_BRACKETS.finditer(text), PROSE, scale)


def _is_list(text: str, match: re.Match[str]) -> bool:
    """Whether the options themselves are listed: the next letter begins a line further down."""
    follower = chr(ord(match["letter"]) + 1)
    return any(f"\n{follower}{mark}" in text for mark in ").:")


def _options(matches: Iterable[re.Match[str]], rank: int, scale: Scale) -> list[Statement]:
    stated = [Statement(rank, *m.span(), float(scale.low + ord(m["letter"].upper()) - ord("A"))) for m in matches]
    return [option for option in stated if option.value is not None and option.value <= scale.high]


# ── numbers and words: labelled, alone, in prose ─────────────────────────────────────────────────────────────


def _last_matches(pattern: re.Pattern[str], text: str) -> deque[re.Match[str]]:
    return deque(pattern.finditer(text), _MOST)


def _valued(match: re.Match[str], rank: int, scale: Scale) -> Iterator[Statement]:
    """The statement of a match with a value in it."""
    if (value := matched_value(match, scale)) is not None:
        yield Statement(rank, *match.span(), value)


def from_labels(text: str, grammar: Grammar, scale: Scale) -> Iterator[Statement]:
    """Labels with a value behind them; "n/a" there is a statement that there is none."""
    for match in _last_matches(grammar.label, text):
        if match["name"] in patterns.SHY_NAMES and not patterns.VERDICT_ENDS.match(text, match.end()):
            continue
        if match["inside"] is not None:
            value: float | None = out_of(match["inside"], None, match["inside_top"], scale)
        else:
            value = matched_value(match, scale)
            if value is None and match["nothing"] is None:
                continue
        head = text[max(0, match.start() - _BEFORE) : match.start()]
        before = patterns.BEFORE_LABEL.search(head)
        start = match.start() - (len(before[0]) if before else 0)
        if (before and before["final"]) or leads_its_line(text, start):
            yield Statement(ALONE, start, match.end(), value)
        elif is_quoted(text, start):
            yield Statement(QUOTED, start, match.end(), value)
        elif not is_supposed(text, start, match.end()):
            yield Statement(LABELLED, start, match.end(), value)


def from_marks(text: str, grammar: Grammar, scale: Scale) -> Iterator[Statement]:
    """Values in tags and in TeX boxes; on a scale from 0 to 1 also "the answer is no"."""
    marks: list[tuple[re.Pattern[str], int]] = []
    if "<" in text or "[" in text:
        marks.append((grammar.tag, ALONE))
    if "\\boxed" in text:
        marks.append((patterns.BOXED, ALONE))
    if (scale.low, scale.high) == (0, 1):
        marks.append((patterns.ANSWERS, LABELLED))
    for pattern, rank in marks:
        for match in _last_matches(pattern, text):
            yield from _valued(match, rank, scale)


def from_any_name(text: str, scale: Scale) -> Iterator[Statement]:
    """Lines "Engagingness: 2" under a name that is no count; none where several different names have values."""
    matches = _named(text)
    if len({match["name"].strip() for match in matches}) == 1:
        for match in matches:
            yield from _valued(match, LABELLED, scale)


def _named(text: str) -> list[re.Match[str]]:
    return [
        match
        for match in _last_matches(patterns.ANY_NAME, text)
        if match["name"].strip() not in patterns.RUBRICS and not patterns.COUNTED.search(match["name"])
    ]


def standing_alone(text: str, scale: Scale) -> Iterator[Statement]:
    """The reply's first words, lines that hold nothing but a value, and a value that closes the reply."""
    first = patterns.START.match(text)
    if first and _opens_reply(text, first):
        yield from _valued(first, ALONE, scale)
    for line in _last_matches(patterns.LINE, text):
        yield from _valued(line, ALONE, scale)
    last = patterns.CLOSING.search(text, max(0, len(text) - _CLOSING))
    if last and not _is_of_another_name(text, last.start()):
        yield from _valued(last, PROSE, scale)


def _opens_reply(text: str, match: re.Match[str]) -> bool:
    """Whether the reply starts with its verdict: "4. The text ...", "Three stars.", "yes, ...", but no list."""
    bare = match["number"] is not None and match["top"] is None
    if bare and (patterns.LIST_GOES_ON.search(text, match.end()) or patterns.NUMBERED_NAME.match(text, match.end())):
        return False
    return bool(patterns.STAR_WORD.match(text, match.end()) or patterns.VERDICT_ENDS.match(text, match.end()))


def _is_of_another_name(text: str, start: int) -> bool:
    """Whether a label stands before `start` that counts something, or is one of several ("Fluency: 4, Style: 2")."""
    line = text[max(0, start - _TAIL) : start]
    if not line.endswith(":"):
        return False
    counts = patterns.COUNTED.search(line[line.rfind("\n") + 1 :])
    return bool(counts) or len({match["name"] for match in _named(text)}) > 1


def from_prose(text: str, grammar: Grammar, scale: Scale) -> list[Statement]:
    """ "A score of 4", "4 von 5", "una nota de 4", "three stars".

    Statements in English; in German, Spanish and French where English finds none; at last a number in brackets.
    """
    forms = (grammar.prose, grammar.making, grammar.ratio)
    english = [statement for form in forms for statement in _in_prose(text, form, scale)]
    return english or [*_in_prose(text, grammar.other_prose, scale)] or [*_in_brackets(text, scale)]


def _in_prose(text: str, pattern: re.Pattern[str], scale: Scale) -> Iterator[Statement]:
    """What counts something is no verdict, nor what lies beyond ten times the scale: that is a year or a count."""
    for match in _last_matches(pattern, text):
        value = matched_value(match, scale)
        if value is None or not patterns.NO_COUNT.match(text, match.end()) or _ends_a_range(text, match):
            continue
        fits = value <= 10 * max(scale.high, 1) or match.groupdict().get("top") is not None
        if fits and not is_supposed(text, match.start(), match.end()):
            yield Statement(QUOTED if is_quoted(text, match.start()) else PROSE, *match.span(), value)


def _ends_a_range(text: str, match: re.Match[str]) -> bool:
    """ "3 to 4 stars", "between three and four": neither end is the verdict."""
    start = match.start("number") if match["number"] is not None else match.start()
    return bool(patterns.RANGE_BEFORE.search(text, max(0, start - _BEFORE), start))


def _in_brackets(text: str, scale: Scale) -> Iterator[Statement]:
    """ "somewhat interesting (2)." where it is the only such number; and the one under an empty "Rating:" line."""
    for pattern in (patterns.IN_BRACKETS, patterns.AFTER_EMPTY_LABEL):
        matches = list(islice(pattern.finditer(text), 2))
        if len(matches) == 1:
            value = matched_value(matches[0], scale)
            if value is not None and scale.holds(value):
                yield Statement(QUOTED, *matches[0].span(), value)


def from_chinese(text: str, scale: Scale) -> list[Statement]:
    """Statements in `text`, none when it holds no such character; 是 and 否 count at the start, on 0 to 1."""
    if text.isascii() or not patterns.CHINESE.search(text):
        return []

    def defines(match: re.Match[str]) -> bool:
        return patterns.CHINESE_DEFINES.match(text, match.end()) is not None

    stated: list[Statement] = []
    for match in patterns.CHINESE_LABEL.finditer(text):
        if not defines(match):
            first = bool(match["final"]) or leads_its_line(text, match.start())
            stated += _valued(match, ALONE if first else LABELLED, scale)
    if answer := patterns.CHINESE_ANSWER.match(text):
        stated += _valued(answer, ALONE, scale)
    if not stated:
        for pattern in (patterns.CHINESE_PROSE, patterns.CHINESE_ENDING):
            for match in pattern.finditer(text):
                stated += _valued(match, PROSE, scale) if not defines(match) else ()
    return stated
