"""core.stats.on_scale against independent libraries and by hand: errors, steps, classes, and the map to the scale."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
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


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 20), st.just(2)), elements=st.floats(-100, 100)))
def test_swapping_flips_the_bias_and_bias_never_exceeds_mae(both):
    there, back = absolute_errors(both[:, 0], both[:, 1]), absolute_errors(both[:, 1], both[:, 0])
    assert (there.mae, there.bias) == pytest.approx((back.mae, -back.bias), abs=1e-9)
    assert abs(there.bias) <= there.mae + 1e-9


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
    ("scale", "words"), [(BINARY, "no distances to weigh"), (SLIDER, "has no steps"), (LIKERT, "fall on one step")]
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
        assert "all of one class" in agreement.reason
    else:
        assert agreement.kappa == pytest.approx(cohen_kappa_score(true, up), abs=1e-12)


def test_binary_agreement_undefined_says_why():
    silent = binary_agreement([0, 0, 0], [1, 0, 1])
    assert (silent.precision, silent.recall, silent.f1, silent.kappa) == (None, 0.0, 0.0, 0.0)
    assert silent.reason == "no score is positive"
    assert binary_agreement([1, 0, 1], [0, 0, 0]).reason == "no label is positive"
    empty = binary_agreement([NAN], [1])
    assert (empty.precision, empty.recall, empty.f1, empty.kappa, empty.n) == (None, None, None, None, 0)
    assert empty.as_json()["reason"] == "no item has both a score and a label"


# ── everything at once ───────────────────────────────────────────────────────────────────────────────────────


def test_all_that_can_be_said_of_one_judge():
    """Nine alignments, each the one asked for alone; errors and steps are those of the single functions."""
    rng = np.random.default_rng(3)
    labels = rng.integers(1, 6, size=60).astype(float)
    scores = np.clip(labels + rng.normal(size=60), 1, 5)
    scores[4] = NAN
    labelled = items(labels, np.repeat(np.arange(12), 5), np.tile(np.arange(5), 12))
    table = agreement_report(scores, labelled, scale=LIKERT, seed=5, resamples=60)
    assert {(alignment.statistic, alignment.level) for alignment in table.alignments} == {
        (s, v) for s in STATISTICS for v in LEVELS
    }
    for alignment in table.alignments:
        assert alignment == align(scores, labelled, Measure(alignment.statistic, alignment.level), resamples=60, seed=5)
    assert (table.errors, table.steps) == (absolute_errors(scores, labels), step_agreement(scores, labels, LIKERT))
    assert (table.binary, table.note) == (None, "")
    assert set(table.as_json()) == {"alignments", "errors", "steps", "binary", "note", "basis"}
    off = agreement_report(scores / 10, labelled, scale=LIKERT, seed=0, resamples=0)
    assert (off.errors, off.steps, off.binary) == (None, None, None)
    assert "scores go from 0.1 to 0.5, the scale is 1-5" in off.note
    flat = agreement_report(np.full(60, 3.0), labelled, scale=LIKERT, seed=0, resamples=10)
    assert all(
        alignment.value is None and alignment.interval is None and alignment.reason for alignment in flat.alignments
    )
    assert flat.steps.quadratic_kappa == pytest.approx(0.0)  # it agrees as by chance: that is a value


# ── the map ──────────────────────────────────────────────────────────────────────────────────────────────────


def drawn_in(height, scale=SCALE):
    """A fitted height after the ends of the scale were drawn in."""
    middle = (scale.low + scale.high) / 2
    return middle + (height - middle) * (1 - 2 * END_MARGIN)


def test_knots_by_hand():
    # Mean labels 1, 3, 2, 4 at scores 0, 1, 2, 4; score 1 twice as often (labels 3.5, 2.5).  3 above 2 violates:
    # pooled height (2·3 + 1·2)/3 = 8/3 at the centre (2·1 + 1·2)/3 = 4/3.  The others stand alone.
    fit = fit_isotonic([0, 1, 1, 2, 4] * 2, [1, 3.5, 2.5, 2, 4] * 2, SCALE)
    assert fit.map.x == pytest.approx((0.0, 4 / 3, 4.0))
    assert fit.map.y == pytest.approx([drawn_in(height) for height in (1, 8 / 3, 4)])
    assert (fit.n, fit.reason) == (10, "")
    # half way between the last two knots
    assert float(fit.map.apply(8 / 3)) == pytest.approx(drawn_in(10 / 3))


def test_heights_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=200).round(1)
    labels = np.clip(3 + scores + rng.normal(size=200), 1, 5)
    levels = IsotonicRegression().fit(scores, labels).predict(np.unique(scores))
    isotonic = fit_isotonic(scores, labels, SCALE).map
    np.testing.assert_allclose(isotonic.y, drawn_in(np.unique(levels.round(9))), atol=1e-8)


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


def test_the_map_makes_a_strict_judge_believable():
    rng = np.random.default_rng(3)
    truth = rng.uniform(1, 5, size=600)
    labels = np.clip(truth + rng.normal(scale=0.3, size=600), 1, 5)
    scores = 10 * (truth - 1) ** 2 + rng.normal(scale=2.0, size=600)  # another range, bent
    isotonic = fit_isotonic(scores[:300], labels[:300], SCALE).map
    # the labels themselves lie about .24 (= .3 · sqrt(2/π)) from the truth
    after = absolute_errors(isotonic.apply(scores[300:]), labels[300:])
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
    fit = fit_isotonic(scores, labels, SCALE)
    assert fit.map is None
    assert fit.reason.startswith(reason)
