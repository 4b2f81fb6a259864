"""Batches of texts of like length: padding costs as much as words do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from core.records import IntArray


def token_batches(lengths: Sequence[int], budget: int) -> list[IntArray]:
    """Positions 0..n-1 in batches whose padded size (texts x longest) stays within `budget` tokens.

    Longest first, so that a device too small for the work shows it at once.  A text longer than the budget is a batch
    of its own.  Every position occurs once; ties keep their order.
    """
    order = np.argsort(-np.asarray(lengths, dtype=np.intp), kind="stable")
    batches, start = [], 0
    while start < order.size:
        longest = max(int(lengths[order[start]]), 1)
        end = start + max(1, budget // longest)
        batches.append(order[start:end])
        start = end
    return batches
