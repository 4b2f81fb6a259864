"""Parts of the items: their alignments, and the errors in each compared with those in the others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from scipy.stats import t as student_t

from core.records import Measure
from core.stats import LabelledItems, align
from core.stats.slices import Errors, error_contrasts, even_errors, part_alignments, stretches

MEASURE = Measure("spearman", "dataset")


def test_alignments_are_those_of_the_items_alone():
    rng = np.random.default_rng(1)
    labels, codes = rng.normal(size=240), np.tile([0, 1, 2], 80)
    scores = labels + rng.normal(0, 1, 240)
    items = LabelledItems.from_arrays(labels, np.repeat(np.arange(40), 6))
    for k, alignment in enumerate(part_alignments(scores, items, codes, MEASURE)):
        alone = align(scores[codes == k], items.take(codes == k), MEASURE)
        assert (
            alignment.value
            == pytest.approx(alone.value)
            == pytest.approx(spearmanr(scores[codes == k], labels[codes == k])[0])
        )
        assert alignment.interval.low == pytest.approx(alone.interval.low, abs=0.01)


def test_the_model_of_two_classes_is_the_tetrachoric_one():
    # cut at the middle, the chance that both lie on one side is 1/2 + asin(rho)/pi (Sheppard): 2/3 for rho = 1/2
    counts = np.array([[200, 100], [100, 200]])
    scores, labels = (np.repeat(side, counts.ravel()).astype(float) for side in ([0, 0, 1, 1], [0, 1, 0, 1]))
    errors = even_errors(scores, labels)
    # the expected label at score 0 is 1/3, so the errors are 1/3 twice and 2/3 once: 4/9 on average
    assert errors.expected == pytest.approx(np.full(600, 4 / 9), abs=0.01)
    assert errors.size[:200] == pytest.approx(np.full(200, 1 / 3), abs=0.01)


def test_a_contrast_is_the_excess_of_a_part_minus_that_of_the_others():
    # by hand: 16 sources with 3 items each, errors of part 0 are 2 and 4 by turns, of the others 1; 0.5 is expected
    size = np.array([2.0, 1.0, 1.0] * 8 + [4.0, 1.0, 1.0] * 8)
    codes, sources = np.tile([0, 1, 2], 16), np.repeat(np.arange(16), 3)
    first, second, _ = error_contrasts(Errors(size, np.full(48, 0.5)), sources, codes)
    assert first.value == pytest.approx(2.0)  # mean 3 minus 1
    # sixteen values of 2 or 4, half each: s = sqrt(16/15), and the standard error of their mean is s / 4
    assert first.error == pytest.approx(np.sqrt(16 / 15) / 4)
    assert (first.freedom, first.p) == (15, pytest.approx(2 * student_t.sf(2.0 / first.error, 15)))
    assert second.value == pytest.approx(1.0 - 2.0)


@pytest.mark.parametrize("per_part", [2, 9])
def test_small_parts_have_no_test(per_part):
    labels = np.random.default_rng(4).normal(size=3 * per_part)
    errors = even_errors(labels + 0.1, labels)
    assert errors is not None
    found = error_contrasts(errors, np.arange(labels.size), np.repeat(np.arange(3), per_part))
    assert all(np.isnan(own.p) for own in found)


def test_a_constant_judge_and_no_parts_are_undefined_not_zero():
    labels = np.random.default_rng(5).normal(size=90)
    items = LabelledItems.from_arrays(labels)
    assert even_errors(np.full(90, 3.0), labels) is None
    constant = part_alignments(np.full(90, 3.0), items, np.tile([0, 1, 2], 30), MEASURE)
    assert all(own.value is None and own.reason for own in constant)
    assert part_alignments(labels, items, np.full(90, -1), MEASURE) == ()
    assert error_contrasts(Errors(labels, labels), np.arange(90), np.full(90, -1)) == ()


def test_stretches_hold_equal_values_together_and_number_from_0():
    assert stretches(np.array([5.0, 1, 2, 3, 4, 6])).tolist() == [2, 0, 0, 1, 1, 2]
    assert stretches(np.array([1.0, 1, 1, 1, 2, np.nan])).tolist() == [0, 0, 0, 0, 1, -1]
    assert stretches(np.array([1.0, 2, 2, 2, 2])).tolist() == [0, 1, 1, 1, 1]
    assert set(stretches(np.full(4, 2.0)).tolist()) == {0}
