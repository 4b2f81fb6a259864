"""Similarity against sentence-transformers' own reading of the same encoder, and its order."""

from __future__ import annotations

import numpy as np
import pytest

from core.metrics import make_metric
from core.metrics.checkpoints import sentence_vectors
from core.records import Item
from core.repeval.model import ModelSpec, load_model, load_tokenizer

pytestmark = pytest.mark.slow  # loads MiniLM

NEAR = Item("near", "A cat sleeps on the sofa.", source="The kitten is napping on the couch.", context="Stocks fell.")
FAR = Item("far", "A cat sleeps on the sofa.", source="The bank raised its interest rates.")


TEXTS = ["A cat sat on the mat.", "The feline rested on a rug.", "Share prices fell sharply.", "", "word " * 700]


def test_vectors_are_masked_means_of_the_last_layer_at_unit_length():
    import torch

    tokenizer, loaded = load_tokenizer(ModelSpec()), load_model(ModelSpec())
    vectors = sentence_vectors([*TEXTS, TEXTS[0]])
    for text, vector in zip(TEXTS, vectors[:-1], strict=True):
        inputs = tokenizer(text, return_tensors="pt", padding=False, truncation=True, max_length=256)
        with torch.no_grad():
            mean = loaded.model(**inputs).last_hidden_state[0].numpy().astype(np.float64).mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
    assert np.array_equal(vectors[0], vectors[5])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_cosines_are_those_of_the_vectors():
    vectors = sentence_vectors([NEAR.target, NEAR.source, FAR.source])
    scores = make_metric("similarity").score([NEAR, FAR])
    np.testing.assert_allclose(scores.values, [vectors[0] @ vectors[1], vectors[0] @ vectors[2]], atol=1e-5)
