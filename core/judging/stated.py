"""Where in a reply a value is stated: behind a label, in a tag, alone, in running text; and how firmly.

All patterns are bounded and all looks back go over windows of bounded length, so that a reply of one endless line is
read in linear time.  Chinese (with the commonest Japanese and Korean labels), where words have no spaces between them,
has patterns of its own at the end.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from core.judging import patterns
from core.judging.patterns import DIGITS, SHY_NAMES, Grammar, matched_value, out_of
from core.records import Scale

STRUCTURED, ALONE, LABELLED, PROSE, QUOTED = 4, 3, 2, 1, 0
"""Ranks: a JSON field; a line or start of its own, or a "final" label; a label elsewhere; prose; in quotation marks."""

_SENTENCE, _LINE, _BULLET = 120, 1_000, 40
_TAIL, _CLOSING, _BEFORE = 120, 48, 24
"""Characters looked back over."""

_MOST = 500
"""Matches that are looked at in one reply, the last ones: a verdict has few, an attack has a hundred thousand."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A value (None: the reply says that there is none) stated at [start, end) of the reply."""

    rank: int
    start: int
    end: int
    value: float | None


def _last_matches(pattern: re.Pattern[str], text: str) -> deque[re.Match[str]]:
    return deque(pattern.finditer(text), _MOST)


def _alone(match: re.Match[str], rank: int, scale: Scale) -> Iterator[Statement]:
    value = matched_value(match, scale)
    if value is not None:
        yield Statement(rank, *match.span(), value)


# ── behind a label, in a tag ─────────────────────────────────────────────────────────────────────────────────


def from_labels(text: str, grammar: Grammar, scale: Scale) -> Iterator[Statement]:
    """Labels with a value behind them; "n/a" there is a statement that there is none."""
    for match in _last_matches(grammar.label, text):
        if match["name"] in SHY_NAMES and not patterns.VERDICT_ENDS.match(text, match.end()):
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
        elif _is_quoted(text, start):
            yield Statement(QUOTED, start, match.end(), value)
        elif not _is_supposed(text, start, match.end()):
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
            yield from _alone(match, rank, scale)


def from_any_name(text: str, scale: Scale) -> Iterator[Statement]:
    """Lines "Engagingness: 2" under a name that is no count; none where several different names have values."""
    matches = _named(text)
    if len({match["name"].strip() for match in matches}) == 1:
        for match in matches:
            yield from _alone(match, LABELLED, scale)


def _named(text: str) -> list[re.Match[str]]:
    return [
        match
        for match in _last_matches(patterns.ANY_NAME, text)
        if match["name"].strip() not in patterns.RUBRICS and not patterns.COUNTED.search(match["name"])
    ]


# ── alone ────────────────────────────────────────────────────────────────────────────────────────────────────


def standing_alone(text: str, scale: Scale) -> Iterator[Statement]:
    """The reply's first words, lines that hold nothing but a value, and a value that closes the reply."""
    first = patterns.START.match(text)
    if first and _opens_reply(text, first):
        yield from _alone(first, ALONE, scale)
    for line in _last_matches(patterns.LINE, text):
        yield from _alone(line, ALONE, scale)
    last = patterns.CLOSING.search(text, max(0, len(text) - _CLOSING))
    if last and not _is_of_another_name(text, last.start()):
        yield from _alone(last, PROSE, scale)


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


# ── in running text ──────────────────────────────────────────────────────────────────────────────────────────


def from_prose(text: str, grammar: Grammar, scale: Scale) -> list[Statement]:
    """ "A score of 4", "4 von 5", "una nota de 4", "three stars".

    Statements in English; in German, Spanish and French where English finds none; at last a number in brackets.
    """
    english = [*_in_prose(text, grammar.prose, scale), *_in_prose(text, grammar.ratio, scale)]
    return english or [*_in_prose(text, grammar.other_prose, scale)] or [*_in_brackets(text, scale)]


def _in_prose(text: str, pattern: re.Pattern[str], scale: Scale) -> Iterator[Statement]:
    """What counts something is no verdict, nor what lies beyond ten times the scale: that is a year or a count."""
    for match in _last_matches(pattern, text):
        value = matched_value(match, scale)
        if value is None or not patterns.NO_COUNT.match(text, match.end()):
            continue
        fits = value <= 10 * max(scale.high, 1) or match.groupdict().get("top") is not None
        if fits and not _is_supposed(text, match.start(), match.end()):
            yield Statement(QUOTED if _is_quoted(text, match.start()) else PROSE, *match.span(), value)


def _in_brackets(text: str, scale: Scale) -> Iterator[Statement]:
    """ "somewhat interesting (2)." where it is the only such number; and the one under an empty "Rating:" line."""
    for pattern in (patterns.IN_BRACKETS, patterns.AFTER_EMPTY_LABEL):
        matches = list(islice(pattern.finditer(text), 2))
        if len(matches) == 1:
            value = matched_value(matches[0], scale)
            if value is not None and scale.holds(value):
                yield Statement(QUOTED, *matches[0].span(), value)


# ── what stands around a value ───────────────────────────────────────────────────────────────────────────────

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


def _is_supposed(text: str, start: int, end: int) -> bool:
    """Whether [start, end) is a supposition ("a 5 would need ...", "would be a 5 if ...", "rather than a 5")."""
    floor = max(0, start - _SENTENCE)
    sentence = max(text.rfind(mark, floor, start) for mark in (". ", "\n", "! ", "? ")) + 1
    before = text[max(sentence, floor) : start]
    if _SUPPOSED_AFTER.match(text, end):
        return True
    if _MILD_WOULD.search(before) and " if " not in before:
        return False
    return bool(_SUPPOSED_BEFORE.search(before))


def _is_quoted(text: str, start: int) -> bool:
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


# ── in Chinese ───────────────────────────────────────────────────────────────────────────────────────────────

_CHARACTER = "零一二两兩三四五六七八九十"
_CHINESE_NUMBER = rf"(?P<number>-?{DIGITS}|[{_CHARACTER}])(?P<half>分半)?"
_TOP = rf"(?:\s{{0,2}}分?\s{{0,2}}/\s{{0,2}}(?P<top>{DIGITS}))?"
_CHINESE_NAMES = (
    "评分|評分|得分|分数|分數|评级|評級|打分|给分|給分|评价|評價|评估|評估|成绩|成績|总分|總分|等级|等級|结论|答案|"
    "評価|スコア|点数|點數|점수|평점"
)
_UNIT = r"(?:\s?(?:分|点|點|颗星|顆星|星|점))?"
_NO_RANGE = r"(?!\d|[.,]\d|\s{0,2}分?\s{0,2}(?:-|~|到|至|或)\s{0,2}\d)"
_CHINESE_LABEL = re.compile(
    rf"(?P<final>最终|最終|最后|最後|综合|綜合|总体|總體|总|總)?的?(?:{_CHINESE_NAMES})(?:[(\[][^()\[\]\n]{{0,40}}[)\]])?\]?"
    rf"(?:\s{{0,3}}(?:[:=]|应该是|應該是|应为|應為|是|为|為|は|는|은)){{1,2}}[\s\"'(\[]{{0,4}}"
    rf"(?:{_CHINESE_NUMBER}{_UNIT}{_TOP}{_NO_RANGE}|(?P<answer>是|对|不是|否))"
)
_CHINESE_PROSE = re.compile(
    rf"(?:给|給|打|评|評|得|获|獲|为|為|是|:|,|^)[^\d\n,。.;{_CHARACTER}]{{0,8}}{_CHINESE_NUMBER}\s?(?:分|颗星|顆星|星|点){_TOP}{_NO_RANGE}"
)
_FIFTHS = re.compile(rf"(?<![\d.,]){_CHINESE_NUMBER}\s?(?:分|颗星|顆星|星)?(?=\s{{0,3}}(?:[.。!,，;]|$)){_NO_RANGE}\Z")
_ANSWER_LINE = re.compile(r"(?m)^\s{0,4}(?P<answer>是|否|对|不是)\s?[。.,!]?")
_CHINESE_DEFINES = re.compile(r"\s?分?[^。.\n\d]{0,4}(?:表示|代表|意味|指的是|是最|为最|為最|最高|最低|需要)")
_CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def from_chinese(text: str, scale: Scale) -> list[Statement]:
    """Statements in `text`, none when it holds no such character."""
    if text.isascii() or not _CHINESE.search(text):
        return []
    stated = [*_chinese_labels(text, scale), *_chinese_answers(text, scale)]
    return stated or [*_in_chinese_prose(text, scale)]


def _chinese_labels(text: str, scale: Scale) -> Iterator[Statement]:
    for match in _CHINESE_LABEL.finditer(text):
        value = matched_value(match, scale)
        if value is not None and not _CHINESE_DEFINES.match(text, match.end()):
            first = bool(match["final"]) or leads_its_line(text, match.start())
            yield Statement(ALONE if first else LABELLED, *match.span(), value)


def _chinese_answers(text: str, scale: Scale) -> Iterator[Statement]:
    """是 and 否 that begin a line, on a scale from 0 to 1."""
    match = _ANSWER_LINE.match(text)
    value = matched_value(match, scale) if match else None
    if match and value is not None:
        yield Statement(ALONE, *match.span(), value)


def _in_chinese_prose(text: str, scale: Scale) -> Iterator[Statement]:
    for pattern in (_CHINESE_PROSE, _FIFTHS):
        for match in pattern.finditer(text):
            value = matched_value(match, scale)
            if value is not None and not _CHINESE_DEFINES.match(text, match.end()):
                yield Statement(PROSE, *match.span(), value)
