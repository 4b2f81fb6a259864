"""A fitted RepEval score as a file's content: the same scores again, every damage refused before anything is loaded."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import JudgeError, ModelNotFoundError
from core.records import GoldenSet, Item
from core.repeval import (
    METHODS,
    Extraction,
    ModelSpec,
    RepEvalScorer,
    RepEvalSettings,
    ScorerWithModel,
    States,
    extract,
    run,
    scorer_of,
)
from core.repeval.portable import KernelCell, ScorerCell

QUICK = {"resamples": 0, "random_vectors": 0}


def again(scorer: RepEvalScorer) -> RepEvalScorer:
    """Through the text of a file and back."""
    return RepEvalScorer.from_json(json.loads(json.dumps(scorer.as_json(), allow_nan=False)))


def named(states: States) -> States:
    return replace(states, fingerprint="made", precision="float32")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("average", [None, 1])
def test_the_file_of_every_method_scores_as_the_run_did(
    golden: GoldenSet, states: States, method: Any, average: int | None
) -> None:
    states = named(states)
    result = run(golden, "quality", states, RepEvalSettings(method=method, average=average, **QUICK))  # type: ignore[arg-type]
    kept = again(scorer_of(golden, states, result))
    assert len(kept.cells) == len(result.members)
    test = list(result.parts.test)  # of those that ridge learnt from the run has scores by fits without them
    scores = kept.score(states.values, states.layers, states.token_names)
    np.testing.assert_allclose(scores[test], result.scores[test], atol=1e-5, rtol=0)


@pytest.mark.parametrize("kernel", [False, True])
def test_items_with_equal_states_score_alike_in_every_batch(kernel: bool) -> None:
    """A library's product parts them in the last digits by their place, and ranks would part, too."""
    rng = np.random.default_rng(0)
    kinds, kind = rng.normal(size=(5, 384)), rng.integers(5, size=1001)
    if kernel:
        cell: Any = KernelCell(0, "-1", rng.normal(size=(61, 384)), rng.normal(size=61), 0.1, 1e-3, -1.0, 0.2)
    else:
        cell = ScorerCell(0, "-1", rng.normal(size=384), 0.3, 1.7)
    whole = cell.score(kinds[kind])
    assert len(np.unique(whole)) == 5
    assert np.array_equal(np.concatenate([cell.score(kinds[kind][a : a + 7]) for a in range(0, 1001, 7)]), whole)


@pytest.mark.slow
@pytest.mark.parametrize("texts", ["prompt", "compared", "joined"])
def test_a_model_reads_the_items_again(golden: GoldenSet, model_folder: Callable[[str], Path], texts: Any) -> None:
    golden = replace(golden, items=tuple(replace(item, source="a source") for item in golden.items))
    read = extract(golden, ModelSpec(str(model_folder("encoder"))), Extraction(texts=texts))
    result = run(golden, "quality", read, RepEvalSettings(**QUICK))  # type: ignore[arg-type]
    reader = ScorerWithModel(again(scorer_of(golden, read, result)))
    seen: list[tuple[int, int]] = []
    verdicts = reader.score(golden.items, lambda done, asked: seen.append((done, asked)))
    test = list(result.parts.test)
    np.testing.assert_allclose(verdicts[test], result.scores[test], atol=1e-5, rtol=0)
    assert seen[-1] == (len(golden.items), len(golden.items))
    # In other batches a float32 sum can round to the neighbouring float16 state; scores have a deviation of about 1
    few = reader.score([golden.items[k] for k in test[:3]])
    np.testing.assert_allclose(few, result.scores[test[:3]], atol=2e-3, rtol=0)
    assert reader.score(()).shape == (0,)


@pytest.mark.slow
def test_another_model_than_the_one_fitted_on_is_refused(
    golden: GoldenSet, model_folder: Callable[[str], Path], tmp_path: Path
) -> None:
    read = extract(golden, ModelSpec(str(model_folder("encoder"))))
    kept = again(scorer_of(golden, read, run(golden, "quality", read, RepEvalSettings(**QUICK))))  # type: ignore[arg-type]
    other = ScorerWithModel(replace(kept, model=str(model_folder("decoder"))))
    with pytest.raises(JudgeError, match="has other weights, than the one"):
        other.score(golden.items[:1])
    with pytest.raises(ModelNotFoundError, match="no model folder"):
        ScorerWithModel(replace(kept, model=str(tmp_path / "gone"))).score(golden.items[:1])
    narrow = tuple(replace(cell, direction=cell.direction[:5]) for cell in kept.cells)
    with pytest.raises(JudgeError, match=r"5 dimensions, the states of .* have 32"):
        ScorerWithModel(replace(kept, cells=narrow)).score([Item("a", "text")])


# ── files from anybody ───────────────────────────────────────────────────────────────────────────────────────


def coded(*numbers: float) -> str:
    return base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()


def cell(**changes: Any) -> dict[str, Any]:
    return {"layer": 1, "token": "-1", "centre": 0.5, "spread": 2.0, "direction": coded(1.0, 2.0), **changes}


def kernel(**changes: Any) -> dict[str, Any]:
    return {
        "layer": 1,
        "token": "-1",
        "weights": [1.0, -1.0],
        "intercept": 0.5,
        "gamma": 1.0,
        "slope": -2.0,
        "offset": 0.0,
        "support": coded(0.0, 0.0, 1.0, 0.0),
        **changes,
    }


def body(**changes: Any) -> dict[str, Any]:
    return {
        "model": "minilm",
        "revision": "",
        "fingerprint": "abc",
        "precision": "float32",
        "texts": "prompt",
        "template": "{hypothesis}",
        "criterion": "",
        "max_tokens": 128,
        "dim": 2,
        "cells": [cell()],
    } | changes


def test_the_score_by_hand() -> None:
    kept = RepEvalScorer.from_json(body(cells=[cell(), cell(token="mean", centre=0.0, spread=1.0)]))
    # (layers, tokens, dim) of one item: at "-1" (3, 4) → (3 + 8 − 0.5) / 2 = 5.25; at "mean" (1, 0) → 1; mean 3.125
    states = np.array([[[[3.0, 4.0], [1.0, 0.0]]], [[[np.inf, 0.0], [1.0, 0.0]]]], dtype=np.float16)
    verdicts = kept.score(states, (1,), ("-1", "mean"))
    assert verdicts[0] == pytest.approx(3.125)
    assert np.isnan(verdicts[1])
    assert kept.as_json() == body(cells=[cell(), cell(token="mean", centre=0.0, spread=1.0)])


def test_the_svm_by_hand() -> None:
    """At (0, 0): f = e^0 − e^−1 + .5 = 1.132121; P(good) = 1 / (1 + e^(−2 · 1.132121)) = .905872."""
    kept = RepEvalScorer.from_json(body(cells=[kernel()]))
    states = np.array([[[[0.0, 0.0]]], [[[np.nan, 0.0]]]], dtype=np.float16)
    verdicts = kept.score(states, (1,), ("-1",))
    assert verdicts[0] == pytest.approx(0.905872, abs=1e-6)
    assert np.isnan(verdicts[1])
    assert kept.as_json() == body(cells=[kernel()])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        ("text", "must hold names and values, not a str"),
        (None, "not a NoneType"),
        (body(model=""), "model must be text"),
        (body(model=["a"] * 3), "model must be text"),
        (body(fingerprint=""), "fingerprint must be text"),
        (body(precision="int4"), "precision must be one of"),
        (body(texts="all"), "texts must be one of"),
        (body(template="{source}"), "must hold {hypothesis}"),
        (body(template="x" * 20_001), "template must be text of 0 to 20,000"),
        (body(max_tokens=0), "max_tokens must be a whole number"),
        (body(max_tokens=True), "max_tokens must be a whole number"),
        (body(dim=10**9), "dim must be a whole number from 1 to"),
        (body(dim=2.0), "dim must be a whole number"),
        (body(cells=[]), "a list of 1 to 64"),
        (body(cells=[cell()] * 65), "a list of 1 to 64"),
        (body(cells=[cell()] * 3, dim=1_000_000), "more than 8,388,608 bytes"),
        (body(cells=["x"]), "cell 1 must hold names"),
        (body(cells=[cell(direction=coded(1.0))]), "base64 of 2 float32 numbers"),
        (body(cells=[cell(direction=coded(1.0, float("nan")))]), "no finite number"),
        (body(cells=[cell(direction="!" * 12)]), "no base64"),
        (body(cells=[cell(direction=coded(1.0, 2.0)[:-4] + "AAAA")]), "9 bytes instead of 8"),
        (body(cells=[cell(direction=7)]), "must be base64"),
        (body(cells=[cell(spread=0)]), "a spread must be above 0"),
        (body(cells=[cell(spread=float("nan"))]), "spread must be a finite number"),
        (body(cells=[cell(centre="0")]), "centre must be a finite number"),
        (body(cells=[cell(layer=-1)]), "layer must be a whole number"),
        (body(cells=[kernel(weights=[])]), "weights must be a list of 1 to"),
        (body(cells=[kernel(weights=[1.0, "2"])]), "a weight must be a finite number"),
        (body(cells=[kernel(weights=[1.0])]), "a support must be base64 of 2 float32 numbers"),
        (body(cells=[kernel(weights=[1.0] * 10_000)], dim=1_000), "more than 8,388,608 bytes"),
        (body(cells=[kernel(gamma=0)]), "gamma must be above 0"),
        (body(cells=[kernel(slope=None)]), "slope must be a finite number"),
        (body(cells=[cell(token="last")]), "Unknown token 'last'"),
        (body(cells=[cell(), cell(centre=1.0)]), "two cells are of the same layer and token"),
        (body(code="import os"), "it may hold cells, .*, not 'code'"),
        (body(cells=[cell(code="import os")]), "a cell may hold centre, .*, not 'code'"),
        (body(cells=[kernel(direction="AAAA")]), "a cell may hold gamma, .*, not 'direction'"),
    ],
)
def test_what_is_damaged_is_refused_in_words(damage: Any, words: str) -> None:
    with pytest.raises(JudgeError, match=words):
        RepEvalScorer.from_json(damage)
