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
    ModelSpec,
    RepEvalScorer,
    RepEvalSettings,
    ScorerWithModel,
    States,
    extract,
    run,
    scorer_of,
)
from core.repeval.projection import KernelCell, ScorerCell

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
        cell: Any = KernelCell(0, "-1", rng.normal(size=61), 0.1, 1e-3, -1.0, 0.2, rng.normal(size=(61, 384)))
    else:
        cell = ScorerCell(0, "-1", 0.3, 1.7, rng.normal(size=384))
    whole = cell.score(kinds[kind])
    assert len(np.unique(whole)) == 5
    assert np.array_equal(np.concatenate([cell.score(kinds[kind][a : a + 7]) for a in range(0, 1001, 7)]), whole)


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
