"""Split texts into words, stems and sentences, and measure single texts: length, repetition, fluency and wording.

Each function that measures a `Text` returns a dict from feature to value. Shares are in [0, 1]. Only the first
`MAX_CHARS` characters are measured. The features are designed for English; other languages are not stemmed. In scripts
without spaces, each character is a word.
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
    """Read the data file `name`.yaml in the folder of this module."""
    text = Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both loaders are safe


_LISTS: dict[str, Any] = table("lexicon")


def _words(*names: str) -> frozenset[str]:
    """Return the words of all named lists."""
    return frozenset(word for name in names for word in _LISTS[name].split())


THIRD_PERSON, NEGATIONS, CONNECTIVES = map(_words, ("third_person", "negations", "connectives"))
OPINIONS, ABBREVIATIONS = map(_words, ("opinions", "abbreviations"))
FUNCTION_WORDS = (
    _words("articles", "third_person", "first_person", "second_person", "demonstratives", "prepositions")
    | _words("conjunctions", "auxiliaries", "negations", "question_words", "other_function_words")
)  # fmt: skip
OPENERS_THAT_LEAN_BACK = _words("third_person", "leaning_back") - {"it"}
PLACEHOLDER_VALUES = frozenset({"", *_LISTS["placeholder_values"].split(", ")})
CLASHES = [(frozenset(left.split()), frozenset(right.split())) for left, right in _LISTS["clashes"].items()]
"""(words, words that hardly ever follow one of them)."""


MAX_CHARS = 60_000
"""About 10,000 words: far longer than any real source, and short enough that a hostile text costs little."""

KEPT_WORDS = 30_000
"""Number of cached stems: most words of a language, in a few megabytes."""

# Every repetition is bounded, so that no hostile text makes a search quadratic. A pattern that starts with a single set
# of characters is several times as fast as an alternation, so lookbehinds check the characters before it.
_CLITIC = re.compile(r"\s(?:(?=['’](?:s|re|ve|ll|d|m)\b)|(?<=\w\s)(?=n\s?['’]t\b)|(?<=n\s)(?=['’]t\b))", re.IGNORECASE)
_END = re.compile(r"[.!?。！？؟\n](?:(?<!\n)[.!?。！？؟]{0,2}[\"'”’)\]]{0,3}(?=\s|$)|(?<=\n)(?=\s|$)|(?<=[。！？]))")
_NOT_IN_WORDS = {code: " " for code in range(128) if not chr(code).isalnum()}
_LAST_WORD = re.compile(r"([^\W\d_]+)$")
_VOWELS = re.compile(r"[aeiouy]+")


class Sentence(NamedTuple):
    """A sentence of a text, as `words` in lower case and their `stems`.

    Attributes:
        surface: The words as written.
        content: The distinct stems, without those of function words.
        content_stems: The stems without those of function words, in order, with repetitions.
        marked: Indices of words that begin with a capital letter or a digit.
    """

    surface: tuple[str, ...]
    words: tuple[str, ...]
    stems: tuple[str, ...]
    content: frozenset[str]
    content_stems: tuple[str, ...]
    marked: tuple[int, ...]


class Text:
    """A text split into sentences and words.

    Attributes:
        words: All words in lower case, in order.
        content_stems: The stems without those of function words.
        pairs: All pairs of adjacent stems.
        triples: All triples of adjacent stems.
        counts: How often each stem in `content_stems` occurs.
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
    """Split `raw` into sentences, words and stems. Sentences without words are left out."""
    clipped = raw[:MAX_CHARS]
    normal = unicodedata.normalize("NFKC", clipped)
    joined = _CLITIC.sub("", normal) if "'" in normal or "’" in normal else normal
    return Text(clipped, tuple(s for part in split_sentences(joined) if (s := _sentence(part)).words))


def split_sentences(text: str) -> list[str]:
    """Split text at line breaks and at ``. ! ?`` before white space, except after abbreviations and initials."""
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
    # plain ASCII needs no regular expression: three times as fast
    surface = tuple(text.translate(_NOT_IN_WORDS).split() if text.isascii() and "'" not in text else words_of(text))
    words = tuple([word.lower().replace("’", "'") for word in surface])
    marked = tuple([i for i, word in enumerate(surface) if word[0].isupper() or word[0].isdigit()])
    stems = tuple(map(stem, words))
    content = tuple([s for s, w in zip(stems, words, strict=True) if w not in FUNCTION_WORDS])
    return Sentence(surface, words, stems, frozenset(content), content, marked)


@lru_cache(maxsize=KEPT_WORDS)
def stem(word: str) -> str:
    """Remove possessive, plural, -ed, -ing and -ly endings from words of at least four letters.

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


def mean(values: Sequence[float], empty: float = 0.0) -> float:
    """Return the mean of `values`, or `empty` if there are none."""
    return sum(values) / len(values) if values else empty


Features = dict[str, float]
"""Feature → value."""

_CLOSING = "\"'”’)] \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""Characters that may follow the end of a sentence: quotes, brackets and all white space."""
_TERMINALS = frozenset(".!?。！？؟…")


def measure_text(text: Text) -> Features:
    """Return the features of a text on its own; {} for a text without words."""
    if not text.words:
        return {}
    return _length(text) | _repetition(text) | _connection(text) | _fluency(text) | _wording(text)


def _among(text: Text, words: frozenset[str]) -> int:
    return sum(map(words.__contains__, text.words))


def _length(text: Text) -> Features:
    """Measure the number and length of words and sentences; counts are logarithms."""
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
    """Measure repeated words, pairs and triples."""
    content = text.content_stems
    return {
        "repeated_words": _repeated(content),
        "repeated_pairs": _repeated(text.pairs),
        "repeated_triples": _repeated(text.triples),
        "most_used_word": max(text.counts.values()) / math.sqrt(len(content)) if content else 0.0,
    }


def _repeated(parts: Sequence[str | tuple[str, ...]]) -> float:
    return 1 - len(set(parts)) / len(parts) if parts else 0.0


def _connection(text: Text) -> Features:
    """Measure links between sentences: shared words, connectives, pronouns, and a common thread of subjects."""
    first, later = text.sentences[0], text.sentences[1:]
    contents = [sentence.content for sentence in text.sentences]
    pairs = list(itertools.pairwise(contents))
    counts = Counter(itertools.chain.from_iterable(contents))
    return {
        "neighbour_overlap": mean([len(a & b) / math.sqrt(len(a) * len(b)) for a, b in pairs if a and b]),
        "linked_sentences": mean([float(bool(a & b)) for a, b in pairs], 1.0),
        "connectives": _among(text, CONNECTIVES) / len(text.words),
        "pronoun_links": mean([float(not THIRD_PERSON.isdisjoint(s.words[:6])) for s in later]),
        "connective_starts": mean([float(s.words[0] in CONNECTIVES) for s in later]),
        "thread": max(counts.values()) / len(contents) if counts and later else 1.0,
        "back_to_first": mean([float(bool(first.content & other)) for other in contents[1:]], 1.0),
        "leans_back": float(first.words[0] in OPENERS_THAT_LEAN_BACK),
        "same_starts": _repeated([s.words[0] for s in text.sentences]),
    }


def _fluency(text: Text) -> Features:
    """Measure cues of broken language."""
    raw = text.raw.strip()
    finished = raw.rstrip(_CLOSING)[-1:] in _TERMINALS or raw.endswith("''")
    return {
        "unfinished": float(not finished),
        "lower_case_starts": mean([float(s.surface[0][0].islower()) for s in text.sentences]),
        "grammar_slips": math.log1p(slips(text)),
    }


_NEVER_AFTER = {
    word: frozenset().union(*(right for left, right in CLASHES if word in left))
    for word in frozenset().union(*(left for left, _ in CLASHES))
}
_SOUNDED = re.compile(r".h?[lr]?[aeiouy]")


def slips(text: Text) -> int:
    """Count adjacent words that clash ("the of"), and "a" or "an" before the wrong sound."""
    count = 0
    for (word, following), never in zip(
        itertools.pairwise(text.words), map(_NEVER_AFTER.get, text.words), strict=False
    ):
        if never is None:
            continue
        count += following in never
        if word == "a":
            vowel = len(following) > 1 and following[0] in "aeio"
            count += vowel and not following.startswith(("one", "once", "eu"))
        elif word == "an":
            count += following[0] in "bcdfgjkpqrtvwyz" and bool(_SOUNDED.match(following))
    return count


def _wording(text: Text) -> Features:
    """Measure word length, variety, names, numbers, commas, quotations and opinions."""
    n, raw = len(text.words), text.raw
    marks = [s.surface[i][0] for s in text.sentences for i in s.marked if i]
    openers = [s.words[0][0] for s in text.sentences]
    digits = sum(map(str.isdigit, marks)) + sum(map(str.isdigit, openers))
    quotes = sum(map(raw.count, ('"', "``", "''", "“", "”")))  # two grave accents or apostrophes are one quotation mark
    return {
        "word_length": sum(map(len, text.words)) / n,
        "long_words": sum(len(word) > 7 for word in text.words) / n,
        "content_share": len(text.content_stems) / n,
        "number_share": digits / n,
        "name_share": sum(map(str.isupper, marks)) / n,
        "commas": raw.count(",") / n,
        "negations": _among(text, NEGATIONS) / n,
        "quotes": math.log1p(quotes),
        "log_content_words": math.log1p(len(text.counts)),
        "opinions": math.log1p(_among(text, OPINIONS)),
    }
