"""Templates: fields put in once, mistakes named; batches by length; cells that can be used."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.repeval.model import token_batches
from core.repeval.states import finite_cells, varying_cells


@given(st.lists(st.integers(0, 50), max_size=60), st.integers(1, 120))
def test_batches_hold_every_text_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = token_batches(lengths, budget)
    assert sorted(i for batch in batches for i in batch.tolist()) == list(range(len(lengths)))
    longest = [max(lengths[i] for i in batch) for batch in batches]
    assert longest == sorted(longest, reverse=True)
    assert all(len(batch) == 1 or len(batch) * top <= budget for batch, top in zip(batches, longest, strict=True))


def test_usable_cells_are_finite_and_vary() -> None:
    values = np.random.default_rng(0).normal(size=(70, 2, 3, 4)).astype(np.float16)
    values[:, 0, 1] = values[0, 0, 1]  # constant in each dimension
    values[69, 1, 0, 2] = np.nan
    values[68, 1, 2, 0] = -np.inf
    values[:, 1, 1] = 0.0
    values[69, 1, 1, 3] = 6e-8  # one subnormal number is enough to vary
    assert (finite_cells(values) & varying_cells(values)).tolist() == [[True, False, True], [False, True, False]]
