"""Cutting texts into words, stems and sentences: small, regular-expression based, with no data files.

Built for English; other languages and scripts still give words and sentences (white space and punctuation), only
without stemming.  Texts longer than `MAX_CHARS` are measured on their beginning.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from core.judging.offline.lexicon import ABBREVIATIONS, FUNCTION_WORDS

MAX_CHARS = 60_000
"""About 10,000 words: far above any source people rate, low enough that a hostile text costs little."""

KEPT_WORDS = 30_000
"""Words whose stem and syllables are remembered: most of what a language uses, in a few megabytes."""

# Every repetition is bounded, so that no hostile text makes a search quadratic.
_CLITIC = re.compile(r"\s(?=['’](?:s|re|ve|ll|d|m)\b)|(?<=\w)\s(?=n\s?['’]t\b)|(?<=n)\s(?=['’]t\b)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_END = re.compile(r"(?:[.!?。！？؟]{1,3}[\"'”’)\]]{0,3}|\n)(?=\s|$)|[。！？]")
_LAST_WORD = re.compile(r"([^\W\d_]+)\W*$")
_VOWELS = re.compile(r"[aeiouy]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence: its text, and its words as they stand, in lower case and as stems (three equally long tuples).

    `content` are the stems of the words that are not function words.
    """

    text: str
    surface: tuple[str, ...]
    words: tuple[str, ...]
    stems: tuple[str, ...]
    content: frozenset[str]


@dataclass(frozen=True, slots=True)
class Text:
    """A text cut up.  `words`, `stems` and `content_stems` (no function words) run over all of it in order."""

    raw: str
    sentences: tuple[Sentence, ...]
    words: tuple[str, ...]
    stems: tuple[str, ...]
    content_stems: tuple[str, ...]


def cut(raw: str) -> Text:
    """`raw` as sentences, words and stems.  Empty and wordless texts give no sentences."""
    clipped = raw[:MAX_CHARS]
    normal = clipped if clipped.isascii() else unicodedata.normalize("NFKC", clipped)
    joined = _CLITIC.sub("", normal) if "'" in normal or "’" in normal else normal
    sentences = tuple(s for part in split_sentences(joined) if (s := _sentence(part)).words)
    words = tuple(itertools.chain.from_iterable(s.words for s in sentences))
    stems = tuple(itertools.chain.from_iterable(s.stems for s in sentences))
    content = tuple([s for s, w in zip(stems, words, strict=True) if w not in FUNCTION_WORDS])
    return Text(clipped, sentences, words, stems, content)


def split_sentences(text: str) -> list[str]:
    """Pieces that end in ``. ! ?`` before white space or at a line break; abbreviations and initials end none."""
    pieces, start = [], 0
    for match in _END.finditer(text):
        if match.group()[0] == "." and _is_abbreviation(text[start : match.start()]):
            continue
        pieces.append(text[start : match.end()])
        start = match.end()
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]


def _is_abbreviation(before: str) -> bool:
    match = _LAST_WORD.search(before[-24:])
    if match is None or match.end(1) != len(before[-24:]):
        return False
    word = match.group(1)
    return word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")


def _sentence(text: str) -> Sentence:
    surface = tuple(_WORD.findall(text))
    if text.isascii():
        words = tuple(map(str.lower, surface))
    else:
        words = tuple([word.lower().replace("’", "'") for word in surface])
    stems = tuple(map(stem, words))
    content = frozenset([s for s, w in zip(stems, words, strict=True) if w not in FUNCTION_WORDS])
    return Sentence(text, surface, words, stems, content)


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
    return [word for word in text.words if word[0].isdigit()]


def names(text: Text) -> list[str]:
    """Capitalised words that do not open a sentence, in lower case and in order (English names, mostly).

    A text written in capitals or in Title Case throughout says nothing about names: the list is empty.
    """
    found = [
        sentence.words[i]
        for sentence in text.sentences
        for i, word in enumerate(sentence.surface)
        if i and word[0].isupper()
    ]
    inner = sum(len(sentence.words) - 1 for sentence in text.sentences)
    if inner >= 4 and len(found) > 0.7 * inner:
        return []
    return [name for name in found if name not in FUNCTION_WORDS]
