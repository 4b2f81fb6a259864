"""Figures and sentences that follow the exact value: p near its limit, bounds of scales, one reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.records import Alignment, Interval, Measure, Scale
from core.stats import LabelledItems, align, claim
from core.stats.claims import HALF_ALPHA, no_interval_words, p_cell, p_figure
from core.stats.intervals import FEW_COEFFICIENTS, FEW_RANKED
from core.stats.system_means import JudgedItems, system_means

LIKERT = Scale(1, 5, 1)


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0.0496, "p = 0.0496"),
        (0.0504, "p = 0.0504"),
        (0.04996, "p = 0.04996"),
        (0.050004, "p = 0.050004"),
        (0.05, "p = 0.050"),
        (0.012, "p = 0.012"),
        (0.0312, "p = 0.031"),
        (0.00099, "p < 0.001"),
        (0.99951, "p = 1"),
        (None, "no p"),
        (float("nan"), "no p"),
    ],
)
def test_a_p_is_written_so_that_its_side_of_the_limit_shows(p: float | None, words: str) -> None:
    assert p_figure(p, "no p") == words
    assert p is None or np.isnan(p) or p_cell(p) == words.removeprefix("p ").removeprefix("= ")


@pytest.mark.parametrize("p", [0.02501, 0.0253, 0.0496, 0.04999])
def test_a_p_that_falls_short_of_a_stricter_limit_names_it(p: float) -> None:
    words = p_figure(p, limit=HALF_ALPHA)
    assert words.endswith(", and it takes 0.025") and not words.startswith(("p = 0.025,", "p = 0.050,"))
    assert claim(0.2, Interval(0.1, 0.3), p, alpha=HALF_ALPHA) == "open"
    assert claim(0.2, Interval(0.1, 0.3), p) == "higher"


def test_corrected_means_stay_on_the_scale_and_differences_within_its_width() -> None:
    """Labels of A near 5 and verdicts that say more: uncut, the corrected mean and its interval pass 5."""
    rng = np.random.default_rng(0)
    n, n_labelled = 80, 12
    scores = np.concatenate([np.clip(rng.normal(4.0, 1.2, n), 1, 5), np.clip(rng.normal(1.6, 0.8, n), 1, 5)])
    labels = np.full(2 * n, np.nan)
    for start, base in ((0, 5.0), (n, 1.0)):
        labels[start : start + n_labelled] = np.where(np.arange(n_labelled) < 2, base + np.sign(3 - base), base)
    systems = np.repeat([0, 1], n).astype(np.intp)
    means = system_means(JudgedItems(labels, scores, np.arange(2 * n), systems, ("A", "B"), LIKERT))
    for system in means.systems:
        for mean in (system.corrected, system.labels_only, system.judge_only):
            assert mean.value is not None and mean.interval is not None
            assert 1.0 <= mean.interval.low <= mean.value <= mean.interval.high <= 5.0
    (pair,) = means.differences
    values = {system.name: system.corrected.value for system in means.systems}
    assert pair.value == pytest.approx(values[pair.a] - values[pair.b])
    for ends in (pair.interval, pair.tested):
        assert ends is not None and -4.0 <= ends.low <= pair.value <= ends.high <= 4.0


def missing(scores: np.ndarray, items: LabelledItems, measure: Measure, **how: int) -> Alignment:
    aligned = align(scores, items, measure, **how)
    assert aligned.value is not None and aligned.interval is None
    assert no_interval_words(aligned) == f"No interval: {aligned.no_interval}."
    return aligned


def test_a_missing_interval_has_one_reason_and_a_way_out() -> None:
    """8 sources of 5 items of which each ranks its items rightly but for one swap: 2 different coefficients."""
    labels = np.tile(np.arange(1.0, 6.0), 8)
    scores = labels.copy().reshape(8, 5)
    scores[:4, [0, 1]] = scores[:4, [1, 0]]
    sources = np.repeat(np.arange(8), 5)
    items = LabelledItems.from_arrays(labels, sources)
    few = missing(scores.ravel(), items, Measure("spearman", "sample"))
    assert few.no_interval == FEW_COEFFICIENTS and "dataset level" in few.no_interval
    short = LabelledItems.from_arrays(labels[:5], np.arange(5))
    assert missing(scores[0], short, Measure("spearman", "dataset")).no_interval == FEW_RANKED
    alone = LabelledItems.from_arrays(labels, np.zeros(40, dtype=np.intp))
    assert "one source" in missing(scores.ravel(), alone, Measure("spearman", "dataset")).no_interval
    unasked = missing(scores.ravel(), items, Measure("pearson", "dataset"), resamples=0)
    assert "asked for" in unasked.no_interval
    perfect = missing(labels, items, Measure("pearson", "dataset"))
    assert "same whichever source" in perfect.no_interval
    known = align(scores.ravel(), items, Measure("pearson", "dataset"))
    assert known.interval is not None and known.no_interval == "" == no_interval_words(known)
    assert no_interval_words(replace(known, value=None, interval=None)) == ""
