"""Criteria drafting (001 §2.3): stratified Monte-Carlo exemplars from the calibration side, then deduplication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from core.calibration.settings import CalibrationSettings
from core.judging.base import DraftBatch, DraftRequest, Exemplar
from core.records import Criteria, FloatArray, GoldenSet, IntArray, Provenance


def request_seed(*parts: int) -> int:
    """A 32-bit seed from the run's seed and a request's place, equal on every machine."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


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
                )
                for sample in range(plan.draft_samples)
            ]
    return tuple(requests)


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
