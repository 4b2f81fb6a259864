"""What the judge is asked to write: drafts from exemplars, refinements from misaligned items; and the gate.

Exemplars are a stratified Monte-Carlo sample of calibration items.  A refinement is shown items that its parent gets
wrong, and joins the pool only where it gains on an inner fold as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.calibration.calibration_records import CalibrationSettings, RoundSettings
from core.calibration.racing import AskedJudge, CandidatePool, ScoreTable
from core.data.split import inner_fold
from core.errors import UsageError
from core.judging.judge_protocol import DraftBatch, DraftRequest, Exemplar, Judge
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import examples_for, shown_item
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


def request_seed(*parts: int) -> int:
    """A 32-bit seed from the run's seed and a request's place, equal on every machine."""
    return int(np.random.SeedSequence(parts).generate_state(1)[0])


def new_criteria(
    ask: Callable[[Sequence[DraftRequest]], DraftBatch],
    requests: Sequence[DraftRequest],
    table: ScoreTable,
    problems: Counter[str],
    known: Iterable[str] = (),
) -> tuple[Criteria, ...]:
    """Have requests answered: the usable, new criteria in order; `known` ids count as repetitions.

    The calls are added to those of `table`, the reasons why other replies are of no use to `problems`.
    """
    if not requests:
        return ()
    try:
        batch, found = ask(requests), dict.fromkeys(known)
    except BudgetSpentError as error:
        table.end(error)
        return ()
    table.spend(len(requests), batch.usage)
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


def draft_requests(
    golden: GoldenSet, aspect: str, items: LabelledItems, settings: CalibrationSettings
) -> tuple[DraftRequest, ...]:
    """One request per trial, exemplar size and sample; the samples of a trial share their exemplars."""
    plan, requests, reasons = settings.plan, [], golden.reasons(aspect) if settings.reasons else {}
    for trial in range(plan.draft_trials):
        for size in plan.draft_sizes:
            picks = stratified_sample(items.labels, size, np.random.default_rng([settings.seed, 1, size, trial]))
            exemplars = _exemplars(golden, items.take(picks), reasons)
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


def fitting_request(golden: GoldenSet, items: LabelledItems, settings: CalibrationSettings) -> DraftRequest:
    """One request that shows all `items`, for judges that fit strengths to labels."""
    exemplars = _exemplars(golden, items, {})
    shown = tuple(each.item.item_id for each in exemplars)
    provenance = Provenance("draft", item_ids=shown, note="strengths fitted to all calibration labels")
    seed = request_seed(settings.seed, 5)
    return DraftRequest(exemplars, 0.0, settings.plan.max_tokens, seed, provenance, fit=True)


def _exemplars(golden: GoldenSet, items: LabelledItems, reasons: Mapping[str, tuple[str, ...]]) -> tuple[Exemplar, ...]:
    pairs = zip(items.positions.tolist(), items.labels.tolist(), strict=True)
    shown = [(golden.items[position], label) for position, label in pairs]
    return tuple(Exemplar(item, label, reasons=reasons.get(item.item_id, ())) for item, label in shown)


# ── examples in the judging prompt ────────────────────────────────────────────────────────────────────────────────────


def with_examples(judge: Judge, golden: GoldenSet, items: LabelledItems, scale: Scale, n: int) -> Judge:
    """`judge` with `n` of the calibration `items` as examples in its prompt, and as many spares.

    Their labels lie nearest to `n` evenly spaced points of the scale, each from another source where there are enough.
    Of equally near ones the item of usual length is taken, so that the choice needs no seed.  0 changes nothing.

    Raises:
        UsageError: The judge reads no prompt.
    """
    if not n:
        return judge
    if not isinstance(judge, LLMJudge):
        raise UsageError(f"The judge {judge.spec} reads no examples: it is no language model. Set examples to 0.")
    lengths = np.array([len(golden.items[position].target.strip()) for position in items.positions])
    unusual = np.abs(lengths - np.median(lengths))
    usable = {*np.flatnonzero((lengths > 0) & ~np.isnan(items.labels)).tolist()}
    points = np.linspace(scale.low, scale.high, n) if n > 1 else np.array([(scale.low + scale.high) / 2])
    references, chosen = judge.sampling.references, list[int]()
    for point in (*points, *points):  # the second time round for the spares
        used = np.isin(items.sources, items.sources[chosen])
        order = np.lexsort((unusual, np.abs(items.labels - point), used))
        chosen += [int(k) for k in order if k in usable and k not in chosen][:1]
    examples = tuple(
        RatedExample(
            replace(shown_item(golden.items[items.positions[k]], references=references), system_id=""),
            float(items.labels[k]),
            spare=number >= n,
        )
        for number, k in enumerate(chosen)
    )
    return judge.with_sampling(replace(judge.sampling, examples=examples))


def without_examples_of(judge: Judge, held_out: Iterable[Item]) -> Judge:
    """`judge` without examples that share a source with a held-out item, as a newer golden set may bring it."""
    if not isinstance(judge, LLMJudge) or not judge.sampling.examples:
        return judge
    known, leaked = [replace(each, spare=False) for each in judge.sampling.examples], set[RatedExample]()
    for item in held_out:
        leaked |= {*known} - {*examples_for(item, known)}
    kept = tuple(each for each in judge.sampling.examples if replace(each, spare=False) not in leaked)
    return judge.with_sampling(replace(judge.sampling, examples=kept)) if leaked else judge


# ── refinements ───────────────────────────────────────────────────────────────────────────────────────────────────────


def folds_of(items: LabelledItems, settings: CalibrationSettings, *, gated: bool = True) -> tuple[IntArray, IntArray]:
    """Calibration items to look at and to gate on, of different sources, as places in `items`.

    Not `gated`, or without enough sources for two folds, both are all items.
    """
    if not gated or np.unique(items.sources).size < 4:
        return np.arange(items.n), np.arange(items.n)
    share, seed = 1 - settings.inner_share, request_seed(settings.seed, 4)
    fit, validation = inner_fold(range(items.n), items.sources, share, seed)
    return np.array(fit), np.array(validation)


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


def misaligned_items(
    judge: AskedJudge, items: LabelledItems, table: ScoreTable, parent: Criteria, places: IntArray, *, reasons: bool
) -> tuple[Exemplar, ...]:
    """The items at `places` (into `items`) as a refiner of `parent` sees them, on request with the `reasons`."""
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
    how: RoundSettings,
    parent: Criteria,
    misaligned: Sequence[Exemplar],
    *,
    sizes: Iterable[int],
    place: tuple[int, int, int, int],
) -> Iterator[DraftRequest]:
    """Requests to refine `parent`: each of `sizes` shows so many of the `misaligned` items, `how.samples` times.

    `place` seeds the random numbers: 3 for rounds of a
    calibration and 5 for those that a person asks for; the round; the parent's rank; the trial.
    """
    purpose, round_, rank, trial = place
    for size in sizes if len(misaligned) else ():
        seeds = (how.seed, purpose, round_, rank, size, trial)
        size_shown = min(size, len(misaligned))
        places = np.random.default_rng(seeds).choice(len(misaligned), size=size_shown, replace=False)
        shown = tuple(misaligned[k] for k in places)
        ids = tuple(example.item.item_id for example in shown)
        for sample in range(how.samples):
            yield DraftRequest(
                criteria=parent,
                exemplars=shown,
                temperature=how.temperature,
                max_tokens=how.max_tokens,
                seed=request_seed(*seeds, sample),
                provenance=Provenance("refine", round_, (parent.criteria_id,), ids, size, trial, sample),
            )


def refine_requests(pool: CandidatePool, train: IntArray, parents: Sequence[str], round_: int) -> list[DraftRequest]:
    """For each trial and parent, sizes × samples requests that show some of the parent's misaligned items."""
    settings, plan, items, requests = pool.settings, pool.settings.plan, pool.items.take(train), list[DraftRequest]()
    how = RoundSettings(
        samples=plan.refine_samples,
        temperature=settings.refine_temperature,
        max_tokens=plan.max_tokens,
        seed=settings.seed,
        reasons=settings.reasons,
    )
    for trial in range(plan.refine_trials):
        for rank, parent in enumerate(parents):
            criteria, scores = pool.entries[parent].criteria, pool.values(parent)[train]
            wrong, place = most_misaligned(scores, items.labels, settings), (3, round_, rank, trial)
            shown = misaligned_items(pool.judge, items, pool.table, criteria, wrong, reasons=how.reasons)
            requests += refinements(how, criteria, shown, sizes=plan.refine_sizes, place=place)
    return requests


def gate(pool: CandidatePool, fold: IntArray, children: Sequence[str]) -> None:
    """Keep the refinements that gain on their parent both overall and on the inner `fold`; reject the others.

    Without `refine_gate` in the settings all whose alignment is defined are kept, as in the paper.
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


# ── a round that a person asks for ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Proposal:
    """Refined criteria next to their parent.

    `calibration` compares both on all calibration items (`a` the proposal, `b` the parent), `inner` on the inner fold,
    whose items no refiner was shown.  Both carry their own test; a round has several proposals, so correct for them.
    """

    criteria: Criteria
    parent_id: str
    calibration: Difference
    inner: Difference


@dataclass(frozen=True)
class RoundResult:
    """The proposals, the largest difference on the inner fold first; `problems` counts replies without a proposal."""

    proposals: tuple[Proposal, ...]
    calls: int
    usage: Usage
    problems: Mapping[str, int]
    notes: tuple[str, ...] = ()


def refinement_round(
    judge: AskedJudge,
    split: Split,
    chosen: CalibrationSettings,
    parents: Sequence[Criteria],
    settings: RoundSettings,
    *,
    picks: Sequence[int] = (),
    number: int = 1,
) -> RoundResult:
    """Ask for proposals that refine `parents`, and measure them.

    Nothing is decided here: every proposal comes back next to its parent, with both measured on calibration and on the
    inner fold, and a person accepts, edits or rejects it.  The inner fold leaves out the sources of the `picks`
    (positions of calibration items to learn from; none samples each parent's most misaligned ones): a proposal that saw
    an item is not tested on that item's source.  Held-out items are not touched.

    `chosen` are the settings of the calibration the parents belong to (statistic, level, inner fold); `number` is that
    of the round, for provenance.  UsageError for picks that are held out or unlabelled, without parents, and for a
    budget that covers no proposal.
    """
    golden = judge.golden
    if not parents:
        raise UsageError("A round needs at least one set of criteria to refine.")
    require_affordable(len(split.calibration), len(parents), settings)
    items = LabelledItems.of(golden, judge.task.aspect, split.calibration)
    table, problems, notes = ScoreTable(golden.item_ids, settings.budget), Counter[str](), list[str]()
    measure = Measure(chosen.statistic, chosen.level or items.usual_level)
    if strange := set(picks) - set(items.positions.tolist()):
        raise UsageError(
            f"{len(strange)} of the picked items are not labelled calibration items. A round learns from calibration "
            "items only, so that held-out ones stay held out."
        )
    places = {position: k for k, position in enumerate(items.positions.tolist())}
    picked = np.array([places[position] for position in picks], dtype=np.intp)
    train, inner = folds_of(items, chosen)
    if picked.size:  # a proposal is not tested on sources that it was shown
        shown = np.isin(items.sources[inner], items.sources[picked])
        if shown.all():
            raise UsageError(
                "The picked items come from every source that could test a proposal. Pick fewer, or from fewer sources."
            )
        train, inner = np.union1d(train, inner[shown]), inner[~shown]

    def publish(phase: str, message: str) -> None:
        most = round_calls(items.n, len(parents), settings)  # if every proposal is another text
        expected = table.calls if phase == "done" else max(table.calls, most)
        judge.progress.publish(Stage(phase, message, table.calls, expected, table.usage))

    def score(criteria: Sequence[Criteria], message: str) -> None:
        for start in range(0, items.n if criteria else 0, SCORE_BATCH):
            publish("revisit", f"{message}: {start} of {items.n} items")
            table.ask(judge, criteria, items.positions[start : start + SCORE_BATCH].tolist())

    def values(criteria_id: str) -> FloatArray:
        return table.values[criteria_id][items.positions]

    score(parents, "scoring the parents")
    requests = list[DraftRequest]()
    for rank, parent in enumerate(parents):
        scores = values(parent.criteria_id)
        wrong = picked if picked.size else train[most_misaligned(scores[train], items.labels[train], chosen)]
        wrong = wrong[~np.isnan(scores[wrong])]
        sizes = dict.fromkeys(min(size, len(wrong)) for size in settings.sizes)
        seen = misaligned_items(judge, items, table, parent, wrong, reasons=settings.reasons and chosen.reasons)
        for trial in range(settings.trials):
            place = (5, number, rank, trial)
            requests += refinements(settings, parent, seen, sizes=sizes, place=place)
    if not requests:
        nothing = {"no item on which judge and raters disagree": len(parents)}
        return RoundResult((), table.calls, table.usage, nothing)
    affordable = math.inf if settings.budget is None else (table.left() or 0) // (1 + items.n)  # with their scoring
    if affordable < len(requests):
        notes.append(f"The budget of {settings.budget} calls covers {affordable} of {len(requests)} proposals.")
        requests = list(spread(requests, int(affordable)))
    publish("refine", f"asking for {len(requests)} proposals")
    children = new_criteria(judge.draft, requests, table, problems, [parent.criteria_id for parent in parents])
    score(children, "scoring the proposals")

    def difference(child: Criteria, places: np.ndarray) -> Difference:
        new, old = (values(name)[places] for name in (child.criteria_id, child.provenance.parents[0]))
        seed = [settings.seed, 6]
        return paired_difference(new, old, items.take(places), measure, seed=seed)

    proposals = [
        Proposal(child, child.provenance.parents[0], difference(child, np.arange(items.n)), difference(child, inner))
        for child in children
    ]
    publish("done", "done")
    best_first = sorted(proposals, key=lambda each: np.inf if each.inner.value is None else -each.inner.value)
    return RoundResult(tuple(best_first), table.calls, table.usage, dict(problems), tuple(notes))


def round_calls(n_calibration: int, n_parents: int, settings: RoundSettings) -> int:
    """Calls of a round at most: parents scored, proposals asked for and scored, within the budget."""
    proposals = n_parents * settings.per_parent
    calls = (n_parents + proposals) * n_calibration + proposals
    return calls if settings.budget is None else min(calls, settings.budget)


def require_affordable(n_calibration: int, n_parents: int, settings: RoundSettings) -> None:
    """UsageError, before any call, for a budget that does not cover the parents and one proposal."""
    least = (n_parents + 1) * n_calibration + 1
    if settings.budget is not None and settings.budget < least:
        raise UsageError(
            f"The budget of {settings.budget:,} calls covers no proposal: scoring the {n_parents} criteria to refine "
            f"and one proposal on {n_calibration:,} calibration items takes {least:,} calls. Raise the budget or "
            "refine fewer criteria."
        )
