"""Request new criteria: drafts from labelled exemplars, and refinements from misaligned items.

Exemplars are a stratified random sample of calibration items. A refinement is kept only if it aligns better than its
parent on all calibration items and on an inner fold, whose items the refinement has not seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.calibration.calibration_records import (
    INNER_SHARE,
    MISALIGNED_FROM,
    MISALIGNED_POOL,
    CalibrationSettings,
    RoundSettings,
)
from core.calibration.racing import BoundJudge, CandidatePool, ScoreTable
from core.data.split import inner_fold
from core.errors import UsageError
from core.judging.judge_protocol import DraftRequest, Exemplar, Judge
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import MOST_EXAMPLES, examples_for, shown_item
from core.progress import Stage
from core.providers.budget import BudgetSpentError
from core.records import (
    Criteria,
    FloatArray,
    GoldenSet,
    IntArray,
    Item,
    Measure,
    Provenance,
    RatedExample,
    Scale,
    Split,
    Usage,
)
from core.stats import Difference, LabelledItems, alignment_values, paired_difference

SCORE_BATCH = 40
MAX_TOKENS = 768
"""Longest criteria, in tokens (AutoCalibrate, Table 9)."""
TEMPERATURE = 1.0
"""Temperature of drafting and refining (AutoCalibrate, Table 9)."""


def request_seed(*parts: int) -> int:
    """Hash the run's seed and the position of a request (`parts`) to a 32-bit seed, the same on every machine."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


def new_criteria(
    judge: BoundJudge,
    requests: Sequence[DraftRequest],
    table: ScoreTable,
    problems: Counter[str],
    known: Iterable[str] = (),
) -> tuple[Criteria, ...]:
    """Send requests and return the usable new criteria. Criteria whose ids are in `known` count as repetitions.

    Adds the calls to `table`, and counts unusable replies by reason in `problems`.
    """
    if not requests:
        return ()
    try:
        batch = judge.draft(requests)
    except BudgetSpentError as error:
        table.end(error)
        return ()
    table.spend(len(requests), batch.usage)
    found, new = set(known), dict[str, Criteria]()
    for drafted in batch.drafted:
        if isinstance(drafted, str):
            problems[drafted] += 1
        elif drafted.criteria_id in found or drafted.criteria_id in new:
            problems["the same text as another draft"] += 1
        else:
            new[drafted.criteria_id] = drafted
    return tuple(new.values())


# ── drafts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def stratified_sample(labels: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Return `size` distinct indices into `labels` (n,), spread evenly over the ranked labels, in random order.

    Returns all indices if `size` ≥ n.
    """
    n = len(labels)
    if size >= n:
        return rng.permutation(n)
    order = np.lexsort((rng.random(n), labels))
    edges = np.floor(np.linspace(0, n, size + 1)).astype(int)
    return rng.permutation(order[rng.integers(edges[:-1], edges[1:])])


def draft_requests(
    golden: GoldenSet, aspect: str, items: LabelledItems, settings: CalibrationSettings
) -> tuple[DraftRequest, ...]:
    """Return requests for drafts: one per trial, number of exemplars, and sample.

    Requests that differ only in the sample show the same exemplars.
    """
    plan, requests, reasons = settings.plan, [], golden.reasons(aspect) if settings.reasons else {}
    for trial in range(plan.draft_trials):
        for size in plan.draft_sizes:
            picks = stratified_sample(items.labels, size, np.random.default_rng([settings.seed, 1, size, trial]))
            exemplars = _exemplars(golden, items.take(picks), reasons)
            ids = tuple(exemplar.item.item_id for exemplar in exemplars)
            requests += [
                DraftRequest(
                    exemplars=exemplars,
                    temperature=TEMPERATURE,
                    max_tokens=MAX_TOKENS,
                    seed=request_seed(settings.seed, 1, size, trial, sample),
                    provenance=Provenance("draft", 0, (), ids, size, trial, sample),
                )
                for sample in range(plan.draft_samples)
            ]
    return tuple(requests)


def fitting_request(golden: GoldenSet, items: LabelledItems, settings: CalibrationSettings) -> DraftRequest:
    """Return a request that shows all `items`, for judges that fit strengths to labels."""
    exemplars = _exemplars(golden, items, {})
    shown = tuple(each.item.item_id for each in exemplars)
    provenance = Provenance("draft", item_ids=shown, note="clause strengths fitted to all calibration labels")
    seed = request_seed(settings.seed, 5)
    return DraftRequest(exemplars, 0.0, MAX_TOKENS, seed, provenance, fit=True)


def _exemplars(golden: GoldenSet, items: LabelledItems, reasons: Mapping[str, tuple[str, ...]]) -> tuple[Exemplar, ...]:
    pairs = zip(items.positions.tolist(), items.labels.tolist(), strict=True)
    shown = [(golden.items[position], label) for position, label in pairs]
    return tuple(Exemplar(item, label, reasons=reasons.get(item.item_id, ())) for item, label in shown)


# ── examples in the judging prompt ────────────────────────────────────────────────────────────────────────────────────


def with_examples(
    judge: Judge, golden: GoldenSet, items: LabelledItems, scale: Scale, settings: CalibrationSettings
) -> Judge:
    """Add labelled calibration items to the judge's prompt, with labels spread evenly over the scale.

    `settings.examples` items are added, and the same number of spare items. With `examples_by` "similarity",
    `MOST_EXAMPLES` items are added, and each prompt shows those that are most similar to the judged item.

    Raises:
        UsageError: The judge is not a language model.
    """
    if not settings.examples:
        return judge
    nearest = settings.examples if settings.examples_by == "similarity" else 0
    n = MOST_EXAMPLES // 2 if nearest else settings.examples
    if not isinstance(judge, LLMJudge):
        raise UsageError(
            f"The judge {judge.spec} isn't a language model, so it can't use examples. Set the number of examples to 0."
        )
    lengths = np.array([len(golden.items[position].target.strip()) for position in items.positions])
    unusual = np.abs(lengths - np.median(lengths))
    usable = {*np.flatnonzero((lengths > 0) & ~np.isnan(items.labels)).tolist()}
    points = np.linspace(scale.low, scale.high, n) if n > 1 else np.array([(scale.low + scale.high) / 2])
    references, chosen = judge.sampling.references, list[int]()
    for point in (*points, *points):  # the second pass picks the spares
        used = np.isin(items.sources, items.sources[chosen])
        order = np.lexsort((unusual, np.abs(items.labels - point), used))
        chosen += [int(k) for k in order if k in usable and k not in chosen][:1]
    examples = tuple(
        RatedExample(
            replace(shown_item(golden.items[items.positions[k]], references=references), system_id=""),
            float(items.labels[k]),
            spare=number >= n and not nearest,
        )
        for number, k in enumerate(chosen)
    )
    return judge.with_sampling(replace(judge.sampling, examples=examples, nearest=nearest))


def without_examples_of(judge: Judge, held_out: Iterable[Item]) -> Judge:
    """Remove examples that share a source with a held-out item. A newer golden set can contain such items."""
    if not isinstance(judge, LLMJudge) or not judge.sampling.examples:
        return judge
    known, leaked = [replace(each, spare=False) for each in judge.sampling.examples], set[RatedExample]()
    for item in held_out:
        leaked |= {*known} - {*examples_for(item, known)}
    kept = tuple(each for each in judge.sampling.examples if replace(each, spare=False) not in leaked)
    return judge.with_sampling(replace(judge.sampling, examples=kept)) if leaked else judge


# ── refinements ───────────────────────────────────────────────────────────────────────────────────────────────────────


def folds_of(items: LabelledItems, seed: int, *, gated: bool = True) -> tuple[IntArray, IntArray]:
    """Split calibration items by source, for refining and for testing refinements.

    If not `gated`, or with fewer than 4 sources, the items are not split: each result has the indices of all items.

    Returns:
        Indices of the items to refine on.
        Indices of the inner fold, whose items test the refinements.
    """
    if not gated or np.unique(items.sources).size < 4:
        return np.arange(items.n), np.arange(items.n)
    fit, validation = inner_fold(range(items.n), items.sources, 1 - INNER_SHARE, request_seed(seed, 4))
    return np.array(fit), np.array(validation)


def standardised_gap(scores: FloatArray, labels: FloatArray) -> FloatArray:
    """Return z(scores) − z(labels), (n,): above 0 the judge is too lenient, below 0 too strict; NaN where unscored.

    Both are standardised over the scored items. Constant values become 0.
    """
    known, gap = ~np.isnan(scores), np.full(len(scores), np.nan)
    if known.any():
        both = np.stack([scores[known], labels[known]])
        spread = both.std(axis=1, keepdims=True)
        z = np.where(spread > 0, (both - both.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1.0), 0.0)
        gap[known] = z[0] - z[1]
    return gap


def most_misaligned(scores: FloatArray, labels: FloatArray) -> IntArray:
    """Return the indices of the items with the largest |`standardised_gap`|, largest first.

    These are at most `MISALIGNED_POOL` items with an absolute gap of at least `MISALIGNED_FROM`.
    """
    size = np.nan_to_num(np.abs(standardised_gap(scores, labels)), nan=-1.0)
    order = np.argsort(-size, kind="stable")[:MISALIGNED_POOL]
    return order[size[order] >= MISALIGNED_FROM]


def misaligned_items(
    judge: BoundJudge, items: LabelledItems, table: ScoreTable, parent: Criteria, places: IntArray, *, reasons: bool
) -> tuple[Exemplar, ...]:
    """Return the items at `places` (indices into `items`) as exemplars for refining `parent`.

    With `reasons`, they include the reasons given by raters and by the judge.
    """
    why = judge.golden.reasons(judge.task.aspect) if reasons else {}
    scores, said = table.values[parent.criteria_id], table.said[parent.criteria_id] if reasons else {}
    shown = [(judge.golden.items[items.positions[k]], k) for k in places.tolist()]
    return tuple(
        Exemplar(
            item,
            float(items.labels[k]),
            float(scores[items.positions[k]]),
            why.get(item.item_id, ()),
            said.get(item.item_id, ""),
        )
        for item, k in shown
    )


def refinements(
    parent: Criteria,
    misaligned: Sequence[Exemplar],
    *,
    sizes: Iterable[int],
    samples: int,
    seeds: tuple[int, int, int, int, int],
) -> Iterator[DraftRequest]:
    """Yield requests to refine `parent`.

    Args:
        misaligned: Items that the parent misjudges.
        sizes: Numbers of misaligned items to show in a request.
        samples: Number of requests for each of the `sizes`.
        seeds: The run's seed, the kind of round (3 in a calibration, 5 if started by a user), the round's number, the
            parent's rank, and the trial.
    """
    *before, round_, rank, trial = seeds
    for size in sizes if misaligned else ():
        own = (*before, round_, rank, size, trial)
        places = np.random.default_rng(own).choice(len(misaligned), size=min(size, len(misaligned)), replace=False)
        shown = tuple(misaligned[k] for k in places)
        ids = tuple(example.item.item_id for example in shown)
        for sample in range(samples):
            yield DraftRequest(
                criteria=parent,
                exemplars=shown,
                temperature=TEMPERATURE,
                max_tokens=MAX_TOKENS,
                seed=request_seed(*own, sample),
                provenance=Provenance("refine", round_, (parent.criteria_id,), ids, size, trial, sample),
            )


def refine_requests(pool: CandidatePool, train: IntArray, parents: Sequence[str], round_: int) -> list[DraftRequest]:
    """Return requests for refinements, each with some of the parent's misaligned items.

    There is one request per trial, parent, number of items shown, and sample.
    """
    settings, plan, items, requests = pool.settings, pool.settings.plan, pool.items.take(train), list[DraftRequest]()
    shown = []
    for parent in parents:
        criteria, wrong = pool.entries[parent].criteria, most_misaligned(pool.values(parent)[train], items.labels)
        shown.append(misaligned_items(pool.judge, items, pool.table, criteria, wrong, reasons=settings.reasons))
    for trial in range(plan.refine_trials):
        for rank, parent in enumerate(parents):
            requests += refinements(
                pool.entries[parent].criteria,
                shown[rank],
                sizes=plan.refine_sizes,
                samples=plan.refine_samples,
                seeds=(settings.seed, 3, round_, rank, trial),
            )
    return requests


def gate(pool: CandidatePool, fold: IntArray, children: Sequence[str]) -> None:
    """Keep refinements that align better than their parent, overall and on the inner `fold`; reject the others.

    Without `refine_gate`, keep all refinements with a defined alignment, as AutoCalibrate does.
    """
    inner = pool.items.take(fold)
    for child in children:
        parent = pool.entries[child].criteria.provenance.parents[0]
        scores = np.stack([pool.values(name)[fold] for name in (child, parent)])
        new, old = alignment_values(scores, inner, pool.measure).tolist()
        gain = None if np.isnan(new - old) else new - old
        gains = gain is not None and gain > 0 and pool.value(child) > pool.value(parent)
        kept = gains or (not pool.settings.refine_gate and not np.isnan(new))
        pool.entries[child] = replace(pool.entries[child], inner_gain=gain, status="kept" if kept else "rejected")


# ── rounds started by a user ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Proposal:
    """Refined criteria, compared with their parent.

    The p values are not corrected for the number of proposals.

    Attributes:
        calibration: Difference in alignment on all calibration items (`a` is the proposal, `b` the parent).
        inner: Difference in alignment on the inner fold, whose items were not used for refining.
    """

    criteria: Criteria
    parent_id: str
    calibration: Difference
    inner: Difference


@dataclass(frozen=True)
class RoundResult:
    """The proposals of a refinement round, by gain on the inner fold, largest first.

    `problems` counts the unusable replies by reason.
    """

    proposals: tuple[Proposal, ...]
    calls: int
    usage: Usage
    problems: Mapping[str, int]


def refinement_round(
    judge: BoundJudge,
    split: Split,
    chosen: CalibrationSettings,
    parents: Sequence[Criteria],
    settings: RoundSettings,
    *,
    picks: Sequence[int] = (),
    number: int = 1,
) -> RoundResult:
    """Refine `parents`, and compare each proposal with its parent on the calibration set and on an inner fold.

    Held-out items are not used. No decision is made about the proposals. The inner fold has no source of the `picks`,
    so no proposal is tested on a source that it has seen.

    Args:
        judge: The judge that scores and refines.
        split: The split of the calibration that the parents belong to.
        chosen: The settings of that calibration (statistic, level, seed).
        parents: Criteria to refine, at least one.
        settings: How many proposals to request.
        picks: Positions of calibration items to refine on; if empty, each parent's most misaligned items are sampled.
        number: Number of the round, for provenance.

    Raises:
        UsageError: Picks are held out or unlabelled, or cover every source.
    """
    golden = judge.golden
    items = LabelledItems.of(golden, judge.task.aspect, split.calibration)
    places = {position: k for k, position in enumerate(items.positions.tolist())}
    if strange := set(picks) - set(places):
        raise UsageError(
            f"{len(strange)} of the selected items aren't labelled calibration items. A refinement round uses only "
            "calibration items and never held-out items. Remove these items from the selection."
        )
    picked = np.array([places[position] for position in picks], dtype=np.intp)
    train, inner = folds_of(items, chosen.seed)
    if picked.size:  # don't test a proposal on sources that it saw
        shown = np.isin(items.sources[inner], items.sources[picked])
        if shown.all():
            raise UsageError(
                "The selected items cover every source, so no source is left for testing a proposal. Select items "
                "from fewer sources."
            )
        train, inner = np.union1d(train, inner[shown]), inner[~shown]
    table, problems, requests = ScoreTable(golden.item_ids), Counter[str](), list[DraftRequest]()
    most = round_calls(items.n, len(parents), settings)  # if all proposals differ

    def publish(phase: str, message: str, expected: int) -> None:
        judge.progress.publish(Stage(phase, message, table.calls, max(table.calls, expected), table.usage))

    def score(criteria: Sequence[Criteria], message: str) -> None:
        for start in range(0, items.n if criteria else 0, SCORE_BATCH):
            publish("revisit", f"{message}: {start} of {items.n} items", most)
            table.ask(judge, criteria, items.positions[start : start + SCORE_BATCH].tolist())

    score(parents, "scoring the parents")
    for rank, parent in enumerate(parents):
        scores = table.values[parent.criteria_id][items.positions]
        wrong = picked if picked.size else train[most_misaligned(scores[train], items.labels[train])]
        wrong = wrong[~np.isnan(scores[wrong])]
        seen = misaligned_items(judge, items, table, parent, wrong, reasons=chosen.reasons)
        sizes = dict.fromkeys(min(size, len(wrong)) for size in settings.sizes)
        for trial in range(settings.trials):
            seeds = (0, 5, number, rank, trial)
            requests += refinements(parent, seen, sizes=sizes, samples=1, seeds=seeds)
    if not requests:
        nothing = {"the judge is close to the raters on every item": len(parents)}
        return RoundResult((), table.calls, table.usage, nothing)
    publish("refine", f"asking for {len(requests)} proposals", most)
    children = new_criteria(judge, requests, table, problems, [parent.criteria_id for parent in parents])
    score(children, "scoring the proposals")
    measure = Measure(chosen.statistic, chosen.level or items.usual_level)
    proposals = []
    for child in children:
        parent_id = child.provenance.parents[0]
        new, old = (table.values[name][items.positions] for name in (child.criteria_id, parent_id))
        both = [
            paired_difference(new[at], old[at], items.take(at), measure, seed=[0, 6])
            for at in (np.arange(items.n), inner)
        ]
        proposals.append(Proposal(child, parent_id, *both))
    publish("done", "done", 0)
    best_first = sorted(proposals, key=lambda each: np.inf if each.inner.value is None else -each.inner.value)
    return RoundResult(tuple(best_first), table.calls, table.usage, dict(problems))


def round_calls(n_calibration: int, n_parents: int, settings: RoundSettings) -> int:
    """Return the maximum number of calls of a round: scores of the parents, proposals, and scores of the proposals."""
    proposals = n_parents * settings.per_parent
    return (n_parents + proposals) * n_calibration + proposals
