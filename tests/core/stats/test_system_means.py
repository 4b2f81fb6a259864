"""core.stats.system_means against the formulas of the published package, by hand, and in small simulations."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.records import Scale
from core.stats.system_means import (
    LEAST_LABELS,
    MOST_WIDER,
    JudgedItems,
    MeanEstimate,
    system_means,
)

LIKERT = Scale(1, 5, 1.0)


def drawn(
    seed: int, n: int, n_more: int, *, systems: int = 2, rho: float = 0.6, gaps: tuple[float, ...] = ()
) -> JudgedItems:
    """`n` labelled and `n_more` unlabelled sources, each with an item of every system; normal about 3."""
    generator = np.random.default_rng(seed)
    shape = (n + n_more, systems)
    shared = 0.7 * generator.normal(size=(n + n_more, 1))
    truth = 3 + shared + np.sqrt(0.51) * generator.normal(size=shape) + np.array(gaps or [0.0] * systems)
    scores = 3.5 + rho * (truth - 3) + np.sqrt(1 - rho**2) * generator.normal(size=shape)
    labels = np.where(np.arange(n + n_more)[:, None] < n, truth, np.nan)
    sources, codes = np.indices(shape)
    names = tuple("ABCDEFGH"[:systems])
    return JudgedItems(labels.ravel(), scores.ravel(), sources.ravel(), codes.ravel(), names, Scale(-2, 8))


def width(mean: MeanEstimate) -> float:
    return mean.interval.high - mean.interval.low


def test_the_estimate_is_the_formula_with_a_weight_that_the_other_labels_chose():
    items = drawn(1, 12, 60, systems=1, rho=0.85)
    y, f, u = items.labels[:12], items.scores[:12], items.scores[12:]
    variance = np.var(items.scores, ddof=1)
    weights = []
    for k in range(12):
        rest = np.arange(12) != k
        weight = np.cov(y[rest], f[rest])[0, 1] / ((1 + 12 / 60) * variance)
        weights.append(min(max(weight, 0.0), 1.0))
    corrected = y - np.array(weights) * (f - u.mean())
    (system,) = system_means(items).systems
    assert system.corrected.value == pytest.approx(corrected.mean())
    assert not system.note
    assert system.weight == pytest.approx(np.mean(weights))
    error = np.sqrt(corrected.var(ddof=1) / 12 + np.mean(weights) ** 2 * u.var(ddof=1) / 60)
    assert width(system.corrected) == pytest.approx(2 * 2.2281388519649385 * error)  # t(10) at .975


def test_items_of_one_source_count_as_one():
    # every item twice under its source: the same mean, and no narrower for it
    items = drawn(2, 20, 100, systems=1)
    twice = JudgedItems(
        *(np.repeat(side, 2) for side in (items.labels, items.scores, items.sources, items.systems)),
        items.names,
        items.scale,
    )
    one, two = system_means(items).systems[0], system_means(twice).systems[0]
    assert two.corrected.value == pytest.approx(one.corrected.value)
    assert width(two.corrected) == pytest.approx(width(one.corrected))


def test_intervals_hold_the_truth_of_means_and_of_differences():
    # 300 sets of 2 systems, nominal .95: √(.95 · .05 / 600) = .009, so .92 is more than 3 errors away
    held, held_difference, naive = [], [], []
    for seed in range(300):
        means = system_means(drawn(seed, 15, 200, gaps=(0.0, 0.3)))
        for system, truth in zip(means.systems, (3.0, 3.3), strict=True):
            held.append(system.corrected.interval.low <= truth <= system.corrected.interval.high)
            naive.append(system.judge_only.interval.low <= truth <= system.judge_only.interval.high)
        (pair,) = means.differences
        gap = 0.3 if pair.a == "B" else -0.3
        held_difference.append(pair.interval.low <= gap <= pair.interval.high)
    assert 0.92 <= np.mean(held) <= 0.98
    assert 0.91 <= np.mean(held_difference) <= 0.99
    assert np.mean(naive) < 0.4  # the judge is half a point too generous


def test_labels_without_any_relation_lead_to_no_claim_more_often_than_they_may():
    # 4 equal systems, labels shuffled: at most 5 % of tables may tell two apart; 3 errors above are 8.8 %
    claims = 0
    for seed in range(200):
        items = drawn(seed, 20, 100, systems=4)
        labels = np.random.default_rng(seed).permutation(items.labels[: 20 * 4])
        shuffled = replace(items, labels=np.concatenate([labels, items.labels[20 * 4 :]]))
        claims += any(d.p_holm <= 0.05 for d in system_means(shuffled).differences)
    assert claims <= 17


def test_too_few_labels_or_sources_give_no_corrected_mean_and_say_how_many_are_missing():
    means = system_means(drawn(4, LEAST_LABELS - 1, 100))
    assert [s.corrected.value for s in means.systems] == [None, None]
    assert "1 more label" in means.systems[0].corrected.reason
    assert means.systems[0].labels_only.value is not None and means.differences == ()
    items = drawn(9, 40, 100, systems=1)  # forty labels of one source
    (system,) = system_means(replace(items, sources=np.where(np.isnan(items.labels), items.sources, 0))).systems
    assert system.corrected.value is None and "1 source" in system.corrected.reason


def test_equal_labels_are_as_sure_as_half_a_label_at_the_far_end_leaves_them():
    """On 1 to 5, twenty labels of 5: error 4 · √(.5 / (20² − 1)) = .141598, t(19) = 2.093024 times that is .296369."""
    items = replace(drawn(8, 20, 100, systems=1), scale=LIKERT)
    (system,) = system_means(replace(items, labels=np.where(np.isnan(items.labels), np.nan, 5.0))).systems
    assert system.corrected.value == 5.0
    assert system.labels_only.interval.low == pytest.approx(5 - 0.296369, abs=1e-5)
    assert width(system.corrected) <= MOST_WIDER * width(system.labels_only)


def test_lopsided_labels_have_longer_intervals_that_hold():
    """Of labels that are 5 in nine of ten cases and 1 in the tenth, t alone holds the mean in .64 of samples of ten."""
    held = []
    for seed in range(150):
        generator = np.random.default_rng(seed)
        labels = np.where(generator.uniform(size=10) < 0.9, 5.0, 1.0)
        items = JudgedItems(
            np.r_[labels, [np.nan] * 50],
            generator.normal(3, 1, 60),
            np.arange(60),
            np.zeros(60, dtype=np.intp),
            ("A",),
            LIKERT,
        )
        (system,) = system_means(items).systems
        held.append(system.labels_only.interval.low <= 4.6 <= system.labels_only.interval.high)
        for mean in (system.corrected, system.labels_only, system.judge_only):
            assert mean.interval is None or 1.0 <= mean.interval.low <= mean.interval.high <= 5.0
    assert np.mean(held) >= 0.95
