"""core.stats.agreement: alpha and kappa against independent libraries and hand-worked tables."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from nltk.metrics.agreement import AnnotationTask
from nltk.metrics.distance import binary_distance, interval_distance
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

from core.errors import UsageError
from core.records import Scale
from core.stats import alpha_metric, krippendorff_alpha, pairwise_spearman
from core.stats.on_scale import binary_agreement, quadratic_kappa, step_agreement

NAN = np.nan
LIKERT, BINARY, SLIDER = Scale(1, 5, 1.0), Scale(0, 1, 1.0), Scale(0, 100, None)
RATINGS = arrays(
    float, st.tuples(st.integers(2, 5), st.integers(2, 12)), elements=st.sampled_from([1, 2, 3, 4, 5, NAN])
)
STEPS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=40)

# Krippendorff (2011, "Computing Krippendorff's alpha-reliability"), example C: 4 observers, 12 units, values missing
EXAMPLE = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
    [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
]


@pytest.mark.parametrize(("metric", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_alpha_published_example(metric, printed):
    found = krippendorff_alpha(EXAMPLE, metric)
    assert found.value == pytest.approx(printed, abs=0.0005)
    assert (found.n_items, found.n_ratings) == (11, 40)  # unit 12 was rated once


def test_alpha_by_hand():
    # Items (1, 1), (1, 2), (3, 3).  Pairs within: distances 0, 1, 0, each twice; D_o = 2·1 / 6 = 1/3.
    # Values 1 1 1 2 3 3: of the 30 ordered pairs, nominal 30 − 3·2 − 2·1 = 22 differ: D_e = 22/30.
    ratings = [[1, 1, 3], [1, 2, 3]]
    assert krippendorff_alpha(ratings, "nominal").value == pytest.approx(1 - (1 / 3) / (22 / 30))
    # interval: Σ of squared differences 2·(3·1 + 6·4 + 2·1) = 58 over 30
    assert krippendorff_alpha(ratings, "interval").value == pytest.approx(1 - (1 / 3) / (58 / 30))
    # ordinal, ranks 2 2 2 4 5.5 5.5: D_o = 2·4/6; Σ = 2·(3·4 + 6·12.25 + 2·2.25) = 180 over 30
    assert krippendorff_alpha(ratings, "ordinal").value == pytest.approx(1 - (8 / 6) / (180 / 30))


@given(RATINGS)
@pytest.mark.parametrize(("metric", "distance"), [("nominal", binary_distance), ("interval", interval_distance)])
def test_alpha_equals_nltk(metric, distance, ratings):
    present = ~np.isnan(ratings)
    pairable = present & (present.sum(axis=0) >= 2)
    assume(pairable.any() and np.unique(ratings[pairable]).size > 1)
    triples = [(str(r), str(i), int(ratings[r, i])) for r, i in np.argwhere(pairable)]
    expected = AnnotationTask(data=triples, distance=distance).alpha()
    assert krippendorff_alpha(ratings, metric).value == pytest.approx(expected, abs=1e-12)


@given(RATINGS)
def test_ordinal_alpha_equals_the_sum_over_ranks_between(ratings):
    present = ~np.isnan(ratings)
    pairable = present & (present.sum(axis=0) >= 2)
    assume(pairable.any() and np.unique(ratings[pairable]).size > 1)
    frequency = {value: int((ratings[pairable] == value).sum()) for value in np.unique(ratings[pairable])}

    def distance(a, b):
        low, high = sorted((a, b))
        between = sum(count for value, count in frequency.items() if low <= value <= high)
        return (between - (frequency[a] + frequency[b]) / 2) ** 2

    triples = [(str(r), str(i), float(ratings[r, i])) for r, i in np.argwhere(pairable)]
    expected = AnnotationTask(data=triples, distance=distance).alpha()
    assert krippendorff_alpha(ratings, "ordinal").value == pytest.approx(expected, abs=1e-10)


@given(RATINGS, st.randoms(use_true_random=False))
def test_who_rated_does_not_matter(ratings, random):
    shuffled = ratings.copy()
    for column in range(ratings.shape[1]):
        order = list(range(ratings.shape[0]))
        random.shuffle(order)
        shuffled[:, column] = ratings[order, column]
    one, other = krippendorff_alpha(ratings, "ordinal"), krippendorff_alpha(shuffled, "ordinal")
    assert (one.value is None) == (other.value is None)
    if one.value is not None:
        assert other.value == pytest.approx(one.value, abs=1e-12)


def test_alpha_undefined_says_why():
    alone = krippendorff_alpha([[1, NAN, 3], [NAN, 2, NAN]], "nominal")
    assert (alone.value, alone.n_items, alone.reason) == (None, 0, "no item has ratings by two raters")
    equal = krippendorff_alpha([[2, 2], [2, 2]], "interval")
    assert (equal.value, equal.reason) == (None, "all ratings are equal")
    assert krippendorff_alpha([[1, 2], [1, 2]], "ordinal").value == 1.0


def test_alpha_refuses():
    with pytest.raises(UsageError, match="infinity"):
        krippendorff_alpha([[1, np.inf], [1, 2]], "interval")
    with pytest.raises(UsageError, match="nominal, ordinal or interval"):
        krippendorff_alpha([[1, 2], [1, 2]], "ratio")


def test_metric_follows_the_scale():
    scales = (BINARY, LIKERT, Scale(1, 6, 0.5), SLIDER, Scale(0, 1, None), Scale(1, 2, 1.0))
    assert [alpha_metric(scale) for scale in scales] == "nominal ordinal ordinal interval interval nominal".split()


def test_pairwise_spearman_against_scipy():
    rng = np.random.default_rng(1)
    ratings = rng.integers(1, 6, size=(4, 60)).astype(float)
    ratings[0, 30:], ratings[1, :25], ratings[3] = NAN, NAN, 2.0  # raters 1 and 2 share 5 items; rater 4 is constant
    expected = [spearmanr(ratings[0, :30], ratings[2, :30])[0], spearmanr(ratings[1, 25:], ratings[2, 25:])[0]]
    found = pairwise_spearman(ratings)
    assert found.value == pytest.approx(np.mean(expected))
    assert (found.n_pairs, found.n_left_out) == (2, 4)
    none = pairwise_spearman(ratings[:2])
    assert (none.value, none.n_pairs, none.n_left_out) == (None, 0, 1)
    assert "20 common items" in none.reason
    assert pairwise_spearman(ratings[:1]).value is None


# ── on the steps of the scale ────────────────────────────────────────────────────────────────────────────────


@given(STEPS)
def test_quadratic_kappa_equals_sklearn(steps):
    a, b = np.array(steps).T
    found = quadratic_kappa(a, b)
    if np.unique(steps).size == 1:
        assert found is None
    else:
        expected = cohen_kappa_score(a, b, labels=[1, 2, 3, 4, 5], weights="quadratic")
        assert found == pytest.approx(expected, abs=1e-12)
        assert quadratic_kappa(b, a) == pytest.approx(found, abs=1e-12)


def test_quadratic_kappa_on_the_items_that_have_both():
    assert quadratic_kappa([1, 2, NAN, 5], [1, 3, 4, NAN]) == quadratic_kappa([1, 2], [1, 3])
    # by hand: Σ(a−b)² = 1, mean .5; all pairs 1−1, 1−3, 2−1, 2−3: (0 + 4 + 1 + 1) / 4 = 1.5
    assert quadratic_kappa([1, 2], [1, 3]) == pytest.approx(1 - 0.5 / 1.5)
    assert quadratic_kappa([NAN], [1]) is None


def test_step_agreement_by_hand():
    # nearest steps: 1 | 3 (2.5 goes up) | 4 | 5 (6 is cut) | left out, beside labels 1 | 2 (1.67) | 2 | 5
    found = step_agreement([1.2, 2.5, 3.6, 6.0, NAN], [1.0, 5 / 3, 2.0, 5.0, 3.0], LIKERT)
    assert (found.exact, found.adjacent, found.n) == (0.5, 0.75, 4)
    assert found.quadratic_kappa == pytest.approx(quadratic_kappa([1, 3, 4, 5], [1, 2, 2, 5]))
    assert found.reason == ""


def test_halves_of_a_scale_in_half_steps():
    found = step_agreement([1.0, 1.5, 2.2], [1.0, 2.0, 2.0], Scale(1, 6, 0.5))
    assert (found.exact, found.adjacent) == (pytest.approx(2 / 3), 1.0)


@pytest.mark.parametrize(
    ("scale", "words"), [(BINARY, "no distances to weigh"), (SLIDER, "has no steps"), (LIKERT, "fall on one step")]
)
def test_quadratic_kappa_is_undefined_where_it_has_no_meaning(scale, words):
    found = step_agreement([1.0, 1.0], [1.0, 1.0], scale)
    assert found.quadratic_kappa is None
    assert words in found.reason
    assert found.as_json()["quadratic_kappa"] is None
    assert step_agreement([NAN], [1.0], scale).exact is None


# ── two classes ──────────────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_binary_agreement_equals_sklearn(both):
    up, true = np.array(both).T
    found = binary_agreement(up.astype(float), true.astype(float))
    rates = precision_recall_fscore_support(true, up, average="binary", zero_division=np.nan)
    for mine, theirs in zip((found.precision, found.recall, found.f1), rates[:3], strict=True):
        assert (np.nan if mine is None else mine) == pytest.approx(theirs, nan_ok=True)
    if np.unique(both).size == 1:
        assert found.kappa is None
        assert "all of one class" in found.reason
    else:
        assert found.kappa == pytest.approx(cohen_kappa_score(true, up), abs=1e-12)


def test_binary_agreement_by_hand():
    # positive from .5: judge 1 1 0 0, people 1 0 0 1: one hit of two on either side, two of four alike as by chance
    found = binary_agreement([0.5, 0.9, 0.1, 0.49, NAN], [1, 0, 0, 1, 1])
    assert (found.precision, found.recall, found.f1, found.kappa) == (0.5, 0.5, 0.5, 0.0)
    assert (found.n, found.n_positive_labels, found.n_positive_scores, found.reason) == (4, 2, 2, "")


def test_binary_agreement_undefined_says_why():
    silent = binary_agreement([0, 0, 0], [1, 0, 1])
    assert (silent.precision, silent.recall, silent.f1, silent.kappa) == (None, 0.0, 0.0, 0.0)
    assert silent.reason == "no score is positive"
    empty = binary_agreement([NAN], [1])
    assert (empty.precision, empty.recall, empty.f1, empty.kappa, empty.n) == (None, None, None, None, 0)
    assert empty.as_json()["reason"] == "no item has both a score and a label"
