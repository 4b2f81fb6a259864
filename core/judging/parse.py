"""Parse the rating in a judge's reply.

The first rule that finds a rating decides:

1. *JSON*: the value of the requested field ("score", "rating", or the aspect's name), at the top level or else nested.
   All other fields are ignored.
2. *A labelled rating*: "Score: 4", "Final rating - **3/5**", "[[7]]", "[RESULT] 2", "<score>4</score>", a table row. If
   there are several, the last one counts.
3. *Plain text*: the reply is a rating, begins or ends with one, or says "I would rate it 4".

An ambiguous reply has no rating, because a wrong rating does more harm. If the reply ends with "4-5", "I cannot
decide", a wrong sum or another scale, clear numbers before this ending do not count. Quoted text never counts: in
quotation marks, in a code fence, after ">", or in tags such as <item>.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from core.records import Scale
from core.verdicts import Reading

PARSER = "concord.v6"
"""Name and version of this parser in judge files. It changes whenever any reply is read differently."""

LONGEST = 40_000
"""Maximum characters to read, from the end of the reply, where verdicts are. Attacks are long."""
MOST = 400
"""Maximum number of verdicts and JSON objects to examine in a reply."""


class Statement(NamedTuple):
    """A verdict at positions `start` to `end` (exclusive) of a text.

    `value` is None if the verdict is ambiguous or on another scale.
    """

    start: int
    end: int
    value: float | None


def read_rating(reply: str, scale: Scale, aspect: str = "", finish: str = "stop") -> Reading:
    """Return the rating in a reply, or the reason why there is none.

    Args:
        scale: Scale that the prompt asked for. Yes and no count only on scales from 0 to 1.
        aspect: Name of the aspect, which may be used as a label or field ("Coherence: 4").
        finish: How the reply ended. Truncated ("length") and refused ("refusal") replies never have a rating.
    """
    if finish in ("refusal", "length"):
        return Reading(None, "refused" if finish == "refusal" else "truncated")
    text, moved = normalised(without_thoughts(reply)[-LONGEST:]), max(0, len(reply) - LONGEST)
    if not text.strip():
        return Reading(None, "empty")
    found = _from_json(text, scale, aspect, whole=not moved)
    found = found or _from_text(_without_quotes(text), scale, aspect)
    if found and any(float(named[named.lastindex or 0]) != scale.high for named in _NAMED_SCALE.finditer(text)):
        found = Statement(found.start, found.end, None)
    span = (found.start + moved, found.end + moved) if found else None
    if found and found.value is not None:
        on_scale = scale.holds(found.value)
        return Reading(found.value, None, span) if on_scale else Reading(None, "out of range", span)
    if _REFUSAL.search(text):
        return Reading(None, "refused", span)
    cut_off = found is None and len(text) >= 80 and not text.rstrip().endswith(tuple(".!?:;)]}\"'*>`…。！？」"))
    return Reading(None, "truncated" if cut_off else "no verdict", span)


_NAMED_SCALE = re.compile(
    r"scale (?:of |from )?[(\[]?-?\d{1,3} ?(?:-|to) ?(\d{1,3})\b|\b-?\d{1,3}-(\d{1,3}) scale\b|\b(\d{1,3})-point scale\b|"
    r"(?:score|rating)[*_ ]{0,3}[(\[]-?\d{1,3} ?(?:-|to) ?(\d{1,3})[)\]]"
)
"""Pattern of a scale that the reply names. If it differs from the prompt's, the reply is off the scale."""
_REFUSAL = re.compile(
    r"\b(?:i(?:'m| am) (?:sorry|unable|not able)|i (?:cannot|can't|can not|won't|will not|must decline|decline)|"
    r"as an ai\b|unable to (?:rate|score|assess|evaluate|provide)|(?:cannot|can't) (?:rate|score|assess|evaluate))|"
    r"无法评分|无法评价|не могу оценить|tut mir leid|je ne peux pas|lo siento"
)

# ── normalised text ───────────────────────────────────────────────────────────────────────────────────────

_SIMPLER = str.maketrans("‐‑‒–−﹣－“”„«»’‘：～〜，×÷⁄", '-------"""""\'\':~~,*//')
_KEPT = frozenset("—―½¼¾★☆⭐🌟→⇒≈☑✅✔。、！？（）【】「」\n\t")


@lru_cache(maxsize=4096)
def _one(character: str) -> str:
    """Normalise a character: invisible ones become spaces, digits become ASCII, letters lower case."""
    if character in _KEPT:
        return character
    category = unicodedata.category(character)
    if category in ("Cf", "Mn", "Me", "Cc", "Zs", "Zl", "Zp", "Cs"):
        return " "
    number = unicodedata.numeric(character, -1.0)
    if number in range(10) and category in ("Nd", "No", "Nl"):
        return str(int(number))
    for simpler in (unicodedata.normalize("NFKC", character).lower(), character.lower()):
        if len(simpler) == 1:
            return simpler
    return character


def normalised(reply: str) -> str:
    """Return a reply in lower case, with ASCII digits and dashes, and spaces for invisible characters.

    The length stays the same.
    """
    text = reply.translate(_SIMPLER)
    return text.lower() if text.isascii() else "".join(map(_one, text))


def plain(name: str) -> str:
    """Normalise a name as in `normalised`, and remove Markdown."""
    return re.sub(r"[*_`#]", " ", normalised(name)).strip()


_THOUGHTS = re.compile(
    r"\A(?:(?!<think).)*?</think(?:ing)?>|<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE
)


def without_thoughts(text: str) -> str:
    """Replace reasoning (<think> …</think>) in `text` with spaces, so that all positions stay the same.

    If the opening tag is missing, reasoning starts at the beginning, because some servers put the opening tag in the
    prompt. If the closing tag is missing, reasoning extends to the end.
    """
    return _THOUGHTS.sub(lambda match: " " * len(match[0]), text) if "think" in text.lower() else text


_FENCE = re.compile(r"```[a-z0-9]*[ \t]*\n?.*?(?:```|\Z)", re.DOTALL)
_CITED = re.compile(
    r"(?ms)^[ \t]*>[^\n]*$|~~[^~\n]{1,80}~~|<(item|text|quote|blockquote|source|target|context|input|document|article|response|summary|"
    r"reply|candidate|example|passage|user|instructions?|prompt|criteria|reference)\b[^<>\n]{0,80}>.*?(?:</\1>|\Z)"
)
_IN_MARKS = re.compile(
    r'"(?=[^"]*[^\W\d_]{2})[^"\n]{4,2000}"(?!\s*:)|`(?=[^`]*[^\W\d_]{2})[^`\n]{4,2000}`|'
    r"(?<!\w)'(?=[^'\n]*[^\W\d_]{2}[^'\n]*\d)[^'\n]{4,400}'(?![\w:])"
)


def _without_quotes(text: str) -> str:
    """Replace quotations with spaces: quotation marks, code fences, lines after ">", tags of the item."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    bare = text.strip()
    if "```" in text and not (bare.startswith("```") and bare.find("```", 3) in (-1, len(bare) - 3)):
        text = _FENCE.sub(blank, text)
    text = _CITED.sub(blank, text)
    return text if _IN_MARKS.fullmatch(bare) else _IN_MARKS.sub(blank, text)


# ── values ───────────────────────────────────────────────────────────────────────────────────────────────────

_WORDS = {
    name: value
    for value, names in enumerate(
        "zero/cero one/eins/un/une/uno two/zwei/deux/dos three/drei/trois/tres four/vier/quatre/cuatro "
        "five/fünf/cinq/cinco six/sechs/seis seven/sieben/sept/siete eight/acht/huit/ocho nine/neun/neuf/nueve "
        "ten/zehn/dix/diez".split()
    )
    for name in names.split("/")
} | {han: value for value, han in enumerate("一二三四五六七八九十", 1)}
_SPELT = "|".join(sorted((word for word in _WORDS if len(word) > 1), key=len, reverse=True))
_FIGURE = r"\d{1,6}(?:[.,]\d{1,3})?"
_VALUE = re.compile(
    r"[ \t*_~`'\"(\[{<（【「|\\]{0,8}(?:"
    r"(?P<stars>[★⭐🌟][★⭐🌟\ufe0f ]*)(?P<empty>[☆\ufe0f ]*)(?P<part>[½¼¾]?)|"
    r"(?P<none>n/?a\b|none\b|null\b|nan\b|not (?:applicable|available|possible|sure|rated|scored)|unknown|unclear|"
    r"undecided|undetermined|tbd\b|i (?:cannot|can't|can not|am not|do not|don't)|i'm|cannot|can't|between|somewhere|"
    r"either|无法|entre\b|zwischen|\?|-\s*$)|"
    r"(?P<yes>(?:yes|true|pass(?:ed)?|correct|ja|oui|sí|si)(?![\w-])|是)|"
    r"(?P<no>(?:no|false|fail(?:ed)?|incorrect|nein|non)(?![\w-])|否|不是)|"
    rf"(?P<word>(?:{_SPELT})(?!\w|[ \t](?:hundred|thousand))|[一二三四五六七八九十](?=[分颗星点點]|\s*$))|"
    r"(?P<number>(?<![-+])(?:[+-](?=[\d.]))?(?:\d{1,15}(?:[.,]\d{1,12})?|[.,]\d{1,12})))"
)
_ODD = r"[ \t]{0,2}(?:(?:and|-and-)[ \t]?(?:a|an|one|two|three)[ \t-](?:half|quarter|third)|[ \t]\d/\d)|-and-|半"
_UNIT = (
    r"[ \t]{0,2}(?:-?stars?|points?|pts?|sterne?n?|punkte?n?|étoiles?|estrellas?|puntos?|баллов|балла|балл|颗星|顆星|点|點|"
    r"分|점|★|⭐)"
)
_SAME = r"[ \t]{1,2}\((\d{1,3}(?:[.,]\d{1,2})?|[a-z]{3,5})\)"
_TAIL = re.compile(
    r"(?P<half>½|[ \t]and[ \t](?:a|one)[ \t-]half\b|-and-(?:a|one)[ \t-]half\b|[ \t]1/2(?![\d/]))?"
    rf"(?P<odd>{_ODD}|[¼¾])?(?:{_SAME})?(?P<percent>[ \t]{{0,2}}(?:%|percent\b|per cent\b|prozent\b))?(?:{_UNIT})?"
    rf"(?P<odder>{_ODD})?(?P<ratio>"
    r"[ \t*_\])]{0,4}(?:/|\(?[ \t]{0,2}(?:out of(?: a possible)?|of|von|sur|su|de|من|из|van|av|z)\b)[ \t*_(\[]{0,4}"
    rf"(?P<top>{_FIGURE}|{_SPELT})(?![\d\w.,]*\d)"
    r"(?P<counted>[ \t]{1,2}(?:criteria|criterions?|raters?|annotators?|items?|people|users?|times|sentences|facts|"
    r"claims|errors|requirements|checks|experts|judges|conditions|aspects|dimensions|reviewers|points (?:are|were|hold)|"
    rf"questions|tests|cases)\b)?(?:{_SAME}|[ \t]{{0,3}}=[ \t]{{0,3}}\d{{1,3}}(?:[.,]\d)?[ \t]?%)?(?:{_UNIT})?)?"
    r"(?P<several>[ \t]{1,2}\d{1,3}[ \t]{1,2}\d|[ \t]{0,2},[ \t]{0,2}(?:\d{1,3}[ \t]{0,2}(?:,|or\b|and\b|\])|"
    r"(?:maybe|perhaps|possibly|then|or)[ \t]{1,2}\d))?"
    r"(?P<range>[ \t*_]{0,4}(?:[-~/+*=^]|→|⇒|->|=>|≈|(?:minus|plus|to|or|bis|à|ou|o|and|und|oder|até|至|到|或|や)(?![a-z]))"
    rf"[ \t*_]{{0,4}}(?:[\d.(]|(?:{_SPELT})(?!\w)))?"
    r"(?P<another>[+-](?=[\s.,;)*]|\Z)|,?[ \t]{1,3}\d{1,3}(?=\s*\Z|[ \t]*\n))?(?P<joined>[^\W\u3040-\u9fff]|[½¼¾半]|[.,:]\d|-\w)?"
)


def _number(text: str) -> float:
    return float(_WORDS[text]) if text in _WORDS else float(text.replace(",", "."))


def _value_at(text: str, at: int, scale: Scale) -> Statement | None:
    """Read the value at `at`, after opening marks. "4-5" and other scales are ambiguous; None if there is no value."""
    binary = scale.low == 0 and scale.high == 1
    found = _VALUE.match(text, at)
    if found is None or (found.lastgroup in ("yes", "no") and not binary):
        return None
    if found["none"]:
        return Statement(at, found.end(), None)
    if found["yes"] or found["no"]:
        return Statement(at, found.end(), float(found["yes"] is not None))
    if found["stars"]:
        n, empty = (sum(map(found[part].count, "★⭐🌟☆")) for part in ("stars", "empty"))
        odd = found["part"] or (empty and n + empty != scale.high)
        return Statement(at, found.end(), None if odd else float(n))
    tail = _TAIL.match(text, found.end())
    assert tail is not None  # all parts of the pattern are optional
    value, end = _number(found["word"] or found["number"]) + (0.5 if tail["half"] else 0.0), tail.end()
    if tail["joined"] or tail["counted"]:
        return None  # "3rd", "4x", "2024-05", a clock; "3 of 5 criteria"
    again = tail[3]  # "three (3)"
    differs = again and (again in _WORDS or again[0].isdigit()) and _number(again) != value
    thousands = re.fullmatch(r"\d{1,3},\d{3}" if scale.high < 1000 else r"\d{1,3}[.,]\d{3}", found["number"] or "")
    compared = found["number"] and text[found.start("number") - 1] == "<" and not text.startswith(">", tail.end())
    odd = any(tail[part] for part in ("odd", "odder", "several", "range", "another"))
    if odd or differs or thousands or compared:
        return Statement(at, end, None)
    top = 100.0 if tail["percent"] else _number(tail["top"]) if tail["ratio"] else scale.high
    if top != scale.high:
        return Statement(at, end, value / top if binary and 0 <= value <= top > 0 else None)
    return Statement(at, end, value)


def _whole(text: str, scale: Scale) -> float | None:
    """Read a short text that is only a rating, such as "4", "4/5", "4 (good)", "good (4)" or "four"; else None."""
    bare = text.strip().strip(".!* ")
    if found := _value_at(bare, 0, scale):
        rest = bare[found.end :].strip(" \t*_`'\")]}>")
        return found.value if not rest or re.fullmatch(r"[(:,;.-][^\d]*", rest) else None
    bracketed = re.fullmatch(r"[^\d()]{1,40}\(([^()]{1,20})\)", bare)
    return _whole(bracketed[1], scale) if bracketed else None


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _from_json(text: str, scale: Scale, aspect: str, *, whole: bool) -> Statement | None:
    """Read the verdict in a JSON reply. If the reply is JSON without a verdict, the result is ambiguous.

    An object in the middle of a text may be a quotation, so the result is ambiguous too.
    """
    if "{" not in text and "[" not in text:
        return None
    own, body = _key(aspect), text.strip()
    asked = {"score", "rating"} | ({own, f"{own}_score", f"{own}_rating"} if own else set())
    fenced = re.match(r"```(?:json)?\s*(?=[{\[])", body)
    begins = whole and (fenced is not None or body[0] == "{" or body[:2] == "[{")
    decoder, at, objects = json.JSONDecoder(strict=False), 0, list[tuple[int, int, list[float | None]]]()
    for opening in islice(re.finditer(r"\{|\[(?=\s?\{)", text), MOST):
        if opening.start() >= at:
            with suppress(ValueError, RecursionError):
                value, at = decoder.raw_decode(text, opening.start())
                objects.append((opening.start(), at, _in_body(value, scale, asked)))
    rated = [Statement(start, end, found[0]) for start, end, found in objects if found]
    if rated:
        start, end, _ = last = rated[-1]
        if len(rated) > 1 and re.search(r"\bor\b", text[rated[-2].end : start]):
            return Statement(start, end, None)
        announced = re.fullmatch(r"[^\n]{1,100}:\s*```(?:json)?\s*", text[:start])  # "Here it is:", and a fence
        if begins or announced or not re.search(r"\w", text[end:].replace("```", "")):
            return last
        return Statement(start, end, None)
    if not begins:
        return None
    if objects:  # the objects are the whole answer, but have no known field
        return Statement(*objects[-1][:2], None)
    # invalid JSON (a trailing comma, truncated): the first field counts if it is the requested one
    names = "|".join(map(re.escape, asked))
    first = re.compile(rf"[^{{]{{0,20}}\{{\s*[\"']?(?:{names})[\"']?\s*:\s*(?:\"([^\"\n]*)\"|([^,}}\n]*))").match(text)
    return Statement(0, len(text), _whole(first[1] or first[2] or "", scale) if first else None)


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", "_", plain(name))


def _in_body(body: Any, scale: Scale, asked: set[str], depth: int = 0) -> list[float | None]:
    """Read the rating in a JSON value: from the requested fields, else from the only nested object.

    Returns [None] if it is ambiguous, [] if no field can be a verdict.
    """
    if isinstance(body, list):
        bodies = [part for part in body if isinstance(part, dict)]
        if len(body) == len(bodies) == 1:
            return _in_body(bodies[0], scale, asked, depth + 1)
        return [None] if bodies else []
    if not isinstance(body, dict) or depth > 32:
        return []
    if there := [value for name, value in body.items() if _key(str(name)) in asked]:
        ratings = {rating for value in there for rating in _of_field(value, scale, asked, depth)}
        return [*ratings] if len(ratings) == 1 else [None]
    inside = [rating for value in body.values() for rating in _in_body(value, scale, asked, depth + 1)]
    return inside if len(inside) < 2 else [None]


def _of_field(value: Any, scale: Scale, asked: set[str], depth: int) -> list[float | None]:
    match value:
        case bool():
            return [float(value)] if (scale.low, scale.high) == (0, 1) else []
        case int() | float():
            return [None if math.isnan(value) else float(min(max(value, -1e15), 1e15))]
        case dict() | [dict()]:
            return _in_body(value, scale, asked, depth + 1)
        case str():
            words = normalised(value)
            is_rating = re.search(r"\d", words) or _value_at(words.strip(), 0, scale)
            return [_whole(words, scale)] if is_rating else []
        case _:
            return [None]


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _from_text(text: str, scale: Scale, aspect: str) -> Statement | None:
    """Read the last labelled verdict in a text, or else the whole reply."""
    if labelled := [*_labelled(text, scale, aspect), *_marked(text, scale)]:
        *earlier, last = sorted(labelled, key=lambda statement: statement.end)
        taken_back = _TAKEN_BACK.search(text[last.end : last.end + 2_000])
        # "<score>4</score><score>5</score>" is ambiguous; on separate lines the later one would count
        contradicted = any(
            one.value != last.value and re.fullmatch(r"(?:</?\w+>|[^\w\n])*", text[one.end : last.start])
            for one in earlier
        )
        return Statement(last.start, last.end, None) if taken_back or contradicted else last
    if _REFUSAL.search(text):
        return None  # a number next to a refusal is not a verdict
    return _alone(text, scale) or _said(text, scale, aspect) or _letter(text, scale)


_TAKEN_BACK = re.compile(
    r"\b(?:actually|wait|correction|on second thought|on reflection|reconsider\w*|i change|changed my mind|"
    r"(?:revis|lower|rais|reduc|increas|chang)ed?(?: it)? to|but (?:it |i )?(?:could|might|would|should))\b"
    rf"[^\n]*?\b(?:\d|(?:{_SPELT})\b)"
)
_STRONG = (
    "score|rating|grade|mark|gesamtbewertung|gesamtnote|bewertung|wertung|punktzahl|note|nota|voto|puan|punteggio|puntuación|puntuacion|puntaje|"
    "évaluation|calificación|calificacion|valoración|valoracion|beoordeling|ocena|betyg|оценка|рейтинг|балл|التقييم|الدرجة|"
    "答案|评分|得分|分数|评级|打分|評分|評価|スコア|点数|평가|점수|총점|평점|คะแนน|रेटिंग|अंक|likert|stars"
)
_WEAK = "verdict|overall|final|total|answer|result|label|category|assessment|evaluation|总体评价|总分|最终"
_OWN = frozenset(
    "final overall my the new total revised updated corrected adjusted our a an and so thus therefore hence numeric "
    "numerical human-scale likert quality assigned resulting corresponding given suggested proposed this its is here".split()
)
_LEADS = re.compile(r"(?:\A|[\n.!?;:。！？|\]}>),-]|\bso,?|\btherefore,?|\bthus,?)[ \t>*_#`'\"(\[<|•·+0-9.)-]{0,16}\Z")


@lru_cache(maxsize=256)
def _label(own: str) -> re.Pattern[str]:
    """Compile the pattern of a label with its context, such as "**Final coherence score (1-5)**:"."""
    name = re.sub(r"(?:\\ )+", r"[ \\t_-]{1,3}", re.escape(own)) or r"\b\B"
    return re.compile(
        r"(?P<before>(?:[^\W\d_][\w'-]{0,20}[ \t]{1,2}){0,4}?)(?<![\w-])(?:"
        rf"(?P<strong>(?:(?:final|overall|total)[ \t]{{1,2}})?(?:{_STRONG})(?:[ \t]{{1,2}}(?:finale?|globale?|total))?)|"
        rf"(?P<weak>(?:final|overall)[ \t](?:verdict|answer|result|assessment|evaluation)|{_WEAK})|"
        rf"(?P<own>{name})(?:[ \t]{{1,2}}(?:{_STRONG}))?)"
        r"(?:[ \t]{0,2}[*_]{0,3}[ \t]{0,2}[(\[（][^()\[\]（）\n]{1,60}[)\]）])?(?:[ \t]{1,2}for[ \t](?P<about>[\w \t]{1,40}))?"
        r"[ \t]{0,3}[*_\]`'\"|>]{0,6}[ \t]{0,4}"
        r"(?P<link>:|=|:=|-{1,2}|—|\||is:?|was|of|为|是|はです|は|:\s*$|(?=\s*\n)|(?=[ \t]*[\d*(\[<★⭐]))",
    )


def _labelled(text: str, scale: Scale, aspect: str) -> Iterator[Statement]:
    """Yield the values after labels at the start of a line or sentence."""
    own = plain(aspect)
    own_words = {*_OWN, *own.split()}
    about = set[str]()
    for match in [*_label(own).finditer(text)][-MOST:]:
        start, at, link = match.start(), match.end(), match["link"]
        lead = text[max(0, start - 40) : start]
        if (
            not own_words.issuperset(match["before"].split())  # "previous score", "max score", "fluency score"
            or not (_LEADS.search(lead) or lead.isspace())
            or lead.endswith(("a ", "an "))
            or re.search(r"\b(?:would|could|might|may)\b[^.\n]*\Z", lead)
            or (match["own"] and link in ("of", "is", "was", ""))
            or (match["weak"] in _NEED_A_COLON and link not in (":", "=", "|", "为", "是"))
        ):
            continue
        value = _value_at(text, at, scale)
        if value is None and link in (":", "", "=") and (below := re.compile(r"[ \t*_:]*\n\s*").match(text, at)):
            value = _value_at(text, below.end(), scale)
            if value and not re.compile(r"[ \t*_\"')\]}>.]*(?:\n|\Z|</)").match(text, value.end):
                value = None
        if value is None:
            if match["strong"] and link in (":", "=") and text[at : at + 60].partition("\n")[0].strip(" *_`"):
                yield Statement(start, at, None)
        elif _OF_A_COUNT.match(text, value.end):
            if match["strong"] not in ("note", "nota", "mark", "stars", None):
                yield Statement(start, value.end, None)
        elif not _WOULD.match(text, value.end) and not _of_a_part(text, value.end, aspect):
            about |= {match["about"]} if match["about"] else set()
            yield Statement(start, value.end, value.value if len(about) < 2 else None)  # one for each of several things


_NEED_A_COLON = ("overall", "final", "total", "category", "label", "result")
_OF_A_COUNT = re.compile(
    r"[ \t]{1,2}(?:of|out of)[ \t](?:the|its|all|these|those|my|our)\b|[ \t]{1,2}(?:errors?|mistakes?|issues?|words?|"
    r"sentences?|reasons?|things?|claims?|facts?|lines?|paragraphs?|times?)\b"
)
_WOULD = re.compile(
    r"[ \t*_\"')\]]{0,4}(?:would|could|might|requires?|needs?|if\b|means?\b|is (?:for|reserved|only)|stands? for|=)|"
    r"[ \t*_\"')\]]{0,3}:"
)
_FOR = re.compile(
    r"[ \t]{1,2}(?:for|on|in)[ \t](?:its |the |their |overall |perfect |complete |full |good |poor )?([a-z]{3,24})"
)
_ASPECTS = frozenset(
    "coherence fluency relevance consistency naturalness engagingness groundedness informativeness quality".split()
)
_WHOLE = frozenset(
    "this that the text summary response overall answer reply item dialogue story output it all both general now total "
    "terms my our disfluency irrelevance inconsistency incoherence being a an".split()
)


def _of_all(word: str, aspect: str) -> bool:
    """Whether a verdict labelled with this word concerns the whole item or the aspect itself."""
    return word in _WHOLE or word in (plain(aspect).split() if aspect else _ASPECTS)


def _of_a_part(text: str, at: int, aspect: str) -> bool:
    """Whether the text continues with only a part of the aspect, such as "for structure"."""
    part = _FOR.match(text, at)
    return part is not None and not _of_all(part[1], aspect)


_MARKS = re.compile(
    r"\[\[(?=[ \t]*[\d.+-])|\\boxed\{|\[(?:result|score|rating)\][ \t:]{0,4}(?:(?:score|rating)[ \t:]{0,3})?|"
    r"<(?:score|rating|verdict|answer|result|grade)>\s{0,4}(?=[\d.+-]|[a-z])|"
    r"(?m:^)#{2,6}[ \t]{1,3}(?=\d[\d.,]{0,9}[ \t*_.]*(?:\n|\Z))|"
    # the only row of a table, under a heading of scores
    rf"(?m:^)[ \t]*\|[^\n]{{1,200}}\|[ *_]*(?:{_STRONG})[ *_]*\|[ \t]*\n[ \t]*\|[-: |]+\|[ \t]*\n[ \t]*\|[^\n]{{1,200}}"
    r"\|(?=[^|\n]{1,60}\|[ \t]*(?:\n(?![ \t]*\|)|\Z))"
)


def _marked(text: str, scale: Scale) -> Iterator[Statement]:
    """Yield values in marks that are common in judging prompts: [[7]], \\boxed{4}, [RESULT] 2, <score>4</score>, #### 4."""
    for match in [*_MARKS.finditer(text)][-MOST:]:
        if value := _value_at(text, match.end(), scale):
            yield Statement(match.start(), value.end, value.value)


_ONLY = re.compile(
    r"\s*(?:[-•][ \t]+(?=\d)|(?:response|reply|output|summary|text|value|number|(?:on[ \t])?\(?\d{1,3}[ \t]?-[ \t]?\d{1,3}\)?)"
    r"[ \t]*:[ \t]*|rated[ \t]{1,2})"
)
_STARTS = re.compile(
    r"[ \t*_\"')\]}>]{0,4}(?:\Z|\n|[.:;!,。][*_\"')\]]{0,4}(?=\s|\Z)|[ \t]?[-][ \t](?!\d)|[ \t]?[—―](?![ \t]?\d))"
)
_LIST = re.compile(r"(?s)[.)](?:[ \t]{1,3}[^\n:]{1,40}:[ \t*_]{0,4}\S|.*\n[ \t]{0,4}[23][.)][ \t])|:.*\d[ \t]?:")
"""Pattern after the first number of a list ("1. Flow: 4", "1. …\\n2. …") or an explained scale ("1: poor, 2: …")."""


def _alone(text: str, scale: Scale) -> Statement | None:
    """Read a rating that starts the reply or is its last line, such as "4", "3 - good" or "Three stars. The …"."""
    if len(text) < 60 and (described := _whole(text, scale)) is not None:  # "Good (3)"
        return Statement(0, len(text), described)
    only = _ONLY.match(text)  # "Response: 3", "- 1"
    value = _value_at(text, only.end(), scale) if only else None
    if value and not re.search(r"\w", text[value.end :]):
        return value
    start = len(text) - len(text.lstrip(" \t\n*_#`>\"'([{<"))
    if value := _value_at(text, start, scale):
        begins = _STARTS.match(text, value.end) and not _LIST.match(text, value.end)
        if begins or text[start] in "★⭐🌟" or not re.search(r"\w", text[value.end :]):
            return value
    before = text.rstrip().rpartition("\n")[0]
    last = _value_at(text, len(before) + 1, scale) if before.strip() else None
    return last if last and not re.search(r"[^ \t\n*_\"')\]}>.。!`]", text[last.end :]) else None


_SAYS = (
    r"\b(?:i|we)(?:'d| would| will|'ll)?[ \t]{1,2}(?:(?:therefore|thus|finally|also|personally|have to|just)[ \t]{1,2})?"
    r"(?:rate|score|give|grade|assign|award|settle|go|choose|pick|select|say|gave|rated|scored)\b"
    r"(?:[ \t]{1,2}(?:it|this|that|the|with|on|for|at|as|a|an|its|their|of|response|summary|text|answer|reply|output|"
    r"article|dialogue|item|option|solid|strong|perfect|score|rating|grade|mark|overall|quality|coherence|fluency|"
    r"relevance|consistency|naturalness|engagingness|groundedness|informativeness)){0,8}[ \t:]{1,3}"
)
_IS = (
    r"\b(?:score|rating|grade|mark|answer|verdict)(?:[ \t]{1,2}(?:here|for[ \t][\w \t]{1,30}?))?[ \t]{1,2}(?:is|of|would be)"
    r"[ \t]{1,3}(?:only |just |thus |therefore |a |an |at )?"
)
_SCORING = (
    r"\b(?:scoring|scores|deserves?|earns?|earning|receives?|receiving|gets|merits?|warrants?|(?:which )?makes|making|"
    r"results? in|resulting in|(?:this|it|that)(?:'s| is))(?:[ \t]{1,2}(?:it|this|text|summary|the|a|an|only|just|perfect|"
    r"solid|strong|clear|score|rating|mark|grade|of)){1,7}[ \t]{1,3}|\bscoring[ \t]{1,3}|\bscores[ \t]{1,3}"
)
_OTHER_TONGUES = (
    r"\b(?:ich (?:vergebe|gebe|bewerte|würde)|(?:erhält|bekommt|verdient) die note|le doy|merece|"
    r"mi (?:calificación|puntuación|nota) es|je (?:donne|mets)|j'attribue|la note est)(?:[ \t]{1,2}(?:dem|den|der|text|eine|"
    r"ein|mit|die|note|un|una|puntuación|calificación|nota|de|la|une|punkte))*[ \t]{1,3}|"
    r"(?:打|给|给出|评|评为|最终|得|給)[^\d\n。，,]{0,4}(?=\d)"
)
_SENTENCES = re.compile(rf"(?P<says>{_SAYS})|(?P<is>{_IS})|(?P<scoring>{_SCORING})|{_OTHER_TONGUES}")
_UNSAID = re.compile(
    r"\b(?:if|would|could|might|considered|considering|maximum|mentions?|mentioned|says|said|(?<!, )with|claims?|quotes?|"
    r"describes?|team|film|match|game|not|from|never|without|short of|instead of|rather than|fails? to)\b[^.,;]{0,30}\Z"
)
_SUBJECT = re.compile(r"([^\W\d_]+)[ \t]*\Z")
_JOINING = frozenset("therefore thus hence and which so also but still only overall it just clearly really".split())
_GOES_ON = re.compile(
    r"[ \t]{1,2}(?!(?:out|because|for|since|on|in|as|and|to|overall|due|based|with|stars?|points?|here|given|which|but|so|"
    r"rather|weil|porque|car|von|de|sur|bewerten)\b)[a-z]{2}"
)
_ANOTHER = re.compile(r"[^.\n;]{0,160}?\b(?:and|but|while)\b[^,.\n;]*?\b(?:\d|a (?:\d|one|two|three|four|five))")


def _said(text: str, scale: Scale, aspect: str) -> Statement | None:
    """Read a rating within a sentence, such as "I would rate it 8/10" or "this deserves a score of 2".

    The result is ambiguous if sentences disagree or concern parts ("structure scores a 5").
    """
    found: list[Statement] = []
    for match in [*_SENTENCES.finditer(text)][-MOST:]:
        before = re.split(r"[.!?。！？\n;]", text[max(0, match.start() - 160) : match.start()])[-1]
        if (match["is"] or match["scoring"]) and _UNSAID.search(before):
            continue
        if re.match(r"\W*(?:even )?if\b", before):
            continue
        value = _value_at(text, match.end(), scale)
        if value is None or _WOULD.match(text, value.end):
            continue
        about = (
            _SUBJECT.search(before)
            if re.match("scores|deserve|earns|receives|gets|merit|warrant|makes", match[0])
            else None
        )
        of_a_part = about and about[1] not in _JOINING and not _of_all(about[1], aspect)
        if of_a_part or _of_a_part(text, value.end, aspect):
            return Statement(match.start(), value.end, None)
        if value.value is not None and _GOES_ON.match(text, value.end):
            continue  # "a 2 hour read"
        found.append(Statement(match.start(), value.end, None if _ANOTHER.match(text, value.end) else value.value))
    if not found:
        return None
    last = max(found, key=lambda statement: statement.end)
    return last if len({statement.value for statement in found}) == 1 else Statement(last.start, last.end, None)


def _letter(text: str, scale: Scale) -> Statement | None:
    """Read a multiple-choice option: A is the low end of the scale, B the next step."""
    match = re.match(r"[ \t\n*_`\"'(\[<]{0,6}([a-j])[ \t\n*_`\"')\]>.:]{0,6}\Z", text)
    value = scale.low + ord(match[1]) - ord("a") if match else math.inf
    return Statement(0, len(text), value) if value <= scale.high else None
