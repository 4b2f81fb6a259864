"""Parts that learn are scored out of fold where the weights are fitted."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import UsageError
from core.fusion.cross_fitting import cross_fitted
from core.records import FloatArray, GoldenSet, Item, Split


def a_golden(n_sources: int = 12) -> GoldenSet:
    return GoldenSet("g", "single", tuple(Item(f"i{k}", "t", f"s{k // 2}") for k in range(2 * n_sources)), {})


def test_no_item_is_scored_by_what_its_source_taught() -> None:
    golden, taught = a_golden(), []

    def teach(split: Split) -> FloatArray:
        """1 for every item whose source taught, else 0."""
        taught.append(split)
        return np.isin(golden.source_codes, golden.source_codes[list(split.calibration)]).astype(float)

    split = Split(tuple(range(16)), tuple(range(16, 24)), "sources", 0)
    found = cross_fitted(golden, split, teach)
    assert found.tolist() == [0.0] * 24  # neither out of fold nor held out did an item's own source teach
    assert taught[0] == split  # the first is taught on the whole side
    assert len(taught) == 4
    # the folds leave each calibration item out once
    left = [k for one in taught[1:] for k in one.held_out]
    assert sorted(left) == list(range(16))
    sizes = {len(one.calibration) for one in taught[1:]}
    assert sizes <= {10, 12}  # 8 sources of 2 items in folds of 3, 3 and 2


def test_held_out_items_are_scored_by_the_whole_side() -> None:
    golden = a_golden()
    found = cross_fitted(
        golden,
        Split(tuple(range(16)), tuple(range(16, 24)), "sources", 0),
        lambda split: np.full(24, float(len(split.calibration))),
    )
    assert set(found[16:]) == {16.0}
    assert set(found[:16]) <= {10.0, 12.0}


def test_too_few_sources_and_wrong_shapes_are_refused() -> None:
    golden = a_golden(3)
    with pytest.raises(UsageError, match="at least 3 calibration sources"):
        cross_fitted(golden, Split((0, 1, 2, 3), (4, 5), "sources", 0), lambda split: np.zeros(6))
    with pytest.raises(UsageError, match="shape"):
        cross_fitted(golden, Split((0, 2, 4), (1,), "sources", 0), lambda split: np.zeros(2))
