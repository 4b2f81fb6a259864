"""Short cuts of the features against what they stand for, on texts made to hit them: not one count may differ."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.judging.offline import grammar, grounding
from core.judging.offline.lexicon import FUNCTION_WORDS
from core.judging.offline.text import cut

PIECES = (
    "the of a an is are THE İs ſ iſ there is two cats that is was has had he they to do n't ca n't 's don't apple one "
    "12 ３ Anna Ran running ran ran , . ! ? ; : ( ) - .. 。 …"
).split(" ")
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join).map(lambda text: text.replace(" ,", ","))


@given(TEXTS)
def test_slips_are_all_matches_of_all_patterns(raw: str) -> None:
    patterns = (grammar._HANGING, grammar._SPLIT_VERB, grammar._TWO_VERBS, grammar._AGREEMENT)
    text = cut(raw)
    expected = sum(len(pattern.findall(text.raw)) for pattern in patterns) + grammar._bad_pairs(text.words)
    assert grammar.slips(text) == expected


@given(TEXTS)
def test_pairs_that_clash_are_those_of_the_table(raw: str) -> None:
    words = tuple(word for word in cut(raw).words if word not in ("a", "an"))
    clashes = sum(
        any(one in left and other in right for left, right in grammar._CLASHES) for one, other in pairwise(words)
    )
    assert grammar._bad_pairs(words) == clashes


@given(TEXTS)
def test_doubled_words_and_pairs(raw: str) -> None:
    text = cut(raw)
    words, stems = text.words, text.stems
    once = sum(
        one == other
        and words[i] not in grammar._MAY_DOUBLE
        and (words[i] == words[i + 1] or words[i] not in FUNCTION_WORDS)
        for i, (one, other) in enumerate(pairwise(stems))
    )
    twice = sum(words[i : i + 2] == words[i + 2 : i + 4] and words[i] != words[i + 1] for i in range(len(words) - 3))
    assert grammar.doubled(text) == once + twice


@given(TEXTS, TEXTS)
def test_a_sentence_stands_beside_the_one_that_shares_most(raw: str, other: str) -> None:
    source = grounding.prepare(other)
    for sentence in cut(raw).sentences:
        content = frozenset(s for s, w in zip(sentence.stems, sentence.words, strict=True) if w not in FUNCTION_WORDS)
        assert sentence.content == content
        votes = Counter(i for stem in sorted(content) for i in source.sentences_of.get(stem, ()))
        found = grounding.align(sentence, source) if content else None
        if found is None or not votes:
            continue
        best, shared = max(votes.items(), key=lambda vote: (vote[1], -vote[0]))
        around = frozenset().union(*source.contents[max(0, best - 1) : best + 2])
        marked = {
            stem
            for at, (stem, word) in enumerate(zip(sentence.stems, sentence.surface, strict=True))
            if word[0].isdigit() or (at and word[0].isupper())
        } & content
        assert (found.index, found.share) == (best, shared / len(content))
        assert found.misplaced == len((marked & source.vocabulary) - around)
