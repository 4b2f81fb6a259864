"""Word lists (`lexicon.yaml`), and texts cut into words, stems and sentences by regular expressions.

Built for English; other languages and scripts give words and sentences without stemming.  In scripts without spaces
each character is a word.  Texts longer than `MAX_CHARS` are measured on their beginning.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from core.texts import words_of


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
    """A text cut up.  `words`, `stems` and `content_stems` (no function words) run over all of it in order.

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
