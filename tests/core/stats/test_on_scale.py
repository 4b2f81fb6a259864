"""core.stats.on_scale against independent libraries and by hand: errors, steps, classes, and the map to the scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from core.records import LEVELS, STATISTICS, Measure, Scale
from core.stats import (
    absolute_errors,
    agreement_report,
    align,
    average_ranks,
    fit_isotonic,
)
from core.stats.on_scale import END_MARGIN, binary_agreement, quadratic_kappa, step_agreement
from tests.core.stats.arrays import items

NAN = np.nan
SCALE, LIKERT, BINARY, SLIDER = Scale(1.0, 5.0), Scale(1, 5, 1.0), Scale(0, 1, 1.0), Scale(0, 100, None)
STEPS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=40)


def test_errors_by_hand():
    # gaps +1, -1, +3 on the three items that have both: mean size 5/3, mean 1
    errors = absolute_errors([2.0, 1.0, 5.0, NAN, 4.0], [1.0, 2.0, 2.0, 3.0, NAN])
    assert errors.mae == pytest.approx(5 / 3)
    assert errors.bias == pytest.approx(1.0)
    assert (errors.n, errors.n_unscored) == (3, 1)


# ── on the steps of the scale ────────────────────────────────────────────────────────────────────────────────


@given(STEPS)
def test_quadratic_kappa_equals_sklearn(steps):
    a, b = np.array(steps).T
    kappa = quadratic_kappa(a, b)
    if np.unique(steps).size == 1:
        assert kappa is None
    else:
        expected = cohen_kappa_score(a, b, labels=[1, 2, 3, 4, 5], weights="quadratic")
        assert kappa == pytest.approx(expected, abs=1e-12)
        assert quadratic_kappa(b, a) == pytest.approx(kappa, abs=1e-12)


def test_step_agreement_by_hand():
    # nearest steps: 1 | 3 (2.5 goes up) | 4 | 5 (6 is cut) | left out, beside labels 1 | 2 (1.67) | 2 | 5
    agreement = step_agreement([1.2, 2.5, 3.6, 6.0, NAN], [1.0, 5 / 3, 2.0, 5.0, 3.0], LIKERT)
    assert (agreement.exact, agreement.adjacent, agreement.n) == (0.5, 0.75, 4)
    assert agreement.quadratic_kappa == pytest.approx(quadratic_kappa([1, 3, 4, 5], [1, 2, 2, 5]))
    assert agreement.reason == ""


@pytest.mark.parametrize(
    ("scale", "words"), [(BINARY, "has only two steps"), (SLIDER, "has no steps"), (LIKERT, "have the same value")]
)
def test_quadratic_kappa_is_undefined_where_it_has_no_meaning(scale, words):
    agreement = step_agreement([1.0, 1.0], [1.0, 1.0], scale)
    assert agreement.quadratic_kappa is None
    assert words in agreement.reason
    assert agreement.as_json()["quadratic_kappa"] is None
    assert step_agreement([NAN], [1.0], scale).exact is None


# ── two classes ──────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_binary_agreement_equals_sklearn(both):
    up, true = np.array(both).T
    agreement = binary_agreement(up.astype(float), true.astype(float))
    rates = precision_recall_fscore_support(true, up, average="binary", zero_division=np.nan)
    for mine, theirs in zip((agreement.precision, agreement.recall, agreement.f1), rates[:3], strict=True):
        assert (np.nan if mine is None else mine) == pytest.approx(theirs, nan_ok=True)
    if np.unique(both).size == 1:
        assert agreement.kappa is None
        assert "in the same class" in agreement.reason
    else:
        assert agreement.kappa == pytest.approx(cohen_kappa_score(true, up), abs=1e-12)


# ── everything at once ───────────────────────────────────────────────────────────────────────────────────────


def test_all_that_can_be_said_of_one_judge():
    """Nine alignments, each the one asked for alone; errors and steps are those of the single functions."""
    rng = np.random.default_rng(3)
    labels = rng.integers(1, 6, size=60).astype(float)
    scores = np.clip(labels + rng.normal(size=60), 1, 5)
    scores[4] = NAN
    labelled = items(labels, np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12))
    table = agreement_report(scores, labelled, scale=LIKERT, seed=5)
    measures = [Measure(statistic, level) for level in LEVELS for statistic in STATISTICS]
    alone = [align(scores, labelled, measure, seed=5) for measure in measures]
    assert sorted(table.alignments, key=str) == sorted(alone, key=str)
    assert (table.errors, table.steps) == (absolute_errors(scores, labels), step_agreement(scores, labels, LIKERT))
    assert (table.binary, table.note) == (None, "")
    off = agreement_report(scores / 10, labelled, scale=LIKERT, seed=0)
    assert (off.errors, off.steps, off.binary) == (None, None, None)
    assert "the scores range from 0.1 to 0.5, but the scale is 1-5" in off.note


# ── the map ──────────────────────────────────────────────────────────────────────────────────────────────────


def drawn_in(height, scale=SCALE):
    """A fitted height after the ends of the scale were drawn in."""
    middle = (scale.low + scale.high) / 2
    return middle + (height - middle) * (1 - 2 * END_MARGIN)


def test_knots_by_hand():
    # Mean labels 1, 3, 2, 4 at scores 0, 1, 2, 4; score 1 twice as often (labels 3.5, 2.5).  3 above 2 violates:
    # pooled height (2·3 + 1·2)/3 = 8/3 at the centre (2·1 + 1·2)/3 = 4/3.  The others stand alone.
    score_map, reason = fit_isotonic([0, 1, 1, 2, 4] * 2, [1, 3.5, 2.5, 2, 4] * 2, SCALE)
    assert score_map.x == pytest.approx((0.0, 4 / 3, 4.0))
    assert score_map.y == pytest.approx([drawn_in(height) for height in (1, 8 / 3, 4)])
    assert reason == ""
    # half way between the last two knots
    assert float(score_map.apply(8 / 3)) == pytest.approx(drawn_in(10 / 3))


def test_heights_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=200).round(1)
    labels = np.clip(3 + scores + rng.normal(size=200), 1, 5)
    levels = IsotonicRegression().fit(scores, labels).predict(np.unique(scores))
    isotonic = fit_isotonic(scores, labels, SCALE)[0]
    np.testing.assert_allclose(isotonic.y, drawn_in(np.unique(levels.round(9))), atol=1e-8)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=300)
    labels = np.clip(np.rint(3 + 1.2 * scores + rng.normal(size=300)), 1, 5)
    return fit_isotonic(scores, labels, SCALE)[0]


@given(st.lists(st.floats(-50, 50).map(lambda value: round(value, 4)), min_size=2, max_size=30))
def test_ranks_are_unchanged_inside_and_outside_the_fitted_range(fitted, values):
    mapped = fitted.apply(values)
    np.testing.assert_array_equal(average_ranks(mapped), average_ranks(values))
    assert (mapped > 1.0).all()
    assert (mapped < 5.0).all()


@pytest.mark.parametrize(
    ("scores", "labels", "reason"),
    [
        ([1.0, 2.0, NAN] * 4, [1.0, NAN, 3.0] * 4, "4 items have both a score and a label; a map needs at least 10"),
        ([1.0, 2.0, 3.0] * 4, [2.0] * 12, "all labels are equal"),
        ([1.0, 2.0, 3.0] * 4, [3.0, 2.0, 1.0] * 4, "higher scores go with lower labels, so no increasing map"),
        ([1.0, 2.0, 3.0] * 4, [0.0, 2.0, 3.0] * 4, "the labels range from 0 to 3, outside the scale 1-5"),
        # labels 1 and 2 occur equally often at score 1 and at score 2: both means are 1.5
        ([1.0, 2.0] * 6, [1.0, 1.0, 2.0, 2.0] * 3, "the labels don't increase with the scores, so no increasing map"),
    ],
)
def test_no_map_and_why(scores, labels, reason):
    score_map, why = fit_isotonic(scores, labels, SCALE)
    assert score_map is None and why.startswith(reason)
