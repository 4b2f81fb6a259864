"""core.stats.items: items from a golden set and from arrays, grouped once; the level they are usually measured at."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import UsageError
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.stats import LabelledItems
from core.stats.items import paired

NAN = np.nan


def golden() -> GoldenSet:
    items = tuple(Item(f"i{k}", "text", source_id=f"s{k % 3}", system_id=f"m{k % 2}") for k in range(6))
    return GoldenSet("made", "single", items, {"charm": AspectLabels("charm", Scale(1, 5), (1, 2, None, 4, 5, 3))})


def test_of_a_golden_set_and_of_some_of_its_items():
    result = LabelledItems.of(golden(), "charm")
    np.testing.assert_array_equal(result.labels, [1, 2, NAN, 4, 5, 3])
    assert result.sources.tolist() == [0, 1, 2, 0, 1, 2]
    assert result.systems.tolist() == [0, 1, 0, 1, 0, 1]
    some = LabelledItems.of(golden(), "charm", (5, 0))
    assert (some.positions.tolist(), some.labels.tolist(), some.sources.tolist()) == ([5, 0], [3, 1], [2, 0])
    again = result.take(np.array([5, 0]))
    assert (again.positions.tolist(), again.labels.tolist()) == ([5, 0], [3, 1])


def test_by_source_holds_the_labelled_ones_in_order_and_is_made_once():
    labelled = LabelledItems.from_arrays([4, NAN, 2, 1], sources=[70, 5, 5, 70], systems=[9, 9, 3, 3])
    own = labelled.by_source
    assert own is labelled.by_source
    assert own.order.tolist() == [2, 0, 3]
    assert (own.labels.tolist(), own.sources.tolist(), own.systems.tolist()) == ([2, 4, 1], [0, 1, 1], [0, 1, 0])
    assert (own.n_sources, own.n_systems) == (2, 2)
    assert [(group.sources.tolist(), group.items.tolist()) for group in own.sizes] == [([1], [[1, 2]])]
    assert own.sizes is own.sizes
    assert own.sums_by_source(np.array([[1.0, 10.0, 100.0]])).tolist() == [[1, 110]]
    assert own.sums_by_cell(np.array([[1.0, 10.0, 100.0]])).tolist() == [[[1, 0], [100, 10]]]


def test_a_single_candidate_on_what_it_scored_keeps_the_codes():
    items = LabelledItems.from_arrays([1, 2, 3, 4], sources=[0, 0, 1, 2])
    data = paired([[1.0, 2, 3, 4], [NAN, NAN, 5, 6]], items)
    assert not data.complete
    own = data.scored_only(1)
    assert (own.scores.tolist(), own.items.sources.tolist(), own.items.n_sources) == ([[5, 6]], [1, 2], 3)


def test_sides_of_different_lengths_and_infinity_are_refused():
    with pytest.raises(ValueError, match="one entry per item"):
        LabelledItems.from_arrays([1, 2, 3], sources=[0, 1])
    with pytest.raises(ValueError, match="one entry per item"):
        paired([1.0, 2], LabelledItems.from_arrays([1, 2, 3]))
    with pytest.raises(UsageError, match="finite"):
        paired([1.0, 2], LabelledItems.from_arrays([1, np.inf]))


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
