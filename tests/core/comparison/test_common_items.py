"""Which items judges are compared on."""

from __future__ import annotations

from typing import Any

import pytest

from core.comparison import item_pool, judges_to_leave_out
from core.errors import UsageError
from core.records import Unscored

ASPECT = "coherence"


@pytest.fixture
def eight(golden_of: Any) -> Any:
    return golden_of([1, 2, 3, 4, 5, 1, 2, None])


@pytest.fixture
def both(judge_of: Any) -> Any:
    """A has seen 0, 1 and 4; B could not be read on 2, was not asked about 3, and has no score on the seen 4."""
    a = judge_of("a", [1, 2, 3, 4, 5, 1, 2, 3], seen=(0, 1, 4))
    b = judge_of("b", [1, 2, None, None, None, 1, 2, 3], unscored=(Unscored("i2", "no verdict"),))
    return [a, b]


def test_common_items_are_labelled_unseen_and_scored_by_all(eight, both):
    pool = item_pool(eight, ASPECT, both)
    assert pool.positions.tolist() == [5, 6]
    assert (pool.n_labelled, pool.n_seen, pool.n_unscored) == (7, 3, 2)  # 7 = 2 common + 3 seen + 2 without a score


def test_items_without_a_score_are_counted_by_reason(eight, both):
    assert item_pool(eight, ASPECT, both).unscored == ({}, {"no verdict": 1, "not asked for": 1})


def test_a_comparison_needs_a_judge(eight):
    with pytest.raises(UsageError, match="No judge to compare"):
        item_pool(eight, ASPECT, [])


def test_who_takes_a_third_of_anothers_items_stands_aside(judge_of: Any) -> None:
    own = judge_of("own", [1.0] * 12, seen=(0, 1, 2))  # measured on 9
    cheap = judge_of("cheap", [1.0] * 12, seen=(0, 1, 2, 3, 4, 5))  # leaves 6 of them
    dear = judge_of("dear", [1.0] * 8 + [None] * 4, seen=(0, 1, 2))  # leaves 5
    assert judges_to_leave_out([own, cheap, dear], 0) == (2,)
    assert judges_to_leave_out([cheap, dear, own], 2) == (1,)
    assert judges_to_leave_out([judge_of("pilot", [1.0] * 3 + [None] * 9), own]) == (0,)
    assert judges_to_leave_out([]) == ()
