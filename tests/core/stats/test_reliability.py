"""Reliability of a single call by hand and by ANOVA, and the alignment of the mean of more of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f_oneway

from core.records import Measure
from core.stats import align
from core.stats.labels_needed import expected_alignment, single_call_reliability
from tests.core.stats.arrays import items

NAN = np.nan


def test_icc_by_hand():
    assert single_call_reliability([[1, 1], [2, 2], [5, 5]]) == pytest.approx(1.0)
    # items (1, 3), (5, 7): grand mean 4, item means 2 and 6; MSB = 2·(4 + 4) / 1 = 16, MSW = (1+1+1+1) / 2 = 2, k = 2
    assert single_call_reliability([[1, 3], [5, 7]]) == pytest.approx((16 - 2) / (16 + 2))


def test_icc_equals_the_one_of_the_f_ratio():
    # with k calls on every item, ICC(1) = (F − 1) / (F + k − 1)
    calls = np.random.default_rng(0).normal(size=(20, 1)) + np.random.default_rng(1).normal(size=(20, 4))
    f = f_oneway(*calls).statistic
    assert single_call_reliability(calls) == pytest.approx((f - 1) / (f + 3), abs=1e-12)


def test_unequal_numbers_of_calls():
    # items (1, 3), (5, 7, 6), and one with a single call that does not count.
    # N = 5, grand mean 22/5; SSB = 2·2.4² + 3·1.6² = 19.2 with 1 degree; SSW = 2 + 2 with 3; k0 = 5 − 13/5 = 2.4
    alpha = single_call_reliability([[1, 3, NAN], [5, 7, 6], [NAN, 9, NAN]])
    assert alpha == pytest.approx((19.2 - 4 / 3) / (19.2 + 1.4 * 4 / 3))


def test_spearman_and_brown():
    # 4 calls at .5 have the reliability 4·.5 / (1 + 3·.5) = .8: r grows by √(.8 / .5)
    values = expected_alignment(np.array([0.5, 0.5]), 1, np.array([0.5, 0.0]), [1, 4])
    assert values[0] == pytest.approx([0.5, 0.5 * np.sqrt(1.6)])
    assert np.isnan(values[1]).all(), "without reliability nothing can be predicted"


def test_the_formula_comes_true_on_average():
    """From 4 simulated calls an item to 20: 40 draws of 240 items."""
    errors = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        quality = rng.normal(0, 1, 240)
        calls = quality[:, None] + rng.normal(0, 1.6, (240, 20))
        labelled, measure = items(quality + rng.normal(0, 0.8, 240)), Measure("pearson", "dataset")
        few, whole = (align(some.mean(axis=1), labelled, measure).value for some in (calls[:, :4], calls))
        reliability = single_call_reliability(calls[:, :4])
        (expected,) = expected_alignment(np.array([few]), 4, np.array([reliability]), [4, 20])
        assert expected[0] == pytest.approx(few), "at the number that was measured it is what was measured"
        errors.append(expected[1] - whole)
    assert abs(float(np.mean(errors))) < 4 * float(np.std(errors)) / np.sqrt(40) + 0.003
