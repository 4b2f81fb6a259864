"""Similarity against sentence-transformers' own reading of the same encoder, and its order."""

from __future__ import annotations

import numpy as np
import pytest

from core.metrics import make_metric
from core.records import Item

pytestmark = pytest.mark.slow  # loads MiniLM

NEAR = Item("near", "A cat sleeps on the sofa.", source="The kitten is napping on the couch.", context="Stocks fell.")
FAR = Item("far", "A cat sleeps on the sofa.", source="The bank raised its interest rates.")
MANY = Item("many", "A cat sleeps.", references=("Rates rose.", "A cat is asleep.", " "))


def test_cosines_are_those_of_the_vectors() -> None:
    from core.repeval.states import sentence_vectors

    vectors = sentence_vectors([NEAR.target, NEAR.source, FAR.source, NEAR.context])
    found = make_metric("similarity").score([NEAR, FAR])
    np.testing.assert_allclose(found.values, [vectors[0] @ vectors[1], vectors[0] @ vectors[2]], atol=1e-5)
    assert found.values[0] > found.values[1] + 0.2
    context = make_metric("similarity_context").score([NEAR, FAR])
    assert context.values[0] == pytest.approx(float(vectors[0] @ vectors[3]), abs=1e-5)
    assert context.unscored[0].detail == "The item has no context."


def test_the_best_reference_counts() -> None:
    one = Item("one", MANY.target, references=(MANY.references[1],))
    found = make_metric("similarity_reference").score([MANY, one]).values
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert found[0] > 0.7


def test_progress_counts_items() -> None:
    seen: list[tuple[int, int]] = []
    make_metric("similarity").score([NEAR, FAR], lambda done, asked: seen.append((done, asked)))
    assert seen[-1] == (2, 2)
    empty = make_metric("similarity").score([Item("x", "", source="a")])
    assert np.isnan(empty.values[0])
