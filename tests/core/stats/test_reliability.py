"""core.stats.reliability: ICC(1) by hand and by ANOVA, and what averaging brings, in simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import f_oneway

from core.errors import UsageError
from core.stats import alignment_of_averages, averaged_reliability, single_call_reliability

NAN = np.nan


def test_icc_by_hand():
    # items (1, 3), (5, 7): grand mean 4, item means 2 and 6; MSB = 2·(4 + 4) / 1 = 16, MSW = (1+1+1+1) / 2 = 2, k = 2
    found = single_call_reliability([[1, 3], [5, 7]])
    assert found.value == pytest.approx((16 - 2) / (16 + 2))
    assert (found.n_items, found.n_calls) == (2, 4)


def test_icc_equals_the_one_of_the_f_ratio():
    # with k calls on every item, ICC(1) = (F − 1) / (F + k − 1)
    calls = np.random.default_rng(0).normal(size=(20, 1)) + np.random.default_rng(1).normal(size=(20, 4))
    f = f_oneway(*calls).statistic
    assert single_call_reliability(calls).value == pytest.approx((f - 1) / (f + 3), abs=1e-12)


def test_unequal_numbers_of_calls():
    # items (1, 3), (5, 7, 6), and one with a single call that does not count.
    # N = 5, grand mean 22/5; SSB = 2·2.4² + 3·1.6² = 19.2 with 1 degree; SSW = 2 + 2 with 3; k0 = 5 − 13/5 = 2.4
    found = single_call_reliability([[1, 3, NAN], [5, 7, 6], [NAN, 9, NAN]])
    assert found.value == pytest.approx((19.2 - 4 / 3) / (19.2 + 1.4 * 4 / 3))
    assert (found.n_items, found.n_calls) == (2, 5)


def test_calls_that_never_differ_within_items_are_wholly_reliable():
    assert single_call_reliability([[1, 1], [2, 2], [5, 5]]).value == pytest.approx(1.0)


def test_undefined_says_why():
    one = single_call_reliability([[1, 2], [3, NAN]])
    assert (one.value, one.n_items) == (None, 1)
    assert "fewer than 2 items" in one.reason
    assert "same score" in single_call_reliability([[2, 2], [2, 2]]).reason
    with pytest.raises(UsageError, match="infinity"):
        single_call_reliability([[1, np.inf], [1, 2]])


def test_averaged_reliability():
    # Spearman-Brown: 4 calls at .5 give 4·.5 / (1 + 3·.5) = .8; 1 call stays what it is
    assert averaged_reliability(0.5, [1, 4]) == pytest.approx([0.5, 0.8])
    for reliability, n, words in ((0.0, 1, "predicts nothing"), (1.1, 1, "predicts nothing"), (0.5, 0, "at least 1")):
        with pytest.raises(UsageError, match=words):
            averaged_reliability(reliability, n)


def test_the_prediction_comes_true():
    # score = item + call noise of variance 2 (reliability 1/3); label = item + noise of variance 1
    rng = np.random.default_rng(7)
    item = rng.normal(size=20_000)
    calls = item[:, None] + rng.normal(scale=np.sqrt(2), size=(20_000, 20))
    labels = item + rng.normal(size=20_000)
    reliability = single_call_reliability(calls[:2_000]).value  # a pilot
    measured = {n: np.corrcoef(calls[:, :n].mean(axis=1), labels)[0, 1] for n in (1, 5, 20)}
    assert reliability == pytest.approx(1 / 3, abs=0.03)
    predicted = alignment_of_averages(measured[20], 20, reliability, [1, 5, 20])
    assert predicted == pytest.approx(list(measured.values()), abs=0.02)
    assert predicted[2] == pytest.approx(measured[20])
