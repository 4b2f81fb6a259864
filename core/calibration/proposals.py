"""What the judge is asked to write: drafts from exemplars, refinements from misaligned items; and the gate (§2.3).

Exemplars are a stratified Monte-Carlo sample of calibration items.  A refinement is shown items that its parent gets
wrong, and joins the pool only where it gains on an inner fold as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.calibration.calibration_settings import CalibrationSettings, RoundSettings
from core.calibration.candidate_pool import CallBudget, CandidatePool
from core.data.split import inner_fold
from core.judging.judge_protocol import DraftBatch, DraftRequest, Exemplar
from core.records import Criteria, FloatArray, GoldenSet, IntArray, Provenance
from core.stats import LabelledItems


def request_seed(*parts: int) -> int:
    """A 32-bit seed from the run's seed and a request's place, equal on every machine."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


def new_criteria(
    ask: Callable[[Sequence[DraftRequest]], DraftBatch],
    requests: Sequence[DraftRequest],
    budget: CallBudget,
    problems: Counter[str],
    known: Iterable[str] = (),
) -> tuple[Criteria, ...]:
    """Have requests answered: the usable, new criteria in order; `known` ids count as repetitions.

    The calls are added to `budget`, the reasons why other replies are of no use to `problems`.
    """
    if not requests:
        return ()
    batch, found = ask(requests), dict.fromkeys(known)
    budget.spend(len(requests), batch.usage)
    new: dict[str, Criteria] = {}
    for drafted in batch.drafted:
        if isinstance(drafted, str):
            problems[drafted] += 1
        elif drafted.criteria_id in found or drafted.criteria_id in new:
            problems["the same text as another draft"] += 1
        else:
            new[drafted.criteria_id] = drafted
    return tuple(new.values())


def spread(requests: Sequence[DraftRequest], n: int) -> tuple[DraftRequest, ...]:
    """`n` of the requests, in their order: of every parent, size and trial some before any gives its second sample."""

    def turn(k: int) -> tuple[int, int, int, int]:
        made = requests[k].provenance
        return made.sample, made.trial, made.size, k

    return tuple(requests[k] for k in sorted(sorted(range(len(requests)), key=turn)[:n]))


# ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def stratified_sample(labels: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """`size` distinct indices into `labels` (n,), spread evenly over the label range, in shuffled order.

    The items are put in order of label (ties in random order) and cut into `size` runs of equal length; one item
    is drawn from each.  So every part of the range is seen and no label dominates.  All indices when `size` ≥ n.
    """
    n = len(labels)
    if size >= n:
        return rng.permutation(n)
    order = np.lexsort((rng.random(n), labels))
    edges = np.floor(np.linspace(0, n, size + 1)).astype(int)
    return rng.permutation(order[rng.integers(edges[:-1], edges[1:])])


def draft_requests(golden: GoldenSet, items: LabelledItems, settings: CalibrationSettings) -> tuple[DraftRequest, ...]:
    """One request per trial, exemplar size and sample; the samples of a trial share their exemplars."""
    plan, requests = settings.plan, []
    for trial in range(plan.draft_trials):
        for size in plan.draft_sizes:
            picks = stratified_sample(items.labels, size, np.random.default_rng([settings.seed, 1, size, trial]))
            exemplars = _exemplars(golden, items.take(picks))
            ids = tuple(exemplar.item.item_id for exemplar in exemplars)
            requests += [
                DraftRequest(
                    exemplars=exemplars,
                    temperature=settings.draft_temperature,
                    max_tokens=plan.max_tokens,
                    seed=request_seed(settings.seed, 1, size, trial, sample),
                    provenance=Provenance("draft", 0, (), ids, size, trial, sample),
                    max_words=settings.max_words,
                )
                for sample in range(plan.draft_samples)
            ]
    return tuple(requests)


def fitting_request(golden: GoldenSet, items: LabelledItems, settings: CalibrationSettings) -> DraftRequest:
    """One request that shows all `items`, for judges that fit strengths to labels."""
    exemplars = _exemplars(golden, items)
    shown = tuple(each.item.item_id for each in exemplars)
    provenance = Provenance("draft", item_ids=shown, note="strengths fitted to all calibration labels")
    seed = request_seed(settings.seed, 5)
    return DraftRequest(exemplars, 0.0, settings.plan.max_tokens, seed, provenance, fit=True)


def _exemplars(golden: GoldenSet, items: LabelledItems) -> tuple[Exemplar, ...]:
    pairs = zip(items.positions.tolist(), items.labels.tolist(), strict=True)
    return tuple(Exemplar(golden.items[position], label) for position, label in pairs)


# ── refinements ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Folds:
    """Calibration items for looking at (`train`) and for gating (`inner`), as places in the pool's items."""

    train: IntArray
    inner: IntArray

    @classmethod
    def of(cls, items: LabelledItems, settings: CalibrationSettings, *, gated: bool = True) -> Folds:
        """By source.  Not `gated`, or without enough sources for two folds, both hold all items."""
        if not gated or np.unique(items.sources).size < 4:
            return cls(np.arange(items.n), np.arange(items.n))
        fold = inner_fold(range(items.n), items.sources, 1 - settings.inner_share, request_seed(settings.seed, 4))
        return cls(np.array(fold.fit), np.array(fold.validation))


def standardised_gap(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """(n,) z(scores) − z(labels): above 0 the judge is too lenient, below too strict; NaN where unscored.

    Both sides are standardised over the items that have a score; a constant side counts as 0 everywhere.
    """
    known, gap = ~np.isnan(scores), np.full(len(scores), np.nan)
    if known.any():
        both = np.stack([scores[known], labels[known]])
        spread = both.std(axis=1, keepdims=True)
        z = np.where(spread > 0, (both - both.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0), 0.0)
        gap[known] = z[0] - z[1]
    return gap


def most_misaligned(scores: FloatArray, labels: FloatArray, settings: CalibrationSettings) -> IntArray:
    """Indices of the items with the largest |gap| ≥ `min_gap`, at most `misaligned`, largest first."""
    size = np.nan_to_num(np.abs(standardised_gap(scores, labels)), nan=-1.0)
    order = np.argsort(-size, kind="stable")[: settings.misaligned]
    return order[size[order] >= settings.min_gap]


@dataclass(frozen=True)
class Refiner:
    """Write the requests of one round: each size shows that many misaligned items, `how.samples` times.

    `purpose` separates the random numbers of a calibration's rounds from those of rounds that a person asks for.
    """

    golden: GoldenSet
    items: LabelledItems
    how: RoundSettings
    purpose: int
    round: int
    max_words: int | None = None

    def requests(
        self, parent: Criteria, rank: int, scores: FloatArray, misaligned: IntArray, *, sizes: Iterable[int], trial: int
    ) -> Iterator[DraftRequest]:
        """Requests about the parent of that rank; `misaligned` are places into `items`, (n,), as `scores` are."""
        for size in sizes if len(misaligned) else ():
            seeds = (self.how.seed, self.purpose, self.round, rank, size, trial)
            places = np.random.default_rng(seeds).choice(misaligned, size=min(size, len(misaligned)), replace=False)
            shown = tuple(
                Exemplar(self.golden.items[self.items.positions[k]], float(self.items.labels[k]), float(scores[k]))
                for k in places
            )
            ids = tuple(example.item.item_id for example in shown)
            for sample in range(self.how.samples):
                yield DraftRequest(
                    criteria=parent,
                    exemplars=shown,
                    temperature=self.how.temperature,
                    max_tokens=self.how.max_tokens,
                    seed=request_seed(*seeds, sample),
                    provenance=Provenance("refine", self.round, (parent.criteria_id,), ids, size, trial, sample),
                    operations=self.how.operations,
                    max_words=self.max_words,
                )


def refine_requests(
    golden: GoldenSet, pool: CandidatePool, folds: Folds, parents: Sequence[str], round_: int
) -> list[DraftRequest]:
    """For each trial and parent, sizes × samples requests that show some of the parent's misaligned items."""
    settings, plan, items = pool.settings, pool.settings.plan, pool.items.take(folds.train)
    how = RoundSettings(
        samples=plan.refine_samples,
        temperature=settings.refine_temperature,
        max_tokens=plan.max_tokens,
        seed=settings.seed,
    )
    refiner, requests = Refiner(golden, items, how, 3, round_, settings.max_words), list[DraftRequest]()
    for trial in range(plan.refine_trials):
        for rank, parent in enumerate(parents):
            scores = pool.values(parent)[folds.train]
            shown = most_misaligned(scores, items.labels, settings)
            criteria = pool.entries[parent].criteria
            requests += refiner.requests(criteria, rank, scores, shown, sizes=plan.refine_sizes, trial=trial)
    return requests


def gate(pool: CandidatePool, folds: Folds, children: Sequence[str]) -> None:
    """Keep the refinements that gain on their parent both overall and on the inner fold; reject the others.

    Without `refine_gate` in the settings all whose alignment is defined are kept, as in the paper.
    """
    inner = pool.items.take(folds.inner)
    for child in children:
        parent = pool.entries[child].criteria.provenance.parents[0]
        scores = np.stack([pool.values(name)[folds.inner] for name in (child, parent)])
        new, old = (found.value for found in pool.align(scores, inner, resamples=0))
        gain = None if new is None or old is None else new - old
        gains = gain is not None and gain > 0 and pool.value(child) > pool.value(parent)
        kept = gains or (not pool.settings.refine_gate and new is not None)
        pool.entries[child] = replace(pool.entries[child], inner_gain=gain, status="kept" if kept else "rejected")
