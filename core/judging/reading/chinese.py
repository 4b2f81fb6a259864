"""Ratings stated in Chinese (and the commonest Japanese and Korean labels), where words have no spaces between them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from core.judging.reading.stated import ALONE, LABELLED, PROSE, Statement, leads_its_line
from core.judging.reading.wording import DIGITS, matched_value
from core.records import Scale

_CHARACTER = "零一二两兩三四五六七八九十"
_NUMBER = rf"(?P<number>-?{DIGITS}|[{_CHARACTER}])(?P<half>分半)?"
_TOP = rf"(?:\s{{0,2}}分?\s{{0,2}}/\s{{0,2}}(?P<top>{DIGITS}))?"
_NAMES = (
    "评分|評分|得分|分数|分數|评级|評級|打分|给分|給分|评价|評價|评估|評估|成绩|成績|总分|總分|等级|等級|结论|答案|"
    "評価|スコア|点数|點數|점수|평점"
)
_UNIT = r"(?:\s?(?:分|点|點|颗星|顆星|星|점))?"
_NO_RANGE = r"(?!\d|[.,]\d|\s{0,2}分?\s{0,2}(?:-|~|到|至|或)\s{0,2}\d)"
_LABEL = re.compile(
    rf"(?P<final>最终|最終|最后|最後|综合|綜合|总体|總體|总|總)?的?(?:{_NAMES})(?:[(\[][^()\[\]\n]{{0,40}}[)\]])?\]?"
    rf"(?:\s{{0,3}}(?:[:=]|应该是|應該是|应为|應為|是|为|為|は|는|은)){{1,2}}[\s\"'(\[]{{0,4}}"
    rf"(?:{_NUMBER}{_UNIT}{_TOP}{_NO_RANGE}|(?P<answer>是|对|不是|否))"
)
_PROSE = re.compile(
    rf"(?:给|給|打|评|評|得|获|獲|为|為|是|:|,|^)[^\d\n,。.;{_CHARACTER}]{{0,8}}{_NUMBER}\s?(?:分|颗星|顆星|星|点){_TOP}{_NO_RANGE}"
)
_FIFTHS = re.compile(rf"(?<![\d.,]){_NUMBER}\s?(?:分|颗星|顆星|星)?(?=\s{{0,3}}(?:[.。!,，;]|$)){_NO_RANGE}\Z")
_LINE = re.compile(r"(?m)^\s{0,4}(?P<answer>是|否|对|不是)\s?[。.,!]?")
_DEFINES = re.compile(r"\s?分?[^。.\n\d]{0,4}(?:表示|代表|意味|指的是|是最|为最|為最|最高|最低|需要)")
_ANY = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def from_chinese(text: str, scale: Scale) -> list[Statement]:
    """Statements in `text`, none when it holds no such character."""
    if text.isascii() or not _ANY.search(text):
        return []
    stated = [*_labelled(text, scale), *_answers(text, scale)]
    return stated or [*_in_prose(text, scale)]


def _labelled(text: str, scale: Scale) -> Iterator[Statement]:
    for match in _LABEL.finditer(text):
        value = matched_value(match, scale)
        if value is not None and not _DEFINES.match(text, match.end()):
            first = bool(match["final"]) or leads_its_line(text, match.start())
            yield Statement(ALONE if first else LABELLED, *match.span(), value)


def _answers(text: str, scale: Scale) -> Iterator[Statement]:
    """是 and 否 that begin a line, on a scale from 0 to 1."""
    match = _LINE.match(text)
    value = matched_value(match, scale) if match else None
    if match and value is not None:
        yield Statement(ALONE, *match.span(), value)


def _in_prose(text: str, scale: Scale) -> Iterator[Statement]:
    for pattern in (_PROSE, _FIFTHS):
        for match in pattern.finditer(text):
            value = matched_value(match, scale)
            if value is not None and not _DEFINES.match(text, match.end()):
                yield Statement(PROSE, *match.span(), value)
