"""Drafts: stratified exemplars, seeds, deduplication."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.calibration_records import CalibrationSettings
from core.calibration.proposals import draft_requests, stratified_sample
from core.stats import LabelledItems
from tests.core.calibration.planted import GOLDEN


@given(st.lists(st.integers(1, 5), min_size=1, max_size=60), st.integers(1, 20), st.integers(0, 99))
def test_sample_holds_distinct_items(labels: list[int], size: int, seed: int) -> None:
    picks = stratified_sample(np.array(labels, dtype=float), size, np.random.default_rng(seed))
    assert len(set(picks.tolist())) == len(picks) == min(size, len(labels))


def test_sample_covers_the_label_range() -> None:
    # 95 items labelled 5 and five labelled 1..4: with 20 strata of 5 items the lowest one holds all the rare
    # labels, so every sample has exactly one of them; drawing at random would miss them in 36 % of samples.
    labels = np.array([1.0, 2.0, 3.0, 4.0, 1.0] + [5.0] * 95)
    for seed in range(20):
        picks = stratified_sample(labels, 20, np.random.default_rng(seed))
        assert (labels[picks] < 5).sum() == 1


def test_requests_depend_on_the_seed_alone() -> None:
    items = LabelledItems.of(GOLDEN, "quality")
    once, again, other = (draft_requests(GOLDEN, items, CalibrationSettings(seed=seed)) for seed in (1, 1, 2))
    assert once == again
    assert once != other
