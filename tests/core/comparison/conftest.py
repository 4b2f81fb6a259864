"""Small golden sets and judges written in the test, so that every expected number can be followed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Rating, Scale

ASPECT = "coherence"


@pytest.fixture
def golden_of() -> Any:
    """A golden set from labels (None = unlabelled), `per_source` items a source, systems by place in the source."""

    def made(
        labels: Sequence[float | None],
        per_source: int = 1,
        scale: Scale = Scale(1, 5, 1.0),  # noqa: B008
        ratings: Sequence[Sequence[float]] = (),
        name: str = "small",
    ) -> GoldenSet:
        items = tuple(
            Item(f"i{k}", f"text {k}", f"doc{k // per_source}", f"sys{k % per_source}") for k in range(len(labels))
        )
        given = tuple(
            Rating(items[k].item_id, f"r{rater + 1}", ASPECT, value)
            for rater, row in enumerate(ratings)
            for k, value in enumerate(row)
        )
        return GoldenSet(name, "single", items, {ASPECT: AspectLabels(ASPECT, scale, tuple(labels))}, given)

    return made


@pytest.fixture
def judge_of() -> Any:
    """A judge from scores (None = unscored)."""

    def made(name: str, scores: Sequence[float | None], **more: Any) -> JudgeScores:
        values = np.array([np.nan if score is None else score for score in scores], dtype=np.float64)
        return JudgeScores(name, more.pop("kind", "imported"), ASPECT, values, **more)

    return made


@pytest.fixture
def noisy(golden_of: Any, judge_of: Any) -> Any:
    """30 sources of 4 items with labels 1 to 5, and judges that follow the labels with the noise asked for."""
    rng = np.random.default_rng(7)
    labels = rng.integers(1, 6, 120).astype(float)
    golden = golden_of(list(labels), per_source=4)

    def made(*noises: float) -> tuple[GoldenSet, list[JudgeScores]]:
        judges = [
            judge_of(f"noise {noise:g}", list(np.clip(labels + rng.normal(0, noise, 120), 1, 5))) for noise in noises
        ]
        return golden, judges

    return made
