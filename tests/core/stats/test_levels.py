"""core.stats.correlation: the three levels, the usual one, what is left out, what is undefined and why.

Loops over scipy for all statistics and levels: `test_intervals.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from core.records import Measure
from core.stats import LabelledItems, align, alignment_values
from tests.core.stats.arrays import items

NAN = np.nan

# Three sources.  A: 3 items, B: 3 items, C: 2 items with equal labels (left out).
SOURCES = np.array([0, 0, 0, 1, 1, 1, 2, 2])
SYSTEMS = np.array([0, 1, 2, 0, 1, 2, 0, 1])
LABELS = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 4.0])
SCORES = np.array([1.0, 2.0, 3.0, 1.0, 3.0, 2.0, 5.0, 6.0])


def test_system_means_that_tie_in_truth_tie_here():
    # both systems' scores are .1, .2, .3 in another order: the sums differ in the last bit
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    scores, systems = np.array([0.1, 0.2, 0.3, 0.3, 0.2, 0.1]), np.repeat([0, 1], 3)
    alignment = align(scores, items(np.arange(6.0), np.arange(6), systems), Measure("kendall", "system"))
    assert alignment.value is None
    assert alignment.reason == "all system means of the scores are equal"


def test_unlabelled_items_are_dropped_and_unscored_ones_counted():
    scores, labels = SCORES.copy(), LABELS.copy()
    scores[0], labels[3] = NAN, NAN
    alignment = align(scores, items(labels, SOURCES, SYSTEMS), Measure("pearson", "dataset"))
    assert (alignment.n, alignment.n_unscored) == (6, 1)
    assert alignment.value == pytest.approx(np.corrcoef(scores[[1, 2, 4, 5, 6, 7]], labels[[1, 2, 4, 5, 6, 7]])[0, 1])


@pytest.mark.parametrize(
    ("scores", "labels", "level", "reason"),
    [
        (
            [NAN, NAN, 1.0],
            [1.0, 2.0, 3.0],
            "dataset",
            "fewer than 2 items have both a score and a label (1 of 3 labelled items)",
        ),
        ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], "dataset", "all scores are equal"),
        ([1.0, 2.0, 3.0], [3.0, 3.0, 3.0], "sample", "no source has enough items with varying scores and labels"),
        ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], "system", "fewer than 2 systems have items with scores"),
    ],
)
def test_undefined_is_none_with_a_reason(scores, labels, level, reason):
    values = np.zeros(len(scores))  # one source, one system
    alignment = align(scores, items(labels, values, values), Measure("spearman", level))
    assert alignment.value is None
    assert alignment.interval is None
    assert alignment.reason.startswith(reason)
    assert alignment.as_json()["value"] is None
    assert np.isnan(alignment_values(scores, items(labels, values, values), Measure("spearman", level))).all()


@pytest.mark.parametrize(
    ("labels", "sources", "level"),
    [
        ([1, 2, 3] * 3, np.repeat(np.arange(3), 3), "sample"),
        ([1, 2, 3] * 2, np.repeat(np.arange(2), 3), "dataset"),  # only two sources
        ([1, 2, 3] * 2 + [2, 2, 2], np.repeat(np.arange(3), 3), "dataset"),  # one of three does not rank
        ([1, 2, 3] * 3 + [1.0] * 9, [*np.repeat(np.arange(3), 3), *range(3, 12)], "sample"),  # half of the items
        ([1, 2, 3] * 3 + [1.0] * 10, [*np.repeat(np.arange(3), 3), *range(3, 13)], "dataset"),
    ],
)
def test_the_usual_level_needs_most_items_in_sources_that_rank(labels, sources, level):
    assert LabelledItems.from_arrays(labels, sources).usual_level == level
