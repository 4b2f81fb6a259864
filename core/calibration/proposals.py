"""What the judge is asked to write (001 §2.3): drafts from exemplars, refinements from misaligned items, and the gate.

Exemplars are a stratified Monte-Carlo sample of calibration items; a refinement is shown items that its parent gets
wrong, and joins the pool only where it gains on an inner fold as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.calibration.calibration_settings import CalibrationSettings, RoundSettings
from core.calibration.candidate_pool import CandidatePool
from core.data.split import inner_fold
from core.judging.judge_protocol import DraftBatch, DraftRequest, Exemplar, Misaligned, RefineRequest
from core.records import Criteria, FloatArray, GoldenSet, IntArray, Provenance
from core.stats import LabelledItems
from core.stats.correlation import average_ranks


def request_seed(*parts: int) -> int:
    """A 32-bit seed from the run's seed and a request's place, equal on every machine."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


@dataclass(frozen=True)
class Distinct:
    """Drafted criteria without repetitions, and why the others fell away (reason → count)."""

    criteria: tuple[Criteria, ...]
    problems: Mapping[str, int]


def distinct(batch: DraftBatch, known: Sequence[str] = ()) -> Distinct:
    """The usable, new criteria of a batch in order; `known` ids count as repetitions."""
    seen, kept, problems = set(known), [], Counter[str]()
    for drafted in batch.drafted:
        if drafted.criteria is None:
            reason = drafted.problem or "no criteria in the reply"
        elif drafted.criteria.criteria_id in seen:
            reason = "the same text as another draft"
        else:
            seen.add(drafted.criteria.criteria_id)
            kept.append(drafted.criteria)
            continue
        problems[reason] += 1
    return Distinct(tuple(kept), problems)


# ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def stratified_sample(labels: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """`size` distinct indices into `labels` (n,), spread evenly over the label range, in shuffled order.

    The items are put in order of label (ties in random order) and cut into `size` runs of equal length; one item
    is drawn from each.  So every part of the range is seen and no label dominates (001 §2.3 wants the label
    bias of few-shot prompts softened; how is left open there).  All indices when `size` ≥ n.
    """
    n = len(labels)
    if size >= n:
        return rng.permutation(n).astype(np.intp)
    order = np.lexsort((rng.random(n), labels))
    edges = np.linspace(0, n, size + 1)
    low, high = np.floor(edges[:-1]).astype(int), np.floor(edges[1:]).astype(int)
    picks = order[rng.integers(low, high)]
    return rng.permutation(picks).astype(np.intp)


def draft_requests(
    golden: GoldenSet, labels: FloatArray, positions: IntArray, settings: CalibrationSettings
) -> tuple[DraftRequest, ...]:
    """One request per exemplar size, trial and sample; the samples of a trial share their exemplars.

    The order runs over trials first, so that a budget that cuts the list short still leaves every size.
    `labels` (n,) belong to `positions` (n,) into `golden.items`.
    """
    plan = settings.plan
    requests: list[DraftRequest] = []
    for trial in range(plan.draft_trials):
        for size in plan.draft_sizes:
            rng = np.random.default_rng([settings.seed, 1, size, trial])
            picks = stratified_sample(labels, size, rng)
            exemplars = tuple(Exemplar(golden.items[positions[i]], float(labels[i])) for i in picks)
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


def fitting_request(
    golden: GoldenSet, labels: FloatArray, positions: IntArray, settings: CalibrationSettings
) -> DraftRequest:
    """One request that shows all of `positions` (n,), for judges that fit strengths to labels (n,)."""
    exemplars = tuple(
        Exemplar(golden.items[k], label) for k, label in zip(positions.tolist(), labels.tolist(), strict=True)
    )
    shown = tuple(each.item.item_id for each in exemplars)
    provenance = Provenance("draft", item_ids=shown, note="strengths fitted to all calibration labels")
    seed = request_seed(settings.seed, 5)
    return DraftRequest(exemplars, 0.0, settings.plan.max_tokens, seed, provenance, fit=True)


# ── refinements ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Folds:
    """Calibration items for looking at (`train`) and for gating (`inner`), as places in the pool's items."""

    train: IntArray
    inner: IntArray

    @classmethod
    def ungated(cls, items: LabelledItems) -> Folds:
        """All items to look at: no refinement is tested on items that it was not shown."""
        everything = np.arange(items.n, dtype=np.intp)
        return cls(everything, everything)

    @classmethod
    def of(cls, items: LabelledItems, settings: CalibrationSettings) -> Folds:
        """By source.  Without enough sources for two folds the gate sees the same items as the choice."""
        if len(np.unique(items.sources)) < 4:
            return cls.ungated(items)
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
    """Requests to refine criteria in one round: each size shows that many misaligned items, `how.samples` times.

    `items` are those of the calibration split part that may be shown; `purpose` keeps the random numbers of a
    calibration's rounds apart from those of rounds that a person asks for.
    """

    golden: GoldenSet
    items: LabelledItems
    how: RoundSettings
    purpose: int
    round: int
    max_words: int | None = None

    def requests(
        self, parent: Criteria, rank: int, scores: FloatArray, misaligned: IntArray, *, sizes: Iterable[int], trial: int
    ) -> Iterator[RefineRequest]:
        """Requests about the parent of that rank; `misaligned` are places into `items`, (n,), as `scores` are."""
        for size in sizes if len(misaligned) else ():
            seeds = (self.how.seed, self.purpose, self.round, rank, size, trial)
            places = np.random.default_rng(seeds).choice(misaligned, size=min(size, len(misaligned)), replace=False)
            positions = self.items.positions[places]
            shown = tuple(
                Misaligned(self.golden.items[position], float(label), float(score))
                for position, label, score in zip(positions, self.items.labels[places], scores[places], strict=True)
            )
            ids = tuple(example.item.item_id for example in shown)
            for sample in range(self.how.samples):
                yield RefineRequest(
                    criteria=parent,
                    misaligned=shown,
                    temperature=self.how.temperature,
                    max_tokens=self.how.max_tokens,
                    seed=request_seed(*seeds, sample),
                    provenance=Provenance("refine", self.round, (parent.criteria_id,), ids, size, trial, sample),
                    operations=self.how.operations,
                    max_words=self.max_words,
                )


def refine_requests(
    golden: GoldenSet, pool: CandidatePool, folds: Folds, parents: Sequence[str], round_: int
) -> tuple[RefineRequest, ...]:
    """For each parent, sizes × trials × samples requests, each showing 1, 2 or 4 of its misaligned items.

    The order runs over trials and parents first, so that a budget that cuts the list leaves every parent some.
    """
    settings, plan = pool.settings, pool.settings.plan
    items = pool.items.take(folds.train)
    how = RoundSettings(
        plan.refine_sizes,
        plan.refine_trials,
        plan.refine_samples,
        settings.refine_temperature,
        plan.max_tokens,
        seed=settings.seed,
    )
    refiner = Refiner(golden, items, how, 3, round_, settings.max_words)
    requests: list[RefineRequest] = []
    for trial in range(plan.refine_trials):
        for rank, parent in enumerate(parents):
            scores = pool.values(parent)[folds.train]
            misaligned = most_misaligned(scores, items.labels, settings)
            criteria = pool.entries[parent].criteria
            requests += refiner.requests(criteria, rank, scores, misaligned, sizes=plan.refine_sizes, trial=trial)
    return tuple(requests)


def gate(pool: CandidatePool, folds: Folds, children: Sequence[Criteria]) -> tuple[str, ...]:
    """Ids of refinements that gain on their parent both overall and on the inner fold; the others are rejected.

    Without `refine_gate` in the settings all whose alignment is defined are taken, as 001 does.  Only children scored
    on every calibration item are judged; METHODS §4 tells why the second test is needed.
    """
    accepted: list[str] = []
    inner = pool.items.take(folds.inner)
    for child in children:
        ids = (child.criteria_id, child.provenance.parents[0])
        both = pool.align(np.stack([pool.values(criteria_id)[folds.inner] for criteria_id in ids]), inner, resamples=0)
        new, old = both[0].value, both[1].value
        gain = pool.entries[child.criteria_id].inner_gain = None if new is None or old is None else new - old
        gains = gain is not None and gain > 0 and pool.value(ids[0]) > pool.value(ids[1])
        if gains or (not pool.settings.refine_gate and new is not None):
            accepted.append(child.criteria_id)
    pool.mark([child.criteria_id for child in children], "rejected")
    pool.mark(accepted, "kept")
    return tuple(accepted)
