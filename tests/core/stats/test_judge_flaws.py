"""Errors in parts of the items, and what scores share with a property beyond their labels: by hand and by loops."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata
from scipy.stats import t as student_t

from core.records import Measure
from core.stats import LabelledItems
from core.stats.judge_flaws import (
    LEAST_RELIABILITY,
    beyond_labels,
    error_contrasts,
    errors_and_expected,
    part_alignments,
    value_ranges,
)

MEASURE = Measure("spearman", "dataset")


def test_the_model_of_two_classes_is_the_tetrachoric_one():
    # cut at the middle, the chance that both lie on one side is 1/2 + asin(rho)/pi (Sheppard): 2/3 for rho = 1/2
    counts = np.array([[200, 100], [100, 200]])
    scores, labels = (np.repeat(side, counts.ravel()).astype(float) for side in ([0, 0, 1, 1], [0, 1, 0, 1]))
    errors = errors_and_expected(scores, labels)
    # the expected label at score 0 is 1/3, so the errors are 1/3 twice and 2/3 once: 4/9 on average
    assert errors[1] == pytest.approx(np.full(600, 4 / 9), abs=0.01)
    assert errors[0, :200] == pytest.approx(np.full(200, 1 / 3), abs=0.01)


def test_a_contrast_is_the_excess_of_a_part_minus_that_of_the_others():
    # by hand: 16 sources with 3 items each, errors of part 0 are 2 and 4 by turns, of the others 1; 0.5 is expected
    size = np.array([2.0, 1.0, 1.0] * 8 + [4.0, 1.0, 1.0] * 8)
    codes, sources = np.tile([0, 1, 2], 16), np.repeat(np.arange(16), 3)
    first, second, _ = error_contrasts(np.stack([size, np.full(48, 0.5)]), sources, codes)
    # mean 3 minus 1; sixteen values of 2 or 4, half each: s = sqrt(16/15), and the error of their mean is s / 4
    error = np.sqrt(16 / 15) / 4
    assert first == pytest.approx([2.0, error, 15, 2 * student_t.sf(2.0 / error, 15)])
    assert second[0] == pytest.approx(1.0 - 2.0)


@pytest.mark.parametrize("per_part", [2, 9])
def test_small_parts_have_no_test(per_part):
    labels = np.random.default_rng(4).normal(size=3 * per_part)
    errors = errors_and_expected(labels + 0.1, labels)
    assert errors is not None
    found = error_contrasts(errors, np.arange(labels.size), np.repeat(np.arange(3), per_part))
    assert np.isnan(found).all()


def test_a_constant_judge_and_no_parts_are_undefined_not_zero():
    labels = np.random.default_rng(5).normal(size=90)
    items = LabelledItems.from_arrays(labels)
    assert errors_and_expected(np.full(90, 3.0), labels) is None
    constant = part_alignments(np.full(90, 3.0), items, np.tile([0, 1, 2], 30), MEASURE)
    assert all(own.value is None and own.reason for own in constant)
    assert part_alignments(labels, items, np.full(90, -1), MEASURE) == ()
    assert error_contrasts(np.stack([labels, labels]), np.arange(90), np.full(90, -1)).shape == (0, 4)


def test_stretches_hold_equal_values_together_and_number_from_0():
    assert value_ranges(np.array([5.0, 1, 2, 3, 4, 6])).tolist() == [2, 0, 0, 1, 1, 2]
    assert value_ranges(np.array([1.0, 1, 1, 1, 2, np.nan])).tolist() == [0, 0, 0, 0, 1, -1]
    assert value_ranges(np.array([1.0, 2, 2, 2, 2])).tolist() == [0, 1, 1, 1, 1]
    assert set(value_ranges(np.full(4, 2.0)).tolist()) == {0}


# ── beyond the labels ────────────────────────────────────────────────────────────────────────────────────────

SOURCES = np.repeat(np.arange(30), 5)


def drawn(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, lengths, and the ratings of two raters."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=150)
    lengths = np.round(20 + 8 * quality + 10 * rng.normal(size=150))
    return quality + rng.normal(size=150), lengths, np.round(2 * (quality + rng.normal(size=(2, 150)))) / 2


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(rankdata(a), rankdata(b))[0, 1])


def test_two_raters_give_the_tetrad_in_expectation():
    scores, x, (first, second) = drawn()
    found = beyond_labels(scores, x, first + second, SOURCES, ratings=np.stack([first, second]))
    explained = (correlation(scores, first) * correlation(second, x)) + (
        correlation(scores, second) * correlation(first, x)
    )
    # which rater is in which half is drawn for each item: the same in expectation, near it over eight splits
    expected = explained / 2 / correlation(first, second)
    assert found.expected[0] == found.expected[1] == pytest.approx(expected, abs=0.05)
    assert found.judge == pytest.approx(correlation(scores, x))
    assert found.value == pytest.approx(found.judge - found.expected[0])


def test_one_label_gives_a_range_and_its_nearest_end():
    scores, x, ratings = drawn()
    labels = ratings.mean(axis=0)
    found = beyond_labels(scores + 2 * x, x, labels, SOURCES)
    jy, yx = correlation(scores + 2 * x, labels), correlation(labels, x)
    ends = jy * yx, jy * yx / max(jy**2, yx**2, LEAST_RELIABILITY)
    assert found.expected == pytest.approx(ends)
    assert found.value == pytest.approx(found.judge - ends[1])
    inside = beyond_labels(labels + 0.01 * scores, x, labels, SOURCES)
    assert (inside.value, inside.p) == (0.0, 1.0) or abs(inside.value) < 0.05


def test_the_error_is_that_of_leaving_out_each_source():
    scores, x, ratings = drawn(1)
    labels = ratings.mean(axis=0)
    found = beyond_labels(scores, x, labels, SOURCES)
    a, b = rankdata(scores), rankdata(x)
    left = np.array([np.corrcoef(a[k != SOURCES], b[k != SOURCES])[0, 1] for k in range(30)])
    error = np.sqrt(29 / 30 * ((left - left.mean()) ** 2).sum())
    assert found.judge_interval.high - found.judge == pytest.approx(2.045229642 * error)  # t(29) at .975


def test_constant_sides_few_sources_and_raters_who_do_not_agree():
    scores, x, ratings = drawn()
    labels, constant = ratings.mean(axis=0), np.full(150, 3.0)
    for sides in ((constant, x, labels), (scores, constant, labels), (scores, x, constant)):
        assert beyond_labels(*sides, SOURCES) is None
    few = beyond_labels(scores, x, labels, SOURCES % 7)
    assert few is not None and few.p is None and few.reason
    noise = np.random.default_rng(3).normal(size=(2, 150))
    apart = beyond_labels(scores, x, noise.mean(axis=0), SOURCES, ratings=np.stack([noise[0], -noise[0]]))
    assert apart is not None and np.isnan(apart.value) and "is too low" in apart.reason
