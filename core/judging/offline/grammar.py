"""Counting slips of English grammar by closed word classes: few kinds, each hardly ever right in good English."""

from __future__ import annotations

import re
from itertools import pairwise

from core.judging.offline.lexicon import ARTICLES, FUNCTION_WORDS, PREPOSITIONS
from core.judging.offline.text import Text

_FINITE = frozenset("is are was were has had does did isn't aren't wasn't weren't".split())
_CLASHES = (
    (
        ARTICLES,
        ARTICLES | PREPOSITIONS - {"over", "about", "under", "off", "up", "near", "like", "since"} | _FINITE,
    ),
    (frozenset({"is", "are", "was", "were"}), frozenset("is are was were has have had do does".split())),
    (frozenset({"he", "she", "it"}), frozenset("are were have do am don't haven't".split())),
    (frozenset({"they", "we", "you"}), frozenset("is was has does am doesn't hasn't".split())),
    (frozenset({"i"}), frozenset("is are has does were".split())),
    (frozenset({"to"}), frozenset("is are was were has had did of".split())),
    (
        frozenset("of for with at by from into on against during without between within toward towards".split()),
        frozenset({"he", "she", "they", "i"}),
    ),
)


def _bad_pairs(words: tuple[str, ...]) -> int:
    """Pairs of neighbouring words that good English hardly ever has, and "a" or "an" before the wrong sound."""
    count = 0
    for one, other in pairwise(words):
        count += any(one in left and other in right for left, right in _CLASHES)
        if one == "a":
            count += len(other) > 1 and other[0] in "aeio" and not other.startswith(("one", "once", "eu"))
        elif one == "an":
            count += other[0] in "bcdfgjkpqrtvwyz" and bool(_SOUNDED.match(other))
    return count


_SOUNDED = re.compile(r".h?[lr]?[aeiouy]")
_MAY_DOUBLE = frozenset({"had", "that", "very", "so"})
_HANGING = re.compile(r"\b(?:(?:the|an|and|or|of|my|your|their)\s*[,.;:!?]|a\s*[,;:!?])(?!\w)", re.IGNORECASE)
_SPLIT_VERB = re.compile(r"(?:^|[.!?]\s)[^,.!?]{1,60}?,\s(?:is|are|was|were|has|have)\b(?!\s*,)", re.IGNORECASE)
_TWO_VERBS = re.compile(
    r"\b(?:is|are)\s+(?!(?:that|what|which|who|it|how|there|where)\b)\w+\s+(?:is|are)\b", re.IGNORECASE
)
_AGREEMENT = re.compile(
    r"\b\w{3,30}[^\Wsui]s that (?:is|was|does|has)\b|\bthere is (?:two|three|four|many|several|\d{2,})\b"
)


def slips(text: Text) -> int:
    """Slips in a text.

    Neighbouring words that do not go together ("the of"), "a" or "an" before the wrong sound, an article or "and"
    before punctuation, a comma between a short subject and its verb, two verbs for one subject, a plural with a
    singular verb.
    """
    raw = text.raw
    patterns = (_HANGING, _SPLIT_VERB, _TWO_VERBS, _AGREEMENT)
    return _bad_pairs(text.words) + sum(len(pattern.findall(raw)) for pattern in patterns)


def doubled(text: Text) -> int:
    """How often a word, or a pair of words, follows right after itself ("the the", "restaurant restaurants")."""
    words, stems = text.words, text.stems
    once = sum(
        one == other and words[i] not in _MAY_DOUBLE and (words[i] == words[i + 1] or words[i] not in FUNCTION_WORDS)
        for i, (one, other) in enumerate(pairwise(stems))
    )
    twice = sum(words[i : i + 2] == words[i + 2 : i + 4] and words[i] != words[i + 1] for i in range(len(words) - 3))
    return once + twice
