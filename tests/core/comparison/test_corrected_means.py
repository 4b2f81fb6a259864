"""Which labels come next, and what is said of the means of systems."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from core.findings.system_quality import difference_words, labels_saved_words, means_finding, pair_finding
from core.records import Scale
from core.stats.system_means import SHOWN_AT, JudgedItems, system_means
from core.wording import signed_range


def test_verdicts_add_to_labels_only_beyond_chance() -> None:
    # 30 labels that the verdicts follow closely; what is said depends on the p alone
    generator = np.random.default_rng(3)
    truth = generator.normal(3, 1, 400)
    labels = np.where(np.arange(400) < 30, np.clip(np.rint(truth), 1, 5), np.nan)
    scores, one = np.clip(truth + generator.normal(0, 0.3, 400), 1, 5), np.zeros(400, dtype=np.intp)
    means = system_means(JudgedItems(labels, scores, np.arange(400), one, ("A",), Scale(1, 5, 1.0)))
    said = {p: labels_saved_words(replace(means, p_correlation=p)) for p in (0.001, 0.02, 0.4)}
    assert "times as many labels" in said[0.001]
    assert "don't add significant information" in said[0.02] == said[0.4]


OVER_SIX = "corrected for 6 pairs (Holm)"


def two(gap: float, n: int = 12) -> JudgedItems:
    """Two systems on `n` sources of their own, the judge constant; labels 2, 3, 4 and so on, those of B `gap` more."""
    labels = np.concatenate([np.resize([2.0, 3.0, 4.0], n), np.resize([2.0, 3.0, 4.0], n) + gap])
    systems = np.repeat([0, 1], n)
    return JudgedItems(labels, np.full(2 * n, 3.0), np.arange(2 * n), systems, ("A", "B"), Scale(1, 5, 0.1))


def test_only_a_small_p_makes_a_claim() -> None:
    near = 0
    for gap in np.arange(0.0, 1.6, 0.05):
        means = system_means(two(float(gap)))
        (pair,) = means.differences
        assert pair.p_holm == pair.p and pair.p_holm is not None and pair.interval is not None
        found = means_finding(means, "q")
        apart = "No clear difference" in found.headline
        assert apart == (pair.p_holm > SHOWN_AT)
        contradicts = apart and not pair.interval.low <= 0.0 <= pair.interval.high
        assert (signed_range(pair.interval) in found.detail) != contradicts
        near += contradicts and "above 0.015" in found.detail
    assert near, "no gap was one that the 95 % interval alone would call shown"


def test_systems_with_the_same_labels_and_scores_on_each_source_do_not_differ() -> None:
    found = pair_finding(system_means(replace(two(0.0), sources=np.tile(range(12), 2))), "q", "A", "B")
    assert found.lines == ("A and B have the same mean q in every source.",)


def test_claims_are_corrected_over_the_pairs_whichever_is_asked_for() -> None:
    generator, n = np.random.default_rng(5), 40
    labels = np.clip(np.concatenate([generator.normal(mean, 1, n) for mean in (2.6, 3.0, 3.3, 3.9)]), 1, 5)
    scores = np.clip(labels + generator.normal(0, 1, 4 * n), 1, 5)
    items = JudgedItems(labels, scores, np.arange(4 * n), np.repeat(range(4), n), tuple("ABCD"), Scale(1, 5, 0.1))
    means = system_means(items)
    shown = [pair.p_holm is not None and pair.p_holm <= SHOWN_AT for pair in means.differences]
    assert 0 < sum(shown) < 6
    assert "ignificant if p ≤ 0.015, corrected for 6 pairs (Holm)." in means_finding(means, "q").detail
    for pair, claimed in zip(means.differences, shown, strict=True):  # highest first: a is the better one
        said = [pair_finding(means, "q", *names) for names in ((pair.a, pair.b), (pair.b, pair.a))]
        wanted = ("Yes, ", "No, ") if claimed else ("No clear difference", "No clear difference")
        assert all(one.headline.startswith(begin) for one, begin in zip(said, wanted, strict=True))
        words = f"{pair.a} minus {pair.b}, in points (1-5): {difference_words(pair)}, {OVER_SIX}."
        assert {one.detail for one in said} == {words}
