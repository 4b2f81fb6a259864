"""Features of a text by itself: length, repetition, connection of sentences, fluency cues, readability, tone.

Every function takes a `Text` and returns a dict of floats named in `features.FEATURES`; shares lie in [0, 1].
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence

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
from core.judging.offline.text import Sentence, Text, syllables

Features = dict[str, float]

_TERMINAL = re.compile(r"[.!?。！？؟…][\"'”’)\]\s]*$|''\s*$")
_STRAY = re.compile(
    r"^\s*[,.;:!?)]|[,;:]\s*[.,;:!?]|(?<![.])[.!?]\s+[.,;]|\(\s*\)|\s-\s*$|[,;:(\-]\s*$|\.\s*\.(?!\s*\.)"
)
_JUNK = re.compile(r"<[a-z_/]+>|@-@|-[lr][rsc]b-|\[unk\]|&[a-z]+;|#\s?#|\\[a-z]|[_|~^]{2,}|�", re.IGNORECASE)
_VERB_LIKE = re.compile(r"(?:ed|es|ing|s|n't)$")
_QUOTES = re.compile(r"[\"“”]|``|''")


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
    stems, _words = text.stems, text.words
    return {
        "repeated_words": _repeated(content),
        "repeated_pairs": _repeated(list(itertools.pairwise(stems))),
        "repeated_triples": _repeated(list(zip(stems, stems[1:], stems[2:], strict=False))),
        "doubled_words": math.log1p(doubled(text)),
        "most_similar_sentences": _most_similar(text.sentences),
        "most_used_word": max(Counter(content).values()) / math.sqrt(len(content)) if content else 0.0,
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


def connection(text: Text) -> Features:
    """How sentences hang together: shared words of neighbours, connectives, pronouns, one thread of subjects."""
    sentences = text.sentences
    sets = [sentence.content for sentence in sentences]
    pairs = list(itertools.pairwise(sets))
    later = sentences[1:]
    counts = Counter(stem for content in sets for stem in content)
    first = sentences[0].words[0]
    return {
        "neighbour_overlap": _mean([len(a & b) / math.sqrt(len(a) * len(b)) for a, b in pairs if a and b]),
        "linked_sentences": _mean([float(bool(a & b)) for a, b in pairs]) if pairs else 1.0,
        "connectives": _count(CONNECTIVES, text.words) / len(text.words),
        "pronoun_links": _mean([float(not THIRD_PERSON.isdisjoint(s.words[:6])) for s in later]),
        "connective_starts": _mean([float(s.words[0] in CONNECTIVES) for s in later]),
        "thread": max(counts.values()) / len(sets) if counts and len(sets) > 1 else 1.0,
        "back_to_first": _mean([float(bool(sets[0] & other)) for other in sets[1:]]) if len(sets) > 1 else 1.0,
        "leans_back": float(first in OPENERS_THAT_LEAN_BACK),
        "same_starts": _repeated([s.words[0] for s in sentences]),
    }


def fluency(text: Text) -> Features:
    """Cues of broken language; each counts occurrences (logarithm of 1 + n) or is a share or a flag."""
    raw, words = text.raw.strip(), text.words
    last, unfinished = words[-1], _TERMINAL.search(raw) is None
    return {
        "unfinished": float(unfinished),
        "dangling_end": float(last in DANGLING_ENDS),
        "cut_word_end": float(unfinished and len(last) <= 2),
        "stray_punctuation": math.log1p(len(_STRAY.findall(raw))),
        "junk": math.log1p(len(_JUNK.findall(raw)) + _count(JUNK_TOKENS, words)),
        "lower_case_starts": _mean([float(s.surface[0][0].islower()) for s in text.sentences]),
        "grammar_slips": math.log1p(slips(text)),
        "function_words_odd": abs(_count(FUNCTION_WORDS, words) / len(words) - 0.45),
        "dangling_sentences": _mean([float(s.words[-1] in DANGLING_ENDS) for s in text.sentences]),
        "verbless_sentences": _mean([float(not _has_verb(s)) for s in text.sentences]),
        "unbalanced": float(raw.count("(") != raw.count(")")) + len(_QUOTES.findall(raw)) % 2,
        "starts_with_punctuation": float(bool(raw) and raw[0] in ",.;:!?)-'"),
    }


def _has_verb(sentence: Sentence) -> bool:
    return any(word in AUXILIARIES or (len(word) > 3 and _VERB_LIKE.search(word)) for word in sentence.words)


def wording(text: Text) -> Features:
    """Readability (Flesch 1948), word length, variety, names, numbers and commas."""
    words, n = text.words, len(text.words)
    per_word = sum(map(syllables, words)) / n
    flesch = 206.835 - 1.015 * n / len(text.sentences) - 84.6 * per_word
    capitals = sum([w[0].isupper() for s in text.sentences for w in s.surface[1:]])
    return {
        "readability": max(-200.0, min(200.0, flesch)) / 100,
        "word_length": sum(map(len, words)) / n,
        "long_words": sum([len(word) > 7 for word in words]) / n,
        "content_share": (n - _count(FUNCTION_WORDS, words)) / n,
        "number_share": sum([word[0].isdigit() for word in words]) / n,
        "name_share": capitals / n,
        "commas": text.raw.count(",") / n,
        "negations": _count(NEGATIONS, words) / n,
        "quotes": math.log1p(len(_QUOTES.findall(text.raw))),
        "log_content_words": math.log1p(len(set(text.content_stems))),
    }


def tone(text: Text) -> Features:
    """How a speaker sounds: asking, exclaiming, giving opinions, speaking of oneself, evading."""
    raw, words, n = text.raw, text.words, len(text.words)
    joined = " ".join(words)
    return {
        "asks": float("?" in raw or words[0] in QUESTION_WORDS),
        "exclaims": float("!" in raw),
        "opinions": math.log1p(_count(OPINIONS, words)),
        "first_person": _count(FIRST_PERSON, words) / n,
        "second_person": _count(SECOND_PERSON, words) / n,
        "greetings": _count(GREETINGS, words) / n,
        "non_committal": float(any(phrase in joined for phrase in NON_COMMITTAL)),
    }


def _count(words: frozenset[str], among: Sequence[str]) -> int:
    """How many of `among` are one of `words`."""
    return sum(map(words.__contains__, among))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def measure(text: Text) -> Features:
    """All features of a text by itself; empty for a text without words."""
    if not text.words:
        return {}
    return length(text) | repetition(text) | connection(text) | fluency(text) | wording(text) | tone(text)
