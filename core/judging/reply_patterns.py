"""Vocabularies and patterns of the reader, the plain form of a reply they work on, and the numbers they match.

The words are English, German, Spanish and French without accents (`levelled` takes them off); Chinese has patterns of
its own.  Patterns are written for lower-cased text of the reply's own length, so that spans stay true; all are bounded,
so that a reply of one endless line is read in linear time.
"""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from core.records import Scale

_NUMBER_WORDS = {
    word: number
    for words in (
        "zero one two three four five six seven eight nine ten",
        "- eins zwei drei vier funf sechs sieben acht neun zehn",
        "cero uno dos tres cuatro cinco - siete ocho nueve diez",
        "- - deux trois quatre cinq - sept huit neuf dix",
    )
    for number, word in enumerate(words.split())
    if word != "-"
}
_DIGIT_CHARACTERS = {character: value for value, character in enumerate("零一二三四五六七八九十")} | {"两": 2, "兩": 2}
_YES = frozenset("yes true ja si oui 是 对".split())
_NO = frozenset("no false nein non 否 不是".split())
_THOUSANDS = re.compile(r"-?\d{1,3}(?:,\d{3})+")
_LONGEST = 24
WORD = "|".join(sorted(_NUMBER_WORDS, key=len, reverse=True))

_PUNCTUATION = zip("：．，／（）＝［］【】–—−－“”„‘’「」《》｜％", ':.,/()=[][]----"""\'\'""""|%', strict=True)
_LETTERS = ((chr(code), unicodedata.normalize("NFD", chr(code))[0]) for code in range(0xC0, 0x180))
_SAME_LENGTH = str.maketrans(
    {
        **{chr(ord("０") + digit): str(digit) for digit in range(10)},
        **{chr(ord("Ａ") + place): chr(ord("A") + place) for place in range(26)},
        **{chr(ord("ａ") + place): chr(ord("a") + place) for place in range(26)},
        **dict(_PUNCTUATION),
        **{letter: plain for letter, plain in _LETTERS if plain.isascii()},
        **dict.fromkeys("*_`#\u00a0\u3000", " "),
    }
)

DIGITS = r"\d+(?:[.,]\d+)?"
_STARS_IN_WORDS = r"(?:stars?|sternen?|estrellas?|etoiles?)\b"
_AND_PART = r"(?:\s{1,3}|-)(?:and|y|et)(?:\s{1,3}|-)(?:(?:an?|one|two|three|une?)(?:\s{1,3}|-))?"
_AND_PART += r"(?:half|quarters?|thirds?|media|demie?)\b(?!\s{1,3}of\b)"
STAR_NAMES = rf"(?:-\s{{0,3}})?{_STARS_IN_WORDS}(?!{_AND_PART})"
_HALF = r"(?:\s{1,3}|-)and(?:\s{1,3}|-)(?:a(?:\s{1,3}|-)|one-)half\b|\s?½|(?:\s{1,3}|-|\s{1,3}and\s{1,3})1/2(?!\d)"
NUMBER = rf"(?P<number>-?{DIGITS}|\b(?:{WORD})\b)(?P<half>{_HALF})?"
NUMBER += rf"(?:\s?[(\[](?P<again>{DIGITS}|(?:{WORD}))[)\]](?=\s{{0,3}}{STAR_NAMES}|\s{{1,3}}out\s{{1,3}}of\b))?"
TOP = rf"(?P<top>{DIGITS}|(?:{WORD})\b)"
OUT_OF = rf"{NUMBER}(?:\s{{0,3}}(?:/|\bout\s{{1,3}}of\b|\b(?:of|von|de|sobre|sur)\b|\bon\b(?=\s+\d))\s{{0,3}}{TOP})?"
STARS = r"(?P<glyphs>(?:[★⭐]\ufe0f?){1,20})(?![★⭐]|\s?(?:½|1/2))[☆✩]{0,20}"
STARS += rf"(?!{_AND_PART})"
YES_NO = r"(?P<answer>yes|no|true|false|ja|nein|si|oui|non)\b"
_NONE = r"(?P<nothing>n/?a\b|none\b|null\b|unknown\b|not applicable)"
OPEN = r"[\s\"'(\[<{]{0,8}"
CLOSE = r"[\s\"').\]>}!]{0,8}"
_OPEN_HERE, _CLOSE_HERE = r"[ \t\"'(\[<{]{0,8}", r"[ \t\r\"').\]>}!]{0,8}"
VALUE = rf"{OPEN}(?:[+~≈]|(?:about|around|approximately|roughly)\s)?(?:{OUT_OF}|{STARS}|{YES_NO}|{_NONE})"
_PARENTHESIS = r"(?:\s{0,3}[(\[][^()\[\]\n]{0,60}[)\]])?"
_SEPARATOR = r"(?:(?:[:=\n|]|-{1,3}>|-(?=\s)|\bis:)\s{0,4}){1,3}"
NO_RANGE = r"(?!\d|[eE][-+]?\d|(?:st|nd|rd|th)\b|[.,]\d|"
NO_RANGE += r"\s{0,3}=\s{0,3}\w|\s{0,3}(?:-|~|(?:to|through|or|bis|oder|ou|o|a)\b)"
NO_RANGE += rf"\s{{0,3}}(?:\d|(?:{WORD})\b)|{_AND_PART}|\s{{1,3}}[1-3]/[2-4](?!\d))"
RANGE_BEFORE = re.compile(
    rf"(?:\d|\b(?:{WORD}))(?:-|\s{{0,3}}~\s{{0,3}}|\s{{1,3}}(?:to|through|or|bis|oder|ou)\s{{1,3}})(?:an?\s)?\Z|"
    rf"\bbetween\s{{1,3}}(?:an?\s)?(?:{DIGITS}|(?:{WORD}))\s{{1,3}}and\s{{1,3}}(?:an?\s)?\Z"
)
"""What makes the number after it the upper end of a range: "three or", "between 3 and"."""
SHY_NAMES = frozenset("note nota cote punkte points puntos".split())
"""Labels that are also everyday words: they count only where the value closes a sentence, a line or a bracket."""
_NAMES = (
    "ratings?|scores?|verdict|grade|mark|answer|evaluation|assessment|label|"
    "(?:gesamt|end)?(?:bewertung|wertung|note|punktzahl|urteil)|punkte|"
    "puntuacion|puntaje|calificacion|valoracion|evaluacion|nota|veredicto|puntos|notation|appreciation|cote|points"
)
_VERBS = (
    r"(?:scor|rat|grad|mark|giv|gav|get|earn|receiv|deserv|assign|award|merit|warrant|say|pick|choos|settl|answer|"
    r"verdict)\w{0,6}|(?:it's|it\s{1,3}is|this\s{1,3}is)\s{1,3}an?"
)
_FILLERS = (
    "it|this|that|the|a|an|of|as|with|at|is|was|be|to|only|just|full|high|low|final|overall|perfect|solid|strong|option|for|rating|"
    "score|summary|response|text|reply|article|item|around|about|would|should|here|on|its|it's|naturalness|coherence|"
    "engagingness|groundedness|consistency|fluency|relevance|informativeness|quality|accuracy|faithfulness|factuality|"
    "helpfulness|understandability|grammar|clarity|conciseness|simplicity|adequacy|readability|completeness|correctness"
)
_OTHER_VERBS = (
    r"(?:bewert|vergeb|vergab|punktzahl|otorg|asign|calific|puntua|puntuacion|merec|attribu|donn|accord|merit|evalu)"
    r"\w{0,7}|gebe|gibt|erhalt|verdient|doy|daria|obtiene|recibe|valoracion|note|nota|obtient|recoit|urteil|wertung"
)
_OTHER_FILLERS = (
    "ist|eine|einen|einer|mit|der|die|das|den|dem|text|von|ich|daher|also|insgesamt|lautet|betragt|nur|diesem|dieser|"
    "diese|diesen|zusammenfassung|ihm|ihr|antwort|note|punktzahl|bewertung|es|de|un|una|la|el|le|al|con|seria|texto|"
    "resumen|este|esta|solo|que|respuesta|puntuacion|nota|calificacion|est|une|les|ce|cette|cet|texte|resume|serait|a|"
    "lui|pour|du|reponse|score|par|finale|final|globale|donc|to|se|als|fur|daher"
)
_NOT_QUITE = "".join(rf"(?<!\b{word} )" for word in ("from", "without", "by", "before", "almost", "nearly", "not"))
_TENSES = "final|finale|global|globale|general|generale|total|totale"

LINE = re.compile(
    rf"(?m)^{_OPEN_HERE}(?:{OUT_OF}|{STARS}|{YES_NO})(?:\s{{0,3}}(?:{STAR_NAMES}|points?))?{_CLOSE_HERE}$"
)
ANY_NAME = re.compile(
    r"(?m)^[ \t]{0,8}(?:[-+>•|][ \t]{0,3}|\d{1,2}[.)][ \t]{1,3})?"
    r"(?P<name>[^\W\d][\w /-]{2,40}?)(?: ?\([^()\n]{0,40}\))?"
    rf" ?[:=|][ \t]{{0,4}}{OPEN}(?:{OUT_OF}|{STARS})(?:\s{{0,3}}{STAR_NAMES})?"
    r"(?=[\s\")\]}|]{0,4}$|\.(?:\s|$)|[,;]? -? ?[(\[]| - )"
)
"""A line "Engagingness: 2": a label nobody named."""
COUNTED = re.compile(
    r"errors?|mistakes?|typos?|words?|sentences?|claims?|facts?|years?|pages?|lines?|count|number|total|step|part|"
    r"chapter|example|item|question|option|line|paragraphs?|issues?|problems?|omissions?|hallucinations?|"
    r"points? (?:lost|deducted)"
)
RUBRICS = frozenset("criteria scale rubric range".split())
NUMBERED_NAME = re.compile(r"[.)]\s{1,3}[^\n:]{1,60}:\s{0,3}\S")
START = re.compile(rf"{OPEN}(?:{OUT_OF}|{STARS}|{YES_NO})")
CLOSING = re.compile(
    rf"(?:(?<=[.!?:;=>)\-])\s{{1,4}}{OPEN}|(?<=[\w.!?]) ?[(\[]\s{{0,3}}|"
    rf"\b(?:so|hence|thus|therefore),?\s(?:it's\s|it is\s)?(?:an?\s)?)"
    rf"{NUMBER}(?:\s{{0,3}}/\s{{0,3}}{TOP})?{CLOSE}\Z"
)
BEFORE_LABEL = re.compile(
    r"(?P<final>\b(?:final|overall|total|revised|updated|corrected)\s{1,3})?(?:\b(?:my|the|your)\s{1,3})?\Z"
)
BOXED = re.compile(rf"\\boxed\s?\{{\s?(?:\\text\s?\{{)?{OUT_OF}\s?\}}")
ANSWERS = re.compile(
    rf"\b(?:answer|verdict|rating|label|conclusion|say|antwort|respuesta|reponse)\s{{1,3}}"
    rf"(?:(?:is|would be|ist|lautet|es|est)\s{{1,3}})?[\"']?{YES_NO}(?=\s{{0,2}}(?:[.,;:!)\"']|$))"
)
IN_BRACKETS = re.compile(rf"[(\[]\s{{0,2}}{NUMBER}\s{{0,2}}[)\]](?=\s{{0,2}}(?:[.,;:\n]|$))")
AFTER_EMPTY_LABEL = re.compile(rf"(?m)^(?:rationale|explanation|reasons?|reasoning)\s?:\s{{0,3}}{NUMBER}[.:]\s")
STAR_WORD = re.compile(rf"\s{{0,3}}{STAR_NAMES}")
VERDICT_ENDS = re.compile(r"\s{0,3}(?:[.,;:!()\]\"'>\n|/](?!\d)|$)|\s{1,3}-(?!\d)|-(?!\w)")
"""No hyphen within a word: "four-legged", "two-thirds"."""
LIST_GOES_ON = re.compile(r"(?m)^[ \t]{0,8}2[.)]\s")
NO_COUNT = re.compile(
    rf"(?!\s{{0,3}}-?{_STARS_IN_WORDS}{_AND_PART})(?:-(?!\w)|-{_STARS_IN_WORDS}|\s{{1,3}}-|"
    r"\s{0,3}(?:[.,:;!?()\[\]}\"'<>|/&+=*%]|$|\n|(?:stars?|points?|for|because|as|since|due|on|in|to|at|and|but|with|given|"
    r"rating|score|overall|here|based|according|would|is|was|which|that|this|out|of|by|from|if|while|although|so|"
    r"reflecting|indicating|considering|then|when|rather|instead|not|"
    r"punkten?|sternen?|weil|da|denn|fur|und|aber|auf|puntos|estrellas|porque|ya|por|para|en|y|pero|etoiles?|car|parce|"
    r"pour|sur|et|mais|puisque)\b))"
)
REFUSAL = re.compile(
    r"\bi(?:'m| am) (?:sorry|unable|not able)|\bas an ai\b|"
    r"\bi (?:can ?not|can't|won't|will not) "
    r"(?:rate|score|evaluate|assess|provide|assist|help|give|comply|answer|do|judge|determine)|"
    r"\bunable to (?:rate|score|evaluate|assess|provide|determine)|"
    r"\bcannot (?:be (?:rated|scored|evaluated)|fulfil|comply|provide a (?:score|rating))|"
    r"\btut mir leid|\bich kann (?:das|dies|diese\w?|den text|dazu|hier)?"
    r"[^.\n]{0,40}nicht (?:bewerten|beurteilen|helfen)|"
    r"\blo siento|\bno puedo (?:evaluar|calificar|puntuar|ayudar)|"
    r"\b(?:je suis|je regrette|je m'excuse)[^.\n]{0,12}desole|"
    r"\bdesolee?\b|\bje ne peux pas (?:evaluer|noter|aider)|"
    r"抱歉|对不起|對不起|无法(?:评|打分|提供|给出)|無法(?:評|打分|提供)"
)

# What stands around a value that is only supposed ("a 5 would need ...", "rather than a 5")
SUPPOSED_BEFORE = re.compile(
    r"(?:\bnot(?: quite)?|n't|\brather than|\binstead of|\bthan|\bshort of|\bbelow|\babove|"
    r"\bto (?:reach|get|earn|merit|deserve|achieve|receive|be)|"
    r"\b(?:would|could|might) (?:have|be|need|require|merit|deserve|earn|get|reach)[\w\s]{0,12}|"
    r"\bif\b[^.,!?\n]{0,60}|\bfor|\b(?:keine?|statt|als|fur|no|pas|pour|para|que)) ?(?:a|an|the|eine?|una?|une?)? ?"
    r"(?:score of|rating of|score|rating)? ?$"
)
MILD_WOULD = re.compile(r"\b(?:would|could|might) be ?(?:a|an)? ?$")
SUPPOSED_AFTER = re.compile(
    r"[^.!?\n]{0,12}?\b(?:would (?:require|need|mean|be (?:given|reserved|for))|requires?|needs?|means|represents|"
    r"is (?:reserved|for|given|defined)|indicates|corresponds|if (?:it|the|this|there|they)\b|"
    r"(?:wurde|ware|brauchte|hiesse|bedeutet)\b|(?:requeriria|necesitaria|significa|seria para)\b|"
    r"(?:exigerait|demanderait|signifie|serait pour)\b)"
)
BEFORE_VALUE = re.compile(r"(?P<word>[^\W\d_]{2,30})(?:'s)?[\s:=(]{0,4}\Z")
AFTER_VALUE = re.compile(
    r"(?:\s{0,3}/\s{0,3}\d+)?\s{0,3}(?:points?\s{1,3})?(?:for|on|in\s{1,3}terms\s{1,3}of|regarding)\s{1,3}"
    r"(?:(?:the|its|their|overall)\s{1,3}){0,2}(?P<word>[^\W\d_]{2,30})\b"
)
"""What a mark is given for: the word before it, or after it."""
NO_PARTS = frozenset(
    f"{_FILLERS}|{_NAMES}|i|we|you|he|she|they|them|me|us|and|or|but|so|thus|hence|therefore|then|which|would|could|"
    "can|will|do|does|are|be|been|has|have|had|in|by|than|not|from|my|our|your|very|quite|rather|clear|firm|mere|weak|"
    "whole|all|these|those|such|both|each|any|some|one|two|three|four|five|reply|answer|passage|document|story|output|"
    "conversation|dialogue|being|reasons|reason|following|because|since|scale|get|gets|give|gives|given|rate|rated|"
    "rates|score|scored|scores|earn|earns|deserve|deserves|receive|receives|assign|assigned|say|grade|graded|final|now|"
    "also|still|finally|ultimately|overall|perhaps|maybe|probably|likely|conclusion|summary|mine|however|though".split(
        "|"
    )
)
JSON_NAME = re.compile(r"[\w ]{1,40}[\"']\s{0,3}:")

# Letters of multiple choice: A is the low end of the scale, B the next, and so on
_LETTER = r"[(\[\"'<{]{0,2}\s?(?P<letter>[A-J])(?![\w'’])"
LETTER_ALONE = re.compile(rf"(?m)^[\s\"'(\[]{{0,4}}(?:[Oo]ption\s)?{_LETTER}[\s\"').:\]>}}]{{0,4}}$")
LETTER_AT_START = re.compile(rf"[\s\"'(\[]{{0,4}}(?:[Oo]ption\s)?{_LETTER}\s?[).:\],>\n-]")
LETTER_LABELLED = re.compile(
    r"(?i:\b(?:answer|option|choice|verdict|rating|score|grade|antwort|respuesta|opcion|reponse|choix|"
    r"choose|chose|select|selected|pick|picked)\b|答案|选项|選項|选择|選擇|我选|評分|评分)"
    rf"(?:\s{{0,3}}(?::|=|-|\b(?i:is|would be|option|answer|ist|es|est|la|die|der)\b|是|为)){{0,3}}\s{{0,3}}{_LETTER}"
    r"(?=\s{0,2}(?:[.,;:!?)\]}\"'>\n。，-]|$|because\b|since\b|as\b|for\b))"
)
LETTER_IN_BRACKETS = re.compile(r"\((?P<letter>[A-J])\)")
LETTER_ONLY = re.compile(r"\s{0,4}[(\[\"']?(?P<letter>[a-jA-J])[)\]\"'.:]?\s{0,4}")

# Chinese, with the commonest Japanese and Korean labels: there are no spaces between words
_CHARACTER = "零一二两兩三四五六七八九十"
_CHINESE_NUMBER = rf"(?P<number>-?{DIGITS}|[{_CHARACTER}])(?P<half>分半)?"
_CHINESE_TOP = rf"(?:\s{{0,2}}分?\s{{0,2}}/\s{{0,2}}(?P<top>{DIGITS}))?"
_CHINESE_NAMES = (
    "评分|評分|得分|分数|分數|评级|評級|打分|给分|給分|评价|評價|评估|評估|成绩|成績|总分|總分|等级|等級|结论|答案|"
    "評価|スコア|点数|點數|점수|평점"
)
_CHINESE_UNIT = r"(?:\s?(?:分|点|點|颗星|顆星|星|점))?"
_NO_CHINESE_RANGE = r"(?!\d|[.,]\d|\s{0,2}分?\s{0,2}(?:-|~|到|至|或)\s{0,2}\d)"
CHINESE_LABEL = re.compile(
    rf"(?P<final>最终|最終|最后|最後|综合|綜合|总体|總體|总|總)?的?(?:{_CHINESE_NAMES})(?:[(\[][^()\[\]\n]{{0,40}}[)\]])?\]?"
    rf"(?:\s{{0,3}}(?:[:=]|应该是|應該是|应为|應為|是|为|為|は|는|은)){{1,2}}[\s\"'(\[]{{0,4}}"
    rf"(?:{_CHINESE_NUMBER}{_CHINESE_UNIT}{_CHINESE_TOP}{_NO_CHINESE_RANGE}|(?P<answer>是|对|不是|否))"
)
CHINESE_PROSE = re.compile(
    rf"(?:给|給|打|评|評|得|获|獲|为|為|是|:|,|^)[^\d\n,。.;{_CHARACTER}]{{0,8}}{_CHINESE_NUMBER}\s?(?:分|颗星|顆星|星|点){_CHINESE_TOP}{_NO_CHINESE_RANGE}"
)
CHINESE_ENDING = re.compile(
    rf"(?<![\d.,]){_CHINESE_NUMBER}\s?(?:分|颗星|顆星|星)?(?=\s{{0,3}}(?:[.。!,，;]|$)){_NO_CHINESE_RANGE}\Z"
)
CHINESE_ANSWER = re.compile(r"(?m)^\s{0,4}(?P<answer>是|否|对|不是)\s?[。.,!]?")
CHINESE_DEFINES = re.compile(r"\s?分?[^。.\n\d]{0,4}(?:表示|代表|意味|指的是|是最|为最|為最|最高|最低|需要)")
CHINESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")

_DASH = re.compile(rf"(?<=\w)[—–](?=[^\W\d_])(?!(?:{WORD})\b)")
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_QUOTED_SCALE = re.compile(
    r"\b(?:scale|range|skala|escala|echelle)\b\s{1,3}(?:(?:of|from|von|de)\s{1,3})?"
    r"\d{1,3}\s{0,3}(?:-|~|to|bis|a)\s{0,3}\d{1,3}\b|(?:满分|滿分)[为為是:]{0,2}\s{0,2}\d{1,3}\s{0,2}分?"
)


@dataclass(frozen=True)
class Grammar:
    """The patterns that depend on the scale or the aspect."""

    label: re.Pattern[str]
    tag: re.Pattern[str]
    prose: re.Pattern[str]
    making: re.Pattern[str]
    own: re.Pattern[str] | None
    other_prose: re.Pattern[str]
    ratio: re.Pattern[str]
    scale_range: re.Pattern[str]


@lru_cache(maxsize=64)
def grammar(low: float, high: float, aspect: str) -> Grammar:
    """The patterns for one scale; `aspect` is one more name of the rating."""
    own = re.escape(" ".join(plain(aspect).split()))
    names, fillers = (f"{_NAMES}|{own}", f"{_FILLERS}|{own}") if own else (_NAMES, _FILLERS)
    first, last = re.escape(f"{low:g}"), re.escape(f"{high:g}")
    return Grammar(
        label=re.compile(
            rf"\b(?P<name>{names})\b[\"']?(?:"
            rf"(?:\s{{1,3}}(?:rating|score|level|value|{_TENSES}))?[\"']?{_PARENTHESIS}\s{{0,4}}[\"']?{_SEPARATOR}{VALUE}{NO_RANGE}"
            rf"|\s{{0,3}}[(\[]\s{{0,3}}(?P<inside>{DIGITS})(?:\s{{0,3}}/\s{{0,3}}(?P<inside_top>{DIGITS}))?\s{{0,3}}[)\]])"
        ),
        tag=re.compile(rf"[<\[](?:final\s)?(?:{names}|result)[>\]]\s{{0,4}}{VALUE}{NO_RANGE}"),
        prose=re.compile(
            rf"\b(?:{_VERBS}{'|' + own if own else ''})\b(?:\s{{1,3}}(?:{fillers})\b){{0,7}}"
            rf"\s{{1,3}}[\"']?{OUT_OF}{NO_RANGE}(?!\s{{0,3}}:)"
        ),
        making=re.compile(
            rf"{_NOT_QUITE}\bmak(?:es|ing)\s{{1,3}}(?:it|(?:this|that|the)(?:\s{{1,3}}\w{{1,20}})?)\s{{1,3}}an?\s{{1,3}}"
            rf"(?:(?:{fillers}|clear|firm|mere|weak)\s{{1,3}}){{0,3}}{OUT_OF}{NO_RANGE}"
            rf"(?=\s{{0,3}}(?:[.;!)]|$)|\s{{1,3}}(?:for|on|in|in\s{{1,3}}terms\s{{1,3}}of|regarding)\s{{1,3}}"
            rf"(?:the\s{{1,3}}|its\s{{1,3}}|overall\s{{1,3}}){{0,2}}(?:{own or 'quality'})\b)"
        ),
        own=re.compile(rf"\b{own}\b") if own else None,
        other_prose=re.compile(
            rf"\b(?:{_OTHER_VERBS})\b(?:\s{{1,3}}(?:{_OTHER_FILLERS})\b){{0,8}}\s{{1,3}}[\"']?{OUT_OF}{NO_RANGE}(?!\s{{0,3}}:)"
        ),
        ratio=re.compile(
            rf"(?<![\w.,/]){NUMBER}\s{{0,3}}(?:(?:/|\b(?:out of|von|de|sobre|sur)\b)\s{{0,3}}{TOP}(?![\d/])|"
            rf"{STAR_NAMES}"
            rf"|(?:punkten?|puntos|bewerte\w?|benoten?)\b|\b(?:on|auf|en|sur)\s(?:a|the|this|einer|der|una|la|une)\s(?:scale|skala|escala|echelle)\b)|{STARS}"
        ),
        scale_range=re.compile(
            rf"(?<![\d.,]){first}(?:\.0)?\s{{0,3}}分?(?:-{{1,3}}|~|to|and|through|bis|und|al?|y|et|到|至)\s{{0,3}}"
            rf"{last}(?!\d|[.,]\d)\s?分?"
        ),
    )


def plain(text: str) -> str:
    """Lower case without accents, markdown and typographic punctuation; every character keeps its place.

    A dash between two words becomes a comma, so that it is told from a hyphen within one.
    """
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(low if len(low := char.lower()) == 1 else char for char in text)
    return _DASH.sub(",", lower).translate(_SAME_LENGTH).lower()


def cased(text: str) -> str:
    """As `plain`, with the case kept."""
    return text.translate(_SAME_LENGTH)


def levelled(reply: str, patterns: Grammar) -> str:
    """The plain reply with thoughts and quoted scales blanked out; every character keeps its place."""
    text = plain(reply)
    if "<think" in text:
        text = _THOUGHT.sub(_blank, text)
    return _QUOTED_SCALE.sub(_blank, patterns.scale_range.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    return " " * (match.end() - match.start())


# ── matched text → a number on the scale ─────────────────────────────────────────────────────────────────────


def matched_value(match: re.Match[str], scale: Scale) -> float | None:
    """The value a pattern matched; None where it matched none, or yes / no on a scale other than 0 to 1.

    One given out of another top than the scale's is infinite, that is out of range: it is not converted.
    """
    groups = match.groupdict()
    if groups.get("number") is not None:
        if (again := groups.get("again")) and _number(again) != _number(groups["number"]) + 0.5 * bool(groups["half"]):
            return None  # "three (4) stars"
        return out_of(groups["number"], groups.get("half"), groups.get("top"), scale)
    if groups.get("glyphs") is not None:
        return float(len(groups["glyphs"].replace("\ufe0f", "")))
    answer = groups.get("answer")
    if answer is not None and (scale.low, scale.high) == (0, 1):
        return 1.0 if answer in _YES else 0.0 if answer in _NO else None
    return None


def out_of(number: str, half: str | None, top: str | None, scale: Scale) -> float:
    """`number`, plus a half if one was matched; infinite when it was given out of another top than `scale.high`."""
    value = _number(number) + (0.5 if half else 0.0)
    return math.inf if top is not None and _number(top) != scale.high else value


def _number(text: str) -> float:
    """The number written in digits or as a word; one of more than 24 characters is infinite."""
    if text in _NUMBER_WORDS:
        return float(_NUMBER_WORDS[text])
    if text in _DIGIT_CHARACTERS:
        return float(_DIGIT_CHARACTERS[text])
    if len(text) > _LONGEST:
        return math.inf
    return float(text.replace(",", "" if _THOUSANDS.fullmatch(text) else "."))
