"""Self-refinement (001 §2.3): misaligned items of each parent, refinements, and the gate on the inner fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.calibration.board import Board
from core.calibration.draft import request_seed
from core.calibration.settings import CalibrationSettings
from core.data.split import inner_fold
from core.judging.base import Misaligned, RefineRequest
from core.records import Criteria, FloatArray, GoldenSet, IntArray, Provenance
from core.stats import LabelledItems
from core.stats.correlation import average_ranks


@dataclass(frozen=True)
class Folds:
    """Calibration items for looking at (`train`) and for gating (`inner`), as places on the board's side."""

    train: IntArray
    inner: IntArray

    @classmethod
    def of(cls, side: LabelledItems, settings: CalibrationSettings) -> Folds:
        """By source.  Without enough sources for two folds the gate sees the same items as the choice."""
        everything = np.arange(side.n, dtype=np.intp)
        if len(np.unique(side.sources)) < 4:
            return cls(everything, everything)
        fold = inner_fold(range(side.n), side.sources, 1 - settings.inner_share, request_seed(settings.seed, 4))
        return cls(np.asarray(fold.fit, dtype=np.intp), np.asarray(fold.validation, dtype=np.intp))


def standardised_gap(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """(n,) z(scores) − z(labels): above 0 the judge is too lenient, below too strict; NaN where unscored.

    Both sides are standardised over the items that have a score; a constant side counts as 0 everywhere.
    """
    known = ~np.isnan(scores)
    gap = np.full(len(scores), np.nan)
    if known.any():
        gap[known] = _standardised(scores[known]) - _standardised(labels[known])
    return gap


def rank_gap(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """(n,) place of the score minus place of the label among the items that have a score; NaN where unscored.

    Places are average ranks from the lowest; above 0 the judge puts the item higher than the people do.
    """
    known = ~np.isnan(scores)
    gap = np.full(len(scores), np.nan)
    if known.any():
        gap[known] = average_ranks(scores[known]) - average_ranks(labels[known])
    return gap


def _standardised(values: FloatArray) -> FloatArray:
    spread = float(values.std())
    return (values - values.mean()) / spread if spread > 0 else np.zeros_like(values)


def most_misaligned(scores: FloatArray, labels: FloatArray, settings: CalibrationSettings) -> IntArray:
    """Indices of the items with the largest |gap| ≥ `min_gap`, at most `misaligned`, largest first."""
    size = np.nan_to_num(np.abs(standardised_gap(scores, labels)), nan=-1.0)
    order = np.argsort(-size, kind="stable")[: settings.misaligned]
    return order[size[order] >= settings.min_gap].astype(np.intp)


def refine_requests(
    golden: GoldenSet, board: Board, folds: Folds, parents: Sequence[str], round_: int
) -> tuple[RefineRequest, ...]:
    """For each parent, sizes × trials × samples requests, each showing 1, 2 or 4 of its misaligned items.

    The order runs over trials and parents first, so that a budget that cuts the list leaves every parent some.
    """
    settings, plan = board.settings, board.settings.plan
    side = board.side.take(folds.train)
    requests: list[RefineRequest] = []
    for trial in range(plan.refine_trials):
        for rank, parent in enumerate(parents):
            entry = board.entries[parent]
            scores = entry.values[folds.train]
            pool = most_misaligned(scores, side.labels, settings)
            for size in plan.refine_sizes if len(pool) else ():
                rng = np.random.default_rng([settings.seed, 3, round_, rank, size, trial])
                picks = rng.choice(pool, size=min(size, len(pool)), replace=False)
                shown = tuple(
                    Misaligned(golden.items[side.positions[i]], float(side.labels[i]), float(scores[i])) for i in picks
                )
                ids = tuple(one.item.item_id for one in shown)
                requests += [
                    RefineRequest(
                        criteria=entry.criteria,
                        misaligned=shown,
                        temperature=settings.refine_temperature,
                        max_tokens=plan.max_tokens,
                        seed=request_seed(settings.seed, 3, round_, rank, size, trial, sample),
                        provenance=Provenance("refine", round_, (parent,), ids, size, trial, sample),
                    )
                    for sample in range(plan.refine_samples)
                ]
    return tuple(requests)


def gate(board: Board, folds: Folds, children: Sequence[Criteria]) -> tuple[str, ...]:
    """Ids of refinements that gain on their parent both overall and on the inner fold; the others are rejected.

    Only children scored on every calibration item are judged; METHODS §4 tells why the second test is needed.
    """
    accepted: list[str] = []
    inner = board.side.take(folds.inner)
    for child in children:
        entry = board.entries[child.criteria_id]
        parent = board.entries[child.provenance.parents[0]]
        both = board.align(np.stack([entry.values[folds.inner], parent.values[folds.inner]]), inner, resamples=0)
        new, old = both[0].value, both[1].value
        entry.inner_gain = None if new is None or old is None else new - old
        gains = entry.inner_gain is not None and entry.inner_gain > 0
        if gains and board.value(child.criteria_id) > board.value(parent.criteria.criteria_id):
            accepted.append(child.criteria_id)
    board.mark([child.criteria_id for child in children], "rejected")
    board.mark(accepted, "kept")
    return tuple(accepted)
