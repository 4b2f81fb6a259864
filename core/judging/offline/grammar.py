"""Counting slips of English grammar by closed word classes: few kinds, each hardly ever right in good English."""

from __future__ import annotations

import itertools
import re
from operator import eq

from core.judging.offline.lexicon import CLASHES, FUNCTION_WORDS
from core.judging.offline.text import Text

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
_VERB_AFTER_COMMA = re.compile(r",\s(?:is|are|was|were|has|have)\b")
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
    count = _bad_pairs(text.words) + len(_HANGING.findall(low))
    if _VERB_AFTER_COMMA.search(low):
        count += len(_SPLIT_VERB.findall(low))
    if low.count("is") + low.count("are") > 1:
        count += len(_TWO_VERBS.findall(low))
    if "s that " in raw or "there is " in raw:  # without either the pattern cannot match
        count += len(_AGREEMENT.findall(raw))
    return count


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
    words, stems = text.words, text.stems
    same = map(eq, stems, stems[1:])
    singles: int = sum(
        words[i] not in MAY_DOUBLE and (words[i] == words[i + 1] or words[i] not in FUNCTION_WORDS)
        for i in itertools.compress(itertools.count(), same)
    )
    again: list[bool] = list(map(eq, words, words[2:]))  # two in a row: a pair that follows itself
    if True not in again:
        return singles
    return singles + sum(again[i] and again[i + 1] and words[i] != words[i + 1] for i in range(len(again) - 1))
