"""Features of a text by itself: length, repetition, connection of sentences, fluency cues, readability, tone.

Every function takes a `Text` and returns a dict of floats named in `features.FEATURES`; shares lie in [0, 1].
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from core.judging.offline.grammar import doubled, slips
from core.judging.offline.lexicon import (
    AUXILIARIES,
    CONNECTIVES,
    DANGLING_ENDS,
    FIRST_PERSON,
    FUNCTION_WORDS,
    GREETINGS,
    JUNK_TOKENS,
    NEGATIONS,
    NON_COMMITTAL,
    OPENERS_THAT_LEAN_BACK,
    OPINIONS,
    QUESTION_WORDS,
    SECOND_PERSON,
    THIRD_PERSON,
)
from core.judging.offline.text import KEPT_WORDS, Sentence, Text, syllables

Features = dict[str, float]

_CLOSING = "\"'”’)] \t\n\x0b\x0c\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
"""What may stand behind the end of a sentence: quotes, brackets and all white space."""
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

_FIELD = 32
"""Bits of a count in `_traits`: more than any text of `MAX_CHARS` needs, even where normalising makes it longer."""
_CLASSES = (
    FUNCTION_WORDS,
    CONNECTIVES,
    NEGATIONS,
    OPINIONS,
    FIRST_PERSON,
    SECOND_PERSON,
    GREETINGS,
    JUNK_TOKENS,
)


class Totals(NamedTuple):
    """Over the words of a text: how many are of each class, their letters and syllables, how many are long."""

    function: int
    connectives: int
    negations: int
    opinions: int
    first_person: int
    second_person: int
    greetings: int
    junk: int
    letters: int
    syllables: int
    long: int


@lru_cache(maxsize=KEPT_WORDS)
def _traits(word: str) -> int:
    """A word's part in `Totals`, all fields side by side in one integer: adding such integers adds every field."""
    parts = [*(word in words for words in _CLASSES), len(word), syllables(word), len(word) > 7]
    return sum(part << (_FIELD * place) for place, part in enumerate(parts))


def totals(words: Sequence[str]) -> Totals:
    """The counts over `words`, in one pass."""
    packed = sum(map(_traits, words))
    return Totals(*[packed >> place & ((1 << _FIELD) - 1) for place in _PLACES])


_PLACES = range(0, _FIELD * len(Totals._fields), _FIELD)


def length(text: Text) -> Features:
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


def repetition(text: Text) -> Features:
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
    sets = [sentence.content for sentence in sentences[:40]]
    best = 0.0
    for i, one in enumerate(sets):
        for other in sets[:i]:
            smaller = min(len(one), len(other))
            if smaller > 1:
                best = max(best, len(one & other) / smaller)
    return best


def connection(text: Text, n: Totals) -> Features:
    """How sentences hang together: shared words of neighbours, connectives, pronouns, one thread of subjects."""
    sentences = text.sentences
    sets = [sentence.content for sentence in sentences]
    pairs = list(itertools.pairwise(sets))
    later = sentences[1:]
    counts = Counter(itertools.chain.from_iterable(sets))
    first = sentences[0].words[0]
    return {
        "neighbour_overlap": _mean([len(a & b) / math.sqrt(len(a) * len(b)) for a, b in pairs if a and b]),
        "linked_sentences": _mean([float(bool(a & b)) for a, b in pairs]) if pairs else 1.0,
        "connectives": n.connectives / len(text.words),
        "pronoun_links": _mean([float(not THIRD_PERSON.isdisjoint(s.words[:6])) for s in later]),
        "connective_starts": _mean([float(s.words[0] in CONNECTIVES) for s in later]),
        "thread": max(counts.values()) / len(sets) if counts and len(sets) > 1 else 1.0,
        "back_to_first": _mean([float(bool(sets[0] & other)) for other in sets[1:]]) if len(sets) > 1 else 1.0,
        "leans_back": float(first in OPENERS_THAT_LEAN_BACK),
        "same_starts": _repeated([s.words[0] for s in sentences]),
    }


def fluency(text: Text, n: Totals) -> Features:
    """Cues of broken language; each counts occurrences (logarithm of 1 + n) or is a share or a flag."""
    raw, words = text.raw.strip(), text.words
    last, unfinished = words[-1], not _ends(raw)
    return {
        "unfinished": float(unfinished),
        "dangling_end": float(last in DANGLING_ENDS),
        "cut_word_end": float(unfinished and len(last) <= 2),
        "stray_punctuation": math.log1p(_stray(raw)),
        "junk": math.log1p(len(_JUNK.findall(raw)) + n.junk),
        "lower_case_starts": _mean([float(s.surface[0][0].islower()) for s in text.sentences]),
        "grammar_slips": math.log1p(slips(text)),
        "function_words_odd": abs(n.function / len(words) - 0.45),
        "dangling_sentences": _mean([float(s.words[-1] in DANGLING_ENDS) for s in text.sentences]),
        "verbless_sentences": _mean([float(not _has_verb(s)) for s in text.sentences]),
        "unbalanced": float(raw.count("(") != raw.count(")")) + quotes(raw) % 2,
        "starts_with_punctuation": float(bool(raw) and raw[0] in ",.;:!?)-'"),
    }


def _ends(raw: str) -> bool:
    """Whether a text that ends in no white space ends as a sentence does, quotes and brackets aside."""
    return raw.rstrip(_CLOSING)[-1:] in _TERMINALS or raw.endswith("''")


_TERMINALS = frozenset(".!?。！？؟…")


def _stray(raw: str) -> int:
    """Punctuation where none should be, in a text that begins and ends in no white space."""
    opens = raw[:1] in _OPENING
    return opens + len(_STRAY.findall(raw, int(opens)))


_OPENING = frozenset(",.;:!?)")


def quotes(raw: str) -> int:
    """Quotation marks; two grave accents or apostrophes together are one."""
    count = raw.count('"') + raw.count("``") + raw.count("''")
    return count if raw.isascii() else count + raw.count("“") + raw.count("”")


def _has_verb(sentence: Sentence) -> bool:
    return any(map(_may_be_verb, sentence.words))


@lru_cache(maxsize=KEPT_WORDS)
def _may_be_verb(word: str) -> bool:
    return word in AUXILIARIES or (len(word) > 3 and _VERB_LIKE.search(word) is not None)


def wording(text: Text, total: Totals) -> Features:
    """Readability (Flesch 1948), word length, variety, names, numbers and commas."""
    n = len(text.words)
    flesch = 206.835 - 1.015 * n / len(text.sentences) - 84.6 * (total.syllables / n)
    marks = [s.surface[i][0] for s in text.sentences for i in s.marked if i]
    openers = [s.words[0][0] for s in text.sentences]
    digits = sum(map(str.isdigit, marks)) + sum(map(str.isdigit, openers))
    return {
        "readability": max(-200.0, min(200.0, flesch)) / 100,
        "word_length": total.letters / n,
        "long_words": total.long / n,
        "content_share": (n - total.function) / n,
        "number_share": digits / n,
        "name_share": sum(map(str.isupper, marks)) / n,
        "commas": text.raw.count(",") / n,
        "negations": total.negations / n,
        "quotes": math.log1p(quotes(text.raw)),
        "log_content_words": math.log1p(len(text.counts)),
    }


def tone(text: Text, total: Totals) -> Features:
    """How a speaker sounds: asking, exclaiming, giving opinions, speaking of oneself, evading."""
    raw, words, n = text.raw, text.words, len(text.words)
    joined = " ".join(words)
    return {
        "asks": float("?" in raw or words[0] in QUESTION_WORDS),
        "exclaims": float("!" in raw),
        "opinions": math.log1p(total.opinions),
        "first_person": total.first_person / n,
        "second_person": total.second_person / n,
        "greetings": total.greetings / n,
        "non_committal": float(any(phrase in joined for phrase in NON_COMMITTAL)),
    }


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def measure(text: Text) -> Features:
    """All features of a text by itself; empty for a text without words."""
    if not text.words:
        return {}
    n = totals(text.words)
    return {
        **length(text),
        **repetition(text),
        **connection(text, n),
        **fluency(text, n),
        **wording(text, n),
        **tone(text, n),
    }
