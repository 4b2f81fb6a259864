"""Counting slips of English grammar by closed word classes: few kinds, each hardly ever right in good English."""

from __future__ import annotations

import itertools
import re
from operator import eq

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


_NEVER_AFTER = {
    one: frozenset().union(*(right for left, right in _CLASHES if one in left))
    for one in frozenset().union(*(left for left, _ in _CLASHES))
}
"""Word → what hardly ever follows it."""


def _bad_pairs(words: tuple[str, ...]) -> int:
    """Pairs of neighbouring words that good English hardly ever has, and "a" or "an" before the wrong sound."""
    count = 0
    for i, after in enumerate(map(_NEVER_AFTER.get, words[:-1])):
        if after is None:
            continue
        one, other = words[i], words[i + 1]
        count += other in after
        if one == "a":
            count += len(other) > 1 and other[0] in "aeio" and not other.startswith(("one", "once", "eu"))
        elif one == "an":
            count += other[0] in "bcdfgjkpqrtvwyz" and bool(_SOUNDED.match(other))
    return count


_SOUNDED = re.compile(r".h?[lr]?[aeiouy]")
_MAY_DOUBLE = frozenset({"had", "that", "very", "so"})
_ANY_CASE = (
    r"\b(?:(?:the|an|and|or|of|my|your|their)\s*[,.;:!?]|a\s*[,;:!?])(?!\w)",
    r"(?:^|[.!?]\s)[^,.!?]{1,60}?,\s(?:is|are|was|were|has|have)\b(?!\s*,)",
    r"\b(?:is|are)\s+(?!(?:that|what|which|who|it|how|there|where)\b)\w+\s+(?:is|are)\b",
)
"""A word left hanging before punctuation, a subject split from its verb, two verbs for one subject."""
_HANGING, _SPLIT_VERB, _TWO_VERBS = (re.compile(pattern, re.IGNORECASE) for pattern in _ANY_CASE)
_SPLIT_VERB_LOW = re.compile(_ANY_CASE[1])
_HANGING_LOW = re.compile(
    r"[atomy](?<!\w.)(?:(?:(?<=t)(?:he|heir)|(?<=a)(?:n|nd)|(?<=o)(?:f|r)|(?<=m)y|(?<=y)our)\s*[,.;:!?]"
    r"|(?<=a)\s*[,;:!?])(?!\w)"
)
_TWO_VERBS_LOW = re.compile(
    r"[ia](?<!\w.)(?:(?<=i)s|(?<=a)re)\s+(?!(?:that|what|which|who|it|how|there|where)\b)\w+\s+(?:is|are)\b"
)
"""The same for lower case, each beginning with a set of letters: so they are searched for faster."""
_VERB_AFTER_COMMA = re.compile(r",\s(?:is|are|was|were|has|have)\b")
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
    count = _bad_pairs(text.words) + _ignoring_case(raw)
    if "s that " in raw or "there is " in raw:  # without either the pattern cannot match
        count += len(_AGREEMENT.findall(raw))
    return count


def _ignoring_case(raw: str) -> int:
    """Matches of the three patterns of `_ANY_CASE`; on plain ASCII found in lower case, where searching is faster."""
    if not raw.isascii():
        return sum(len(pattern.findall(raw)) for pattern in (_HANGING, _SPLIT_VERB, _TWO_VERBS))
    low = raw.lower()
    count = len(_HANGING_LOW.findall(low))
    if _VERB_AFTER_COMMA.search(low):
        count += len(_SPLIT_VERB_LOW.findall(low))
    if low.count("is") + low.count("are") > 1:
        count += len(_TWO_VERBS_LOW.findall(low))
    return count


def doubled(text: Text) -> int:
    """How often a word, or a pair of words, follows right after itself ("the the", "restaurant restaurants")."""
    words, stems = text.words, text.stems
    same = map(eq, stems, stems[1:])
    once: int = sum(
        words[i] not in _MAY_DOUBLE and (words[i] == words[i + 1] or words[i] not in FUNCTION_WORDS)
        for i in itertools.compress(itertools.count(), same)
    )
    again: list[bool] = list(map(eq, words, words[2:]))  # two in a row: a pair that follows itself
    if True not in again:
        return once
    return once + sum(again[i] and again[i + 1] and words[i] != words[i + 1] for i in range(len(again) - 1))
