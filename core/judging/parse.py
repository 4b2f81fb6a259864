"""Reading the rating out of a reply (METHODS §2).

Every place where a number is *stated as the verdict* is collected with a rank; the last one of the highest rank wins.
So an explanation that follows "Rating: 3" cannot outvote it with "a 5 would need ...", and an analysis that precedes
"Rating: 2" cannot either.  Ranks:

3  a line of its own, the very start of the reply, a JSON field, or a "final" / "overall" label
2  a label with colon ("score: 4") elsewhere
1  prose: "a score of 4", "I give it a 4", "4/5", "4 out of 5", "four stars", a number that closes the reply
0  the same inside quotation marks (a judge quoting the text it rates)

Left out: ranges quoted from the prompt ("1-5"), counts ("3 errors"), years, and suppositions ("would be a 5 if").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from core.records import Scale, UnscoredReason


@dataclass(frozen=True, slots=True)
class Reading:
    """A number on the scale and the characters of the reply it was read from, or None and the reason."""

    value: float | None
    reason: UnscoredReason | None = None
    span: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class _Statement:
    rank: int
    start: int
    end: int
    value: float | None


_WORDS = {word: number for number, word in enumerate("zero one two three four five six seven eight nine ten".split())}
_WORD = "|".join(_WORDS)
_SAME_LENGTH = str.maketrans(
    {
        **{chr(ord("０") + digit): str(digit) for digit in range(10)},
        **dict(zip("：．，／（）＝–—−“”‘’「」", ':.,/()=---""\'\'""', strict=True)),
        **dict.fromkeys("*_`#", " "),
    }
)

_DIGITS = r"\d+(?:[.,]\d+)?"
_NUMBER = rf"(?P<number>-?{_DIGITS}|\b(?:{_WORD})\b)(?P<half>\s{{1,3}}and\s{{1,3}}a\s{{1,3}}half|½)?"
_TOP = rf"(?P<top>{_DIGITS}|(?:{_WORD})\b)"
_OUT_OF = rf"{_NUMBER}(?:\s{{0,3}}(?:/|\bout\s{{1,3}}of\b|\bof\b|\bon\b(?=\s+\d))\s{{0,3}}{_TOP})?"
_STARS = r"(?P<glyphs>[★⭐]{1,20})[☆✩]{0,20}"
_YES_NO = r"(?P<answer>yes|no|true|false)\b"
_NONE = r"(?P<nothing>n/?a\b|none\b|null\b|unknown\b|not applicable)"
_OPEN = r"[\s\"'(\[<{]{0,8}"
_CLOSE = r"[\s\"').\]>}!]{0,8}"
_VALUE = rf"{_OPEN}(?:{_OUT_OF}|{_STARS}|{_YES_NO}|{_NONE})"
_PARENTHESIS = r"(?:\s{0,3}[(\[][^()\[\]\n]{0,60}[)\]])?"
_SEPARATOR = r"(?:(?:[:=\n]|-{1,3}>|-(?=\s)|\bis:)\s{0,4}){1,3}"
_NO_RANGE = rf"(?!\d|[.,]\d|\s{{0,3}}(?:-|to\b|through\b|or\b)\s{{0,3}}(?:\d|(?:{_WORD})\b)|\s{{0,3}}=\s{{0,3}}\w)"
_NAMES = "ratings?|scores?|verdict|grade|mark|answer|evaluation|assessment|label"
_VERBS = r"(?:scor|rat|grad|mark|giv|gav|get|earn|receiv|deserv|assign|award|merit|warrant)\w{0,6}"
_FILLERS = (
    "it|this|that|the|a|an|of|as|with|at|is|was|be|to|only|just|full|high|low|final|overall|perfect|solid|for|rating|"
    "score|summary|response|text|reply|article|item|around|about|would|should|here"
)

_LINE = re.compile(rf"(?m)^{_OPEN}(?:{_OUT_OF}|{_STARS}|{_YES_NO})(?:\s{{0,3}}(?:stars?|points?))?{_CLOSE}$")
_START = re.compile(rf"{_OPEN}(?:{_OUT_OF}|{_STARS}|{_YES_NO})")
_CLOSING = re.compile(
    rf"(?:(?<=[.!?:;=>)\-])\s{{1,4}}{_OPEN}|(?<=[\w.!?]) ?[(\[]\s{{0,3}})"
    rf"{_NUMBER}(?:\s{{0,3}}/\s{{0,3}}{_TOP})?{_CLOSE}\Z"
)
_JSON_NAME = re.compile(r"[\w ]{1,40}[\"']\s{0,3}:")
_LETTER = re.compile(r"[(\[\"']?(?P<letter>[a-j])[)\]\"'.:]?")
_STAR_WORD = re.compile(r"\s{0,3}(?:-\s{0,3})?stars?\b")
_VERDICT_ENDS = re.compile(r"\s{0,3}(?:[.,;:!()\]\"'>\n|-](?!\d)|$)")
_LIST_GOES_ON = re.compile(r"(?m)^[ \t]{0,8}2[.)]\s")
_NO_COUNT = re.compile(
    r"\s{0,3}(?:[.,:;!?()\]}\"'<>|/&+=*%-]|$|\n|(?:stars?|points?|for|because|as|since|due|on|in|to|at|and|but|with|given|"
    r"rating|score|overall|here|based|according|would|is|was|which|that|this|out|of|by|from|if|while|although|so|"
    r"reflecting|indicating|considering|then|when|rather|instead|not)\b)"
)
_SUPPOSED_BEFORE = re.compile(
    r"(?:\bnot(?: quite)?|n't|\brather than|\binstead of|\bthan|\bshort of|\bbelow|\babove|"
    r"\bto (?:reach|get|earn|merit|deserve|achieve|receive|be)|"
    r"\b(?:would|could|might) (?:have|be|need|require|merit|deserve|earn|get|reach)[\w\s]{0,12}|"
    r"\bif\b[^.,!?\n]{0,60}|\bfor) ?(?:a|an|the)? ?(?:score of|rating of|score|rating)? ?$"
)
_MILD_WOULD = re.compile(r"\b(?:would|could|might) be ?(?:a|an)? ?$")
_SUPPOSED_AFTER = re.compile(
    r"[^.!?\n]{0,12}?\b(?:would (?:require|need|mean|be (?:given|reserved|for))|requires?|needs?|means|represents|"
    r"is (?:reserved|for|given|defined)|indicates|corresponds|if (?:it|the|this|there|they)\b)"
)
_REFUSAL = re.compile(
    r"\bi(?:'m| am) (?:sorry|unable|not able)|\bas an ai\b|"
    r"\bi (?:can ?not|can't|won't|will not) "
    r"(?:rate|score|evaluate|assess|provide|assist|help|give|comply|answer|do|judge|determine)|"
    r"\bunable to (?:rate|score|evaluate|assess|provide|determine)|"
    r"\bcannot (?:be (?:rated|scored|evaluated)|fulfil|comply|provide a (?:score|rating))"
)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class _Grammar:
    """The patterns for one scale and aspect, on lower-cased text of the reply's own length."""

    label: re.Pattern[str]
    prose: re.Pattern[str]
    ratio: re.Pattern[str]
    scale_range: re.Pattern[str]


@lru_cache(maxsize=64)
def _grammar(low: float, high: float, aspect: str) -> _Grammar:
    own = re.escape(" ".join(aspect.lower().replace("_", " ").split()))
    names, fillers = (f"{_NAMES}|{own}", f"{_FILLERS}|{own}") if own else (_NAMES, _FILLERS)
    first, last = re.escape(f"{low:g}"), re.escape(f"{high:g}")
    return _Grammar(
        label=re.compile(
            rf"(?P<final>\b(?:final|overall|total)\s{{1,3}})?(?:\b(?:my|the|your{'|' + own if own else ''})\s{{1,3}})?"
            rf"\b(?:{names})\b[\"']?(?:"
            rf"(?:\s{{1,3}}(?:rating|score|level|value))?[\"']?{_PARENTHESIS}\s{{0,4}}[\"']?{_SEPARATOR}{_VALUE}{_NO_RANGE}"
            rf"|\s{{0,3}}[(\[]\s{{0,3}}(?P<inside>{_DIGITS})(?:\s{{0,3}}/\s{{0,3}}(?P<inside_top>{_DIGITS}))?\s{{0,3}}[)\]])"
        ),
        prose=re.compile(
            rf"\b(?:{_VERBS}{'|' + own if own else ''})\b(?:\s{{1,3}}(?:{fillers})\b){{0,7}}"
            rf"\s{{1,3}}[\"']?{_OUT_OF}{_NO_RANGE}(?!\s{{0,3}}:)"
        ),
        ratio=re.compile(
            rf"(?<![\w.,/]){_NUMBER}\s{{0,3}}"
            rf"(?:(?:/|\bout of\b)\s{{0,3}}{_TOP}(?![\d/])|(?:-\s{{0,3}})?\bstars?\b)|{_STARS}"
        ),
        scale_range=re.compile(
            rf"(?<![\d.,]){first}(?:\.0)?\s{{0,3}}(?:-{{1,3}}|~|to|and|through)\s{{0,3}}{last}(?!\d|[.,]\d)"
        ),
    )


def read_rating(reply: str, scale: Scale, aspect: str = "", finish: str = "stop") -> Reading:
    """The rating stated in `reply` on `scale`, or why there is none.

    `aspect` may stand as the label ("Coherence: 4").  `finish` is the provider's: a reply that was cut off
    ("length") or refused ("refusal") is never read.  Yes and no count on scales from 0 to 1 only; a single letter
    counts options from A = the low end.
    """
    if finish == "refusal":
        return Reading(None, "refused")
    if not reply.strip():
        return Reading(None, "truncated" if finish == "length" else "empty")
    if finish == "length":
        return Reading(None, "truncated")
    text = _levelled(reply.rstrip())
    grammar = _grammar(scale.low, scale.high, aspect)
    text = grammar.scale_range.sub(_blank, text)
    chosen = _choose(text, grammar, scale)
    if chosen is None or chosen.value is None:
        refused = chosen is None and _REFUSAL.search(text)
        return Reading(None, "refused" if refused else "no verdict")
    span = (chosen.start, chosen.end)
    return Reading(chosen.value, None, span) if scale.holds(chosen.value) else Reading(None, "out of range", span)


def _levelled(reply: str) -> str:
    """Lower case without markdown and thoughts, digits and quotes made plain; every character keeps its place."""
    text = reply.lower()
    if len(text) != len(reply):
        text = "".join(low if len(low := char.lower()) == 1 else char for char in reply)
    text = text.translate(_SAME_LENGTH)
    return _THOUGHT.sub(_blank, text) if "<think" in text else text


def _blank(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


def _choose(text: str, grammar: _Grammar, scale: Scale) -> _Statement | None:
    stated = [*_labelled(text, grammar, scale), *_standing_alone(text, scale)]
    if not any(statement.rank > 1 for statement in stated):
        stated += _in_prose(text, grammar, scale)
    return max(stated, key=lambda statement: (statement.rank, statement.start), default=None)


def _labelled(text: str, grammar: _Grammar, scale: Scale) -> Iterator[_Statement]:
    for match in grammar.label.finditer(text):
        if match["inside"] is not None:
            value: float | None = _number(match["inside"], None, match["inside_top"], scale)
        else:
            value = _value(match, scale)
            if value is None and match["nothing"] is None:
                continue
        if match["final"] or _leads_its_line(text, match.start()):
            yield _Statement(3, *match.span(), value)
        elif _is_quoted(text, match.start()):
            yield _Statement(0, *match.span(), value)
        elif not _is_supposed(text, match.start(), match.end()):
            yield _Statement(2, *match.span(), value)


def _in_prose(text: str, grammar: _Grammar, scale: Scale) -> Iterator[_Statement]:
    for pattern in (grammar.prose, grammar.ratio):
        for match in pattern.finditer(text):
            value = _value(match, scale)
            if value is None or not _NO_COUNT.match(text, match.end()) or not _fits_prose(match, value, scale):
                continue
            if not _is_supposed(text, match.start(), match.end()):
                yield _Statement(0 if _is_quoted(text, match.start()) else 1, *match.span(), value)


def _standing_alone(text: str, scale: Scale) -> Iterator[_Statement]:
    """The reply's first words, lines that hold nothing but a value, and a value that closes the reply."""
    first = _START.match(text)
    if first and _opens_reply(text, first):
        yield from _alone(first, 3, scale)
    for line in _LINE.finditer(text):
        yield from _alone(line, 3, scale)
    if last := _CLOSING.search(text):
        yield from _alone(last, 1, scale)
    if len(text) < 12 and (letter := _LETTER.fullmatch(text.strip())):
        option = ord(letter["letter"]) - ord("a") + scale.low
        if option <= scale.high:
            yield _Statement(3, 0, len(text), float(option))


def _alone(match: re.Match[str], rank: int, scale: Scale) -> Iterator[_Statement]:
    value = _value(match, scale)
    if value is not None:
        yield _Statement(rank, *match.span(), value)


def _opens_reply(text: str, match: re.Match[str]) -> bool:
    """Whether the reply starts with its verdict: "4. The text ...", "Three stars.", "yes, ...", but no list."""
    if match["number"] is not None and match["top"] is None and _LIST_GOES_ON.search(text, match.end()):
        return False
    return bool(_STAR_WORD.match(text, match.end()) or _VERDICT_ENDS.match(text, match.end()))


def _fits_prose(match: re.Match[str], value: float, scale: Scale) -> bool:
    """Prose speaks of many numbers: one beyond ten times the scale is a year or a count."""
    return value <= 10 * max(scale.high, 1) or match.groupdict().get("top") is not None


def _is_supposed(text: str, start: int, end: int) -> bool:
    """Whether the statement is a supposition ("a 5 would need ...", "would be a 5 if ...")."""
    sentence = max(text.rfind(mark, 0, start) for mark in (". ", "\n", "! ", "? ")) + 1
    before = text[sentence:start]
    if _SUPPOSED_AFTER.match(text, end):
        return True
    if _MILD_WOULD.search(before) and " if " not in before:
        return False
    return bool(_SUPPOSED_BEFORE.search(before))


def _is_quoted(text: str, start: int) -> bool:
    """Whether an odd number of double quotes opens before `start` on its line, or a quote stands right before it."""
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return line.count('"') % 2 == 1 or line.endswith((' "', " '", "('", '("'))


def _leads_its_line(text: str, start: int) -> bool:
    """Whether nothing but a bullet, a number, or the quote and brace of a JSON field stand before `start`."""
    before = text[text.rfind("\n", 0, start) + 1 : start].strip("{,[-+>•()0123456789. \t")
    return not before or (before in ('"', "'") and bool(_JSON_NAME.match(text, start)))


def _value(match: re.Match[str], scale: Scale) -> float | None:
    groups = match.groupdict()
    if groups.get("number") is not None:
        return _number(groups["number"], groups.get("half"), groups.get("top"), scale)
    if groups.get("glyphs") is not None:
        return float(len(groups["glyphs"]))
    answer = groups.get("answer")
    if answer is not None and (scale.low, scale.high) == (0, 1):
        return 1.0 if answer in ("yes", "true") else 0.0
    return None


def _number(number: str, half: str | None, top: str | None, scale: Scale) -> float:
    """The value of a matched number; one given out of another top than the scale's is out of range (infinite)."""
    value = _plain_number(number) + (0.5 if half else 0.0)
    if top is not None and _plain_number(top) != scale.high:
        return float("inf")
    return value


def _plain_number(text: str) -> float:
    if text in _WORDS:
        return float(_WORDS[text])
    if re.fullmatch(r"-?\d{1,3}(?:,\d{3})+", text):
        return float(text.replace(",", ""))
    return float(text.replace(",", "."))
