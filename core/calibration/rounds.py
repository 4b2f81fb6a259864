"""One refinement round asked for by a person: chosen parents, chosen (or sampled) misaligned items, proposals back.

Nothing is decided here: every proposal comes back beside its parent, with how both stand on calibration and on the
inner fold, and a person accepts, edits or rejects it.  The inner fold leaves out the sources of the items that were
picked by hand: a proposal that saw an item is not tested on that item's source.  Held-out items are not touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from core.calibration.candidate_pool import AskedJudge, CallBudget, ScoreTable
from core.calibration.proposals import Folds, Refiner, distinct, most_misaligned
from core.calibration.settings import CalibrationSettings, RoundSettings
from core.errors import UsageError
from core.judging.base import RefineRequest
from core.progress import Stage
from core.records import Criteria, FloatArray, IntArray, Level, Measure, Split, Usage
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
    parents = request.parents
    if not parents:
        raise UsageError("A round needs at least one set of criteria to refine.")
    require_affordable(len(split.calibration), len(parents), request.settings)
    work = _Round(judge, split, chosen, request)
    work.score(parents, "scoring the parents")
    requests = work.affordable([each for rank, parent in enumerate(parents) for each in work.requests(parent, rank)])
    if not requests:
        return work.result((), {"no item on which judge and people part": len(parents)})
    work.publish("refine", f"asking for {len(requests)} proposals")
    batch = judge.refine(requests)
    work.budget.spend(batch.calls, batch.usage)
    new = distinct(batch, known=tuple(parent.criteria_id for parent in parents))
    work.score(new.criteria, "scoring the proposals")
    proposals = [work.proposal(child) for child in new.criteria]
    work.publish("done", "done")
    return work.result(proposals, new.problems)


class _Round:
    """What the parts of one round share."""

    def __init__(self, judge: AskedJudge, split: Split, chosen: CalibrationSettings, request: RoundAsked) -> None:
        self.judge, self.golden = judge, judge.golden
        self.chosen, self.settings = chosen, request.settings
        self.number, self.n_parents = request.number, len(request.parents)
        self.items = LabelledItems.of(judge.golden, judge.task.aspect, split.calibration)
        self.level: Level = chosen.level or self.items.usual_level
        self.picks = self._places(request.picks)
        self.folds = self._folds()
        self.budget = CallBudget(request.settings.budget)
        self.table = ScoreTable(judge.golden.item_ids, self.budget)
        self.notes: list[str] = []

    def _places(self, picks: Sequence[int]) -> IntArray:
        place = {int(position): k for k, position in enumerate(self.items.positions)}
        strange = [position for position in picks if position not in place]
        if strange:
            names = ", ".join(self.golden.items[p].item_id for p in strange[:3] if 0 <= p < len(self.golden.items))
            raise UsageError(
                f"{len(strange)} of the picked items are no labelled calibration items ({names}). A round learns from "
                "calibration items only, so that held-out ones stay held out."
            )
        return np.array([place[position] for position in picks], dtype=np.intp)

    def _folds(self) -> Folds:
        """The calibration's own folds, the sources of hand-picked items moved to the side that is looked at."""
        folds = Folds.of(self.items, self.chosen)
        if not self.picks.size:
            return folds
        shown = np.isin(self.items.sources[folds.inner], np.unique(self.items.sources[self.picks]))
        if shown.all():
            raise UsageError(
                "The picked items are of all sources that could test a proposal. Pick fewer, or from fewer sources."
            )
        return Folds(np.union1d(folds.train, folds.inner[shown]), folds.inner[~shown])

    def score(self, criteria: Sequence[Criteria], message: str) -> None:
        """Have all calibration items scored, batch by batch."""
        for start in range(0, self.items.n if criteria else 0, SCORE_BATCH):
            positions = tuple(int(p) for p in self.items.positions[start : start + SCORE_BATCH])
            self.publish("revisit", f"{message}: {start} of {self.items.n} items")
            self.table.ask(self.judge, criteria, positions)

    def values(self, criteria_id: str) -> FloatArray:
        """(n_calibration,) scores."""
        return self.table.values(criteria_id)[self.items.positions]

    def requests(self, parent: Criteria, rank: int) -> list[RefineRequest]:
        """Refinements of one parent: the picks, or a sample of its most misaligned items outside the inner fold."""
        scores = self.values(parent.criteria_id)
        pool, settings = self.picks, self.settings
        if not pool.size:
            train = self.folds.train
            pool = train[most_misaligned(scores[train], self.items.labels[train], self.chosen)]
        pool = pool[~np.isnan(scores[pool])]
        sizes = tuple(dict.fromkeys(min(size, len(pool)) for size in settings.sizes))
        refiner = Refiner(self.golden, self.items, settings, 5, self.number, self.chosen.max_words)
        return [
            request
            for trial in range(settings.trials)
            for request in refiner.requests(parent, rank, scores, pool, sizes=sizes, trial=trial)
        ]

    def affordable(self, requests: list[RefineRequest]) -> list[RefineRequest]:
        """As many requests as the budget covers, each with the scoring of what comes back, taken in turns."""
        left = self.budget.left()
        if left is None:
            return requests
        n = left // (1 + self.items.n)
        if n < len(requests):
            self.notes.append(f"The budget of {self.settings.budget} calls covers {n} of {len(requests)} proposals.")
        order = sorted(range(len(requests)), key=lambda k: (requests[k].provenance.trial, requests[k].provenance.size))
        return [requests[k] for k in sorted(order[:n])]

    def proposal(self, child: Criteria) -> Proposal:
        parent_id = child.provenance.parents[0]
        new, old = self.values(child.criteria_id), self.values(parent_id)
        whole, inner = (
            paired_difference(
                new[places],
                old[places],
                self.items.take(places),
                Measure(self.chosen.statistic, self.level),
                resamples=self.chosen.resamples,
                seed=[self.settings.seed, 6],
            )
            for places in (np.arange(self.items.n), self.folds.inner)
        )
        return Proposal(child, parent_id, whole, inner)

    def publish(self, phase: str, message: str) -> None:
        spent = self.budget.calls
        most = round_calls(self.items.n, self.n_parents, self.settings)  # if every proposal is another text
        expected = spent if phase == "done" else max(spent, most)
        self.judge.progress.publish(Stage(phase, message, spent, expected, self.budget.usage))

    def result(self, proposals: Iterable[Proposal], problems: Mapping[str, int]) -> RoundResult:
        """The largest difference on the inner fold first."""

        def gain(proposal: Proposal) -> float:
            return -np.inf if proposal.inner.value is None else proposal.inner.value

        ranked = sorted(proposals, key=gain, reverse=True)
        return RoundResult(tuple(ranked), self.budget.calls, self.budget.usage, dict(problems), tuple(self.notes))


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
