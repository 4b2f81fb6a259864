"""Similarity against sentence-transformers' own reading of the same encoder, and its order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from core.errors import UsageError
from core.fusion import parts
from core.judge_files.fused_file import FusedPart
from core.metrics import embeddings, make_metric
from core.metrics.checkpoints import in_batches
from core.metrics.embeddings import sentence_vectors
from core.progress import Shown, Stage
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.repeval import extract
from core.repeval.model import ModelSpec, load_model, load_tokenizer

pytestmark = pytest.mark.slow  # loads MiniLM

NEAR = Item("near", "A cat sleeps on the sofa.", source="The kitten is napping on the couch.", context="Stocks fell.")
FAR = Item("far", "A cat sleeps on the sofa.", source="The bank raised its interest rates.")
MANY = Item("many", "A cat sleeps.", references=("Rates rose.", "A cat is asleep.", " "))


TEXTS = ["A cat sat on the mat.", "The feline rested on a rug.", "Share prices fell sharply.", "", "word " * 700]


def test_vectors_are_masked_means_of_the_last_layer_at_unit_length() -> None:
    import torch

    tokenizer, loaded = load_tokenizer(ModelSpec()), load_model(ModelSpec(device="cpu"))
    vectors = sentence_vectors([*TEXTS, TEXTS[0]])
    for text, vector in zip(TEXTS, vectors[:-1], strict=True):
        inputs = tokenizer(text, return_tensors="pt", padding=False, truncation=True, max_length=256)
        with torch.no_grad():
            mean = loaded.model(**inputs).last_hidden_state[0].numpy().astype(np.float64).mean(axis=0)
        np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), atol=1e-5)
    assert np.array_equal(vectors[0], vectors[5])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


def test_cosines_are_those_of_the_vectors() -> None:
    vectors = sentence_vectors([NEAR.target, NEAR.source, FAR.source, NEAR.context])
    scores = make_metric("similarity").score([NEAR, FAR])
    np.testing.assert_allclose(scores.values, [vectors[0] @ vectors[1], vectors[0] @ vectors[2]], atol=1e-5)
    context = make_metric("similarity_context").score([NEAR, FAR])
    assert context.values[0] == pytest.approx(float(vectors[0] @ vectors[3]), abs=1e-5)
    assert context.unscored[0].detail == "The item has no context."


def test_the_best_reference_counts() -> None:
    item = Item("one", MANY.target, references=(MANY.references[1],))
    found = make_metric("similarity_reference").score([MANY, item]).values
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    assert found[0] > 0.7


def test_progress_counts_items() -> None:
    seen: list[tuple[int, int]] = []
    make_metric("similarity").score([NEAR, FAR], lambda done, asked: seen.append((done, asked)))
    assert seen[-1] == (2, 2)
    empty = make_metric("similarity").score([Item("x", "", source="a")])
    assert np.isnan(empty.values[0])


def test_what_repeval_has_read_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """All but the long text, of which RepEval reads the end and similarity the beginning; the vectors are the same."""
    items = tuple(Item(f"i{k}", text) for k, text in enumerate(TEXTS))
    alone = sentence_vectors(TEXTS)
    scale = AspectLabels("quality", Scale(1, 5), (1.0,) * len(items))
    extract(GoldenSet("read", "single", items, {"quality": scale}), ModelSpec(device="cpu"))
    read: list[int] = []
    monkeypatch.setattr(
        embeddings,
        "in_batches",
        lambda encoder, lengths, *rest: (read.extend(lengths), in_batches(encoder, lengths, *rest))[1],
    )
    seen: list[tuple[int, int]] = []
    again = sentence_vectors(TEXTS, lambda *progress: seen.append(progress))
    assert read == [embeddings.SENTENCE_TOKENS]
    assert seen[-1] == (len(TEXTS), len(TEXTS))
    np.testing.assert_allclose(again, alone, atol=1e-5)


def test_of_the_parts_of_a_fusion_repeval_goes_first_and_each_keeps_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def maker(name: str) -> Any:
        def make(*_: object) -> Any:
            if name == "chrf":
                raise UsageError("no references")
            return JudgeScores(name, "metric", "quality", np.zeros(1)), FusedPart(name=name, higher_is_better=True)

        return make

    monkeypatch.setattr(parts, "_maker", maker)
    heard: list[Stage] = []
    inputs: Any = SimpleNamespace(progress=Shown(heard.append))
    gathered = parts.gather(inputs, ["similarity", "chrf", "repeval", "overlap"])
    assert [stage.message for stage in heard] == ["repeval", "similarity", "chrf", "overlap"]
    assert [part.name for part in gathered.parts] == [*gathered.recipes] == ["similarity", "repeval", "overlap"]
    assert gathered.left_out == {"chrf": "no references"}
