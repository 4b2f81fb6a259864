"""Overlap by hand; BLEU and chrF against sacrebleu; METEOR where nltk's data is and where it is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from core.metrics import make_metric, word_metrics
from core.records import Item
from tests.core.metrics.conftest import ITEMS


def test_overlap_by_hand():
    # stems: cat sat mat | source: the cat is sitting on mats.  "cats" and "mat" are there, "flew" is not: 2 of 3
    item = Item("a", "Cats flew mat", source="The cat is here, on mats.", context="it flew")
    assert make_metric("overlap").score([item]).values[0] == pytest.approx(2 / 3)
    assert make_metric("overlap_context").score([item]).values[0] == pytest.approx(1 / 3)
    # pairs of the target: (the, cat) there, (cat, on) not, (on, mats) there
    pairs = Item("b", "the cat on mats", source="The cat is here, on mats.")
    assert make_metric("overlap_pairs").score([pairs]).values[0] == pytest.approx(2 / 3)


def test_overlap_counts_every_occurrence_and_any_script():
    twice = Item("a", "cat cat dog", source="a cat")
    assert make_metric("overlap").score([twice]).values[0] == pytest.approx(2 / 3)
    other = Item("b", "Größe zählt", source="Die Größe ist egal")
    assert make_metric("overlap").score([other]).values[0] == pytest.approx(1 / 2)
    verdicts = make_metric("overlap_pairs").score([Item("c", "cat", source="a cat"), Item("d", "!?", source="a cat")])
    assert [u.detail for u in verdicts.unscored] == ["The target holds fewer than 2 words."] * 2
    assert np.isnan(verdicts.values).all()


def test_bleu_and_chrf_are_sacrebleu_s():
    import sacrebleu

    bleu = [sacrebleu.sentence_bleu(i.target, list(i.references), use_effective_order=True).score for i in ITEMS]
    chrf = [sacrebleu.sentence_chrf(i.target, list(i.references)).score for i in ITEMS]
    np.testing.assert_array_equal(make_metric("bleu").score(ITEMS).values, bleu)
    np.testing.assert_array_equal(make_metric("chrf").score(ITEMS).values, chrf)
    same = Item("same", "the cat", references=("the cat",))
    assert make_metric("bleu").score([same]).values[0] == pytest.approx(100)  # too short for 4-grams, and not 0
    assert make_metric("chrf").score([same]).values[0] == pytest.approx(100)


def test_meteor_takes_the_best_reference(monkeypatch):
    import nltk.corpus
    from nltk.translate.meteor_score import single_meteor_score

    class NoSynonyms:
        """A wordnet that knows no word: METEOR then matches words and stems only."""

        def ensure_loaded(self) -> None:
            pass

        def synsets(self, word: str) -> list[Any]:
            return []

    monkeypatch.setattr(nltk.corpus, "wordnet", NoSynonyms())
    item = Item("a", "The cats sat.", references=("a dog", "the cat sat on it"))
    expected = single_meteor_score(["the", "cat", "sat", "on", "it"], ["The", "cats", "sat", "."], wordnet=NoSynonyms())
    assert word_metrics.meteor().score([item]).values[0] == pytest.approx(expected)
    assert expected > 0.3
