"""Racing: schedules, what they cost, batches at the ends of chunks, ranking by standings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.racing_order import LEAST_SINGLE, Order
from core.calibration.revisit import Rung, batches, racing_rungs, rung_calls, step_items


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=60),
    st.integers(1, 80),
    st.integers(1, 8),
    st.integers(0, 5),
)
def test_schedule_narrows_arms_and_widens_items(sizes: list[int], arms: int, finalists: int, seed: int) -> None:
    sources = np.repeat(np.arange(len(sizes)), sizes)
    order = Order.whole(sources, seed)
    rungs = racing_rungs(arms, finalists, order)
    assert rungs[0].arms == arms
    assert rungs[-1].items == len(sources)
    assert rungs[-1].arms >= min(arms, finalists)
    for before, after in itertools.pairwise(rungs):
        assert after.arms <= before.arms
        assert after.items > before.items
    assert rung_calls(rungs) <= arms * len(sources)


def test_first_rung_is_large_enough_to_rank() -> None:
    order = Order.over_all(np.arange(100.0), 0)  # every item its own source, as in QAGS
    assert racing_rungs(60, 4, order)[0].items == LEAST_SINGLE  # not 4 % of 100


@pytest.mark.parametrize(("n_sources", "size"), [(50, 16), (112, 10), (400, 5)])
@pytest.mark.parametrize("arms", [59, 60, 72])
def test_a_race_of_many_items_takes_at_most_15_percent_of_the_calls(n_sources: int, size: int, arms: int) -> None:
    n = n_sources * size
    order = Order.by_source(np.random.default_rng(0).normal(size=n), np.repeat(np.arange(n_sources), size), 0)
    assert rung_calls(racing_rungs(arms, 4, order)) <= 0.15 * arms * n


def test_rungs_by_hand() -> None:
    """50 sources of 16 are 800 items: 4 % are 32, then half as many again, 48, 72, 108, 162, 243, 364.5, 546.75, cut at

    chunks of 4 to the nearest, 160, 244, 364, 548 (where two are as near the first, 160).  Of 60 arms .64 go on, never
    under 4: 38.4, 24.576, 15.7, 10.07, 6.4, 4.1, 2.6.
    """
    order = Order.by_source(np.tile(np.arange(16.0), 50), np.repeat(np.arange(50), 16), 0)
    told = [(rung.arms, rung.items) for rung in racing_rungs(60, 4, order)]
    arms, items = [60, 38, 25, 16, 10, 6, 4, 4, 4], [32, 48, 72, 108, 160, 244, 364, 548, 800]
    assert told == list(zip(arms, items, strict=True))


def test_calls_by_hand() -> None:
    # 10 arms on 5 items, then 4 arms on 15 more, then 2 on 30 more: 50 + 60 + 60, and one reference on all 50.
    rungs = (Rung(10, 5), Rung(4, 20), Rung(2, 50))
    assert rung_calls(rungs) == 170
    assert rung_calls(rungs, n_reference=1) == 220


def test_a_large_golden_set_takes_no_more_steps() -> None:
    """4 criteria: 512 / 4 = 128 items a step up to 40 x 128 = 5,120 items, beyond that a fortieth of them."""
    assert [step_items(n, 4) for n in (100, 800, 5_120, 6_000, 50_000)] == [128, 128, 128, 150, 1_250]
    assert step_items(100, 60) == 20  # of 60 criteria 512 / 60 = 9 items would be few
    order = Order.whole(np.repeat(np.arange(5_000), 10), seed=0)
    assert len(batches(order, 0, 50_000, 4)) == 40
    assert len(batches(order, 0, 800, 4)) == 7  # cut at sources of ten items: 130 a step


@pytest.mark.parametrize("arms", [1, 5, 60])
def test_batches_cover_everything_once_and_keep_sources_whole(arms: int) -> None:
    sources = np.repeat(np.arange(30), 7)
    cut = batches(Order.whole(sources, 1), 0, 210, arms)
    assert sorted(np.concatenate(cut).tolist()) == list(range(210))
    for batch in cut:
        assert (np.bincount(sources[batch], minlength=30) % 7 == 0).all()
