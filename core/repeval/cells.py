"""Every layer, token and number of components at once: fitted on training, ranked on validation.

A cell is one layer at one token.  Cells go through the projection in batches as large as memory allows; the alignments
of all cells and all k come out of one batched correlation.  Test items are scored here but not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.errors import AspectError, JudgeError
from core.records import FloatArray, IntArray, Measure
from core.repeval.projection import Projection, Training
from core.repeval.states.records import HalfArray, finite_cells, varying_cells
from core.stats import LabelledItems, alignment_values

BATCH_BYTES = 256 << 20
OnProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class SearchResult:
    """What every cell did on validation.

    `values` (n_layers, n_tokens, n_k) validation alignment, NaN = undefined; `best_k` (n_layers, n_tokens) index of
    the best variant; `scores` (n_layers, n_tokens, n_items) of all items under it, NaN where the cell is undefined.
    """

    values: FloatArray
    best_k: IntArray
    scores: FloatArray

    @property
    def cells(self) -> FloatArray:
        """(n_layers, n_tokens) validation alignment at the best k; NaN = undefined."""
        return np.asarray(np.take_along_axis(self.values, self.best_k[..., None], axis=2)[..., 0], dtype=np.float64)

    def ranked(self) -> IntArray:
        """(n_defined, 2) layer and token indices of the defined cells, best first, ties in order."""
        flat = self.cells.ravel()
        order = np.argsort(-np.nan_to_num(flat, nan=-np.inf), kind="stable")[: int((~np.isnan(flat)).sum())]
        return np.stack(np.unravel_index(order, self.cells.shape), axis=1)


def search(
    values: HalfArray,
    make: Callable[[], Projection],
    *,
    training: Training,
    validation: LabelledItems,
    measure: Measure,
    on_progress: OnProgress | None = None,
) -> SearchResult:
    """Fit a projection from `make` in every cell of `values` (n_items, n_layers, n_tokens, dim), score all items.

    The rows of `training` are those of `values`.  A cell is undefined when a state in it is no finite
    number, when all its states are equal, or when its scores or the labels on validation are constant.  AspectError
    when no cell is defined, JudgeError when no cell has finite states.  `on_progress(done, total)` counts cells.
    """
    n_items, n_layers, n_tokens, dim = values.shape
    usable = usable_cells(values)
    total, step = int(usable.sum()), max(1, BATCH_BYTES // max(1, 4 * n_items * dim))
    layers, tokens = np.nonzero(usable)
    found: FloatArray | None = None
    best_k = np.zeros((n_layers, n_tokens), dtype=np.intp)
    scores = np.full((n_layers, n_tokens, n_items), np.nan)
    for start in range(0, total, step):
        at = (layers[start : start + step], tokens[start : start + step])
        states = values[:, at[0], at[1]].astype(np.float32).transpose(1, 0, 2)
        with _one_blas_thread():
            rated = make().fit(states, training).score(states)
        n_k = rated.shape[1]
        if found is None:
            found = np.full((n_layers, n_tokens, n_k), np.nan)
        on_validation = rated[:, :, validation.positions].reshape(-1, validation.positions.size)
        aligned = alignment_values(on_validation, validation, measure).reshape(-1, n_k)
        best = np.argmax(np.nan_to_num(aligned, nan=-np.inf), axis=1)
        found[at], best_k[at] = aligned, best
        defined = ~np.isnan(aligned[np.arange(len(best)), best])
        scores[at] = np.where(defined[:, None], rated[np.arange(len(best)), best], np.nan)
        if on_progress is not None:
            on_progress(min(start + step, total), total)
    if not finite_cells(values).any():
        raise JudgeError(
            f"Every cell of {n_layers} layers x {n_tokens} tokens holds states that are no finite numbers: the model "
            "overflows in this number format, or its weights are damaged. Read it in float32, or use another model."
        )
    if found is None or np.isnan(found).all():
        raise AspectError(
            f"No cell of {n_layers} layers x {n_tokens} tokens has an alignment on the {validation.labels.size} "
            "validation items: their labels, or all states, are constant. Label more items on which people differ."
        )
    return SearchResult(found, best_k, scores)


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Thousands of small products: threads inside each one wait for each other longer than they work."""
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own, which must be there to be limited)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def usable_cells(values: HalfArray) -> NDArray[np.bool_]:
    """(n_layers, n_tokens): whether all states of the cell are finite and not all of them equal."""
    return finite_cells(values) & varying_cells(values)


@dataclass(frozen=True)
class CellAverage:
    """The best cells together: `members` (m, 2) layer and token indices, best first; `scores` (n_items,)."""

    members: IntArray
    scores: FloatArray


def average_cells(found: SearchResult, validation: LabelledItems, count: int) -> CellAverage:
    """The mean of the z-scores of the `count` best cells; z by mean and deviation over the validation items.

    With one cell the scores are that cell's own.
    """
    members = found.ranked()[:count]
    rows = found.scores[members[:, 0], members[:, 1]]
    if len(rows) == 1:
        return CellAverage(members, rows[0])
    seen = rows[:, validation.positions]
    spread = seen.std(axis=1, keepdims=True)
    return CellAverage(members, ((rows - seen.mean(axis=1, keepdims=True)) / spread).mean(axis=0))
