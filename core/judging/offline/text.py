"""Texts cut into words, stems and sentences, and the features of a text by itself.

Features are length, repetition, connection of sentences, fluency cues, readability and tone.  Each function takes a
`Text` with words and gives one row a feature: its name and its value; shares lie in [0, 1].  Slips of grammar are
counted by closed word classes: few kinds, each hardly ever right in good English.

Built for English; other languages and scripts give words and sentences without stemming.  In scripts without spaces
each character is a word.  Texts longer than `MAX_CHARS` are measured on their beginning.  The word lists are those of
`lexicon.yaml`.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from core.records import words_of


def table(name: str) -> Any:
    """The data file `name`.yaml next to this module."""
    text = Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe


_LISTS: dict[str, Any] = table("lexicon")


def _words(*names: str) -> frozenset[str]:
    """The words of all these lists."""
    return frozenset(word for name in names for word in _LISTS[name].split())


THIRD_PERSON, FIRST_PERSON, SECOND_PERSON, NEGATIONS, QUESTION_WORDS, CONNECTIVES = map(
    _words, ("third_person", "first_person", "second_person", "negations", "question_words", "connectives")
)
OPINIONS, GREETINGS, JUNK_TOKENS, ABBREVIATIONS, AUXILIARIES = map(
    _words, ("opinions", "greetings", "junk_tokens", "abbreviations", "auxiliaries")
)
FUNCTION_WORDS = (
    _words("articles", "third_person", "first_person", "second_person", "demonstratives", "prepositions")
    | _words("conjunctions", "auxiliaries", "negations", "question_words", "other_function_words")
)  # fmt: skip
OPENERS_THAT_LEAN_BACK = _words("third_person", "leaning_back") - {"it"}
DANGLING_ENDS = _words("articles", "prepositions", "conjunctions", "auxiliaries", "dangling") - _words("not_dangling")
NON_COMMITTAL: tuple[str, ...] = tuple(_LISTS["non_committal"].split(", "))
PLACEHOLDER_VALUES = frozenset({"", *_LISTS["placeholder_values"].split(", ")})
NUMBER_WORDS = {word: str(value) for value, word in enumerate(_LISTS["number_words"].split())}
CLASHES = [(frozenset(left.split()), frozenset(right.split())) for left, right in _LISTS["clashes"].items()]
"""Words and what hardly ever follows one of them."""


MAX_CHARS = 60_000
"""About 10,000 words: far above any source that is rated, low enough that a hostile text costs little."""

KEPT_WORDS = 30_000
"""Words whose stem and syllables are remembered: most of what a language uses, in a few megabytes."""

# Every repetition is bounded, so that no hostile text makes a search quadratic.  A pattern that begins with one set of
# characters is searched for several times as fast as an alternation, so what must stand before is looked at behind.
_CLITIC = re.compile(r"\s(?:(?=['’](?:s|re|ve|ll|d|m)\b)|(?<=\w\s)(?=n\s?['’]t\b)|(?<=n\s)(?=['’]t\b))", re.IGNORECASE)
_END = re.compile(r"[.!?。！？؟\n](?:(?<!\n)[.!?。！？؟]{0,2}[\"'”’)\]]{0,3}(?=\s|$)|(?<=\n)(?=\s|$)|(?<=[。！？]))")
_NOT_IN_WORDS = {code: " " for code in range(128) if not chr(code).isalnum()}
_LAST_WORD = re.compile(r"([^\W\d_]+)$")
_VOWELS = re.compile(r"[aeiouy]+")


class Sentence(NamedTuple):
    """A sentence: its words as they stand, in lower case and as stems (three equally long tuples).

    `content` are the stems of the words that are not function words, `content_stems` the same in order and as often as
    they come; `marked` the positions of the words that begin with a capital letter or a digit.
    """

    surface: tuple[str, ...]
    words: tuple[str, ...]
    stems: tuple[str, ...]
    content: frozenset[str]
    content_stems: tuple[str, ...]
    marked: tuple[int, ...]


class Text:
    """A text split into sentences and words.  `words`, `stems` and `content_stems` (no function words) run over all
    of it in order.

    `pairs` and `triples` are neighbouring stems; `counts` says how often each content stem comes, in order of first
    occurrence.
    """

    def __init__(self, raw: str, sentences: tuple[Sentence, ...]) -> None:
        joined = itertools.chain.from_iterable
        self.raw, self.sentences = raw, sentences
        self.words = tuple(joined([s.words for s in sentences]))
        self.stems = stems = tuple(joined([s.stems for s in sentences]))
        self.content_stems = tuple(joined([s.content_stems for s in sentences]))
        self.pairs = tuple(itertools.pairwise(stems))
        self.triples = tuple(zip(stems, stems[1:], stems[2:], strict=False))
        self.counts = Counter(self.content_stems)


def cut(raw: str) -> Text:
    """`raw` as sentences, words and stems.  Empty and wordless texts give no sentences."""
    clipped = raw[:MAX_CHARS]
    normal = unicodedata.normalize("NFKC", clipped)
    joined = _CLITIC.sub("", normal) if "'" in normal or "’" in normal else normal
    return Text(clipped, tuple(s for part in split_sentences(joined) if (s := _sentence(part)).words))


def split_sentences(text: str) -> list[str]:
    """Pieces that end in ``. ! ?`` before white space or at a line break; abbreviations and initials end none."""
    pieces, start = [], 0
    for match in _END.finditer(text):
        at, end = match.span()
        if text[at] == "." and (last := _LAST_WORD.search(text[max(start, at - 24) : at])):
            word = last[0]
            if word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I"):
                continue
        pieces.append(text[start:end])
        start = end
    pieces.append(text[start:])
    return [stripped for piece in pieces if (stripped := piece.strip())]


def _sentence(text: str) -> Sentence:
    # plain ASCII is cut without a regular expression: three times as fast
    surface = tuple(text.translate(_NOT_IN_WORDS).split() if text.isascii() and "'" not in text else words_of(text))
    words = tuple([word.lower().replace("’", "'") for word in surface])
    marked = tuple([i for i, word in enumerate(surface) if word[0].isupper() or word[0].isdigit()])
    stems = tuple(map(stem, words))
    content = tuple([s for s, w in zip(stems, words, strict=True) if w not in FUNCTION_WORDS])
    return Sentence(surface, words, stems, frozenset(content), content, marked)


@lru_cache(maxsize=KEPT_WORDS)
def stem(word: str) -> str:
    """A light stem: possessive, plural, -ed, -ing and -ly endings removed from words of four letters and more.

    >>> [stem(w) for w in ("cities", "walked", "running", "team's", "is")]
    ['city', 'walk', 'run', 'team', 'is']
    """
    word = word.removesuffix("'s").removesuffix("'")
    if len(word) < 4 or not word.isalpha():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-2] if word.endswith(("sses", "xes", "ches", "shes")) else word[:-1]
    for ending in ("ing", "ed", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and _VOWELS.search(word[: -len(ending)]):
            word = word.removesuffix(ending)
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word.removesuffix("e") if len(word) > 3 else word


@lru_cache(maxsize=KEPT_WORDS)
def syllables(word: str) -> int:
    """Syllables by vowel groups, a silent final e left out; at least 1."""
    groups = len(_VOWELS.findall(word))
    return max(1, groups - (word.endswith("e") and not word.endswith("le") and groups > 1))


def numbers(text: Text) -> list[str]:
    """Numbers in digits, in order, as words of the text (``"28"``, ``"1966"``, ``"15-year-old"`` gives ``"15"``)."""
    return [s.words[i] for s in text.sentences for i in s.marked if s.words[i][0].isdigit()]


def names(text: Text) -> list[str]:
    """Capitalised words that do not open a sentence, in lower case and in order (English names, mostly).

    A text written in capitals or in Title Case throughout says nothing about names: the list is empty.
    """
    capitalised = [s.words[i] for s in text.sentences for i in s.marked if i and s.surface[i][0].isupper()]
    inner = len(text.words) - len(text.sentences)
    if inner >= 4 and len(capitalised) > 0.7 * inner:
        return []
    return [name for name in capitalised if name not in FUNCTION_WORDS]


def mean(values: Sequence[float], empty: float = 0.0) -> float:
    """The mean; `empty` without values."""
    return sum(values) / len(values) if values else empty


Features = dict[str, float]

_CLOSING = "\"'”’)] \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""What may stand behind the end of a sentence: quotes, brackets and all white space."""
_TERMINALS = frozenset(".!?。！？؟…")
_OPENING = frozenset(",.;:!?)")

# Each begins with one set of characters, which is searched for faster than an alternation.
_STRAY = re.compile(
    r"[,;:.!?(\-](?:(?<=[,;:])\s*[.,;:!?]|(?<=[.!?])(?<!\..)\s+[.,;]|(?<=\()\s*\)|(?<=[,;:(\-])\s*$"
    r"|(?<=\.)\s*\.(?!\s*\.))"
)
_JUNK = re.compile(
    r"[<@\-\[&#\\_|~^�](?:(?<=<)[a-z_/]+>|(?<=@)-@|(?<=-)[lr][rsc]b-|(?<=\[)unk\]|(?<=&)[a-z]+;|(?<=\#)\s?\#"
    r"|(?<=\\)[a-z]|(?<=[_|~^])[_|~^]+|(?<=�))",
    re.IGNORECASE,
)
_VERB_LIKE = re.compile(r"(?:ed|es|ing|s|n't)$")


_CLASSES = {
    "function": FUNCTION_WORDS,
    "connectives": CONNECTIVES,
    "negations": NEGATIONS,
    "opinions": OPINIONS,
    "first_person": FIRST_PERSON,
    "second_person": SECOND_PERSON,
    "greetings": GREETINGS,
    "junk": JUNK_TOKENS,
}


def measure_text(text: Text) -> Features:
    """All features of a text by itself; empty for a text without words."""
    if not text.words:
        return {}
    total = {name: sum(map(words.__contains__, text.words)) for name, words in _CLASSES.items()}
    return {
        **_length(text),
        **_repetition(text),
        **_connection(text, total),
        **_fluency(text, total),
        **_wording(text, total),
        **_tone(text, total),
    }


def _length(text: Text) -> Features:
    """Words, sentences and their sizes, in logarithms where they are counts."""
    sizes = [len(sentence.words) for sentence in text.sentences]
    n = len(text.words)
    return {
        "log_words": math.log1p(n),
        "log_sentences": math.log1p(len(sizes)),
        "log_sentence_words": math.log1p(n / len(sizes)),
        "log_longest_sentence": math.log1p(max(sizes)),
        "short_sentences": sum(size < 5 for size in sizes) / len(sizes),
        "last_sentence_words": math.log1p(sizes[-1]),
        "words_outside_30_90": max(0.0, math.log(30 / n), math.log(n / 90)),
    }


def _repetition(text: Text) -> Features:
    """What is said twice: words, pairs, triples, sentences, a word right after itself."""
    content = text.content_stems
    return {
        "repeated_words": _repeated(content),
        "repeated_pairs": _repeated(text.pairs),
        "repeated_triples": _repeated(text.triples),
        "doubled_words": math.log1p(doubled(text)),
        "most_similar_sentences": _most_similar(text.sentences),
        "most_used_word": max(text.counts.values()) / math.sqrt(len(content)) if content else 0.0,
    }


def _repeated(parts: Sequence[str | tuple[str, ...]]) -> float:
    return 1 - len(set(parts)) / len(parts) if parts else 0.0


def _most_similar(sentences: tuple[Sentence, ...]) -> float:
    """The largest share of a sentence's content words that another one holds too, over the first 40 sentences."""
    most = 0.0
    for a, b in itertools.combinations([sentence.content for sentence in sentences[:40]], 2):
        smaller = min(len(a), len(b))
        if smaller > 1:
            most = max(most, len(a & b) / smaller)
    return most


def _connection(text: Text, total: dict[str, int]) -> Features:
    """How sentences hang together: shared words of neighbours, connectives, pronouns, one thread of subjects."""
    first, later = text.sentences[0], text.sentences[1:]
    contents = [sentence.content for sentence in text.sentences]
    pairs = list(itertools.pairwise(contents))
    counts = Counter(itertools.chain.from_iterable(contents))
    return {
        "neighbour_overlap": mean([len(a & b) / math.sqrt(len(a) * len(b)) for a, b in pairs if a and b]),
        "linked_sentences": mean([float(bool(a & b)) for a, b in pairs], 1.0),
        "connectives": total["connectives"] / len(text.words),
        "pronoun_links": mean([float(not THIRD_PERSON.isdisjoint(s.words[:6])) for s in later]),
        "connective_starts": mean([float(s.words[0] in CONNECTIVES) for s in later]),
        "thread": max(counts.values()) / len(contents) if counts and later else 1.0,
        "back_to_first": mean([float(bool(first.content & other)) for other in contents[1:]], 1.0),
        "leans_back": float(first.words[0] in OPENERS_THAT_LEAN_BACK),
        "same_starts": _repeated([s.words[0] for s in text.sentences]),
    }


def _fluency(text: Text, total: dict[str, int]) -> Features:
    """Cues of broken language; each counts occurrences (logarithm of 1 + n) or is a share or a flag."""
    raw, words, sentences = text.raw.strip(), text.words, text.sentences
    unfinished = not (raw.rstrip(_CLOSING)[-1:] in _TERMINALS or raw.endswith("''"))
    opens_badly = raw[:1] in _OPENING
    stray = opens_badly + len(_STRAY.findall(raw, int(opens_badly)))
    return {
        "unfinished": float(unfinished),
        "dangling_end": float(words[-1] in DANGLING_ENDS),
        "cut_word_end": float(unfinished and len(words[-1]) <= 2),
        "stray_punctuation": math.log1p(stray),
        "junk": math.log1p(len(_JUNK.findall(raw)) + total["junk"]),
        "lower_case_starts": mean([float(s.surface[0][0].islower()) for s in sentences]),
        "grammar_slips": math.log1p(slips(text)),
        "function_words_odd": abs(total["function"] / len(words) - 0.45),
        "dangling_sentences": mean([float(s.words[-1] in DANGLING_ENDS) for s in sentences]),
        "verbless_sentences": mean([float(not any(map(_may_be_verb, s.words))) for s in sentences]),
        "unbalanced": float(raw.count("(") != raw.count(")")) + _quotes(raw) % 2,
        "starts_with_punctuation": float(raw[0] in ",.;:!?)-'"),
    }


def _quotes(raw: str) -> int:
    """Quotation marks; two grave accents or apostrophes together are one."""
    count = raw.count('"') + raw.count("``") + raw.count("''")
    return count if raw.isascii() else count + raw.count("“") + raw.count("”")


@lru_cache(maxsize=KEPT_WORDS)
def _may_be_verb(word: str) -> bool:
    return word in AUXILIARIES or (len(word) > 3 and _VERB_LIKE.search(word) is not None)


def _wording(text: Text, total: dict[str, int]) -> Features:
    """Readability (Flesch 1948), word length, variety, names, numbers and commas."""
    n = len(text.words)
    flesch = 206.835 - 1.015 * n / len(text.sentences) - 84.6 * (sum(map(syllables, text.words)) / n)
    marks = [s.surface[i][0] for s in text.sentences for i in s.marked if i]
    openers = [s.words[0][0] for s in text.sentences]
    digits = sum(map(str.isdigit, marks)) + sum(map(str.isdigit, openers))
    return {
        "readability": max(-200.0, min(200.0, flesch)) / 100,
        "word_length": sum(map(len, text.words)) / n,
        "long_words": sum(len(word) > 7 for word in text.words) / n,
        "content_share": (n - total["function"]) / n,
        "number_share": digits / n,
        "name_share": sum(map(str.isupper, marks)) / n,
        "commas": text.raw.count(",") / n,
        "negations": total["negations"] / n,
        "quotes": math.log1p(_quotes(text.raw)),
        "log_content_words": math.log1p(len(text.counts)),
    }


def _tone(text: Text, total: dict[str, int]) -> Features:
    """How a speaker sounds: asking, exclaiming, giving opinions, speaking of oneself, evading."""
    raw, words, n = text.raw, text.words, len(text.words)
    joined = " ".join(words)
    return {
        "asks": float("?" in raw or words[0] in QUESTION_WORDS),
        "exclaims": float("!" in raw),
        "opinions": math.log1p(total["opinions"]),
        "first_person": total["first_person"] / n,
        "second_person": total["second_person"] / n,
        "greetings": total["greetings"] / n,
        "non_committal": float(any(phrase in joined for phrase in NON_COMMITTAL)),
    }


_NEVER_AFTER = {
    word: frozenset().union(*(right for left, right in CLASHES if word in left))
    for word in frozenset().union(*(left for left, _ in CLASHES))
}
_SOUNDED = re.compile(r".h?[lr]?[aeiouy]")
MAY_DOUBLE = frozenset({"had", "that", "very", "so"})

# For lower case.  Each begins with a set of letters, which is searched for faster than an alternation: a word left
# hanging before punctuation, a subject split from its verb, two verbs for one subject.
_HANGING = re.compile(
    r"[atomy](?<!\w.)(?:(?:(?<=t)(?:he|heir)|(?<=a)(?:n|nd)|(?<=o)(?:f|r)|(?<=m)y|(?<=y)our)\s*[,.;:!?]"
    r"|(?<=a)\s*[,;:!?])(?!\w)"
)
_SPLIT_VERB = re.compile(r"(?:^|[.!?]\s)[^,.!?]{1,60}?,\s(?:is|are|was|were|has|have)\b(?!\s*,)")
_TWO_VERBS = re.compile(
    r"[ia](?<!\w.)(?:(?<=i)s|(?<=a)re)\s+(?!(?:that|what|which|who|it|how|there|where)\b)\w+\s+(?:is|are)\b"
)
_AGREEMENT = re.compile(
    r"\b\w{3,30}[^\Wsui]s that (?:is|was|does|has)\b|\bthere is (?:two|three|four|many|several|\d{2,})\b"
)
_LIKE_ASCII = str.maketrans("İıſK", "iisk")
"""What counts as an ASCII letter where case is ignored, beside these letters themselves."""


def slips(text: Text) -> int:
    """Slips in a text.

    Neighbouring words that do not go together ("the of"), "a" or "an" before the wrong sound, an article or "and"
    before punctuation, a comma between a short subject and its verb, two verbs for one subject, a plural with a
    singular verb.
    """
    raw = text.raw
    low = (raw if raw.isascii() else raw.translate(_LIKE_ASCII)).lower()
    found = sum(len(pattern.findall(low)) for pattern in (_HANGING, _SPLIT_VERB, _TWO_VERBS))
    return _bad_pairs(text.words) + found + len(_AGREEMENT.findall(raw))


def _bad_pairs(words: tuple[str, ...]) -> int:
    """Pairs of neighbouring words that good English hardly ever has, and "a" or "an" before the wrong sound."""
    count = 0
    for i, never in enumerate(map(_NEVER_AFTER.get, words[:-1])):
        if never is None:
            continue
        word, following = words[i], words[i + 1]
        count += following in never
        if word == "a":
            vowel = len(following) > 1 and following[0] in "aeio"
            count += vowel and not following.startswith(("one", "once", "eu"))
        elif word == "an":
            count += following[0] in "bcdfgjkpqrtvwyz" and bool(_SOUNDED.match(following))
    return count


def doubled(text: Text) -> int:
    """How often a word, or a pair of words, follows right after itself ("the the", "restaurant restaurants")."""
    words = text.words
    singles = sum(
        one == other and words[i] not in MAY_DOUBLE and (words[i] == words[i + 1] or words[i] not in FUNCTION_WORDS)
        for i, (one, other) in enumerate(text.pairs)
    )
    pairs = list(itertools.pairwise(words))
    return singles + sum(pair == again and pair[0] != pair[1] for pair, again in zip(pairs, pairs[2:], strict=False))
