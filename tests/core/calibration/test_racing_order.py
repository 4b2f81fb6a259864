"""The order in which racing takes items: labels laid apart from the first item on, every item once, chance by seed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.racing_order import CHUNK, Order, racing_order
from core.stats import LabelledItems

RACING = CalibrationSettings()


@given(
    st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=9), min_size=1, max_size=30),
    st.integers(0, 5),
    st.sampled_from(["dataset", "sample", "system"]),
    st.sampled_from([0.3, 1.0]),
)
def test_every_order_has_every_item_once(groups: list[list[int]], seed: int, level: str, share: float) -> None:
    labels = np.concatenate([np.array(group, dtype=float) for group in groups])
    sources = np.repeat(np.arange(len(groups)) * 3, [len(group) for group in groups])
    settings = replace(RACING, seed=seed, level=level)  # type: ignore[arg-type]
    order = racing_order(LabelledItems.from_arrays(labels, sources), settings, share)
    assert sorted(order.items.tolist()) == list(range(labels.size))
    assert order.ends[-1] == labels.size
    assert list(order.ends) == sorted(set(order.ends))
    assert order.near(0.0) == order.ends[0]
    assert order.up_to(1.0) == order.near(1e9) == labels.size


def test_a_source_gives_its_ends_and_two_from_between_first() -> None:
    """Labels 0 to 9 of a source: places 0, 3, 6, 9 first; of what is left, 1 2 4 5 7 8, places 0, 2, 3, 5; then two."""
    labels, sources = np.array([7.0, 2, 9, 0, 4, 1, 8, 3, 6, 5, 1, 1, 1]), np.repeat([4, 2], [10, 3])
    order = Order.by_source(labels, sources, seed=1)
    told = [sorted(labels[chunk]) for chunk in np.split(order.items, order.ends[:-1])]
    assert told == [[0, 3, 6, 9], [1, 4, 5, 8], [2, 7], [1, 1, 1]]  # equal labels, which rank nothing, last
    assert order.ends == (CHUNK, 8, 10, 13)


def test_all_sources_come_before_any_comes_again() -> None:
    sources = np.repeat(np.arange(20), 7)
    order = Order.by_source(np.tile(np.arange(7.0), 20), sources, seed=3)
    first = sources[order.items[: 20 * CHUNK]]
    assert sorted(first.tolist()) == np.repeat(np.arange(20), CHUNK).tolist()
    assert first[::CHUNK].tolist() != list(range(20))
    again = Order.by_source(np.tile(np.arange(7.0), 20), sources, seed=4)
    assert order.items.tolist() != again.items.tolist()
