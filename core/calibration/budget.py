"""A budget of calls planned over the whole loop before the first call, so that what is cut is known and said.

First come the calls that the report needs: the final judge's criteria and the judge without criteria on every held-out
item; then, of a judge that fits strengths, the calls for that.  What is left goes to drafts, their ranking and the
refinement rounds.  Drafts and refinements are cut by the same share, as long as a quarter of the drafts is left and
every parent gets a refinement; under that, refining is left out and the drafts get everything, ranked on fewer sources
where need be.  Only where not even one draft can be paid for beside the held-out items are those cut, too.  A plan
counts every draft and refinement as new and usable: the run never takes more.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from core.calibration.calibration_result import Estimate
from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.fitting import fitting_calls
from core.calibration.racing_order import Order, racing_order
from core.calibration.revisit import rung_calls, schedule
from core.data.split import ENOUGH, LEAST, few_labels, task_of
from core.errors import AspectError
from core.judging.judge_protocol import DraftRequest, Judge, RefineRequest
from core.judging.llm_judge import LLMJudge, references_words, require_references
from core.judging.scoring_styles import MODEL_WRITES, STEPS_LIKE, Asking
from core.records import GoldenSet, Split, Task
from core.stats import LabelledItems

TIGHTER = ((1, 1), (0.75, 1), (0.5, 1), (0.5, 0.6), (0.4, 0.5), (0.3, 0.4), (0.25, 0.3), (0.2, 0.2), (0.1, 0.1))
"""Without refining, the dearest first: share of the drafts, share of the calibration items they are ranked on."""
REFINED_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25)
"""With refining: share of the drafts and of the refinements of each round."""

CRITERIA_WORDS = 120  # of drafted criteria, as language models write them

Request = TypeVar("Request", DraftRequest, RefineRequest)


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """What will be done at most, in `calls` calls.

    `drafts` are asked for and ranked on the first `share` of the calibration items; then `rounds` rounds ask for
    `refined` refinements each; the best `ensemble` criteria make the final judge.  `reserve` calls are kept for the
    held-out items; `fitting` is what fitting strengths takes, 0 where none are fitted.
    """

    drafts: int
    share: float
    rounds: int
    refined: int
    ensemble: int
    reserve: int
    calls: int
    fitting: int = 0


def plan_work(settings: CalibrationSettings, items: LabelledItems, n_held_out: int, fitting: int = 0) -> WorkPlan:
    """What the budget covers of a calibration on `items` (the calibration items); everything without a budget.

    `fitting` is what `fitting_calls` says of its judge.
    """
    costs = _Costs.of(settings, items, n_held_out, fitting)
    whole = costs.plan(settings.plan.n_drafts, 1.0, settings.rounds, settings.refinements)
    if settings.budget is None or whole.calls <= settings.budget:
        return whole
    costs = costs.affordable()
    for plan in (*costs.refining(), *costs.ranking_alone()):
        if plan.calls <= settings.budget:
            return plan
    return costs.first_items_alone()


def cut_words(
    plan: WorkPlan, settings: CalibrationSettings, items: LabelledItems, n_held_out: int, fitting: int = 0
) -> str:
    """One sentence on what of the settings the budget covers, true before the start and after the end; "" for all."""
    drafts, refined = settings.plan.n_drafts, settings.refinements
    costs = _Costs.of(settings, items, n_held_out, plan.fitting)
    covered = []
    if plan.fitting < fitting:
        covered.append(f"no strengths fitted to all labels (they take {fitting:,} calls)")
    if plan.drafts < drafts:
        covered.append(f"{plan.drafts:,} of {drafts:,} drafts")
    if plan.drafts and plan.share < 1:
        covered.append(f"their ranking on {costs.order.up_to(plan.share):,} of {items.n:,} calibration items")
    if settings.rounds and not plan.rounds:
        covered.append(f"no refining (it takes a budget of {min(refining.calls for refining in costs.refining()):,})")
    elif plan.rounds < settings.rounds:
        covered.append(f"{plan.rounds} of {settings.rounds} rounds of refining")
    if plan.rounds and plan.refined < refined:
        covered.append(f"{plan.refined:,} of {refined:,} refinements a round")
    if plan.ensemble < settings.ensemble:
        covered.append(f"a final judge of {plan.ensemble} criteria, not {settings.ensemble}")
    if plan.reserve < (plan.ensemble + 1) * n_held_out:
        least = 2 * n_held_out + costs.one_draft
        covered.append(f"not all {n_held_out:,} held-out items ({least:,} calls cover them)")
    return f"The budget of {settings.budget:,} calls covers {'; '.join(covered)}." if covered else ""


def spread(requests: Sequence[Request], n: int) -> tuple[Request, ...]:
    """`n` of the requests, in their order: of every parent, size and trial some before any gives its second sample."""

    def turn(k: int) -> tuple[int, int, int, int]:
        whence = requests[k].provenance
        return whence.sample, whence.trial, whence.size, k

    return tuple(requests[k] for k in sorted(sorted(range(len(requests)), key=turn)[:n]))


@dataclass(frozen=True)
class _Costs:
    """What parts of a calibration take in calls, at most, beside the `reserve` for `ensemble` criteria on held-out."""

    settings: CalibrationSettings
    order: Order  # of whole sources, where not all items are ranked on
    racing: Order
    n_held_out: int
    ensemble: int
    reserve: int
    fitting: int

    @classmethod
    def of(cls, settings: CalibrationSettings, items: LabelledItems, n_held_out: int, fitting: int) -> _Costs:
        """With everything kept back that the report asks for."""
        order, ensemble = Order.whole(items.sources, settings.seed), settings.ensemble
        racing = racing_order(items, settings)
        return cls(settings, order, racing, n_held_out, ensemble, (ensemble + 1) * n_held_out, fitting)

    @property
    def one_draft(self) -> int:
        """One draft written and scored, beside the judge without criteria, on the first items of a race."""
        return 1 + 2 * self.order.up_to(0.0)

    def affordable(self) -> _Costs:
        """With as many criteria in the final judge as leave at least one draft to be paid for; fitting comes first."""
        budget, n_held_out = self.settings.budget or 0, self.n_held_out
        for fitting, ensemble in itertools.product((self.fitting, 0), range(self.ensemble, 0, -1)):
            if (ensemble + 1) * n_held_out + fitting + self.one_draft <= budget:
                return replace(self, ensemble=ensemble, reserve=(ensemble + 1) * n_held_out, fitting=fitting)
        return replace(self, ensemble=1, reserve=min(2 * n_held_out, budget * 2 // 5), fitting=0)

    def plan(self, drafts: int, share: float, rounds: int = 0, refined: int = 0) -> WorkPlan:
        calls = self.reserve + self.fitting
        if drafts:
            calls += drafts + self._scoring(drafts, share, 1)
        if refined:
            calls += rounds * (refined + self._scoring(refined, 1.0, 0))
        if self.reserve < (self.ensemble + 1) * self.n_held_out:  # held-out items get whatever is left
            calls = max(calls, self.settings.budget or 0)
        return WorkPlan(drafts, share, rounds, refined, self.ensemble, self.reserve, calls, self.fitting)

    def refining(self) -> Iterator[WorkPlan]:
        """Plans with at least one round, the dearest first: drafts weigh more than further rounds."""
        n_drafts, settings = self.settings.plan.n_drafts, self.settings
        parents, least = min(settings.keep, n_drafts), min(settings.finalists, n_drafts)
        for share in REFINED_SHARES if settings.rounds else ():
            drafts = max(math.ceil(share * n_drafts), least)
            refined = max(math.ceil(share * settings.refinements), parents)
            for rounds in range(settings.rounds, 0, -1):
                yield self.plan(drafts, 1.0, rounds, refined)

    def ranking_alone(self) -> Iterator[WorkPlan]:
        """Plans without refining, the dearest first."""
        for arms, share in TIGHTER:
            yield self.plan(math.ceil(self.settings.plan.n_drafts * arms), share)

    def first_items_alone(self) -> WorkPlan:
        """As many drafts as can be scored on the first items, the judge without criteria beside them."""
        first, left = self.order.up_to(0.0), (self.settings.budget or 0) - self.reserve - self.fitting
        return self.plan(max(0, min(self.settings.plan.n_drafts, (left - first) // (first + 1))), 0.0)

    def _scoring(self, arms: int, share: float, reference: int) -> int:
        order = self.order if share < 1.0 else self.racing
        return rung_calls(schedule(self.settings, arms, order, share), reference)


def require_usable(golden: GoldenSet, task: Task, items: LabelledItems) -> None:
    """AspectError, with the way out, when the calibration labels are too few or all equal."""
    labelled = golden.aspects[task.aspect].n_labelled
    if items.n < LEAST:
        raise AspectError(
            f"aspect {task.aspect!r} has {labelled} labels, of which {items.n} fall on the calibration side; at least "
            f"{LEAST} are needed there (we recommend {ENOUGH}). Label more items or choose a larger calibration "
            "share.",
            file=golden.name,
        )
    if float(np.ptp(items.labels)) == 0.0:
        raise AspectError(
            f"all {items.n} calibration labels of aspect {task.aspect!r} equal {items.labels[0]:g}: nothing can "
            "correlate with a constant. Choose another aspect, or label items on which people differ.",
            file=golden.name,
        )


def estimate(
    golden: GoldenSet,
    aspect: str | Task,
    judge: Judge,
    settings: CalibrationSettings,
    *,
    asking: Asking | None = None,
    split: Split | None = None,
) -> Estimate:
    """What `calibrate` with the same arguments takes.  AspectError for labels that cannot rank anything."""
    task, asking = task_of(golden, aspect) if isinstance(aspect, str) else aspect, asking or Asking()
    split = split or settings.split_of(golden, task.aspect)
    before = asking.writes_steps + (task.definition == MODEL_WRITES)
    task = replace(task, definition="") if task.definition == MODEL_WRITES else task
    shown = [golden.items[p] for p in split.calibration]
    if isinstance(judge, LLMJudge):
        require_references(judge.sampling, task, shown)
        judge = judge.with_sampling(replace(judge.sampling, steps=STEPS_LIKE)) if asking.writes_steps else judge
    items = LabelledItems.of(golden, task.aspect, split.calibration)
    require_usable(golden, task, items)
    n_held_out, fitting = len(split.held_out), fitting_calls(judge, settings, items)
    plan = plan_work(settings, items, n_held_out, fitting)
    once = judge.estimate(task, shown, CRITERIA_WORDS)
    cut = cut_words(plan, settings, items, n_held_out, fitting)
    prompt, completion, cost = once.scaled(plan.calls / max(1, once.calls))
    references = references_words(judge, task, shown, plan.calls) if isinstance(judge, LLMJudge) else ""
    notes = (judge.notice, unheeded(judge, settings), _several(judge, plan.calls), references, cut)
    return Estimate(
        plan.calls + before,
        *(prompt, completion, cost),
        n_calibration=items.n,
        n_held_out=n_held_out,
        notes=tuple(filter(None, notes)),
        few_labels=few_labels(items.n, refining=plan.rounds > 0),
    )


def unheeded(judge: Judge, settings: CalibrationSettings) -> str:
    """A sentence where the length of criteria was bounded for a judge that does not write them; "" for any other."""
    if settings.max_words is None or isinstance(judge, LLMJudge):
        return ""
    return (
        f"The bound of {settings.max_words:,} words is not kept: it is told to a language model, and the judge "
        f"{judge.spec} puts its criteria together from clauses. Leave it out, or choose a model."
    )


def _several(judge: Judge, calls: int) -> str:
    """A sentence where one call is several replies."""
    samples = judge.sampling.samples if isinstance(judge, LLMJudge) else 1
    return "" if samples == 1 else f"Each score is the mean of {samples} replies: up to {samples * calls:,} in all."
