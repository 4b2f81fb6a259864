"""Items of a fusion: parts that learn are scored out of fold where weights are fitted; contradictions come first."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import UsageError
from core.fusion.stack import contradictions, cross_fitted
from core.records import FloatArray, GoldenSet, Item, JudgeScores, Split


def of_sources(n: int) -> GoldenSet:
    """Two items a source."""
    return GoldenSet("g", "single", tuple(Item(f"i{k}", "t", f"s{k // 2}") for k in range(2 * n)), {})


def test_no_item_is_scored_by_a_fit_on_its_source() -> None:
    golden, split, fits = of_sources(12), Split(tuple(range(16)), tuple(range(16, 24)), "sources", 0), list[Split]()

    def fit_and_score(given: Split) -> FloatArray:
        """The number of items fitted on; negative for items of a source that was fitted on."""
        fits.append(given)
        fitted = np.isin(golden.source_codes, golden.source_codes[list(given.calibration)])
        return np.where(fitted, -1.0, 1.0) * len(given.calibration)

    scores = cross_fitted(golden, split, fit_and_score)
    assert fits[0] == split
    assert (scores[16:] == 16).all()  # held-out items: by the fit on the whole side
    assert set(scores[:16]) == {10.0, 12.0}  # 8 sources of 2 items in folds of 3, 3 and 2
    assert sorted(k for fit in fits[1:] for k in fit.held_out) == list(range(16))


def test_too_few_sources_and_wrong_shapes_are_refused() -> None:
    with pytest.raises(UsageError, match="at least 3 calibration sources"):
        cross_fitted(of_sources(3), Split((0, 1, 2, 3), (4, 5), "sources", 0), lambda split: np.zeros(6))
    with pytest.raises(UsageError, match="shape"):
        cross_fitted(of_sources(3), Split((0, 2, 4), (1,), "sources", 0), lambda split: np.zeros(2))


def test_items_on_which_parts_contradict_each_other_come_first() -> None:
    up, down = np.arange(10.0), np.arange(10.0)
    down[[0, 9]] = down[[9, 0]]
    judges = {
        name: JudgeScores(name, "imported", "a", values)
        for name, values in {"up": up, "down": down, "same": up * 3 + 1, "silent": np.full(10, np.nan)}.items()
    }
    assert set(contradictions([judges["up"], judges["down"]], range(10))) == {0, 9}
    assert contradictions([judges["up"], judges["same"]], range(10)) == ()
    assert contradictions([judges["silent"]] * 2, range(10)) == ()
