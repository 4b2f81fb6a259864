"""Racing: schedules, what they cost, batches at the ends of chunks, ranking by standings."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.racing_order import Order
from core.calibration.revisit import Rung, racing_rungs, rung_calls


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
