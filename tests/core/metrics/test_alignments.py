"""CTC and PRISM against the same computation written straight in transformers, one pair at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from core.metrics import make_metric, score_or_reason
from core.records import Item
from tests.core.metrics.conftest import small_config

pytestmark = pytest.mark.slow  # the import of transformers

LABELS = {0: "hallucinated", 1: "ALIGNED"}


@pytest.fixture(scope="module")
def aligner(save: Callable[..., str]) -> str:
    return save(7, "BertForTokenClassification", small_config("Bert", id2label=LABELS))


@pytest.fixture(scope="module")
def by_embeddings(encoder_model: str) -> Callable[[str, str], float]:
    """The mean, over the first text's tokens, of their greatest cosine with one of the second's."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = (kind.from_pretrained(encoder_model) for kind in (AutoTokenizer, AutoModel))

    def states(text: str) -> Any:
        with torch.no_grad():
            inner = model.eval()(**tokenizer(text, return_tensors="pt")).last_hidden_state[0, 1:-1].double().numpy()
        return inner / np.linalg.norm(inner, axis=1, keepdims=True)

    return lambda own, other: float((states(own) @ states(other).T).max(axis=1).mean())


@pytest.fixture(scope="module")
def by_classifier(aligner: str) -> Callable[[str, str], float]:
    """The authors' way: the features of a word's tokens are averaged first, then go through the head."""
    import torch
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(aligner)
    model = AutoModelForTokenClassification.from_pretrained(aligner).eval()

    def mean(own: str, other: str) -> float:
        with torch.no_grad():
            states = model.bert(**tokenizer(own, other, return_tensors="pt")).last_hidden_state[0, 1:]
            shares, start = [], 0
            for word in own.split():
                n = len(tokenizer(word, add_special_tokens=False)["input_ids"])
                shares.append(float(model.classifier(states[start : start + n].mean(0)).double().softmax(0)[1]))
                start += n
        return float(np.mean(shares))

    return mean


def relevance(align: Callable[[str, str], float], item: Item) -> float:
    covered = np.mean([align(reference, item.target) for reference in item.references])
    return float(align(item.target, item.source) * covered)


def test_ctc_by_embeddings(
    encoder_model: str, by_embeddings: Callable[[str, str], float], items: Sequence[Item]
) -> None:
    backed = [by_embeddings(item.target, item.source) for item in items]
    found = make_metric(f"ctc:{encoder_model}").score(items)
    np.testing.assert_allclose(found.values, backed, atol=1e-5)
    assert np.ptp(backed) > 0.01
    found = make_metric(f"ctc_relevance:{encoder_model}@2").score(items)  # layer 2 is the last
    np.testing.assert_allclose(found.values, [relevance(by_embeddings, item) for item in items], atol=1e-5)
    whole = Item("a", "the cat sat", "s", source="the cat sat")
    assert make_metric(f"ctc:{encoder_model}").score([whole]).values[0] == pytest.approx(1.0, abs=1e-6)


def test_ctc_by_a_trained_classifier(
    aligner: str, by_classifier: Callable[[str, str], float], items: Sequence[Item]
) -> None:
    joined = Item("e", "the cat, sat.", "s3", source="a dog ran", references=("it was.",))  # words of two tokens
    every = [joined, *items]
    backed = [by_classifier(item.target, item.source) for item in every]
    found = make_metric(f"ctc_trained:{aligner}").score(every)
    np.testing.assert_allclose(found.values, backed, atol=1e-5)
    assert np.ptp(backed) > 0.01
    found = make_metric(f"ctc_trained_relevance:{aligner}").score(every)
    np.testing.assert_allclose(found.values, [relevance(by_classifier, item) for item in every], atol=1e-5)
    alone = make_metric(f"ctc_trained:{aligner}").score(every[2:3]).values
    np.testing.assert_allclose(alone, backed[2:3], atol=1e-5)


def test_a_text_beyond_the_window_is_cut_and_counted(aligner: str, by_classifier: Callable[[str, str], float]) -> None:
    # a window of 32: 16 tokens of the target, and what then fits of the source: 32 - 16 - 3 special tokens = 13
    long = Item("a", "the cat ran " * 7, "s", source="the dog sat on the mat . " * 4)
    found = make_metric(f"ctc_trained:{aligner}").score([long])
    kept = " ".join(long.target.split()[:16]), " ".join(long.source.split()[:13])
    assert found.values[0] == pytest.approx(by_classifier(*kept), abs=1e-5)
    assert found.note.startswith("2 inputs were longer than the 32 tokens")


def test_labels_that_do_not_say_aligned_and_missing_parts_are_told(save: Callable[..., str], aligner: str) -> None:
    unnamed = save(8, "BertForTokenClassification", small_config("Bert", num_labels=2))
    pair = [Item("a", "the cat", "s", source="a cat"), Item("b", "the dog", "s", source="a cat")]
    assert "has to be called aligned" in str(score_or_reason(make_metric(f"ctc_trained:{unnamed}"), pair))
    assert "references" in make_metric(f"ctc_relevance:{aligner}").missing(pair)
    found = make_metric(f"ctc_trained_relevance:{aligner}").score(
        [*pair, Item("c", "it", "s", source="a", references=("a",))]
    )
    assert np.isnan(found.values).tolist() == [True, True, False]
    assert found.unscored[0].detail == "The item has no references."


def test_prism_is_the_log_likelihood_of_paraphrases_both_ways(bart_model: str, items: Sequence[Item]) -> None:
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer, model = (
        AutoTokenizer.from_pretrained(bart_model),
        AutoModelForSeq2SeqLM.from_pretrained(bart_model).eval(),
    )

    def likelihood(source: str, target: str) -> float:
        inputs = tokenizer(source, return_tensors="pt", return_token_type_ids=False)
        labels = tokenizer(target, return_tensors="pt")["input_ids"]
        logs = model(**inputs, labels=labels).logits[0].detach().double().log_softmax(-1)
        each = [float(logs[k, token]) for k, token in enumerate(labels[0].tolist())]
        return float(np.mean(each[1:]))  # [CLS] begins the text and is given; [SEP] ends it

    both = [
        max((likelihood(text, item.target) + likelihood(item.target, text)) / 2 for text in item.references)
        for item in items
    ]
    found = make_metric(f"prism:{bart_model}").score(items)
    np.testing.assert_allclose(found.values, both, atol=1e-5)
    assert np.ptp(both) > 0.01
    one_way = [likelihood(item.source, item.target) for item in items]
    np.testing.assert_allclose(make_metric(f"prism_source:{bart_model}").score(items).values, one_way, atol=1e-5)
    seen: list[tuple[int, int]] = []
    make_metric(f"prism:{bart_model}").score(items, lambda done, of: seen.append((done, of)))
    assert seen == sorted(seen)
    assert seen[-1] == (4, 4)
