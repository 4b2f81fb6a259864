"""Self-refinement (001 §2.3): misaligned items of each parent, refinements, and the gate on the inner fold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from core.calibration.draft import request_seed
from core.calibration.pool import CandidatePool
from core.calibration.settings import CalibrationSettings
from core.data.split import inner_fold
from core.judging.base import OPERATIONS, Misaligned, Operation, RefineRequest
from core.records import Criteria, FloatArray, GoldenSet, IntArray, Provenance
from core.stats import LabelledItems
from core.stats.correlation import average_ranks


@dataclass(frozen=True)
class Folds:
    """Calibration items for looking at (`train`) and for gating (`inner`), as places in the pool's items."""

    train: IntArray
    inner: IntArray

    @classmethod
    def of(cls, items: LabelledItems, settings: CalibrationSettings) -> Folds:
        """By source.  Without enough sources for two folds the gate sees the same items as the choice."""
        everything = np.arange(items.n, dtype=np.intp)
        if len(np.unique(items.sources)) < 4:
            return cls(everything, everything)
        fold = inner_fold(range(items.n), items.sources, 1 - settings.inner_share, request_seed(settings.seed, 4))
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


@dataclass(frozen=True)
class Refiner:
    """Requests to refine criteria in one round: each size shows that many misaligned items, `samples` times.

    `items` are those of the calibration split part that may be shown; `purpose` keeps the random numbers of a
    calibration's rounds apart from those of rounds that a person asks for.
    """

    golden: GoldenSet
    items: LabelledItems
    seed: int
    purpose: int
    round: int
    samples: int
    temperature: float
    max_tokens: int
    operations: tuple[Operation, ...] = OPERATIONS

    def requests(
        self, parent: Criteria, rank: int, scores: FloatArray, misaligned: IntArray, *, sizes: Iterable[int], trial: int
    ) -> Iterator[RefineRequest]:
        """Requests about the parent of that rank; `misaligned` are places into `items`, (n,), as `scores` are."""
        for size in sizes if len(misaligned) else ():
            seeds = (self.seed, self.purpose, self.round, rank, size, trial)
            places = np.random.default_rng(seeds).choice(misaligned, size=min(size, len(misaligned)), replace=False)
            positions = self.items.positions[places]
            shown = tuple(
                Misaligned(self.golden.items[position], float(label), float(score))
                for position, label, score in zip(positions, self.items.labels[places], scores[places], strict=True)
            )
            ids = tuple(example.item.item_id for example in shown)
            for sample in range(self.samples):
                yield RefineRequest(
                    criteria=parent,
                    misaligned=shown,
                    temperature=self.temperature,
                    max_tokens=self.max_tokens,
                    seed=request_seed(*seeds, sample),
                    provenance=Provenance("refine", self.round, (parent.criteria_id,), ids, size, trial, sample),
                    operations=self.operations,
                )


def refine_requests(
    golden: GoldenSet, pool: CandidatePool, folds: Folds, parents: Sequence[str], round_: int
) -> tuple[RefineRequest, ...]:
    """For each parent, sizes × trials × samples requests, each showing 1, 2 or 4 of its misaligned items.

    The order runs over trials and parents first, so that a budget that cuts the list leaves every parent some.
    """
    settings, plan = pool.settings, pool.settings.plan
    items = pool.items.take(folds.train)
    refiner = Refiner(
        golden, items, settings.seed, 3, round_, plan.refine_samples, settings.refine_temperature, plan.max_tokens
    )
    requests: list[RefineRequest] = []
    for trial in range(plan.refine_trials):
        for rank, parent in enumerate(parents):
            entry = pool.entries[parent]
            scores = entry.values[folds.train]
            misaligned = most_misaligned(scores, items.labels, settings)
            requests += refiner.requests(entry.criteria, rank, scores, misaligned, sizes=plan.refine_sizes, trial=trial)
    return tuple(requests)


def gate(pool: CandidatePool, folds: Folds, children: Sequence[Criteria]) -> tuple[str, ...]:
    """Ids of refinements that gain on their parent both overall and on the inner fold; the others are rejected.

    Only children scored on every calibration item are judged; METHODS §4 tells why the second test is needed.
    """
    accepted: list[str] = []
    inner = pool.items.take(folds.inner)
    for child in children:
        entry = pool.entries[child.criteria_id]
        parent = pool.entries[child.provenance.parents[0]]
        both = pool.align(np.stack([entry.values[folds.inner], parent.values[folds.inner]]), inner, resamples=0)
        new, old = both[0].value, both[1].value
        entry.inner_gain = None if new is None or old is None else new - old
        gains = entry.inner_gain is not None and entry.inner_gain > 0
        if gains and pool.value(child.criteria_id) > pool.value(parent.criteria.criteria_id):
            accepted.append(child.criteria_id)
    pool.mark([child.criteria_id for child in children], "rejected")
    pool.mark(accepted, "kept")
    return tuple(accepted)
