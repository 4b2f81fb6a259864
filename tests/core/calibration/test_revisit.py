"""Racing: schedules, equal items for all arms, batches at source boundaries."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.revisit import MIN_ITEMS, Order, Rung, racing_rungs, rung_calls, step_items


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=60),
    st.integers(1, 80),
    st.integers(1, 8),
    st.integers(0, 5),
)
def test_schedule_narrows_arms_and_widens_items(sizes: list[int], arms: int, finalists: int, seed: int) -> None:
    sources = np.repeat(np.arange(len(sizes)), sizes)
    order = Order(sources, seed)
    rungs = racing_rungs(arms, finalists, order)
    assert rungs[0].arms == arms
    assert rungs[-1].items == len(sources)
    assert rungs[-1].arms == min(arms, finalists) or len(rungs) == 1
    for before, after in itertools.pairwise(rungs):
        assert after.arms <= before.arms
        assert after.items > before.items
    assert rung_calls(rungs) <= arms * len(sources)


def test_first_rung_is_large_enough_to_rank() -> None:
    order = Order(np.arange(200), 0)  # every item its own source, as in QAGS
    assert racing_rungs(60, 4, order)[0].items >= MIN_ITEMS


def test_calls_by_hand() -> None:
    # 10 arms on 5 items, then 4 arms on 15 more, then 2 on 30 more: 50 + 60 + 60, and one reference on all 50.
    rungs = (Rung(10, 5), Rung(4, 20), Rung(2, 50))
    assert rung_calls(rungs) == 170
    assert rung_calls(rungs, n_reference=1) == 220


def test_a_large_golden_set_takes_no_more_steps() -> None:
    """4 criteria: 512 / 4 = 128 items a step up to 40 x 128 = 5,120 items, beyond that a fortieth of them."""
    assert [step_items(n, 4) for n in (100, 800, 5_120, 6_000, 50_000)] == [128, 128, 128, 150, 1_250]
    assert step_items(100, 60) == 20  # of 60 criteria 512 / 60 = 9 items would be few
    order = Order(np.repeat(np.arange(5_000), 10), seed=0)
    assert len(order.batches(0, 50_000, 4)) == 40
    assert len(order.batches(0, 800, 4)) == 7  # cut at sources of ten items: 130 a step


@pytest.mark.parametrize("arms", [1, 5, 60])
def test_batches_cover_everything_once_and_keep_sources_whole(arms: int) -> None:
    sources = np.repeat(np.arange(30), 7)
    order = Order(sources, 1)
    batches = order.batches(0, 210, arms)
    assert sorted(np.concatenate(batches).tolist()) == list(range(210))
    for batch in batches:
        assert (np.bincount(sources[batch], minlength=30) % 7 == 0).all()


def test_order_is_a_shuffle_of_whole_sources() -> None:
    sources = np.repeat(np.arange(20), 3)
    order = Order(sources, 4)
    seen = sources[order.items]
    assert (seen.reshape(20, 3) == seen[::3, None]).all()
    assert seen[::3].tolist() != list(range(20))
