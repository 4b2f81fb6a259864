"""Metrics of words: against rouge_score, sacrebleu, nltk and the columns of the reference sets, and by hand."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data import load_golden
from core.metrics import make_metric
from core.metrics.word_metrics import Tokens, lcs_length
from core.records import FloatArray, GoldenSet, Item, Measure
from core.stats import LabelledItems, align
from tests.core.metrics.conftest import ITEMS

WORDS = "the running runner runs quickly quick 's 2,000 Na-ve tests tested testing of a ... don't cities city".split()


def written(seed: int, n: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=n))


WRITTEN = [
    Item(
        f"i{k}", written(k, 5 + k), source=written(100 + k, 60), references=(written(200 + k, 12), written(300 + k, 7))
    )
    for k in range(12)
]


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL"])
def test_every_form_equals_rouge_score(kind):
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer([kind], use_stemmer=True)
    each = [[scorer.score(r, i.target)[kind] for r in i.references] for i in WRITTEN]
    expected = {
        kind: [sum(s.fmeasure for s in of) / 2 for of in each],
        f"{kind}_source_p": [scorer.score(i.source, i.target)[kind].precision for i in WRITTEN],
    }
    for name, values in expected.items():
        verdicts = make_metric(name).score(WRITTEN)
        np.testing.assert_allclose(verdicts.values, values, atol=1e-12, err_msg=name)
    assert np.ptp(expected[kind]) > 0


def table_length(first: list[str], second: list[str]) -> int:
    """The usual table, cell by cell."""
    rows = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            rows[i + 1][j + 1] = rows[i][j] + 1 if a == b else max(rows[i][j + 1], rows[i + 1][j])
    return rows[-1][-1]


@given(st.lists(st.sampled_from("abc"), max_size=90), st.lists(st.sampled_from("abcd"), max_size=90))
def test_common_subsequence_equals_the_table(first, second):
    assert lcs_length(first, second) == lcs_length(second, first) == table_length(first, second)


def test_texts_without_words_are_unscored_not_zero():
    items = [
        Item("signs", "。。。", references=("北京",)),
        Item("dots", "...", references=("the cat",)),
        Item("half", "the cat", references=("…", "the cat")),
        Item("none", "the cat", references=("…",)),
        Item("empty", "", references=("the cat",)),
        Item("alone", "the cat"),
    ]
    verdicts = make_metric("rouge1").score(items)
    assert verdicts.values[2] == 1.0  # the readable reference counts
    assert [u.item_id for u in verdicts.unscored] == ["signs", "dots", "none", "empty", "alone"]
    assert "has no words" in verdicts.unscored[0].detail
    assert verdicts.unscored[3].detail == "The target is empty."
    assert verdicts.unscored[4].detail == "The item has no references."


def test_hostile_words_and_long_texts_are_measured():
    # Porter's rules are defined by recursion over runs of y; two texts of 20,000 words have 4e8 cells in a table
    wall = Item("y", "y" * 50_000, source="y" * 50_000)
    long = Item("long", "a b c d " * 5_000, source="d c b a " * 5_000)
    assert make_metric("rougeL_source_p").score([wall, long]).values[0] == 1.0
    assert 0.25 <= make_metric("rougeL_source_p").score([wall, long]).values[1] <= 1.0
    assert Tokens().tokenize("Cities <b>running</b>") == ["citi", "b", "run", "b"]


def stored(golden: GoldenSet, name: str) -> FloatArray:
    return np.array([np.nan if value is None else value for value in golden.metrics[name]])


@pytest.mark.parametrize("name", ["sfres", "bagel"])
def test_rouge_equals_the_stored_columns(shared_data, name):
    # stored: rouge-score with stemming, first reference
    golden = load_golden(shared_data / f"{name}.jsonl.gz")
    items = [replace(item, references=item.references[:1]) for item in golden.items]
    for kind in ("rouge1", "rouge2", "rougeL"):
        found = make_metric(kind).score(items).values
        np.testing.assert_allclose(found, stored(golden, f"{kind}_f"), atol=1e-6, err_msg=kind)


def test_rouge_aligns_as_rouge_1_5_5_does_on_summeval(shared_data):
    """Sample-level Spearman with people, mean over 11 references: within .02 (within .003 it was) of ROUGE-1.5.5's."""
    golden, kind = load_golden(shared_data / "summeval.jsonl.gz"), "rouge2"
    ours, theirs = make_metric(kind).score(golden.items).values, stored(golden, f"{kind}_f")
    for aspect in golden.aspects:
        both = [
            align(values, LabelledItems.of(golden, aspect), Measure("spearman", "sample")).value
            for values in (ours, theirs)
        ]
        assert both[0] == pytest.approx(both[1], abs=0.02)
    assert np.corrcoef(ours, theirs)[0, 1] > 0.999


def test_overlap_by_hand():
    # stems: cat sat mat | source: the cat is sitting on mats.  "cats" and "mat" are there, "flew" is not: 2 of 3
    item = Item("a", "Cats flew mat", source="The cat is here, on mats.")
    assert make_metric("overlap").score([item]).values[0] == pytest.approx(2 / 3)
    # pairs of the target: (the, cat) there, (cat, on) not, (on, mats) there
    pairs = Item("b", "the cat on mats", source="The cat is here, on mats.")
    assert make_metric("overlap_pairs").score([pairs]).values[0] == pytest.approx(2 / 3)


def test_overlap_counts_every_occurrence_and_any_script():
    twice = Item("a", "cat cat dog", source="a cat")
    assert make_metric("overlap").score([twice]).values[0] == pytest.approx(2 / 3)
    other = Item("b", "Größe zählt", source="Die Größe ist egal")
    assert make_metric("overlap").score([other]).values[0] == pytest.approx(1 / 2)
    verdicts = make_metric("overlap_pairs").score([Item("c", "cat", source="a cat"), Item("d", "!?", source="a cat")])
    assert [u.detail for u in verdicts.unscored] == ["The target has too few words."] * 2
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
