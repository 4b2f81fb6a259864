"""core.stats.compare: Williams' test by another route, Holm by hand, all pairs against one pair at a time."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import UsageError
from core.records import Measure
from core.stats import (
    Comparison,
    compare_judges,
    holm,
    paired_difference,
    williams_test,
)
from core.stats.compare import williams_t
from tests.core.stats.arrays import items

NAN = np.nan
PROBABILITIES = st.lists(st.floats(0.0, 1.0), min_size=0, max_size=12)


def draw(seed=0, n=40):
    """Two judges and labels, one of the judges nearer to the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.normal(size=n)
    return labels + rng.normal(scale=0.7, size=n), labels + rng.normal(scale=1.5, size=n), labels


def williams_in_forty_digits(a, b, labels):
    """(t, two-sided p): correlations as sums, K as a determinant, Student's t as an integral of its density."""
    mpmath.mp.dps = 40
    sides = [[mpmath.mpf(float(value)) for value in side] for side in (labels, a, b)]
    n = len(sides[0])
    centred = [[value - mpmath.fsum(side) / n for value in side] for side in sides]

    def r(i, j):
        top = mpmath.fsum(x * y for x, y in zip(centred[i], centred[j], strict=True))
        powers = [mpmath.fsum(x * x for x in centred[k]) for k in (i, j)]
        return top / mpmath.sqrt(powers[0] * powers[1])

    k = mpmath.det(
        mpmath.matrix(3, 3) + mpmath.matrix([[r(i, j) if i != j else 1 for j in range(3)] for i in range(3)])
    )
    r12, r13, r23, nu = r(0, 1), r(0, 2), r(1, 2), n - 3
    mean = (r12 + r13) / 2
    variance = (2 * k * (n - 1) / nu + mean**2 * (1 - r23) ** 3) / ((n - 1) * (1 + r23))
    t = (r12 - r13) / mpmath.sqrt(variance)
    density = mpmath.gamma((nu + 1) / mpmath.mpf(2)) / mpmath.sqrt(nu * mpmath.pi) / mpmath.gamma(nu / mpmath.mpf(2))
    inside = mpmath.quad(lambda x: (1 + x * x / nu) ** (-(nu + 1) / mpmath.mpf(2)), mpmath.linspace(0, abs(t), 5))
    return float(t), float(1 - 2 * density * inside)


@pytest.mark.parametrize("n", [8, 9, 40, 300])
@pytest.mark.parametrize("seed", [1, 2])
def test_williams_equals_the_computation_in_forty_digits(seed, n):
    a, b, labels = draw(seed, n)
    found = williams_test(a, b, items(labels))
    t, p = williams_in_forty_digits(a, b, labels)
    assert found.t == pytest.approx(t, rel=1e-9, abs=1e-9)
    assert found.p_two_sided == pytest.approx(p, rel=1e-9, abs=1e-12)
    assert found.p_one_sided == pytest.approx(p / 2 if t > 0 else 1 - p / 2, rel=1e-9, abs=1e-12)
    assert (found.df, found.n) == (n - 3, n)


def test_williams_published_example():
    # The psych package's example of two dependent correlations, r.test(103, .4, .5, .1): t = -0.89, p < 0.37
    assert float(williams_t(0.4, 0.5, 0.1, 103)) == pytest.approx(-0.89, abs=0.005)


@given(seed=st.integers(0, 10_000), n=st.integers(8, 60))
def test_williams_swapped(seed, n):
    a, b, labels = draw(seed, n)
    one, other = williams_test(a, b, items(labels)), williams_test(b, a, items(labels))
    assert other.t == pytest.approx(-one.t, abs=1e-9)
    assert other.p_two_sided == pytest.approx(one.p_two_sided, abs=1e-9)
    assert other.p_one_sided == pytest.approx(1 - one.p_one_sided, abs=1e-9)


def test_williams_does_not_mind_another_scale():
    a, b, labels = draw()
    one, other = williams_test(a, b, items(labels)), williams_test(7 * a - 3, b / 100 + 5, items(2 * labels + 1))
    assert other.t == pytest.approx(one.t, rel=1e-9)


def test_williams_uses_the_common_items():
    a, b, labels = draw()
    cut = [side.copy() for side in (a, b, labels)]
    cut[0][:3], cut[1][2:5], cut[2][9] = NAN, NAN, NAN
    kept = np.setdiff1d(np.arange(5, 40), [9])
    found = williams_test(cut[0], cut[1], items(cut[2]))
    assert found == williams_test(a[kept], b[kept], items(labels[kept]))
    assert found.n == 34


def test_williams_has_a_t_and_no_p_under_eight_sources():
    a, b, labels = draw(1, 5)
    found = williams_test(a, b, items(labels))
    assert found.t == pytest.approx(williams_in_forty_digits(a, b, labels)[0], rel=1e-9)
    assert (found.df, found.p_one_sided, found.p_two_sided) == (2, None, None)


@pytest.mark.parametrize(
    ("a", "b", "labels", "words"),
    [
        ([1, 2, 3], [1, 3, 2], [1, 2, 2], "at least 4 common items; there are 3"),
        ([NAN] * 5, [1, 2, 3, 4, 5], [1, 2, 2, 3, 3], "there are 0"),
        ([2] * 5, [1, 2, 3, 4, 5], [1, 2, 2, 3, 3], "first judge's scores are equal"),
        ([1, 2, 3, 4, 5], [2] * 5, [4] * 5, "second judge's scores and all labels are equal"),
        ([1, 2, 3, 5, 5], [1, 2, 3, 5, 5], [1, 2, 2, 3, 3], "same up to a linear map"),
        ([1, 2, 3, 5, 5], [-3, -6, -9, -15, -15], [1, 2, 2, 3, 3], "same up to a linear map"),
    ],
)
def test_williams_undefined_says_why(a, b, labels, words):
    found = williams_test(a, b, items(labels))
    assert (found.t, found.df, found.p_one_sided, found.p_two_sided) == (None, None, None, None)
    assert words in found.reason
    assert found.as_json()["t"] is None


def test_williams_holds_its_level():
    # equal judges on independent items: p ≤ .05 in 5 % of 2,000 draws, standard error half a point
    rng = np.random.default_rng(3)
    called = 0
    for _ in range(2_000):
        labels = rng.normal(size=50)
        a, b = labels + rng.normal(size=(2, 50))
        called += williams_test(a, b, items(labels)).p_two_sided <= 0.05
    assert 0.035 <= called / 2_000 <= 0.065


# ── Holm ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_holm_by_hand():
    # sorted .005·4 = .02, .01·3 = .03, .03·2 = .06, .04·1 → raised to .06
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == pytest.approx([1.0, 1.0])  # 1.2 is cut at 1, .7 raised to it


def test_holm_leaves_out_what_is_undefined():
    found = holm([[NAN, 0.01], [0.02, NAN]])
    assert found[0, 1] == pytest.approx(0.02)
    assert found[1, 0] == pytest.approx(0.02)
    assert np.isnan(found[0, 0])
    assert np.isnan(found[1, 1])
    assert holm([]).size == 0


@given(PROBABILITIES)
def test_holm_rejects_what_the_step_down_rule_rejects(p):
    corrected = holm(p)
    for alpha in (0.01, 0.05, 0.2):
        rejected = set()
        for step, k in enumerate(np.argsort(p, kind="stable")):
            if p[k] * (len(p) - step) > alpha:
                break
            rejected.add(int(k))
        assert {int(k) for k in np.flatnonzero(corrected <= alpha)} == rejected


def test_holm_refuses_what_is_no_probability():
    with pytest.raises(UsageError, match="between 0 and 1"):
        holm([0.2, 1.2])


# ── all pairs at once ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(21)
    sources, systems = np.repeat(np.arange(30), 6), np.tile(np.arange(6), 30)
    labels = rng.integers(1, 6, size=180).astype(float)
    scores = labels + rng.normal(scale=[[0.5], [2.0], [2.1], [20.0]], size=(4, 180))
    scores[1, :4] = NAN
    return scores, labels, sources, systems


@pytest.mark.parametrize("statistic", ["pearson", "spearman", "kendall"])
@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
def test_a_pair_of_the_table_is_the_pair_alone(task, statistic, level):
    scores, labels, sources, systems = task
    chosen = {"measure": Measure(statistic, level), "resamples": 200}
    table = compare_judges(task[0], items(*task[1:]), seed=1, **chosen)
    assert table.n == 176
    gold = np.where(np.isnan(scores[1]), NAN, labels)  # common to all four judges
    for i, j in ((0, 1), (2, 1), (3, 0)):
        alone = paired_difference(scores[i], scores[j], items(gold, sources, systems), seed=1, **chosen)
        found = table.pair(i, j)
        assert found.value == pytest.approx(alone.value, abs=1e-12)
        assert (found.interval.low, found.interval.high) == pytest.approx(
            (alone.interval.low, alone.interval.high), abs=1e-12
        )
        assert (found.p, found.n) == (alone.p, alone.n)
        turned = table.pair(j, i)
        assert (turned.p, turned.value) == (found.p, -found.value)
        assert (turned.interval.low, turned.interval.high) == (-found.interval.high, -found.interval.low)
        assert (turned.a, turned.b) == (found.b, found.a)
        assert table.difference[i, j] == pytest.approx(found.value, abs=1e-15)


def test_the_corrected_matrix_corrects_each_pair_once(task):
    table = compare_judges(task[0], items(*task[1:]), Measure("spearman", "sample"), resamples=200, seed=1)
    above = np.triu_indices(4, 1)
    own = [table.pair(int(i), int(j)).p for i, j in zip(*above, strict=True)]
    assert table.p_holm[above] == pytest.approx(holm(own))
    assert np.array_equal(table.p_holm, table.p_holm.T, equal_nan=True)
    assert np.isnan(np.diag(table.p_holm)).all()


def test_the_williams_matrix_is_the_single_tests(task):
    scores, labels, *_ = task
    table = compare_judges(task[0], items(*task[1:]), Measure("kendall", "sample"), resamples=10, seed=1)
    gold = np.where(np.isnan(scores[1]), NAN, labels)
    above = np.triu_indices(4, 1)
    alone = [williams_test(scores[i], scores[j], items(gold)).p_two_sided for i, j in zip(*above, strict=True)]
    assert table.williams_p_holm[above] == pytest.approx(holm(alone), rel=1e-9)
    assert np.isnan(np.diag(table.williams_p_holm)).all()


def test_a_constant_judge_is_undefined_and_spoils_no_other_pair(task):
    scores, *rest = task
    with_constant = np.vstack([scores, np.ones(180)])
    chosen = {"measure": Measure("spearman", "dataset"), "resamples": 100}
    table = compare_judges(with_constant, items(*rest), seed=1, **chosen)
    plain = compare_judges(scores, items(*rest), seed=1, **chosen)
    assert np.isnan(table.p_holm[4]).all()
    assert np.isnan(table.williams_p_holm[4]).all()
    assert np.array_equal(table.p_holm[:4, :4], plain.p_holm, equal_nan=True)
    found = table.pair(0, 4)
    assert (found.value, found.interval, found.p) == (None, None, None)
    assert found.reason == "judge 5: all scores are equal (item by item)"


def test_another_order_of_the_judges_is_the_same_table(task):
    table = compare_judges(task[0], items(*task[1:]), Measure("spearman", "sample"), seed=1)
    order = [2, 0, 3, 1]
    turned = table.in_order(order)
    for i, j in ((0, 1), (1, 3), (3, 2)):
        assert turned.pair(i, j) == table.pair(order[i], order[j])
        assert turned.p_holm[i, j] == table.p_holm[order[i], order[j]]
    assert turned.alignments[0] == table.alignments[2]


def test_one_source_gives_values_without_intervals(task):
    scores, labels, *_ = task
    table = compare_judges(scores, items(labels, np.zeros(180)), Measure("pearson", "dataset"), seed=1)
    assert table.pair(0, 3).value > 0
    assert (table.pair(0, 3).interval, table.pair(0, 3).p) == (None, None)


def test_no_common_item_is_told(task):
    scores, labels, *_ = task
    apart = scores[:2].copy()
    apart[0, :90], apart[1, 90:] = NAN, NAN
    with pytest.raises(UsageError, match="No labelled item has a score from every judge"):
        compare_judges(apart, items(labels), Measure("pearson", "dataset"), seed=1)


def test_comparison_as_json(task):
    scores, labels, sources, _ = task
    chosen = {"measure": Measure("pearson", "dataset"), "seed": 1, "resamples": 50}
    body = Comparison(
        paired_difference(scores[0], scores[1], items(labels, sources), **chosen),
        williams_test(scores[0], scores[1], items(labels)),
    ).as_json()
    assert set(body) == {"n_common", "a", "b", "difference", "williams"}
    assert body["n_common"] == body["a"]["n"] == body["williams"]["n"] == 176


def clustered_pair(rng, n_sources=100, size=6):
    """Labels and two judges, all with source effects and item parts of variance 1; r .7 and .5 with the labels.

    Source effects and item parts have the same correlations, so those are the correlations over all items as well.
    """
    together = [[1, 0.7, 0.5], [0.7, 1, 0.6], [0.5, 0.6, 1]]
    source = rng.multivariate_normal([0, 0, 0], together, size=(n_sources, 1))
    item = rng.multivariate_normal([0, 0, 0], together, size=(n_sources, size))
    return (source + item).reshape(-1, 3).T, np.repeat(np.arange(n_sources), size)


# Population differences of the bivariate normal: r, 6/π·asin(r/2), 2/π·asin(r)
DIFFERENCES = {
    "pearson": 0.2,
    "spearman": 6 / np.pi * (np.arcsin(0.35) - np.arcsin(0.25)),
    "kendall": 2 / np.pi * (np.arcsin(0.7) - np.arcsin(0.5)),
}


@pytest.mark.parametrize("statistic", list(DIFFERENCES))
def test_intervals_of_differences_cover_as_often_as_they_say(statistic):
    hits = 0
    for seed in range(300):
        rng = np.random.default_rng([41, seed])
        (labels, a, b), sources = clustered_pair(rng)
        found = paired_difference(a, b, items(labels, sources), Measure(statistic, "dataset"), resamples=250, seed=rng)
        hits += found.interval.low <= DIFFERENCES[statistic] <= found.interval.high
    assert 0.92 <= hits / 300 <= 0.98
