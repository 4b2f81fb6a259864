"""The bar beside judges: who clears it, who does not, and what is not claimed."""

from __future__ import annotations

import numpy as np
import pytest

from core.records import Measure, canonical_json
from core.stats import LabelledItems, holm, paired_difference
from core.stats.alignment import bar_beside

MEASURE = Measure("spearman", "dataset")


def drawn(seed: int, *noises: float) -> tuple[LabelledItems, list[np.ndarray]]:
    """60 sources of 5 items, and what follows their labels with these noises; infinity: nothing of them."""
    rng = np.random.default_rng(seed)
    labels = rng.normal(size=300)
    sides = [rng.normal(size=300) if np.isinf(noise) else labels + rng.normal(0, noise, 300) for noise in noises]
    return LabelledItems.from_arrays(labels, np.repeat(np.arange(60), 5)), sides


def test_differences_are_those_of_the_paired_test_corrected_over_the_judges():
    items, (bar, *judges) = drawn(1, 1.0, 0.3, 1.2, 0.9)
    beside = bar_beside(bar, 240, np.stack(judges), items, MEASURE)
    by_hand = [paired_difference(judge, bar, items, MEASURE) for judge in judges]
    assert [gap.value for gap in beside.minus] == pytest.approx([gap.value for gap in by_hand])
    assert [gap.p for gap in beside.minus] == pytest.approx(holm([gap.p for gap in by_hand]).tolist())
    canonical_json(beside.as_json())


def test_each_claim_is_made_where_it_is_shown_and_only_there():
    items, (bar, better, worse, alike, nothing) = drawn(2, 0.8, 0.2, 3.0, 0.8, np.inf)
    beside = bar_beside(bar, 240, np.stack([better, worse, alike]), items, MEASURE)
    assert [beside.standing(0), beside.standing(1)] == ["better", "worse"]
    assert beside.standing(2) in ("open", "as well")
    weak = bar_beside(nothing, 240, np.stack([worse]), items, MEASURE)
    assert weak.standing(0) != "as well"  # a bar by chance is no bar


def test_without_a_test_nothing_is_claimed():
    items, (bar, judge) = drawn(3, 2.0, 0.2)
    few = items.take(np.arange(300) < 30)  # 6 sources
    assert bar_beside(bar[:30], 24, judge[None, :30], few, MEASURE).standing(0) == "untested"
    looked = bar_beside(bar, 240, judge[None], items, MEASURE).without_p(0, "held-out was seen before")
    assert looked.standing(0) == "untested"


def test_constant_and_missing_predictions_are_undefined():
    items, (judge,) = drawn(4, 1.0)
    for predicted in (np.full(300, 3.0), np.full(300, np.nan)):
        beside = bar_beside(predicted, 240, judge[None], items, MEASURE)
        assert beside.alignment.value is None and beside.standing(0) == "undefined"
        canonical_json(beside.as_json())
