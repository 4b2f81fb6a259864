"""Short cuts of the features against what they stand for, on texts made to hit them: not one count may differ."""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core.judging.offline import grammar, grounding, language, scaling, text
from core.judging.offline.lexicon import CONNECTIVES, FUNCTION_WORDS, JUNK_TOKENS, NEGATIONS, OPINIONS
from core.judging.offline.text import cut

PIECES = (
    "the of a an is are THE İs ſ iſ there is two cats that is was has had he they to do n't ca n't 's don't apple one "
    "12 ３ Anna Ran running ran ran , . ! ? ; : ( ) - .. 。 …"
).split(" ")
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join).map(lambda text: text.replace(" ,", ","))


@given(TEXTS)
def test_slips_are_all_matches_of_all_patterns(raw: str) -> None:
    patterns = (grammar._HANGING, grammar._SPLIT_VERB, grammar._TWO_VERBS, grammar._AGREEMENT)
    one = cut(raw)
    expected = sum(len(pattern.findall(one.raw)) for pattern in patterns) + grammar._bad_pairs(one.words)
    assert grammar.slips(one) == expected


@given(TEXTS)
def test_pairs_that_clash_are_those_of_the_table(raw: str) -> None:
    words = tuple(word for word in cut(raw).words if word not in ("a", "an"))
    clashes = sum(
        any(one in left and other in right for left, right in grammar._CLASHES) for one, other in pairwise(words)
    )
    assert grammar._bad_pairs(words) == clashes


@given(TEXTS)
def test_doubled_words_and_pairs(raw: str) -> None:
    whole = cut(raw)
    words, stems = whole.words, whole.stems
    once = sum(
        one == other
        and words[i] not in grammar._MAY_DOUBLE
        and (words[i] == words[i + 1] or words[i] not in FUNCTION_WORDS)
        for i, (one, other) in enumerate(pairwise(stems))
    )
    twice = sum(words[i : i + 2] == words[i + 2 : i + 4] and words[i] != words[i + 1] for i in range(len(words) - 3))
    assert grammar.doubled(whole) == once + twice


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
        assert (found.best, found.share) == (best, shared / len(content))
        assert found.misplaced == len((marked & source.vocabulary) - around)


MARKS = st.text(
    alphabet=". , ; : ! ? ( ) - _ ~ # @ & < > [ ] \\ ' ` \" “ ” ’ … 。 ！ ؟ � \n \t \u2003 \x1c".split(" ")
    + list(" anNtTsSſdlDrRbkuU1²３İé")
)
ANY = st.one_of(TEXTS, MARKS)


@given(ANY)
def test_words_are_those_of_the_pattern(raw: str) -> None:
    assert text._surface(raw) == text._WORD.findall(raw)


@given(ANY)
def test_sentences_and_clitics_end_where_the_plain_patterns_say(raw: str) -> None:
    ends = re.compile(r"(?:[.!?。！？؟]{1,3}[\"'”’)\]]{0,3}|\n)(?=\s|$)|[。！？]")
    assert [one.span() for one in text._END.finditer(raw)] == [one.span() for one in ends.finditer(raw)]
    plain = r"\s(?=['’](?:s|re|ve|ll|d|m)\b)|(?<=\w)\s(?=n\s?['’]t\b)|(?<=n)\s(?=['’]t\b)"
    assert text._CLITIC.sub("", raw) == re.sub(plain, "", raw, flags=re.IGNORECASE)


@given(ANY)
def test_marked_words_and_what_is_counted_from_them(raw: str) -> None:
    for sentence in cut(raw).sentences:
        begins = [word[0] for word in sentence.surface]
        assert sentence.marked == tuple(i for i, one in enumerate(begins) if one.isupper() or one.isdigit())
    whole = cut(raw)
    if whole.words:
        n, found = len(whole.words), language.wording(whole, language.totals(whole.words))
        assert found["number_share"] == sum(word[0].isdigit() for word in whole.words) / n
        assert found["name_share"] == sum(w[0].isupper() for s in whole.sentences for w in s.surface[1:]) / n
        assert text.numbers(whole) == [word for word in whole.words if word[0].isdigit()]


@given(ANY)
def test_stray_marks_junk_quotes_and_ends_are_those_of_the_plain_patterns(raw: str) -> None:
    raw = raw.strip()
    stray = r"^\s*[,.;:!?)]|[,;:]\s*[.,;:!?]|(?<![.])[.!?]\s+[.,;]|\(\s*\)|\s-\s*$|[,;:(\-]\s*$|\.\s*\.(?!\s*\.)"
    assert language._stray(raw) == len(re.findall(stray, raw))
    junk = r"<[a-z_/]+>|@-@|-[lr][rsc]b-|\[unk\]|&[a-z]+;|#\s?#|\\[a-z]|[_|~^]{2,}|�"
    plain = re.compile(junk, re.IGNORECASE)
    assert [one.group() for one in language._JUNK.finditer(raw)] == [one.group() for one in plain.finditer(raw)]
    assert language.quotes(raw) == len(re.findall(r"[\"“”]|``|''", raw))
    ends = re.search(r"[.!?。！？؟…][\"'”’)\]\s]*$|''\s*$", raw)
    assert language._ends(raw) == (ends is not None)


def test_all_white_space_may_stand_behind_an_end() -> None:
    spaces = {one for one in map(chr, range(sys.maxunicode + 1)) if one.isspace()}
    assert spaces | set("\"'”’)]") == set(language._CLOSING)


@given(ANY)
def test_hanging_words_and_second_verbs_are_those_of_the_plain_patterns(raw: str) -> None:
    low = raw.lower()
    for fast, plain in ((grammar._HANGING_LOW, grammar._ANY_CASE[0]), (grammar._TWO_VERBS_LOW, grammar._ANY_CASE[2])):
        assert [one.span() for one in fast.finditer(low)] == [one.span() for one in re.finditer(plain, low)]


@given(st.lists(st.one_of(st.sampled_from([*PIECES, "but", "not", "love", "amp", "because"]), st.text(min_size=1))))
def test_totals_are_counts_over_the_words(words: list[str]) -> None:
    found = language.totals(words)
    for total, among in ((found.function, FUNCTION_WORDS), (found.connectives, CONNECTIVES)):
        assert total == sum(word in among for word in words)
    for total, among in ((found.negations, NEGATIONS), (found.opinions, OPINIONS), (found.junk, JUNK_TOKENS)):
        assert total == sum(word in among for word in words)
    assert found.letters == sum(map(len, words))
    assert found.syllables == sum(map(text.syllables, words))
    assert found.long == sum(len(word) > 7 for word in words)


def test_totals_of_the_longest_text_do_not_run_over() -> None:
    word = "a" * (18 * text.MAX_CHARS)  # one character can become eighteen when it is normalised
    assert language.totals([word, word])[-3:] == (2 * len(word), 2, 2)


@given(TEXTS, TEXTS)
def test_coverage_is_that_of_its_definition(raw: str, other: str) -> None:
    one, source = cut(raw), grounding.prepare(other)
    if not one.words or not source.text.words:
        return
    found, told = grounding.coverage(one, source), Counter(one.content_stems)
    counts, total = Counter(source.text.content_stems), max(1, len(one.content_stems))
    n = max(1, sum(counts.values()))
    p = {stem: told[stem] / total for stem in {*told, *counts}}
    q = {stem: counts[stem] / n for stem in p}
    divergence = sum(
        share * math.log2(2 * share / (p[stem] + q[stem])) / 2
        for shares in (p, q)
        for stem, share in shares.items()
        if share
    )
    if told and counts:
        assert math.isclose(found["divergence"], divergence, abs_tol=1e-12)
    assert found["lead_share"] == sum(n for stem, n in told.items() if stem in source.lead) / total
    used = {source.sentences_of[stem][0] for stem in told if stem in source.sentences_of}
    assert found["source_sentences_used"] == math.log1p(len(used))


@given(
    arrays.arrays(np.float64, (5, 6), elements=st.floats(-1e6, 1e6)),
    arrays.arrays(
        np.float64, (6, 9), elements=st.sampled_from([0.0, 0.0, 0.0, 0.0, 1.0, -1.0, 1e-3]), fill=st.nothing()
    ),
)
def test_a_product_sums_in_order_whatever_is_zero(left: np.ndarray, right: np.ndarray) -> None:
    for i, row in enumerate(scaling.product(left, right)):
        for j, value in enumerate(row):
            total = 0.0
            for k in range(6):
                total += float(left[i, k]) * float(right[k, j])
            assert value == total
