"""Read the rating out of a judge's reply.

One reading of each reply, in three steps, the first that finds a verdict decides:

1. *JSON*: the field that was asked for ("score", "rating", the aspect's name), at the top level before nested ones.
   Fields of other names never count, nor do words in other fields.
2. *A labelled verdict*: "Score: 4", "Final rating - **3/5**", "[[7]]", "[RESULT] 2", "<score>4</score>", a row of a
   table.  The last one stands.
3. *The reply itself* is nothing but a rating, or begins or ends with one, or says "I would rate it 4".

A wrong rating is worse than none.  So where the last verdict is undecided ("4-5", "I cannot decide", a sum that does
not come out, another scale), the reply is unread, and no earlier number is taken instead.  Words that the judge quotes
never count: in quotation marks, in a code fence, behind ">", in tags such as <item>.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from core.records import Scale, UnscoredReason
from core.verdicts import Reading

PARSER = "concord.v4"
"""Name and version of this reader, as judge files state it: one that reads some reply otherwise gets a new number."""

LONGEST = 40_000
"""Characters that are read of a longer reply: its last ones.  A verdict stands at an end, and an attack is long."""
MOST = 400
"""Verdicts and JSON objects that are looked at in a reply, the last ones."""
_CUT_OFF_FROM = 80
"""A reply at least this long that states nothing and stops in the middle of a sentence was cut off."""
_CLOSES = tuple(".!?:;)]}\"'*>`…。！？」")


class Value(NamedTuple):
    """What stands behind a label: a number, or None where it is undecided; `end` is where it ends."""

    value: float | None
    end: int


class Statement(NamedTuple):
    """A verdict at [start, end) of the text; None where it says that there is none, or which cannot be told."""

    start: int
    end: int
    value: float | None


def read_rating(reply: str, scale: Scale, aspect: str = "", finish: str = "stop", *, letters: bool = False) -> Reading:
    """Read the rating that `reply` states on `scale`, or say why there is none.

    `aspect` may stand as the label or the field ("Coherence: 4").  `finish` is the provider's: a reply that was cut off
    ("length") or refused ("refusal") is never read.  Yes and no count on scales from 0 to 1 only.  `letters` says that
    the judge was offered letters, A for the low end.  Time is linear in the length of the reply.
    """
    if finish == "refusal":
        return Reading(None, "refused")
    if finish == "length":
        return Reading(None, "truncated")
    text = levelled(reply[-LONGEST:])
    if not text.strip():
        return Reading(None, "empty")
    found = _from_json(text, scale, aspect, whole=len(reply) <= LONGEST)
    if found is None:
        found = _from_text(_without_quotes(text), scale, aspect, letters=letters)
    if found is None:
        return Reading(None, _silence(text))
    moved = max(0, len(reply) - LONGEST)
    span = (found.start + moved, found.end + moved)
    if found.value is None:
        return Reading(None, "refused" if _REFUSAL.search(text) else "no verdict", span)
    return Reading(found.value, None, span) if scale.holds(found.value) else Reading(None, "out of range", span)


def read_rating_as_paper(reply: str) -> Reading:
    """Read the digit that the tables of *A Closer Look* are built on, only to reproduce them.

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


_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:cannot|can't|can not|won't|will not|must decline|decline)|"
    r"as an ai\b|unable to (?:rate|score|assess|evaluate|provide)|(?:cannot|can't) (?:rate|score|assess|evaluate))|"
    r"无法评分|无法评价|не могу оценить|tut mir leid|je ne peux pas|lo siento"
)


def _silence(text: str) -> UnscoredReason:
    """Why a reply that states nothing does so."""
    if _REFUSAL.search(text):
        return "refused"
    cut_off = len(text) >= _CUT_OFF_FROM and not text.rstrip().endswith(_CLOSES)
    return "truncated" if cut_off else "no verdict"


# ── one form for every way of writing ────────────────────────────────────────────────────────────────────────

_DASHES = dict.fromkeys(map(ord, "‐‑‒–−﹣－"), "-")
_MARKS = {ord("“"): '"', ord("”"): '"', ord("„"): '"', ord("«"): '"', ord("»"): '"', ord("’"): "'", ord("‘"): "'"}
_MARKS |= {ord("："): ":", ord("～"): "~", ord("〜"): "~", ord("，"): ",", ord("×"): "*", ord("÷"): "/", ord("⁄"): "/"}
_KEPT = frozenset("—―½¼¾★☆⭐🌟→⇒≈☑✅✔。、！？（）【】「」")


@lru_cache(maxsize=4096)
def _one(character: str) -> str:
    """A character as one plain character: invisible ones as blanks, any digit as an ASCII digit, lower case."""
    if character in _KEPT or character in "\n\t":
        return character
    if unicodedata.category(character) in ("Cf", "Mn", "Me", "Cc", "Zs", "Zl", "Zp", "Cs"):
        return " "
    number = unicodedata.numeric(character, -1.0)
    if number in range(10) and unicodedata.category(character) in ("Nd", "No", "Nl"):
        return str(int(number))
    plain = unicodedata.normalize("NFKC", character)
    plain = plain if len(plain) == 1 else character
    return lowered if len(lowered := plain.lower()) == 1 else plain


def levelled(reply: str) -> str:
    """The reply in one form, every character in its place: lower case, ASCII digits and dashes, no invisible ones."""
    text = reply.translate(_DASHES).translate(_MARKS)
    return text.lower() if text.isascii() else "".join(map(_one, text))


def plain(name: str) -> str:
    """A name in the same form, without markdown."""
    return levelled(name).translate(dict.fromkeys(map(ord, "*_`#"), " "))


_FENCE = re.compile(r"```[a-z0-9]*[ \t]*\n?(.*?)(?:```|\Z)", re.DOTALL)
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*>.*$")
_QUOTING = (
    "item|text|quote|blockquote|source|target|context|input|document|article|response|summary|reply|candidate|example|"
    "passage|user|instructions?|prompt|criteria|reference"
)
_TAGGED = re.compile(rf"<({_QUOTING})\b[^<>\n]{{0,80}}>.*?(?:</\1>|\Z)", re.DOTALL)
_IN_QUOTES = re.compile(r'"(?=[^"]*[^\W\d_]{2})[^"\n]{4,2000}"(?!\s*:)|`(?=[^`]*[^\W\d_]{2})[^`\n]{4,2000}`')
_IN_SINGLE = re.compile(r"(?<!\w)'(?=[^'\n]*[^\W\d_]{2}[^'\n]*\d)[^'\n]{4,400}'(?![\w:])")
_THOUGHTS = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)|\A.*</think(?:ing)?>", re.DOTALL)


def _without_quotes(text: str) -> str:
    """The text with blanks where the judge quotes: marks, fences, cited lines, tags of the item, thoughts."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    bare = text.strip()
    if "</think" in text or "<think" in text:
        text = _THOUGHTS.sub(blank, text)
    if "```" in text and not (bare.startswith("```") and bare.find("```", 3) in (-1, len(bare) - 3)):
        text = _FENCE.sub(blank, text)
    text = _QUOTED_LINE.sub(blank, text)
    if "<" in text:
        text = _TAGGED.sub(blank, text)
    if _IN_QUOTES.fullmatch(bare) or _IN_SINGLE.fullmatch(bare):
        return text
    return _IN_SINGLE.sub(blank, _IN_QUOTES.sub(blank, text))


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────

_WORDS = {
    name: value
    for value, names in enumerate(
        "zero/null/cero one/eins/un/une/uno two/zwei/deux/dos three/drei/trois/tres four/vier/quatre/cuatro "
        "five/fünf/cinq/cinco six/sechs/seis seven/sieben/sept/siete eight/acht/huit/ocho nine/neun/neuf/nueve "
        "ten/zehn/dix/diez".split()
    )
    for name in names.split("/")
    if name != "null"
}
_NUMBER = re.compile(
    r"(?P<sign>[+-](?=[\d.]))?(?P<digits>\d{1,15}(?:[.,]\d{1,12})?|[.,]\d{1,12})(?P<power>e-?\d{1,2})?(?P<half>[½¼¾])?"
)
_SPELT = re.compile(
    rf"(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})(?![\w])|(?P<han>[一二三四五六七八九十])(?=[分颗星点點]|\s*$)"
)
_HALF = re.compile(r"(?:[ \t]and[ \t]|-and-)(?:a[ \t-]|one[ \t-])half\b|[ \t]1/2(?![\d/])")
_BESIDES = re.compile(
    r"[ \t]{0,2}(?:(?:and|-and-)[ \t]?(?:a|an|one|two|three)[ \t-](?:half|quarter|third)|[ \t]\d/\d)|-and-|半"
)
_AGAIN = re.compile(r"[ \t]{1,2}\((?P<same>\d{1,3}(?:[.,]\d{1,2})?|[a-z]{3,5})\)")
_HALVES = {"½": 0.5, "¼": 0.25, "¾": 0.75}
_OPENS = re.compile(r"[ \t*_~`'\"(\[{<（【「|\\]{0,8}")
_RATIO = re.compile(
    r"[ \t*_\])]{0,4}(?:/|(?:\()?[ \t]{0,2}(?:out of|of|von|sur|su|de|من|из|van|av|z)\b|\bout of\b)[ \t*_(\[]{0,4}"
    rf"(?P<top>\d{{1,6}}(?:[.,]\d{{1,3}})?|{'|'.join(sorted(_WORDS, key=len, reverse=True))})(?![\d\w.,]*[\d])"
)
_COUNTED = re.compile(
    r"[ \t]{1,2}(?:criteria|criterions?|raters?|annotators?|items?|people|users?|times|sentences|facts|claims|errors|requirements|"
    r"checks|experts|judges|conditions|aspects|dimensions|reviewers|points (?:are|were|hold)|questions|tests|cases)\b"
)
_AS_PERCENT = re.compile(r"[ \t]{0,3}=[ \t]{0,3}\d{1,3}(?:[.,]\d)?[ \t]?%")
_PERCENT = re.compile(r"[ \t]{0,2}(?:%|percent\b|per cent\b|prozent\b)")
_SUM = re.compile(
    r"[\d.,()+\-*/ \t]{1,200}=[ \t*_]{0,4}(?P<result>[+-]?\d{1,9}(?:[.,]\d{1,6})?)(?![\d.,]*\d)(?![ \t]?%)"
)
_GOES_ON = re.compile(
    r"[ \t*_]{0,4}(?:[-~/+*=^]|→|⇒|->|=>|≈|(?:to|or|bis|à|ou|o|and|und|oder|até|至|到|或|や)(?![a-z]))[ \t*_]{0,4}"
    rf"(?:[\d.(]|(?:{'|'.join(_WORDS)})(?!\w))"
)
_UNIT = re.compile(
    r"[ \t]{0,2}(?:-?stars?|points?|pts?|sterne?n?|punkte?|étoiles?|estrellas?|puntos?|баллов|балла|балл|颗星|顆星|点|點|分|점|★|⭐)"
)
_JOINED = re.compile(r"[\w½¼¾半]|[.,:]\d|-\w")
_WOULD = re.compile(
    r"[ \t*_\"')\]]{0,4}(?:would|could|might|requires?|needs?|if\b|means?\b|is (?:for|reserved|only)|stands? for|=)|"
    r"[ \t*_\"')\]]{0,3}:"
)
_NO_VALUE = re.compile(
    r"[ \t*_\"'(\[{<]{0,6}(?:n/?a\b|none\b|null\b|nan\b|not (?:applicable|available|possible|sure|rated|scored)|unknown|"
    r"unclear|undecided|undetermined|tbd\b|i (?:cannot|can't|can not|am not|do not|don't)|i'm|cannot|can't|between|"
    r"somewhere|either|无法|entre\b|zwischen|\?|-\s*$)"
)
_ANSWER = re.compile(
    r"(?P<yes>yes|true|pass(?:ed)?|correct|ja|oui|sí|si|是)(?![\w-])|(?P<no>no|false|fail(?:ed)?|incorrect|nein|non|否|不是)(?![\w-])"
)


def _number(match: re.Match[str]) -> float:
    value = float(match["digits"].replace(",", ".") + (match["power"] or ""))
    value += _HALVES.get(match["half"] or "", 0.0)
    return -value if match["sign"] == "-" else value


def _as_number(text: str) -> float:
    return float(_WORDS[text]) if text in _WORDS else float(text.replace(",", "."))


def _value_at(text: str, at: int, scale: Scale) -> Value | None:
    """What stands at `at`, behind marks that open: a value, an undecided one, or None where nothing like it stands."""
    if (total := _SUM.match(text, at + len(text[at : at + 4]) - len(text[at : at + 4].lstrip()))) and "(" in total[0]:
        return Value(_total(total), total.end())
    opened = _OPENS.match(text, at)
    start = opened.end() if opened else at
    if (stars := _stars(text, start, scale)) is not None:
        return stars
    if _NO_VALUE.match(text, start) or _NO_VALUE.match(text, at):
        return Value(None, start + 1)
    if (scale.low, scale.high) == (0, 1) and (answer := _ANSWER.match(text, start)):
        return Value(float(answer["yes"] is not None), answer.end())
    if (total := _SUM.match(text, start)) and any(sign in total[0].partition("=")[0][1:] for sign in "+-*/"):
        return Value(_total(total), total.end())
    if spelt := _SPELT.match(text, start):
        value = float(_WORDS[spelt["word"]] if spelt["word"] else "一二三四五六七八九十".index(spelt["han"]) + 1)
        end = spelt.end()
    elif number := _NUMBER.match(text, start):
        if start and text[start - 1] in "-+" and not number["sign"]:
            return None
        value, end = _number(number), number.end()
        if re.fullmatch(r"\d{1,3},\d{3}", number["digits"]):
            return Value(None, end)  # a thousand, or three decimals
    else:
        return None
    return _rated(text, value, end, scale)


def _rated(text: str, value: float, end: int, scale: Scale) -> Value | None:
    """The value that ends at `end`, with what follows: "/5", "out of 5", "%", a half, a range, a unit."""
    if half := _HALF.match(text, end):
        value, end = value + 0.5, half.end()
    elif _BESIDES.match(text, end):
        return Value(None, end)
    if again := _AGAIN.match(text, end):
        same = again["same"]
        if same in _WORDS or same[0].isdigit():
            if _as_number(same) != value:
                return Value(None, again.end())
            end = again.end()
    if percent := _PERCENT.match(text, end):
        if (scale.low, scale.high) == (0, 100):
            return Value(value, percent.end())
        return Value(value / 100 if (scale.low, scale.high) == (0, 1) else None, percent.end())
    if unit := _UNIT.match(text, end):
        end = unit.end()
        if _BESIDES.match(text, end):
            return Value(None, end)
    if ratio := _RATIO.match(text, end):
        top = _as_number(ratio["top"])
        if _GOES_ON.match(text, ratio.end()) and not _AS_PERCENT.match(text, ratio.end()):
            return Value(None, ratio.end())
        if _COUNTED.match(text, ratio.end()):
            return None  # "3 of 5 criteria", "5 out of 5 raters"
        after = _AGAIN.match(text, ratio.end()) or _AS_PERCENT.match(text, ratio.end())
        end = after.end() if after else ratio.end()
        unit = _UNIT.match(text, end)
        if top == scale.high:
            return Value(value, unit.end() if unit else end)
        return Value(value / top if (scale.low, scale.high) == (0, 1) and 0 <= value <= top > 0 else None, ratio.end())
    if _GOES_ON.match(text, end):
        return Value(None, end)
    if _JOINED.match(text, end) and not _is_cjk(text, end):
        return None  # "3rd", "4x", "2024-05", a clock
    return Value(value, end)


def _is_cjk(text: str, at: int) -> bool:
    return at < len(text) and "぀" <= text[at] <= "鿿"


def _stars(text: str, at: int, scale: Scale) -> Value | None:
    """ "★★★☆☆"; None for what is no row of stars."""
    full = re.compile(r"(?P<full>[★⭐🌟][️ ]?)+(?P<empty>(?:☆[️ ]?)*)").match(text, at)
    if full is None:
        return None
    n, empty = sum(text[full.start() : full.end()].count(star) for star in "★⭐🌟"), full["empty"].count("☆")
    if (empty and n + empty != scale.high) or text[full.end() : full.end() + 1] in ("½", "¼", "¾"):
        return Value(None, full.end())
    return Value(float(n), full.end())


_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def _total(match: re.Match[str]) -> float | None:
    """The result that is stated of a sum, where it is the sum."""

    def computed(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp) and (operate := _OPERATIONS.get(type(node.op))):
            return operate(computed(node.left), computed(node.right))
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return float(node.value)
        raise ValueError("not plain arithmetic")

    stated = float(match["result"].replace(",", "."))
    expression = re.sub(r"(?<![\d.])0+(?=\d)", "", match[0].partition("=")[0].replace(",", ".").strip())
    try:
        total = computed(ast.parse(expression, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None
    return stated if math.isclose(total, stated, abs_tol=0.051) else None


def _whole(text: str, scale: Scale) -> float | None:
    """The rating that words of a field are ("4", "4/5", "4 (good)", "good (4)", "four"); None for any other words."""
    bare = text.strip().strip(".!* ")
    if found := _value_at(bare, 0, scale):
        rest = bare[found.end :].strip(" \t*_`'\")]}>")
        described = not rest or re.fullmatch(r"[(:,;.-][^\d]*", rest) or re.fullmatch(r"[(:,;.-]\s*[^\d]*\)?", rest)
        return found.value if described else None
    bracketed = re.fullmatch(r"[^\d()]{1,40}\((?P<value>[^()]{1,20})\)", bare)
    return _whole(bracketed["value"], scale) if bracketed else None


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────

_FIRST_FIELDS = frozenset(("score", "rating"))
_OTHER_FIELDS = frozenset(
    "overall overall_score overall_rating finalscore finalrating overallscore overallrating final_score final_rating final_verdict verdict grade mark label answer choice "
    "result value points stars pass passed bewertung note wertung puntuacion puntuación calificacion calificación nota "
    "puntaje notation 评分 得分 分数 评级 打分".split()
)
_DEEPEST = 32


def _from_json(text: str, scale: Scale, aspect: str, *, whole: bool) -> Statement | None:
    """The verdict of the reply's JSON; a value of None where it is JSON and states none that can be told.

    An object that stands in the middle of a text, neither at its start nor at its end, may be quoted: where the text
    states another verdict, or none, the reply is undecided.
    """
    if "{" not in text and "[" not in text:
        return None
    body = text.strip()
    fenced = re.match(r"```(?:json)?\s*(?=[{\[])", body)
    begins = whole and (fenced is not None or body[:1] == "{" or body[:2] == "[{")
    objects = _objects(text)
    rated = [
        (start, end, value)
        for start, end, inside in objects
        if (value := _in_body(inside, scale, aspect)) is not _NOTHING
    ]
    if rated:
        start, end, value = rated[-1]
        chosen = Statement(start, end, value if isinstance(value, float) else None)
        announced = re.fullmatch(r"[^\n]{1,100}:\s*```(?:json)?\s*", text[:start])  # "Here it is:", and a fence
        if begins or announced or not re.search(r"\w", text[end:].replace("```", "")):
            return chosen
        outside = _from_text(_without_quotes(text[:start] + " " * (end - start) + text[end:]), scale, aspect)
        agrees = outside is not None and outside.value == chosen.value
        return chosen if agrees else Statement(start, end, None)
    if not begins or not (objects or fenced or body[0] == "{"):
        return None
    if objects:  # without a field that we know, it is the whole answer
        answers = isinstance(objects[0][2], list) or any(isinstance(inside, dict) and inside for *_, inside in objects)
        return Statement(objects[-1][0], objects[-1][1], None) if answers else None
    return _damaged(text, scale, aspect) or Statement(0, len(text), None)


class _Nothing:
    """No field of a verdict's name."""


_NOTHING = _Nothing()


def _objects(text: str) -> list[tuple[int, int, Any]]:
    """(start, end, body) of the JSON objects and lists of objects in a text, the outermost ones."""
    decoder, found, at, tries = json.JSONDecoder(strict=False), [], 0, 0
    while tries < MOST:
        at = min((place for mark in ("{", "[{", "[ {", "[\n") if (place := text.find(mark, at)) >= 0), default=-1)
        if at < 0:
            break
        tries += 1
        try:
            body, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
            continue
        found.append((at, end, body))
        at = end
    return found


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", plain(name).strip())


def _in_body(body: Any, scale: Scale, aspect: str, depth: int = 0) -> float | _Nothing | None:
    """The rating in a body: of the fields asked for, else of other usual ones, else of the only body inside it."""
    if isinstance(body, list):
        bodies = [part for part in body if isinstance(part, dict)]
        return (
            _in_body(bodies[0], scale, aspect, depth + 1)
            if len(body) == len(bodies) == 1
            else None
            if bodies
            else _NOTHING
        )
    if not isinstance(body, dict) or depth > _DEEPEST:
        return _NOTHING
    own = _key(aspect)
    asked = _FIRST_FIELDS | ({own, f"{own}_score", f"{own}_rating"} if own else frozenset())
    for names in (asked, _OTHER_FIELDS):
        there = [value for name, value in body.items() if _key(str(name)) in names]
        ratings = [rating for value in there if (rating := _of_field(value, scale, aspect, depth)) is not _NOTHING]
        if ratings:
            first = ratings[0]
            return first if all(rating == first for rating in ratings) else None
        if there and names is asked:
            return None
    inside = [
        rating
        for value in body.values()
        if isinstance(value, dict | list) and (rating := _in_body(value, scale, aspect, depth + 1)) is not _NOTHING
    ]
    if not inside:
        return _NOTHING
    return inside[0] if all(rating == inside[0] for rating in inside) and len(inside) == 1 else None


def _of_field(value: Any, scale: Scale, aspect: str, depth: int) -> float | _Nothing | None:
    if isinstance(value, bool):
        return float(value) if (scale.low, scale.high) == (0, 1) else _NOTHING
    if isinstance(value, int | float):
        return None if math.isnan(value) else float(min(max(value, -1e15), 1e15))
    if value is None:
        return None
    if isinstance(value, dict):
        return _in_body(value, scale, aspect, depth + 1)
    if isinstance(value, list):
        return _in_body(value, scale, aspect, depth + 1) if len(value) == 1 else None
    return (
        _whole(levelled(str(value)), scale)
        if re.search(r"\d", value)
        or _SPELT.search(levelled(value))
        or _ANSWER.search(levelled(value))
        or _NO_VALUE.match(levelled(value))
        else _NOTHING
    )


def _damaged(text: str, scale: Scale, aspect: str) -> Statement | None:
    """The first top-level field asked for of an object that is not JSON: a trailing comma, bare names, cut off."""
    own, at = _key(aspect), text.find("{")
    asked = _FIRST_FIELDS | ({own, f"{own}_score", f"{own}_rating"} if own else frozenset())
    depth, expects_name, name = 0, False, ""
    while 0 <= at < len(text):
        mark = text[at]
        if mark in "{[":
            depth, expects_name = depth + 1, mark == "{" and depth == 0
        elif mark in "}]":
            depth -= 1
            if depth == 0:
                return None
        elif mark == "," and depth == 1:
            expects_name, name = True, ""
        elif mark in "\"'" and not (mark == "'" and at and text[at - 1].isalnum()):
            end = at + 1
            while end < len(text) and text[end] != mark:
                end += 2 if text[end] == "\\" else 1
            if depth == 1 and expects_name:
                name = text[at + 1 : end]
            at = end
        elif mark == ":" and depth == 1 and expects_name:
            if _key(name) in asked:
                stated = re.compile(r"\s*(?:\"([^\"\n]{0,200})\"|([^,}\n\"]{0,60}))").match(text, at + 1)
                words = (stated[1] or stated[2] or "").partition("//")[0] if stated else ""
                return Statement(at, stated.end() if stated else at + 1, _whole(words, scale))
            expects_name = False
        elif depth == 1 and expects_name and (mark.isalnum() or mark == "_"):
            name += mark
        at += 1
    return None


# ── labels ───────────────────────────────────────────────────────────────────────────────────────────────────

_STRONG = (
    "score|rating|grade|mark|gesamtbewertung|gesamtnote|bewertung|wertung|punktzahl|note|nota|voto|puan|punteggio|puntuación|puntuacion|puntaje|"
    "évaluation|calificación|calificacion|valoración|valoracion|beoordeling|ocena|betyg|оценка|рейтинг|балл|التقييم|الدرجة|"
    "答案|评分|得分|分数|评级|打分|評分|評価|スコア|点数|평가|점수|총점|평점|คะแนน|रेटिंग|अंक|likert|stars"
)
_WEAK = "verdict|overall|final|total|answer|result|label|category|assessment|evaluation|总体评价|总分|最终"
_OWN = frozenset(
    "final overall my the new total revised updated corrected adjusted our a an and so thus therefore hence "
    "numeric numerical human-scale likert quality assigned resulting corresponding given suggested proposed this "
    "its is here".split()
)
_OTHERS = re.compile(
    r"(?:previous|prev|initial|draft|first|old|prior|earlier|original|human|rater'?s?|reference|expert|gold|maximum|max|"
    r"minimum|min|highest|lowest|best|worst|possible|passing|average|mean|median|confidence|example|sample|threshold|"
    r"baseline|their|other|user|author'?s?|readability|flesch|bleu|rouge|match|test|exam|credit|imdb|sub|partial)"
)


@lru_cache(maxsize=256)
def _label(aspect: str) -> re.Pattern[str]:
    """A label with what may stand before and behind it: "**Final coherence score (1-5)**:"."""
    own = re.escape(plain(aspect).strip()).replace(r"\ ", r"[ \t_-]{1,3}") if plain(aspect).strip() else ""
    named = rf"|(?P<own>{own})(?:[ \t]{{1,2}}(?:{_STRONG}))?" if own else r"|(?P<own>\b\B)"
    strong = (
        rf"(?P<strong>(?:(?:final|overall|total)[ \t]{{1,2}})?(?:{_STRONG})(?:[ \t]{{1,2}}(?:finale?|globale?|total))?)"
    )
    return re.compile(
        rf"(?P<before>(?:[^\W\d_][\w'-]{{0,20}}[ \t]{{1,2}}){{0,4}}?)(?<![\w-])(?:{strong}|(?P<weak>(?:final|overall)[ \t](?:verdict|answer|result|assessment|evaluation)|{_WEAK}){named})"
        r"(?P<scale>[ \t]{0,2}[*_]{0,3}[ \t]{0,2}[(\[（][^()\[\]（）\n]{1,60}[)\]）])?(?:[ \t]{1,2}for[ \t][\w \t]{1,40})?[ \t]{0,3}[*_\]`'\"|>]{0,6}[ \t]{0,4}"
        r"(?P<link>:|=|:=|-{1,2}|—|\||is:?|was|of|为|是|はです|は|:\s*$|(?=\s*\n)|(?=[ \t]*[\d*(\[<★⭐]))",
    )


_LEADS = re.compile(r"(?:^|[\n.!?;:。！？|\]}>),-]|\bso,?|\btherefore,?|\bthus,?)[ \t>*_#`'\"(\[<|•·+0-9.)-]{0,16}$")
_SENTENCE_STARTS = re.compile(r"[.!?。！？\n;]")


def _from_text(text: str, scale: Scale, aspect: str, *, letters: bool = False) -> Statement | None:
    """The last labelled verdict, else what the reply itself is; letters first where they were offered."""
    if letters and (chosen := _letter(text, scale, offered=True)):
        return chosen
    labelled = [*_labelled(text, scale, aspect), *_marked(text, scale), *_rows(text, scale, aspect)]
    if labelled:
        last = max(labelled, key=lambda statement: statement.end)
        return last if _is_kept(text, last, scale) else Statement(last.start, last.end, None)
    for found in (_alone(text, scale), _said(text, scale, aspect), _closing(text, scale)):
        if found is not None:
            return found
    return _letter(text, scale, offered=letters)


def _labelled(text: str, scale: Scale, aspect: str) -> Iterator[Statement]:
    """Labels that begin a line or a sentence, with their values."""
    own_words = {*_OWN, *plain(aspect).split()}
    for match in _last(_label(aspect), text):
        words = match["before"].split()
        if any(_OTHERS.fullmatch(word) for word in words):
            continue
        if not own_words.issuperset(words):
            continue
        lead = text[max(0, match.start() - 40) : match.start()]
        leads = bool(_LEADS.search(lead)) or not lead.strip(" \t*_#>`'\"([<|•·-")
        own, link = match["own"], match["link"]
        if not leads or (own and link in ("of", "is", "was", "")):
            continue
        if match["weak"] in ("overall", "final", "total", "category", "label", "result") and link not in (
            ":",
            "=",
            "|",
            "为",
            "是",
        ):
            continue
        at = match.end()
        value = _value_at(text, at, scale)
        if (
            value is None
            and link in (":", "", "=")
            and (below := re.compile(r"[ \t*_:]{0,6}\n[ \t]*\n?[ \t]*").match(text, at))
        ):
            value = _value_at(text, below.end(), scale)
            if value is not None and not re.match(r"[ \t*_\"')\]}>.]*(?:\n|$|</)", text[value.end :][:40]):
                value = None
        if value is None:
            if match["strong"] and link in (":", "=") and (rest := text[at : at + 60].partition("\n")[0].strip(" *_`")):
                if not rest.startswith("level "):
                    yield Statement(match.start(), at, None)
                elif found := _value_at(rest, len("level "), scale):
                    yield Statement(match.start(), at + len(rest), found.value)
            continue
        if (part := _FOR.match(text, value.end)) and not _is_of_all(part["what"], aspect):
            continue
        if _OF_A_COUNT.match(text, value.end):
            if own or match["strong"] not in ("note", "nota", "mark", "stars", None):
                yield Statement(match.start(), value.end, None)
            continue
        if _WOULD.match(text, value.end) or text[max(0, match.start() - 3) : match.start()].endswith(("a ", "an ")):
            continue
        yield Statement(match.start(), value.end, value.value)


_FOR = re.compile(
    r"[ \t]{1,2}(?:for|on|in)[ \t](?:its |the |their |overall |perfect |complete |full |good |poor )?(?P<what>[a-z]{3,24})"
)
_OF_A_COUNT = re.compile(
    r"[ \t]{1,2}(?:of|out of)[ \t](?:the|its|all|these|those|my|our)\b|[ \t]{1,2}(?:errors?|mistakes?|issues?|words?|sentences?|"
    r"reasons?|things?|claims?|facts?|lines?|paragraphs?|times?)\b"
)
_WHOLE = frozenset(
    "this that the text summary response overall quality answer reply item dialogue story output it all both general now "
    "total terms my our coherence fluency relevance consistency naturalness engagingness groundedness informativeness "
    "disfluency irrelevance inconsistency incoherence being a an".split()
)


def _is_of_all(word: str, aspect: str) -> bool:
    """Whether a mark "for" this word is one for the whole, or for the aspect itself."""
    return word in _WHOLE if not aspect else word in plain(aspect).split() or word in _WHOLE - _ASPECTS


_ASPECTS = frozenset(
    "coherence fluency relevance consistency naturalness engagingness groundedness informativeness quality".split()
)


def _last(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The last matches, each looked for from the end of the one before."""
    return list(pattern.finditer(text))[-MOST:]


_MARKED = (
    re.compile(r"\[\[(?=[ \t]*[\d.+-])"),
    re.compile(r"\\boxed\{"),
    re.compile(r"\[(?:result|score|rating)\][ \t:]{0,4}(?:(?:score|rating)[ \t:]{0,3})?"),
    re.compile(r"<(?:score|rating|verdict|answer|result|grade)>\s{0,4}(?=[\d.+-]|[a-z])"),
    re.compile(r"(?m)^#{2,6}[ \t]{1,3}(?=[\d.])"),
)


def _marked(text: str, scale: Scale) -> Iterator[Statement]:
    """Values in the marks that judging prompts ask for: [[7]], \\boxed{4}, [RESULT] 2, <score>4</score>, #### 4."""
    for pattern in _MARKED:
        for match in _last(pattern, text):
            if (value := _value_at(text, match.end(), scale)) is None:
                continue
            if pattern is _MARKED[-1] and not re.match(r"[ \t*_.]*(?:\n|$)", text[value.end : value.end + 20]):
                continue
            yield Statement(match.start(), value.end, value.value)


def _rows(text: str, scale: Scale, aspect: str) -> Iterator[Statement]:
    """A row of a table for the whole ("| Overall | 3 |"), or the only row under a heading of scores."""
    if "|" not in text:
        return
    rows = []
    for line in re.compile(r"(?m)^[ \t]*\|(?P<cells>[^\n]{1,500})\|[ \t]*$").finditer(text):
        cells = [cell.strip(" \t*_") for cell in line["cells"].split("|")]
        rows.append((line, cells))
    body = [(line, cells) for line, cells in rows if not re.fullmatch(r"[-: |]*", line["cells"])]
    named = re.compile(
        rf"(?:(?:final|overall|total)(?: (?:score|rating|grade))?|{re.escape(plain(aspect).strip()) or 'overall'}|score|rating)"
    )
    for line, cells in body:
        if len(cells) >= 2 and named.fullmatch(cells[0]) and (value := _whole(cells[-1], scale)) is not None:
            yield Statement(line.start(), line.end(), value)
    if len(body) == 2 and len(rows) > 2 and re.fullmatch(_STRONG, body[0][1][-1]):
        yield Statement(body[1][0].start(), body[1][0].end(), _whole(body[1][1][-1], scale))


_CHANGED = re.compile(
    r"\b(?:actually|wait|correction|on second thought|on reflection|reconsider\w*|i change|changed my mind|revis\w+|instead)\b"
)


def _is_kept(text: str, last: Statement, scale: Scale) -> bool:
    """Whether nothing after the last verdict takes it back: "Score: 2. Actually, I'd give it a 4."."""
    rest = text[last.end : last.end + 2_000]
    changed = _CHANGED.search(rest)
    if changed is None:
        return True
    again = _said(rest[changed.start() :], scale) or _closing(rest[changed.start() :], scale)
    return again is None or again.value == last.value


# ── the reply itself ─────────────────────────────────────────────────────────────────────────────────────────

_LINE_ENDS = re.compile(r"[ \t*_\"')\]}>.。!`]*(?:\n|$)")
_START_ENDS = re.compile(
    r"[ \t*_\"')\]}>]{0,4}(?:$|\n|[.:;!,。][*_\"')\]]{0,4}(?=\s|$)|[ \t]?[-][ \t](?!\d)|[ \t]?[—―](?![ \t]?\d))"
)
_NUMBERED_NAME = re.compile(r"[.)][ \t]{1,3}[^\n:]{1,40}:[ \t*_]{0,4}\S")
_LISTED = re.compile(r"(?m)^[ \t]{0,4}[23][.)][ \t]")


_ONLY = re.compile(
    r"\s*(?:[-•][ \t]+(?=\d)|(?:response|reply|output|summary|text|value|number|(?:on[ \t])?\(?\d{1,3}[ \t]?-[ \t]?\d{1,3}\)?)[ \t]*:[ \t]*|rated[ \t]{1,2})"
)
_SHORT = 60


def _alone(text: str, scale: Scale) -> Statement | None:
    """The reply begins with its rating ("4", "3 - good", "Three stars. The text …"), or its last line is one."""
    if only := _ONLY.match(text):  # "Response: 3", "- 1"
        value = _value_at(text, only.end(), scale)
        if value is not None and not re.search(r"\w", text[value.end :]):
            return Statement(only.end(), value.end, value.value)
    if len(text) < _SHORT and (described := _whole(text, scale)) is not None:  # "Good (3)"
        return Statement(0, len(text), described)
    start = len(text) - len(text.lstrip(" \t\n*_#`>\"'([{<"))
    bare = text[start:].strip()
    value = _value_at(text, start, scale)
    if value is not None:
        listed = text[value.end : value.end + 1] in (".", ")") and (
            _LISTED.search(text, value.end) or _NUMBERED_NAME.match(text, value.end)
        )
        defined = text[value.end : value.end + 1] == ":" and re.search(r"\d[ \t]?:", text[value.end + 1 :])
        if not listed and not defined and _START_ENDS.match(text, value.end):
            return Statement(start, value.end, value.value)
        if text[start] in "★⭐🌟" or not re.search(r"\w", bare[value.end - start :]):
            return Statement(start, value.end, value.value)
        if value.value is not None and (
            note := re.compile(r"[ \t]*[(（][^()\n]{1,40}[)）][ \t.。]*$").match(text, value.end)
        ):
            return Statement(start, value.end, value.value if not _conflicts(note[0], scale) else None)
    lines = text.rstrip().rpartition("\n")
    at = len(lines[0]) + len(lines[1])
    last = _value_at(text, at, scale)
    if lines[0].strip() and last is not None and _LINE_ENDS.match(text, last.end):
        return Statement(at, last.end, last.value)
    return None


def _conflicts(note: str, scale: Scale) -> bool:
    """Whether a note in brackets states another number than the top of the scale."""
    numbers = [float(n.replace(",", ".")) for n in re.findall(r"\d+(?:[.,]\d+)?", note)]
    return any(number != scale.high for number in numbers)


_SAYS = re.compile(
    r"\b(?:i|we)(?:'d| would| will|'ll)?[ \t]{1,2}(?:(?:therefore|thus|finally|also|personally|have to|just)[ \t]{1,2})?"
    r"(?:rate|score|give|grade|assign|award|settle|go|choose|pick|select|say|gave|rated|scored)\b"
    r"(?:[ \t]{1,2}(?:it|this|that|the|with|on|for|at|as|a|an|its|their|of|response|summary|text|answer|reply|output|"
    r"article|dialogue|item|option|solid|strong|perfect|score|rating|grade|mark|overall|quality|coherence|fluency|relevance|consistency|"
    r"naturalness|engagingness|groundedness|informativeness))"
    r"{0,8}[ \t:]{1,3}"
)
_IS = re.compile(
    r"\b(?:score|rating|grade|mark|answer|verdict)(?:[ \t]{1,2}(?:here|for[ \t][\w \t]{1,30}?))?[ \t]{1,2}(?:is|of|would be)[ \t]{1,3}"
    r"(?:only |just |thus |therefore |a |an |at )?"
)
_SCORING = re.compile(
    r"\b(?:scoring|scores|deserves?|earns?|earning|receives?|receiving|gets|merits?|warrants?|(?:which )?makes|making|"
    r"results? in|resulting in|(?:this|it|that)(?:'s| is))(?:[ \t]{1,2}(?:it|this|text|summary|the|a|an|only|just|perfect|"
    r"solid|strong|clear|score|rating|mark|grade|of)){1,7}[ \t]{1,3}|\bscoring[ \t]{1,3}|\bscores[ \t]{1,3}"
)
_SUBJECT = re.compile(r"scores|deserve|earns|receives|gets|merit|warrant|makes")
_JOINING = frozenset("therefore thus hence and which so also but still only overall it just clearly really".split())
_OTHER_TONGUES = re.compile(
    r"\b(?:ich (?:vergebe|gebe|bewerte|würde)|(?:erhält|bekommt|verdient) die note|le doy|merece|mi (?:calificación|puntuación|nota) es|"
    r"je (?:donne|mets)|j'attribue|la note est)(?:[ \t]{1,2}(?:dem|den|der|text|eine|ein|mit|die|note|un|una|puntuación|"
    r"calificación|nota|de|la|une|punkte))*[ \t]{1,3}"
)
_CHINESE = re.compile(r"(?:打|给|给出|评|评为|最终|得|給)[^\d\n。，,]{0,4}(?=\d)")
_UNSAID = re.compile(
    r"\b(?:if|would|could|might|considered|considering|maximum|mentions?|mentioned|says|said|(?<!, )with|claims?|quotes?|describes?|team|film|match|"
    r"game|not|from|never|without|short of|instead of|rather than|fails? to)\b[^.,;]{0,30}$"
)


def _said(text: str, scale: Scale, aspect: str = "") -> Statement | None:
    """A sentence in which the judge says its rating: "I would rate it 8/10", "this deserves a score of 2".

    None, too, where sentences say different ones.
    """
    found = []
    for pattern in (_SAYS, _IS, _SCORING, _CHINESE, _OTHER_TONGUES):
        for match in _last(pattern, text):
            begins = max(
                (m.end() for m in _SENTENCE_STARTS.finditer(text, max(0, match.start() - 160), match.start())),
                default=max(0, match.start() - 160),
            )
            before = text[begins : match.start()]
            if pattern in (_IS, _SCORING) and _UNSAID.search(before):
                continue
            value = _value_at(text, match.end(), scale)
            if value is None or _WOULD.match(text, value.end):
                continue
            if (
                (
                    pattern is _SCORING
                    and _SUBJECT.match(match[0])
                    and (subject := re.search(r"([^\W\d_]+)[ \t]*$", before))
                )
                and not _is_of_all(subject[1], aspect)
                and subject[1] not in _JOINING
            ):
                return Statement(match.start(), value.end, None)  # "structure scores a 5"
            if (part := _FOR.match(text, value.end)) and not _is_of_all(part["what"], aspect):
                return Statement(match.start(), value.end, None)  # marks for parts stand beside the whole
            counts = re.match(r"[ \t]{1,2}[a-z]{2,}", text[value.end : value.end + 12])
            if (
                pattern is not _CHINESE
                and value.value is not None
                and counts
                and not re.match(
                    r"[ \t]{1,2}(?:out|because|for|since|on|in|as|and|to|overall|due|based|with|stars?|points?|here|given|which|but|so|rather|weil|porque|car|von|de|sur|bewerten)\b",
                    text[value.end : value.end + 12],
                )
            ):
                continue
            rest = re.split(r"[.\n;]", text[value.end : value.end + 160], maxsplit=1)[0]
            several = value.value is not None and re.search(
                r"\b(?:and|but|while)\b[^,]*?\b(?:\d|a (?:\d|one|two|three|four|five))", rest
            )
            found.append(Statement(match.start(), value.end, None if several else value.value))
    if not found:
        return None
    last = max(found, key=lambda statement: statement.end)
    same = {statement.value for statement in found}
    return last if len(same) == 1 else Statement(last.start, last.end, None)


_ENDS_WITH = re.compile(
    r"(?:,[ \t]{0,2}so|\bso|(?<!\bfig)(?<!\bno)(?<!\bvol)(?<!\bpp)(?<!\bsec)(?<!\beq)[.;](?=[ \t])|:|=|\bleaving|\bhence|\btherefore|\bthus|,|：|[.!?][ \t]-)[ \t*_]{0,4}(?:a |it's |it is |i say |i'd say )?$"
)


def _closing(text: str, scale: Scale) -> Statement | None:
    """A number that closes the reply behind "so", a colon or a comma: "…, so 3."."""
    bare = text.rstrip(" \t\n.!。*_\"')")
    closing = re.search(
        rf"(?:(?<![\w./-])(?<!\d,)(?:[+-]?\d{{1,6}}(?:[.,]\d{{1,4}})?(?:[ ]?/[ ]?\d{{1,4}})?|{'|'.join(_WORDS)})|(?<!\w)(?:yes|no))$",
        bare[-40:],
    )
    if closing is None:
        return None
    at = max(0, len(bare) - 40) + closing.start()
    behind_quote = "/" in closing[0] and text[max(0, at - 4) : at] == "    "  # where a quotation was blanked
    if not behind_quote and not _ENDS_WITH.search(text[max(0, at - 24) : at]):
        return None
    line = text[text.rfind("\n", 0, at) + 1 : at]
    if line.rstrip(" \t*_").endswith(":") and len(line.rsplit(".")[-1].split()) < 4:
        return None  # "Rank: 2": the name of something else
    if re.search(
        r"\b(?:errors?|count|words|sentences|points? deducted|flaws|issues|confidence|page|year|weakness\w*|strengths?)\b[^.]{0,20}$",
        line,
    ):
        return None
    value = _value_at(text, at, scale)
    return None if value is None else Statement(at, value.end, value.value)


_LONE_LETTER = re.compile(r"[ \t\n*_`\"'(\[<]{0,6}(?P<letter>[a-j])[ \t\n*_`\"')\]>.:]{0,6}$")
_FIRST_LETTER = re.compile(r"[ \t\n*_`\"'(\[<]{0,6}(?P<letter>[a-j])[)\].:][ \t*_\n]")
_NAMED_LETTER = re.compile(
    r"(?:answer|option|choice|verdict|rating|score|grade|respuesta|antwort|réponse|答案)(?:[ \t]{1,2}(?:is|would be))?[ \t]{0,2}[:=]?[ \t*_]{0,3}[(\[<\"']{0,2}(?P<letter>[a-j])(?![\w']|[ \t]+[a-z])|"
    r"\[\[(?P<boxed>[a-j])\]\]"
)


def _letter(text: str, scale: Scale, *, offered: bool) -> Statement | None:
    """An option of a multiple choice: A is the low end of the scale, B the next; only the whole reply if not offered."""
    match = _LONE_LETTER.match(text)
    if match is None and offered:
        named = _last(_NAMED_LETTER, text)
        match = named[-1] if named else _FIRST_LETTER.match(text)
        if (
            match is not None
            and match.re is _FIRST_LETTER
            and re.search(rf"(?m)^[ \t]{{0,4}}{chr(ord(match['letter']) + 1)}[).:]", text)
        ):
            return None  # the options themselves are listed
    if match is None:
        return None
    letter = match["letter"] or match.groupdict().get("boxed") or ""
    value = scale.low + ord(letter) - ord("a")
    return Statement(match.start(), match.end(), value) if value <= scale.high else None
