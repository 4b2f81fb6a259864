"""core.stats.isotonic: knots by hand and by scikit-learn, ranks unchanged, damaged files refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import JudgeError
from core.records import Scale
from core.stats import IsotonicMap, absolute_errors, average_ranks, fit_isotonic
from core.stats.isotonic import END_MARGIN

NAN = np.nan
SCALE = Scale(1.0, 5.0)


def drawn_in(height, scale=SCALE):
    """A fitted height after the ends of the scale were drawn in."""
    middle = (scale.low + scale.high) / 2
    return middle + (height - middle) * (1 - 2 * END_MARGIN)


def test_knots_by_hand():
    # Mean labels 1, 3, 2, 4 at scores 0, 1, 2, 4, where score 1 occurs twice (labels 3.5 and 2.5).  3 above 2 violates:
    # pooled height (2·3 + 1·2)/3 = 8/3 at the centre (2·1 + 1·2)/3 = 4/3.  The others stand alone.
    found = fit_isotonic([0, 1, 1, 2, 4], [1, 3.5, 2.5, 2, 4], SCALE, min_labels=5)
    assert found.map.x == pytest.approx((0.0, 4 / 3, 4.0))
    assert found.map.y == pytest.approx([drawn_in(height) for height in (1, 8 / 3, 4)])
    assert (found.n, found.reason) == (5, "")
    # half way between the last two knots
    assert float(found.map.apply(8 / 3)) == pytest.approx(drawn_in(10 / 3))


def test_heights_are_those_of_scikit_learn():
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng(1)
    scores = rng.normal(size=200).round(1)
    labels = np.clip(3 + scores + rng.normal(size=200), 1, 5)
    levels = IsotonicRegression().fit(scores, labels).predict(np.unique(scores))
    found = fit_isotonic(scores, labels, SCALE).map
    np.testing.assert_allclose(found.y, drawn_in(np.unique(levels.round(9))), atol=1e-8)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=300)
    labels = np.clip(np.rint(3 + 1.2 * scores + rng.normal(size=300)), 1, 5)
    return fit_isotonic(scores, labels, SCALE).map


@given(st.lists(st.floats(-50, 50).map(lambda value: round(value, 4)), min_size=2, max_size=30))
def test_ranks_are_unchanged_inside_and_outside_the_fitted_range(fitted, values):
    mapped = fitted.apply(values)
    np.testing.assert_array_equal(average_ranks(mapped), average_ranks(values))
    assert (mapped > 1.0).all()
    assert (mapped < 5.0).all()


def test_far_scores_approach_the_ends(fitted):
    low, high = fitted.apply([-1e9, 1e9])
    assert 1.0 <= low < 1.0 + 1e-6
    assert 5.0 - 1e-6 < high <= 5.0
    assert fitted.apply([-1.7e308, 1.7e308]).tolist() == [1.0, 5.0]


def test_missing_stays_missing_and_shapes_stay(fitted):
    mapped = fitted.apply([[0.0, NAN], [NAN, 1.0]])
    assert np.isnan(mapped).tolist() == [[False, True], [True, False]]


def test_the_map_makes_a_strict_judge_believable():
    rng = np.random.default_rng(3)
    truth = rng.uniform(1, 5, size=600)
    labels = np.clip(truth + rng.normal(scale=0.3, size=600), 1, 5)
    scores = 10 * (truth - 1) ** 2 + rng.normal(scale=2.0, size=600)  # another range, bent
    found = fit_isotonic(scores[:300], labels[:300], SCALE).map
    # the labels themselves lie about .24 (= .3 · sqrt(2/π)) from the truth
    after = absolute_errors(found.apply(scores[300:]), labels[300:])
    assert after.mae < 0.4
    assert abs(after.bias) < 0.06


@pytest.mark.parametrize(
    ("scores", "labels", "reason"),
    [
        ([1.0, 2.0, NAN] * 4, [1.0, NAN, 3.0] * 4, "4 items have score and label; a map needs 10"),
        ([], [], "0 items have score and label; a map needs 10"),
        ([2.0] * 12, [1.0, 2.0, 3.0] * 4, "all scores are equal"),
        ([1.0, 2.0, 3.0] * 4, [2.0] * 12, "all labels are equal"),
        ([1.0, 2.0, 3.0] * 4, [3.0, 2.0, 1.0] * 4, "scores run against the labels: no increasing map"),
        ([1.0, 2.0, 3.0] * 4, [0.0, 2.0, 3.0] * 4, "labels from 0 to 3 leave the scale 1-5"),
        # labels 1 and 2 occur equally often at score 1 and at score 2: both means are 1.5
        ([1.0, 2.0] * 6, [1.0, 1.0, 2.0, 2.0] * 3, "labels do not rise with the scores: no increasing map"),
    ],
)
def test_no_map_and_why(scores, labels, reason):
    found = fit_isotonic(scores, labels, SCALE)
    assert found.map is None
    assert found.reason.startswith(reason)


def test_a_judge_that_runs_against_the_labels_is_not_turned_round():
    scores = np.arange(20.0)
    labels = np.where(scores == 19.0, 5.0, 4.0 - scores / 10)  # falling but for the last
    found = fit_isotonic(scores, labels, SCALE)
    assert found.reason == "scores run against the labels; the map still increases"
    assert (np.diff(found.map.apply(scores)) > 0).all()


def test_json_round_trip(fitted):
    assert IsotonicMap.from_json(json.loads(json.dumps(fitted.as_json()))) == fitted


@pytest.mark.parametrize(
    "change",
    [
        {"x": [0.0]},
        {"x": [0.0, 0.0]},
        {"y": [4.0, 2.0]},
        {"y": [1.0, 2.0]},
        {"y": [2.0, "high"]},
        {"y": [2.0, float("nan")]},
        {"x": None},
        {"low": None},
        {"high": 3.0},
    ],
)
def test_a_damaged_map_is_refused(change):
    sound = {"x": [0.0, 1.0], "y": [2.0, 4.0], "low": 1.0, "high": 5.0}
    assert float(IsotonicMap.from_json(sound).apply(0.5)) == 3.0
    with pytest.raises(JudgeError, match="score map"):
        IsotonicMap.from_json(sound | change)
    with pytest.raises(JudgeError, match="'x'"):
        IsotonicMap.from_json({})
