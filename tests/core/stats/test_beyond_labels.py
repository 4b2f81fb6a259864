"""What scores share with a property beyond their labels: the formulas by loops, and what is undefined."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata

from core.stats.beyond_labels import LEAST_RELIABILITY, beyond_labels, place_taken

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
    assert apart is not None and np.isnan(apart.value) and "agree too little" in apart.reason


def test_a_place_that_is_always_taken():
    people = np.tile([1.0, -1.0], 75)
    always = place_taken(np.ones(150), people, SOURCES)
    assert (always.value, always.p) == (0.5, pytest.approx(2 * 0.5**30))
    # half of the texts are better in either place: the judge that agrees leans to neither
    fair = place_taken(people, people, SOURCES)
    assert fair.value == pytest.approx(0.0, abs=1e-12)
    assert place_taken(np.ones(150), people, SOURCES % 7).p is None
