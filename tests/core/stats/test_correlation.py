"""core.stats.correlation against scipy, and the properties every coefficient keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.stats import correlate, kendall, pearson, spearman
from core.stats.correlation import PAIRWISE_LIMIT
from tests.core.stats.arrays import ORACLES, coefficient

every_statistic = pytest.mark.parametrize("statistic", list(ORACLES))

# small whole numbers tie often; wide floats hardly ever
tied = st.integers(-4, 4).map(float)
wide = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))
sides = st.integers(2, 12).flatmap(
    lambda n: st.tuples(*[hnp.arrays(np.float64, n, elements=element) for element in (st.one_of(tied, wide), tied)])
)


@every_statistic
@pytest.mark.parametrize("n", [2, 3, 7, 16, PAIRWISE_LIMIT, PAIRWISE_LIMIT + 1, 500])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rows_equal_scipy(statistic, n, missing):
    rng = np.random.default_rng(n)
    scores = rng.normal(size=(9, n))
    scores[3:6] = rng.integers(0, 4, size=(3, n))  # ties
    scores[6] = 2.0  # constant
    scores[rng.random(scores.shape) < missing] = np.nan
    labels = rng.integers(1, 6, size=n).astype(float)
    expected = [coefficient(row, labels, statistic) for row in scores]
    np.testing.assert_allclose(correlate(scores, labels, statistic), expected, rtol=0, atol=1e-12)


@every_statistic
@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0]),
        ([0.1, 0.1, np.nan], [1.0, 2.0, 3.0]),
        ([1.0, np.nan, np.nan], [1.0, 2.0, 3.0]),
        ([], []),
    ],
)
def test_undefined_is_nan_and_silent(statistic, x, y):
    assert np.isnan(correlate(np.array(x), np.array(y), statistic))
    assert np.isnan(correlate(np.array([x, x]), np.array(y), statistic)).all()


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_pearson_neither_overflows_nor_vanishes(factor):
    x, y = np.array([1.0, 4.0, 2.0, 8.0]), np.array([1.0, 2.0, 3.0, 4.0])
    assert float(pearson(x * factor, y)) == pytest.approx(float(pearson(x, y)), abs=1e-14)


def test_near_ties_are_not_merged():
    x = np.array([1.0, 1.0 + 2**-52, 2.0])
    assert float(spearman(x, [1.0, 2.0, 3.0])) == pytest.approx(1.0, abs=1e-15)
    assert float(kendall(x, [2.0, 1.0, 3.0])) == pytest.approx(1 / 3, abs=1e-15)


@every_statistic
@given(sides, st.sampled_from([0.25, 2.0, 1024.0]), st.integers(-100, 100), st.randoms(use_true_random=False))
def test_symmetries(statistic, pair, scale, shift, random):
    """Swapped sides, items in another order, and scores shifted and scaled change nothing; reversal flips the sign."""
    x, y = pair
    value = float(correlate(x, y, statistic))
    assert np.isnan(value) == (np.unique(x).size == 1 or np.unique(y).size == 1)
    assert np.isnan(value) or -1.0 <= value <= 1.0
    order = random.sample(range(x.size), x.size)
    np.testing.assert_allclose(correlate(y, x, statistic), value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(correlate(-x, y, statistic), -value, rtol=0, atol=1e-12)
    np.testing.assert_allclose(correlate(x[order], y[order], statistic), value, rtol=0, atol=1e-9)
    moved = x * scale + shift
    if np.unique(moved).size == np.unique(x).size:  # a shift may merge near-ties by rounding
        np.testing.assert_allclose(correlate(moved, y, statistic), value, rtol=0, atol=1e-6)


@every_statistic
@given(sides, st.data())
def test_a_missing_score_is_as_if_the_item_were_absent(statistic, pair, data):
    x, y = pair
    gone = data.draw(hnp.arrays(np.bool_, x.size))
    with_gaps = np.where(gone, np.nan, x)
    expected = correlate(x[~gone], y[~gone], statistic)
    np.testing.assert_allclose(correlate(with_gaps, y, statistic), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(correlate(np.stack([x, with_gaps]), y, statistic)[1], expected, rtol=0, atol=1e-12)
