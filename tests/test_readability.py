"""Sentences that users read are short (`python tests/readability.py` lists them)."""

from __future__ import annotations

from statistics import median

from tests.readability import sentences


def test_no_sentence_is_long() -> None:
    found = sentences()
    assert len(found) > 2000
    assert median(sentence.words for sentence in found) <= 14
    assert [sentence for sentence in found if sentence.words > 30] == []
