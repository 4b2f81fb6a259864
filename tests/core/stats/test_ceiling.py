"""core.stats.ceiling and core.stats.raters: leave one rater out, by hand, by loops over scipy, and in simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from core.errors import AspectError, UsageError
from core.records import AspectLabels, GoldenSet, Item, Measure, Rating, Scale
from core.stats import leave_one_out, rater_table
from tests.core.stats.arrays import rated, raters

NAN = np.nan
ORACLES = {"pearson": pearsonr, "spearman": spearmanr, "kendall": kendalltau}
LIKERT = Scale(1, 5, 1.0)


def draw(seed=0, n_raters=3, n_sources=12, n_systems=5, holes=0.0):
    """Ratings 1 to 5 with source effects; `holes` is the share of ratings that are missing."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(n_sources, 1)) + rng.normal(size=(n_sources, n_systems))
    noise = rng.normal(size=(n_raters, n_sources, n_systems))
    ratings = np.clip(np.rint(3 + truth + noise), 1, 5).reshape(n_raters, -1)
    ratings[rng.random(ratings.shape) < holes] = NAN
    return ratings, np.repeat(np.arange(n_sources), n_systems), np.tile(np.arange(n_systems), n_sources)


def looped(ratings, sources, systems, statistic, level):
    """The average by definition: (value, n items, n groups) with loops over raters and groups."""
    oracle, values, weights = ORACLES[statistic], [], []
    items, groups = set(), set()
    for rater in range(ratings.shape[0]):
        others = np.delete(ratings, rater, axis=0)
        use = np.flatnonzero(~np.isnan(ratings[rater]) & ~np.isnan(others).all(axis=0))
        x, y = ratings[rater, use], np.nanmean(others[:, use], axis=0)
        if level == "dataset":
            values.append(oracle(x, y)[0])
            weights.append(use.size)
            items |= set(use.tolist())
        elif level == "system":
            names = np.unique(systems[use])
            means = np.array([[side[systems[use] == name].mean() for name in names] for side in (x, y)])
            # for ranks, ties must not hang on the order of sums
            values.append(oracle(*(means if statistic == "pearson" else means.round(9)))[0])
            weights.append(use.size)
        else:
            for source in np.unique(sources[use]):
                at = sources[use] == source
                if at.sum() >= 2 and np.unique(x[at]).size > 1 and np.unique(y[at]).size > 1:
                    values.append(oracle(x[at], y[at])[0])
                    weights.append(1)
                    groups.add(source)
    return np.average(values, weights=weights), len(items), len(groups)


@pytest.mark.parametrize("statistic", list(ORACLES))
@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_equals_loops_over_scipy(statistic, level, holes):
    ratings, sources, systems = draw(1, n_raters=4, holes=holes)
    found = leave_one_out(
        raters(ratings), rated(ratings, sources, systems), Measure(statistic, level), resamples=50, seed=0
    ).alignment
    value, n_items, n_groups = looped(ratings, sources, systems, statistic, level)
    assert found.value == pytest.approx(value, abs=1e-12)
    assert found.interval.low < found.value < found.interval.high
    twice = (~np.isnan(ratings)).sum(axis=0) >= 2
    assert found.n_unscored == 60 - twice.sum()
    if level == "dataset":
        assert found.n == n_items == twice.sum()
    elif level == "sample":
        assert (found.n_groups, found.n_left_out) == (n_groups, 12 - n_groups)
    else:
        assert found.n == 5


def test_by_hand():
    # Two raters: each is compared with the other, so both values are r of (1 2 3 4) with (1 3 2 4) = 4/5
    found = leave_one_out(
        raters([[1, 2, 3, 4, NAN], [1, 3, 2, 4, 5]], ("ann", "bob")),
        rated([[1, 2, 3, 4, NAN], [1, 3, 2, 4, 5]]),
        Measure("pearson", "dataset"),
        seed=0,
    )
    assert found.alignment.value == pytest.approx(0.8)
    assert (found.alignment.n, found.alignment.n_unscored) == (4, 1)
    assert [(one.rater, one.n_items) for one in found.by_rater] == [("ann", 4), ("bob", 4)]
    assert [one.value for one in found.by_rater] == pytest.approx([0.8, 0.8])


def test_raters_count_by_what_they_rated():
    # The first two rated all 40 items alike; the third rated 4 of them backwards.
    truth = np.arange(40.0)
    ratings = np.stack([truth, truth, np.full(40, NAN)])
    ratings[2, :4] = [3, 2, 1, 0]
    found = leave_one_out(raters(ratings), rated(ratings), Measure("spearman", "dataset"), seed=0)
    first, second, third = (one.value for one in found.by_rater)
    assert third == pytest.approx(-1.0)
    assert found.alignment.value == pytest.approx((40 * first + 40 * second - 4) / 84)


def test_order_of_items_and_raters_does_not_matter():
    ratings, sources, systems = draw(2, holes=0.2)
    order = np.random.default_rng(5).permutation(sources.size)
    chosen = {"measure": Measure("kendall", "sample"), "resamples": 40}
    plain = leave_one_out(raters(ratings), rated(ratings, sources, systems), seed=1, **chosen).alignment
    turned = leave_one_out(
        raters(ratings[::-1, order]), rated(ratings[::-1, order], sources[order], systems[order]), seed=1, **chosen
    ).alignment
    assert turned.value == pytest.approx(plain.value, abs=1e-12)
    assert (turned.interval.low, turned.interval.high) == pytest.approx((plain.interval.low, plain.interval.high))
    assert (turned.n, turned.n_groups, turned.n_left_out) == (plain.n, plain.n_groups, plain.n_left_out)


@pytest.mark.parametrize(
    ("ratings", "words"),
    [
        ([[1, 2, 3]], "only one rater"),
        ([[1, 2, NAN], [NAN, NAN, 3]], "no item has ratings by two raters"),
        ([[2, 2, 2], [2, 2, 2]], "all labels are equal"),
    ],
)
@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
def test_undefined_says_why(ratings, words, level):
    found = leave_one_out(raters(ratings), rated(ratings), Measure("spearman", level), seed=0).alignment
    assert (found.value, found.interval, found.n) == (None, None, 0)
    assert found.reason
    if level == "dataset":
        assert words in found.reason


def test_bad_arrays_are_refused():
    chosen = {"measure": Measure("pearson", "dataset"), "seed": 0}
    with pytest.raises(UsageError, match="infinity"):
        leave_one_out(raters([[1, np.inf], [1, 2]]), rated([[1, np.inf], [1, 2]]), **chosen)
    with pytest.raises(ValueError, match="one entry per item"):
        leave_one_out(raters([[1, 2], [1, 2]]), rated([[1, 2], [1, 2]], [0]), **chosen)


def test_the_interval_covers_as_often_as_it_says():
    # Rating = source effect (variance 1) + item (1) + rater's own noise (1), all normal.  One rater has variance 3,
    # the mean of two others 2.5, their covariance is 2: r = 2 / √7.5; Spearman's rho is 6/π·asin(r/2).
    r = 2 / np.sqrt(7.5)
    truth = {"pearson": r, "spearman": 6 / np.pi * np.arcsin(r / 2)}
    hits = dict.fromkeys(truth, 0)
    sources = np.repeat(np.arange(100), 5)
    for seed in range(300):
        rng = np.random.default_rng([43, seed])
        ratings = rng.normal(size=(100, 1)) + rng.normal(size=(100, 5)) + rng.normal(size=(3, 100, 5))
        for statistic, value in truth.items():
            interval = leave_one_out(
                raters(ratings.reshape(3, -1)),
                rated(ratings.reshape(3, -1), sources),
                Measure(statistic, "dataset"),
                resamples=250,
                seed=rng,
            ).alignment.interval
            hits[statistic] += interval.low <= value <= interval.high
    assert all(0.92 <= hit / 300 <= 0.98 for hit in hits.values()), hits


# ── raters and panels ────────────────────────────────────────────────────────────────────────────────────────


def golden_of(ratings, values):
    """`ratings`: rater → list of ratings, None = none; `values`: the gold labels."""
    items = tuple(Item(f"i{k}", "text", source_id=f"s{k}") for k in range(len(values)))
    given = tuple(
        Rating(f"i{k}", rater, "charm", float(value))
        for rater, row in ratings.items()
        for k, value in enumerate(row)
        if value is not None
    )
    return GoldenSet("made", "single", items, {"charm": AspectLabels("charm", LIKERT, tuple(values))}, given)


TWO_PANELS = {"expert1": [1, 4], "expert2": [2, 4], "turker1": [5, None], "turker2": [5, 1], "turker3": [5, 2]}


def test_the_table_has_a_row_a_rater():
    table = rater_table(golden_of({"r10": [3, 1], "r2": [None, 2], "zoë": [1, 1]}, [2.0, 1.5]), "charm")
    assert table.raters == ("r2", "r10", "zoë")
    assert np.array_equal(table.values, [[NAN, 2], [3, 1], [1, 1]], equal_nan=True)
    assert table.panel == ""


def test_the_panel_behind_the_labels_is_taken():
    table = rater_table(golden_of(TWO_PANELS, [1.5, 4.0]), "charm")
    assert (table.panel, table.raters) == ("expert", ("expert1", "expert2"))
    assert table.values.tolist() == [[1, 4], [2, 4]]
    other = rater_table(golden_of(TWO_PANELS, [1.5, 4.0]), "charm", "turker")
    assert (other.panel, other.raters) == ("turker", ("turker1", "turker2", "turker3"))


def test_all_raters_are_taken_when_no_panel_is_behind_the_labels():
    table = rater_table(golden_of(TWO_PANELS, [3.0, 3.0]), "charm")
    assert (table.panel, len(table.raters)) == ("", 5)


def test_an_unknown_panel_is_told():
    with pytest.raises(AspectError, match="no panel 'crowd' of raters on 'charm'; panels: expert, turker"):
        rater_table(golden_of(TWO_PANELS, [1.5, 4.0]), "charm", "crowd")


def test_labels_without_single_ratings_are_told_with_the_way_out():
    with pytest.raises(AspectError, match="ann_charm"):
        rater_table(golden_of({}, [1.0, 2.0]), "charm")
