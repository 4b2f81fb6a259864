"""Golden sets with labels that are as good for a judge as its own, or worse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import core
from core.records import AspectLabels, GoldenSet

ASPECT = "relevance"
Newer = Callable[..., GoldenSet]


@pytest.fixture(scope="session")
def golden(repository: Path) -> GoldenSet:
    return core.load_golden(repository / "sample_data" / "summaries.jsonl")


@pytest.fixture(scope="session")
def newer(golden: GoldenSet) -> Newer:
    """`newer(noise)`: the same sources with other targets and labels; with `noise` 1 the labels mean nothing."""

    def make(noise: float = 0.0) -> GoldenSet:
        rng = np.random.default_rng(0)
        items = tuple(
            replace(item, item_id=f"new-{item.item_id}", target=f"{item.target} That was all.") for item in golden.items
        )
        labels = golden.labels(ASPECT)
        mixed = np.where(rng.random(labels.size) < noise, rng.permutation(labels), labels)
        aspect = AspectLabels(ASPECT, golden.aspects[ASPECT].scale, tuple(mixed.tolist()))
        return GoldenSet("newer", golden.kind, items, {ASPECT: aspect})

    return make
