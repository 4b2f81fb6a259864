"""A golden set whose labels are a noisy truth, and judges that see that truth through noise of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from core.records import AspectLabels, FloatArray, GoldenSet, Item, JudgeScores, Scale

SYSTEMS = 5
TRUTH: FloatArray = np.random.default_rng(1).normal(size=80 * SYSTEMS)


@pytest.fixture(scope="session")
def truth() -> FloatArray:
    """(400,) what the labels of `golden` are rounded from."""
    return TRUTH


@pytest.fixture(scope="session")
def golden() -> GoldenSet:
    """80 sources x 5 systems, labels 1 to 5 on "a" and the same on "b"."""
    items = tuple(Item(f"i{k}", "t", f"s{k // SYSTEMS}", f"m{k % SYSTEMS}") for k in range(TRUTH.size))
    labels = tuple(np.clip(np.round(3 + TRUTH), 1, 5).tolist())
    return GoldenSet("g", "single", items, {name: AspectLabels(name, Scale(1, 5, 1.0), labels) for name in "ab"})


@pytest.fixture(scope="session")
def judge() -> Callable[..., JudgeScores]:
    """`judge(name, noise, **changes)`: the truth with so much noise, which depends on the name alone."""

    def judged(name: str, noise: float = 1.0, **changes: object) -> JudgeScores:
        rng = np.random.default_rng(sum(map(ord, name)))
        scores = JudgeScores(name, "imported", "a", TRUTH + noise * rng.normal(size=TRUTH.size), calls_per_item=1.0)
        return replace(scores, **changes)  # type: ignore[arg-type]

    return judged
