"""Short cuts of the features against what they stand for, on texts made to hit them: not one count may differ."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from core.judging.offline import text
from core.judging.offline.text import (
    ABBREVIATIONS,
    CLASHES,
    cut,
    slips,
)

PIECES = (
    "the of a an is are THE İs ſ iſ there is two cats that is was has had he they to do n't ca n't 's don't apple one "
    "12 ３ Anna Ran running ran ran , . ! ? ; : ( ) - .. 。 …"
).split(" ")
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join).map(lambda text: text.replace(" ,", ","))
ANY = st.one_of(
    TEXTS,
    st.text(alphabet=list(". , ; : ! ? ( ) _ # @ < > [ ] ' \" “ ” ’ … 。 ！ \n \t \u2003 anNtTsSſdlDrRbkU1²３İé")),
)

WRONG_SOUND = r"a (?:(?!one|eu)[aeio].)|an [bcdfgjkpqrtvwyz]h?[lr]?[aeiouy]"


@given(ANY)
def test_slips_are_all_pairs_that_clash(raw: str) -> None:
    whole = cut(raw)
    pairs = list(pairwise(whole.words))
    clashes = sum(any(one in left and other in right for left, right in CLASHES) for one, other in pairs)
    sounds = sum(re.match(WRONG_SOUND, " ".join(pair), re.DOTALL) is not None for pair in pairs)
    assert slips(whole) == clashes + sounds


def plain_sentences(raw: str) -> list[str]:
    """Pieces by the plain patterns; an abbreviation or an initial ends none."""
    pieces, start = [], 0
    for match in re.finditer(r"(?:[.!?。！？؟]{1,3}[\"'”’)\]]{0,3}|\n)(?=\s|$)|[。！？]", raw):
        before = re.search(r"[^\W\d_]+$", raw[max(start, match.start() - 24) : match.start()])
        word = before[0] if before else ""
        initial = len(word) == 1 and word.isupper() and word != "I"
        if match[0].startswith(".") and (initial or word.lower() in ABBREVIATIONS):
            continue
        pieces.append(raw[start : match.end()])
        start = match.end()
    return [piece.strip() for piece in [*pieces, raw[start:]] if piece.strip()]


@given(ANY)
def test_words_and_sentences_are_those_of_the_plain_patterns(raw: str) -> None:
    assert text.split_sentences(raw) == plain_sentences(raw)
    clitic = r"\s(?=['’](?:s|re|ve|ll|d|m)\b)|(?<=\w)\s(?=n\s?['’]t\b)|(?<=n)\s(?=['’]t\b)"
    joined = re.sub(clitic, "", unicodedata.normalize("NFKC", raw), flags=re.IGNORECASE)
    sentences = [re.findall(r"[^\W_]+(?:['’][^\W_]+)*", sentence) for sentence in plain_sentences(joined)]
    assert [list(sentence.surface) for sentence in cut(raw).sentences] == [words for words in sentences if words]
