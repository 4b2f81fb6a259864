"""Every layer, token and number of components at once: fitted on training, ranked on validation.

A cell is one layer at one token.  Cells go through the projection in batches as large as memory allows; the alignments
of all cells and all k come out of one batched correlation.  Test items are scored here but not looked at, but for one
question: is the direction of the chosen cell better than any direction?  (Random unit vectors, 003 section 4.4.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import AspectError, JudgeError
from core.records import FloatArray, IntArray, Measure
from core.repeval.projection import Projection, Training, majority_signs
from core.repeval.states.extraction import OnProgress
from core.repeval.states.records import HalfArray, finite_cells, varying_cells
from core.stats import LabelledItems, alignment_values

BATCH_BYTES = 256 << 20
QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


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
    finite = finite_cells(values)
    layers, tokens = np.nonzero(finite & varying_cells(values))
    total, step = len(layers), max(1, BATCH_BYTES // max(1, 4 * n_items * dim))
    alignments: FloatArray | None = None
    best_k = np.zeros((n_layers, n_tokens), dtype=np.intp)
    scores = np.full((n_layers, n_tokens, n_items), np.nan)
    for start in range(0, total, step):
        at = (layers[start : start + step], tokens[start : start + step])
        states = values[:, at[0], at[1]].astype(np.float32).transpose(1, 0, 2)
        with _one_blas_thread():
            rated = make().fit(states, training).score(states)
        n_k = rated.shape[1]
        if alignments is None:
            alignments = np.full((n_layers, n_tokens, n_k), np.nan)
        on_validation = rated[:, :, validation.positions].reshape(-1, validation.positions.size)
        aligned = alignment_values(on_validation, validation, measure).reshape(-1, n_k)
        best = np.argmax(np.nan_to_num(aligned, nan=-np.inf), axis=1)
        alignments[at], best_k[at] = aligned, best
        defined = ~np.isnan(aligned[np.arange(len(best)), best])
        scores[at] = np.where(defined[:, None], rated[np.arange(len(best)), best], np.nan)
        if on_progress is not None:
            on_progress(min(start + step, total), total)
    if not finite.any():
        raise JudgeError(
            f"Every cell of {n_layers} layers x {n_tokens} tokens holds states that are no finite numbers: the model "
            "overflows in this number format, or its weights are damaged. Read it in float32, or use another model."
        )
    if alignments is None or np.isnan(alignments).all():
        raise AspectError(
            f"No cell of {n_layers} layers x {n_tokens} tokens has an alignment on the {validation.labels.size} "
            "validation items: their labels, or all states, are constant. Label more items on which people differ."
        )
    return SearchResult(alignments, best_k, scores)


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    """Thousands of small products: threads inside each one wait for each other longer than they work."""
    import scipy.linalg  # noqa: F401  (brings a BLAS of its own, which must be there to be limited)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def average_cells(searched: SearchResult, validation: LabelledItems, count: int) -> tuple[IntArray, FloatArray]:
    """The `count` best cells, (m, 2) layer and token indices, best first, and the mean (n_items,) of their z-scores.

    z by mean and deviation over the validation items.  With one cell the scores are that cell's own.
    """
    members = searched.ranked()[:count]
    scores = searched.scores[members[:, 0], members[:, 1]]
    if len(scores) == 1:
        return members, scores[0]
    on_validation = scores[:, validation.positions]
    centre, spread = on_validation.mean(axis=1, keepdims=True), on_validation.std(axis=1, keepdims=True)
    return members, ((scores - centre) / spread).mean(axis=0)


# ── random directions ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class RandomBaseline:
    """Test alignments of random directions in the chosen cell.

    `values` (n,) of the vectors as they came, `flipped` (n,) of the same ones turned so that the good text of most
    training pairs projects higher; NaN = undefined.  `projection` is the chosen cell's own test alignment;
    `percentile` (0 to 100) is the share of random vectors below it (ties count half), `percentile_flipped` the same
    for the turned ones.
    """

    projection: float | None
    percentile: float | None
    percentile_flipped: float | None
    values: FloatArray
    flipped: FloatArray

    def as_json(self) -> dict[str, Any]:
        """Percentiles and quantiles, without the single values."""
        return {
            "percentile": self.percentile,
            "percentile_flipped": self.percentile_flipped,
            "projection": self.projection,
            "n": int(self.values.size),
            "quantiles": _quantiles(self.values),
            "quantiles_flipped": _quantiles(self.flipped),
        }


def random_baseline(
    states: NDArray[np.float32],
    training: Training,
    test: LabelledItems,
    measure: Measure,
    *,
    projection: float | None,
    count: int,
    generator: np.random.Generator,
) -> RandomBaseline:
    """`count` random unit vectors on `states` (n_items, dim) of one cell, evaluated on `test`.

    The pairs of `training` turn the vectors for the second distribution; `projection` is what the fitted direction
    reaches on the same test items.
    """
    vectors = generator.standard_normal((count, states.shape[1])).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    values = alignment_values((vectors @ states[test.positions].T).astype(np.float64), test, measure)
    gaps = vectors @ (states[training.good] - states[training.bad]).T
    flipped = values * majority_signs(gaps)
    return RandomBaseline(
        projection, percentile_of(projection, values), percentile_of(projection, flipped), values, flipped
    )


def percentile_of(value: float | None, among: FloatArray) -> float | None:
    """0 to 100: the share of `among` below `value`, ties counted half; None when either is undefined."""
    defined = among[~np.isnan(among)]
    if value is None or not defined.size:
        return None
    return float(100.0 * ((defined < value).sum() + 0.5 * (defined == value).sum()) / defined.size)


def _quantiles(values: FloatArray) -> dict[str, float] | None:
    defined = values[~np.isnan(values)]
    if not defined.size:
        return None
    return {f"{level:g}": float(np.quantile(defined, level)) for level in QUANTILES}
