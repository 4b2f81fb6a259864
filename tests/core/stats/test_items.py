"""core.stats.items: items from a golden set and from arrays, grouped once; the level they are usually measured at."""

from __future__ import annotations

import numpy as np
import pytest

from core.stats import LabelledItems

NAN = np.nan


@pytest.mark.parametrize(
    ("labels", "sources", "level"),
    [
        ([1, 2, 3] * 3, np.repeat(np.arange(3), 3), "sample"),
        ([1, 2, 3] * 2, np.repeat(np.arange(2), 3), "dataset"),  # only two sources
        ([1, 2, 3] * 2 + [2, 2, 2], np.repeat(np.arange(3), 3), "dataset"),  # one of three does not rank
        ([1, 2] * 5, np.repeat(np.arange(5), 2), "dataset"),  # two items rank nothing
        ([1, 2, 3] * 3 + [1.0] * 9, [*np.repeat(np.arange(3), 3), *range(3, 12)], "sample"),  # half of the items
        ([1, 2, 3] * 3 + [1.0] * 10, [*np.repeat(np.arange(3), 3), *range(3, 13)], "dataset"),
        ([1, 2, 3] * 3 + [NAN] * 10, [*np.repeat(np.arange(3), 3), *range(3, 13)], "sample"),  # labelled ones count
        ([], [], "dataset"),
    ],
)
def test_the_usual_level_needs_most_items_in_sources_that_rank(labels, sources, level):
    assert LabelledItems.from_arrays(labels, sources).usual_level == level
