"""Sentence vectors: unit length, order kept, meaning seen, equal to the model's definition."""

from __future__ import annotations

import numpy as np

from core.repeval.states import SENTENCE_DIM, sentence_vectors
from core.repeval.states.model import ModelSpec, load_model, load_tokenizer

TEXTS = ["A cat sat on the mat.", "The feline rested on a rug.", "Share prices fell sharply.", "", "word " * 700]


def test_vectors_have_unit_length_and_keep_the_order() -> None:
    seen: list[tuple[int, int]] = []
    vectors = sentence_vectors([*TEXTS, TEXTS[0]], on_progress=lambda *done: seen.append(done))
    assert vectors.shape == (6, SENTENCE_DIM)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert np.array_equal(vectors[0], vectors[5])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2
    assert seen[-1] == (5, 5)
    assert np.allclose(sentence_vectors(TEXTS[2:3])[0], vectors[2], atol=1e-5)


def test_vectors_are_masked_means_of_the_last_layer() -> None:
    import torch

    tokenizer, loaded = load_tokenizer(ModelSpec()), load_model(ModelSpec(device="cpu"))
    for text in (TEXTS[0], TEXTS[4]):
        inputs = tokenizer(text, return_tensors="pt", padding=False, truncation=True, max_length=256)
        with torch.no_grad():
            last = loaded.model(**inputs).last_hidden_state[0].numpy().astype(np.float64)
        mean = last.mean(axis=0)
        assert np.allclose(sentence_vectors([text])[0], mean / np.linalg.norm(mean), atol=1e-5)


def test_no_texts_give_no_vectors() -> None:
    assert sentence_vectors([]).shape == (0, SENTENCE_DIM)
