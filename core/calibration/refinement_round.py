"""One refinement round asked for by a person: chosen parents, chosen (or sampled) misaligned items, proposals back.

Nothing is decided here: every proposal comes back beside its parent, with how both stand on calibration and on the
inner fold, and a person accepts, edits or rejects it.  The inner fold leaves out the sources of the items that were
picked by hand: a proposal that saw an item is not tested on that item's source.  Held-out items are not touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.calibration.calibration_settings import CalibrationSettings, RoundSettings
from core.calibration.candidate_pool import AskedJudge, CallBudget, ScoreTable
from core.calibration.proposals import Folds, Refiner, distinct, most_misaligned
from core.errors import UsageError
from core.judging.judge_protocol import RefineRequest
from core.progress import Stage
from core.records import Criteria, FloatArray, IntArray, Measure, Split, Usage
from core.stats import Difference, LabelledItems, paired_difference

SCORE_BATCH = 40


@dataclass(frozen=True)
class Proposal:
    """Refined criteria beside their parent.

    `calibration` compares both on all calibration items (`a` the proposal, `b` the parent), `inner` on the inner fold,
    whose items no refiner was shown.  Both carry their own test; a round has several proposals, so correct for them.
    """

    criteria: Criteria
    parent_id: str
    calibration: Difference
    inner: Difference


@dataclass(frozen=True)
class RoundResult:
    """What a round found: proposals, the largest difference on the inner fold first.

    `problems` counts replies that gave no proposal.
    """

    proposals: tuple[Proposal, ...]
    calls: int
    usage: Usage
    problems: Mapping[str, int]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RoundAsked:
    """What a person asks for: `parents` to refine, `picks` (positions of calibration items to learn from; empty to
    sample each parent's most misaligned ones), and the number of the round, for provenance."""

    parents: tuple[Criteria, ...]
    picks: tuple[int, ...] = ()
    number: int = 1
    settings: RoundSettings = field(default_factory=RoundSettings)


def refinement_round(judge: AskedJudge, split: Split, chosen: CalibrationSettings, request: RoundAsked) -> RoundResult:
    """The proposals of one round.

    `chosen` are the settings of the calibration the parents belong to (statistic, level, inner fold).  UsageError for
    picks that are held out or unlabelled, without parents, and for a budget that covers no proposal.
    """
    golden, parents, settings = judge.golden, request.parents, request.settings
    if not parents:
        raise UsageError("A round needs at least one set of criteria to refine.")
    require_affordable(len(split.calibration), len(parents), settings)
    items = LabelledItems.of(golden, judge.task.aspect, split.calibration)
    budget, notes = CallBudget(settings.budget), list[str]()
    table, measure = ScoreTable(golden.item_ids, budget), Measure(chosen.statistic, chosen.level or items.usual_level)
    place = {int(position): k for k, position in enumerate(items.positions)}
    if strange := [position for position in request.picks if position not in place]:
        names = ", ".join(golden.items[p].item_id for p in strange[:3] if 0 <= p < len(golden.items))
        raise UsageError(
            f"{len(strange)} of the picked items are no labelled calibration items ({names}). A round learns from "
            "calibration items only, so that held-out ones stay held out."
        )
    picks = np.array([place[position] for position in request.picks], dtype=np.intp)
    folds = _folds(items, chosen, picks)

    def publish(phase: str, message: str) -> None:
        most = round_calls(items.n, len(parents), settings)  # if every proposal is another text
        expected = budget.calls if phase == "done" else max(budget.calls, most)
        judge.progress.publish(Stage(phase, message, budget.calls, expected, budget.usage))

    def score(criteria: Sequence[Criteria], message: str) -> None:
        for start in range(0, items.n if criteria else 0, SCORE_BATCH):
            publish("revisit", f"{message}: {start} of {items.n} items")
            table.ask(judge, criteria, tuple(int(p) for p in items.positions[start : start + SCORE_BATCH]))

    def values(criteria_id: str) -> FloatArray:
        return table.values(criteria_id)[items.positions]

    score(parents, "scoring the parents")
    refiner, requests = Refiner(golden, items, settings, 5, request.number, chosen.max_words), list[RefineRequest]()
    for rank, parent in enumerate(parents):
        scores, pool = values(parent.criteria_id), picks
        if not pool.size:
            pool = folds.train[most_misaligned(scores[folds.train], items.labels[folds.train], chosen)]
        pool = pool[~np.isnan(scores[pool])]
        sizes = tuple(dict.fromkeys(min(size, len(pool)) for size in settings.sizes))
        for trial in range(settings.trials):
            requests += refiner.requests(parent, rank, scores, pool, sizes=sizes, trial=trial)
    if not requests:
        nothing = {"no item on which judge and people part": len(parents)}
        return RoundResult((), budget.calls, budget.usage, nothing)
    left = budget.left()
    affordable = len(requests) if left is None else left // (1 + items.n)  # each with the scoring of what comes back
    if affordable < len(requests):
        notes.append(f"The budget of {settings.budget} calls covers {affordable} of {len(requests)} proposals.")
        turns = sorted(range(len(requests)), key=lambda k: (requests[k].provenance.trial, requests[k].provenance.size))
        requests = [requests[k] for k in sorted(turns[:affordable])]
    publish("refine", f"asking for {len(requests)} proposals")
    batch = judge.refine(requests)
    budget.spend(batch.calls, batch.usage)
    new = distinct(batch, known=tuple(parent.criteria_id for parent in parents))
    score(new.criteria, "scoring the proposals")
    proposals = []
    for child in new.criteria:
        parent_id = child.provenance.parents[0]
        ours, theirs = values(child.criteria_id), values(parent_id)
        differences = [
            paired_difference(
                ours[places],
                theirs[places],
                items.take(places),
                measure,
                resamples=chosen.resamples,
                seed=[settings.seed, 6],
            )
            for places in (np.arange(items.n), folds.inner)
        ]
        proposals.append(Proposal(child, parent_id, *differences))
    proposals.sort(key=lambda each: -np.inf if each.inner.value is None else each.inner.value, reverse=True)
    publish("done", "done")
    return RoundResult(tuple(proposals), budget.calls, budget.usage, dict(new.problems), tuple(notes))


def _folds(items: LabelledItems, chosen: CalibrationSettings, picks: IntArray) -> Folds:
    """The calibration's own folds, the sources of hand-picked items moved to the side that is looked at."""
    folds = Folds.of(items, chosen)
    if not picks.size:
        return folds
    shown = np.isin(items.sources[folds.inner], np.unique(items.sources[picks]))
    if shown.all():
        raise UsageError(
            "The picked items are of all sources that could test a proposal. Pick fewer, or from fewer sources."
        )
    return Folds(np.union1d(folds.train, folds.inner[shown]), folds.inner[~shown])


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
