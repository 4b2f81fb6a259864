from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.records import FloatArray, Interval
from core.store.database import pack, unpack

floats = st.floats(allow_nan=False)
texts = st.text(st.characters(exclude_categories=["Cs"]))


@dataclass(frozen=True)
class _Everything:
    number: float
    text: str
    maybe: Interval | None
    pairs: tuple[tuple[str, int], ...]
    named: Mapping[str, tuple[float | None, ...]]
    free: Mapping[str, Any]
    first: FloatArray = field(default_factory=lambda: np.zeros(0))
    second: FloatArray = field(default_factory=lambda: np.zeros((0, 3)))


@given(
    number=floats,
    text=texts,
    maybe=st.none() | st.builds(Interval, floats, floats),
    pairs=st.lists(st.tuples(texts, st.integers())).map(tuple),
    named=st.dictionaries(texts, st.lists(st.none() | floats).map(tuple)),
)
def test_records_come_back_equal(
    number: float, text: str, maybe: Interval | None, pairs: tuple[tuple[str, int], ...], named: dict[str, Any]
) -> None:
    before = _Everything(number, text, maybe, pairs, named, {"list": [1, "x", None]})
    after = unpack(_Everything, pack(before))
    assert (after.number, after.text, after.maybe, after.pairs, after.named, after.free) == (
        number,
        text,
        maybe,
        pairs,
        named,
        before.free,
    )
    assert type(after.maybe) is type(maybe)


@given(st.lists(st.floats(width=64), max_size=20), st.integers(0, 4))
def test_arrays_come_back_bit_for_bit(values: list[float], rows: int) -> None:
    first, second = np.array(values, dtype=np.float64), np.full((rows, 3), 0.1)
    after = unpack(_Everything, pack(_Everything(0.0, "", None, (), {}, {}, first, second)))
    assert after.first.tobytes() == first.tobytes()
    assert after.second.shape == (rows, 3)
    assert after.second.tobytes() == second.tobytes()
    after.first.sort()  # a copy of its own, not a view into stored bytes


@pytest.mark.parametrize("value", [{1: 2}, {"x": {1, 2}}, object(), np.zeros(2, dtype=np.float32), b"bytes"])
def test_what_cannot_be_stored_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="Can't store"):
        pack(value)
