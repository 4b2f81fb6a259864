"""One refinement round that a person asks for: chosen parents, chosen (or sampled) misaligned items, proposals back.

Nothing is decided here: every proposal comes back next to its parent, with both measured on calibration and on the
inner fold, and a person accepts, edits or rejects it.  The inner fold leaves out the sources of the items that were
picked by hand: a proposal that saw an item is not tested on that item's source.  Held-out items are not touched.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.calibration.calibration_settings import CalibrationSettings, RoundSettings
from core.calibration.candidate_pool import AskedJudge, CallBudget, ScoreTable
from core.calibration.proposals import Folds, Refiner, most_misaligned, new_criteria, spread
from core.errors import UsageError
from core.judging.judge_protocol import DraftRequest
from core.progress import Stage
from core.records import Criteria, FloatArray, Measure, Split, Usage
from core.stats import Difference, LabelledItems, paired_difference

SCORE_BATCH = 40


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


@dataclass(frozen=True)
class RoundAsked:
    """What a person asks for: `parents` to refine, `picks` (positions of calibration items to learn from; empty to
    sample each parent's most misaligned ones), and the number of the round, for provenance."""

    parents: tuple[Criteria, ...]
    picks: tuple[int, ...] = ()
    number: int = 1
    settings: RoundSettings = field(default_factory=RoundSettings)


def refinement_round(judge: AskedJudge, split: Split, chosen: CalibrationSettings, request: RoundAsked) -> RoundResult:
    """Ask for the proposals of one round and measure them.

    `chosen` are the settings of the calibration the parents belong to (statistic, level, inner fold).  UsageError for
    picks that are held out or unlabelled, without parents, and for a budget that covers no proposal.
    """
    golden, parents, settings = judge.golden, request.parents, request.settings
    if not parents:
        raise UsageError("A round needs at least one set of criteria to refine.")
    require_affordable(len(split.calibration), len(parents), settings)
    items = LabelledItems.of(golden, judge.task.aspect, split.calibration)
    budget, problems, notes = CallBudget(settings.budget), Counter[str](), list[str]()
    table, measure = ScoreTable(golden.item_ids, budget), Measure(chosen.statistic, chosen.level or items.usual_level)
    if strange := set(request.picks) - set(items.positions.tolist()):
        raise UsageError(
            f"{len(strange)} of the picked items are no labelled calibration items. A round learns from calibration "
            "items only, so that held-out ones stay held out."
        )
    order = np.argsort(items.positions)
    picks = order[np.searchsorted(items.positions, np.array(request.picks, dtype=np.intp), sorter=order)]
    folds = Folds.of(items, chosen)
    if picks.size:  # a proposal is not tested on sources that it was shown
        shown = np.isin(items.sources[folds.inner], items.sources[picks])
        if shown.all():
            raise UsageError(
                "The picked items are of all sources that could test a proposal. Pick fewer, or from fewer sources."
            )
        folds = Folds(np.union1d(folds.train, folds.inner[shown]), folds.inner[~shown])

    def publish(phase: str, message: str) -> None:
        most = round_calls(items.n, len(parents), settings)  # if every proposal is another text
        expected = budget.calls if phase == "done" else max(budget.calls, most)
        judge.progress.publish(Stage(phase, message, budget.calls, expected, budget.usage))

    def score(criteria: Sequence[Criteria], message: str) -> None:
        for start in range(0, items.n if criteria else 0, SCORE_BATCH):
            publish("revisit", f"{message}: {start} of {items.n} items")
            table.ask(judge, criteria, items.positions[start : start + SCORE_BATCH].tolist())

    def values(criteria_id: str) -> FloatArray:
        return table.values[criteria_id][items.positions]

    score(parents, "scoring the parents")
    refiner, requests = Refiner(golden, items, settings, 5, request.number, chosen.max_words), list[DraftRequest]()
    for rank, parent in enumerate(parents):
        scores = values(parent.criteria_id)
        wrong = picks
        if not picks.size:
            wrong = folds.train[most_misaligned(scores[folds.train], items.labels[folds.train], chosen)]
        wrong = wrong[~np.isnan(scores[wrong])]
        sizes = dict.fromkeys(min(size, len(wrong)) for size in settings.sizes)
        for trial in range(settings.trials):
            requests += refiner.requests(parent, rank, scores, wrong, sizes=sizes, trial=trial)
    if not requests:
        nothing = {"no item on which judge and raters disagree": len(parents)}
        return RoundResult((), budget.calls, budget.usage, nothing)
    affordable = math.inf if settings.budget is None else (budget.left() or 0) // (1 + items.n)  # with their scoring
    if affordable < len(requests):
        notes.append(f"The budget of {settings.budget} calls covers {affordable} of {len(requests)} proposals.")
        requests = list(spread(requests, int(affordable)))
    publish("refine", f"asking for {len(requests)} proposals")
    children = new_criteria(judge.draft, requests, budget, problems, [parent.criteria_id for parent in parents])
    score(children, "scoring the proposals")

    def difference(child: Criteria, places: np.ndarray) -> Difference:
        new, old = (values(name)[places] for name in (child.criteria_id, child.provenance.parents[0]))
        seed = [settings.seed, 6]
        return paired_difference(new, old, items.take(places), measure, resamples=chosen.resamples, seed=seed)

    proposals = [
        Proposal(
            child, child.provenance.parents[0], difference(child, np.arange(items.n)), difference(child, folds.inner)
        )
        for child in children
    ]
    publish("done", "done")
    best_first = sorted(proposals, key=lambda each: np.inf if each.inner.value is None else -each.inner.value)
    return RoundResult(tuple(best_first), budget.calls, budget.usage, dict(problems), tuple(notes))


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
