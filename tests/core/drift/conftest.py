"""A judge file of a real calibration, and golden sets with labels as good or worse for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import core
from core.calibration.records import Calibration
from core.export import judge_yaml
from core.records import AspectLabels, GoldenSet

ROOT = Path(__file__).parents[3]
ASPECT = "relevance"


@pytest.fixture(scope="session")
def golden() -> GoldenSet:
    return core.load_golden(ROOT / "sample_data" / "summaries.jsonl")


@pytest.fixture(scope="session")
def calibration(golden: GoldenSet) -> Calibration:
    return core.calibrate(golden, ASPECT, preset="quick", rounds=0, resamples=400)


@pytest.fixture(scope="session")
def judge_file(calibration: Calibration, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("judge") / "judge.yaml"
    path.write_text(judge_yaml(calibration), encoding="utf-8")
    return path


Newer = Callable[..., GoldenSet]


@pytest.fixture(scope="session")
def newer(golden: GoldenSet) -> Newer:
    """`newer(noise)`: the same sources with other targets and labels; with `noise` 1 the labels mean nothing."""

    def make(noise: float, seed: int = 0) -> GoldenSet:
        rng = np.random.default_rng(seed)
        items = tuple(
            replace(item, item_id=f"new-{item.item_id}", target=f"{item.target} That was all.") for item in golden.items
        )
        labels = golden.labels(ASPECT)
        mixed = np.where(rng.random(labels.size) < noise, rng.permutation(labels), labels)
        aspect = AspectLabels(ASPECT, golden.aspects[ASPECT].scale, tuple(mixed.tolist()))
        return GoldenSet("newer", golden.kind, items, {ASPECT: aspect})

    return make
