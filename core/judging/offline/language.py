"""Features of a text by itself: length, repetition, connection of sentences, fluency cues, readability, tone.

Every function takes a `Text` with words and gives one row a feature: its name and its value; shares lie in [0, 1].
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from core.judging.offline import lexicon
from core.judging.offline.grammar import doubled, slips
from core.judging.offline.text import KEPT_WORDS, Sentence, Text, mean, syllables

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
    "function": lexicon.FUNCTION_WORDS,
    "connectives": lexicon.CONNECTIVES,
    "negations": lexicon.NEGATIONS,
    "opinions": lexicon.OPINIONS,
    "first_person": lexicon.FIRST_PERSON,
    "second_person": lexicon.SECOND_PERSON,
    "greetings": lexicon.GREETINGS,
    "junk": lexicon.JUNK_TOKENS,
}
_COUNTED = (*_CLASSES, "letters", "syllables", "long")
_FIELD = 32
"""Bits of a count in `_traits`: more than any text of `MAX_CHARS` needs, even where normalising makes it longer."""
_PLACES = range(0, _FIELD * len(_COUNTED), _FIELD)


@lru_cache(maxsize=KEPT_WORDS)
def _traits(word: str) -> int:
    """A word's part in every total, side by side in one integer: adding such integers adds every count."""
    parts = [*(word in words for words in _CLASSES.values()), len(word), syllables(word), len(word) > 7]
    return sum(part << place for part, place in zip(parts, _PLACES, strict=True))


def totals(words: Sequence[str]) -> dict[str, int]:
    """How many words are of each class, their letters and syllables, and how many are long, counted in one pass."""
    packed = sum(map(_traits, words))
    return {name: packed >> place & ((1 << _FIELD) - 1) for name, place in zip(_COUNTED, _PLACES, strict=True)}


def measure(text: Text) -> Features:
    """All features of a text by itself; empty for a text without words."""
    if not text.words:
        return {}
    total = totals(text.words)
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
        "pronoun_links": mean([float(not lexicon.THIRD_PERSON.isdisjoint(s.words[:6])) for s in later]),
        "connective_starts": mean([float(s.words[0] in lexicon.CONNECTIVES) for s in later]),
        "thread": max(counts.values()) / len(contents) if counts and later else 1.0,
        "back_to_first": mean([float(bool(first.content & other)) for other in contents[1:]], 1.0),
        "leans_back": float(first.words[0] in lexicon.OPENERS_THAT_LEAN_BACK),
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
        "dangling_end": float(words[-1] in lexicon.DANGLING_ENDS),
        "cut_word_end": float(unfinished and len(words[-1]) <= 2),
        "stray_punctuation": math.log1p(stray),
        "junk": math.log1p(len(_JUNK.findall(raw)) + total["junk"]),
        "lower_case_starts": mean([float(s.surface[0][0].islower()) for s in sentences]),
        "grammar_slips": math.log1p(slips(text)),
        "function_words_odd": abs(total["function"] / len(words) - 0.45),
        "dangling_sentences": mean([float(s.words[-1] in lexicon.DANGLING_ENDS) for s in sentences]),
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
    return word in lexicon.AUXILIARIES or (len(word) > 3 and _VERB_LIKE.search(word) is not None)


def _wording(text: Text, total: dict[str, int]) -> Features:
    """Readability (Flesch 1948), word length, variety, names, numbers and commas."""
    n = len(text.words)
    flesch = 206.835 - 1.015 * n / len(text.sentences) - 84.6 * (total["syllables"] / n)
    marks = [s.surface[i][0] for s in text.sentences for i in s.marked if i]
    openers = [s.words[0][0] for s in text.sentences]
    digits = sum(map(str.isdigit, marks)) + sum(map(str.isdigit, openers))
    return {
        "readability": max(-200.0, min(200.0, flesch)) / 100,
        "word_length": total["letters"] / n,
        "long_words": total["long"] / n,
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
        "asks": float("?" in raw or words[0] in lexicon.QUESTION_WORDS),
        "exclaims": float("!" in raw),
        "opinions": math.log1p(total["opinions"]),
        "first_person": total["first_person"] / n,
        "second_person": total["second_person"] / n,
        "greetings": total["greetings"] / n,
        "non_committal": float(any(phrase in joined for phrase in lexicon.NON_COMMITTAL)),
    }
