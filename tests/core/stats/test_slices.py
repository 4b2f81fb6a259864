"""Parts of the items: their alignments, and each part beside the others of its division."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from core.records import Measure
from core.stats import LabelledItems, align
from core.stats.slices import measure_parts, stretches

MEASURE = Measure("spearman", "dataset")


def test_alignments_are_those_of_the_items_alone():
    rng = np.random.default_rng(1)
    labels, codes = rng.normal(size=240), np.tile([0, 1, 2], 80)
    scores = labels + rng.normal(0, 1, 240)
    items = LabelledItems.from_arrays(labels, np.repeat(np.arange(40), 6))
    parts = measure_parts(scores, items, codes, MEASURE)
    for k, alignment in enumerate(parts.alignments):
        alone = align(scores[codes == k], items.take(codes == k), MEASURE)
        assert (
            alignment.value
            == pytest.approx(alone.value)
            == pytest.approx(spearmanr(scores[codes == k], labels[codes == k])[0])
        )
        assert alignment.interval is not None and alone.interval is not None
        assert alignment.interval.low == pytest.approx(alone.interval.low, abs=0.01)


def test_a_contrast_is_the_part_minus_the_others_weighted_by_their_items():
    rng = np.random.default_rng(2)
    labels = rng.normal(size=300)
    codes = np.repeat(np.arange(3), [60, 90, 150])[rng.permutation(300)]
    scores = labels + rng.normal(0, 1, 300)
    parts = measure_parts(scores, LabelledItems.from_arrays(labels, np.arange(300) // 5), codes, MEASURE)
    values = [own.value or 0.0 for own in parts.alignments]
    assert parts.contrasts[0].value == pytest.approx(values[0] - (90 * values[1] + 150 * values[2]) / 240)
    assert all(0 <= own.p <= 1 and own.error > 0 for own in parts.contrasts)


def test_a_part_without_agreement_stands_out_and_two_parts_mirror_each_other():
    rng = np.random.default_rng(3)
    labels, codes = rng.normal(size=400), np.tile([0, 1], 200)
    scores = np.where(codes == 0, rng.normal(size=400), labels + rng.normal(0, 0.5, 400))
    worse, better = measure_parts(
        scores, LabelledItems.from_arrays(labels, np.arange(400) // 4), codes, MEASURE
    ).contrasts
    assert worse.value == pytest.approx(-better.value) and worse.p == pytest.approx(better.p)
    assert worse.value < -0.5 and worse.p < 1e-6


@pytest.mark.parametrize("per_part", [2, 9])
def test_small_parts_have_no_test(per_part):
    labels = np.random.default_rng(4).normal(size=3 * per_part)
    codes = np.repeat(np.arange(3), per_part)
    parts = measure_parts(labels + 0.1, LabelledItems.from_arrays(labels), codes, MEASURE)
    assert all(np.isnan(own.p) for own in parts.contrasts)


def test_a_constant_judge_and_no_parts_are_undefined_not_zero():
    labels = np.random.default_rng(5).normal(size=90)
    items = LabelledItems.from_arrays(labels)
    constant = measure_parts(np.full(90, 3.0), items, np.tile([0, 1, 2], 30), MEASURE)
    assert all(own.value is None and own.reason for own in constant.alignments)
    assert all(np.isnan(own.value) for own in constant.contrasts)
    assert measure_parts(labels, items, np.full(90, -1), MEASURE).alignments == ()


def test_stretches_hold_equal_values_together_and_number_from_0():
    assert stretches(np.array([5.0, 1, 2, 3, 4, 6])).tolist() == [2, 0, 0, 1, 1, 2]
    assert stretches(np.array([1.0, 1, 1, 1, 2, np.nan])).tolist() == [0, 0, 0, 0, 1, -1]
    assert stretches(np.array([1.0, 2, 2, 2, 2])).tolist() == [0, 1, 1, 1, 1]
    assert set(stretches(np.full(4, 2.0)).tolist()) == {0}
