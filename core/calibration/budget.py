"""Plan a budget of calls over the whole loop before the first call, so that what is cut is known and reported.

First come the calls that the report needs: the final judge's criteria and the baseline on every held-out item; then, of
a judge that fits strengths, the calls for that.  The rest goes to drafts, their ranking and the refinement rounds.
Drafts and refinements are cut by the same share, as long as a quarter of the drafts is left and every parent gets a
refinement.  Below that, refining is left out and the drafts get everything, ranked on fewer sources where necessary.
Only where not even one draft can be paid for next to the held-out items are those cut, too.  A plan counts every draft
and refinement as new and usable: the run never makes more calls.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from core.calibration.calibration_result import Estimate
from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.fitting import fitting_calls
from core.calibration.racing import racing_order, rung_calls, schedule, whole_sources
from core.data.split import ENOUGH, LEAST, few_labels, task_of
from core.errors import AspectError
from core.judging.judge_protocol import Judge
from core.judging.llm_judge import LLMJudge, references_words, require_references
from core.judging.scoring_styles import MODEL_WRITES, STEPS_LIKE, Asking
from core.records import GoldenSet, Split, Task
from core.stats import LabelledItems

TIGHTER = ((1, 1), (0.75, 1), (0.5, 1), (0.5, 0.6), (0.4, 0.5), (0.3, 0.4), (0.25, 0.3), (0.2, 0.2), (0.1, 0.1))
"""Without refining, the dearest first: share of the drafts, share of the calibration items they are ranked on."""
REFINED_SHARES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25)
"""With refining: share of the drafts and of the refinements of each round."""

CRITERIA_WORDS = 120  # of drafted criteria, as language models write them


@dataclass(frozen=True, slots=True)
class WorkPlan:
    """What will be done at most, in `calls` calls.

    `drafts` are asked for and ranked on the first `share` of the calibration items; then `rounds` rounds ask for
    `refined` refinements each; the best `ensemble` criteria make the final judge.  `reserve` calls are kept for the
    held-out items and `fitting` for fitting strengths.  `cut` says in a sentence what the budget does not cover.
    """

    drafts: int
    share: float
    rounds: int
    refined: int
    ensemble: int
    reserve: int
    calls: int
    fitting: int = 0
    cut: str = ""


def plan_work(
    settings: CalibrationSettings, items: LabelledItems, n_held_out: int, fitting: int = 0, spent: int = 0
) -> WorkPlan:
    """Plan what the budget covers of a calibration on `items`; everything without a budget.

    `fitting` is what `fitting_calls` says of its judge; `spent` calls of the budget are gone already.
    """
    n_drafts, order = settings.plan.n_drafts, racing_order(items, settings)
    sources = whole_sources(items.sources, settings.seed)  # the order where not all items are ranked on
    budget = math.inf if settings.budget is None else max(1, settings.budget - spent)

    def plan(paid: tuple[int, int, int], drafts: int, share: float, rounds: int = 0, refined: int = 0) -> WorkPlan:
        """A plan after what is `paid` first: the ensemble, its calls on held-out items, and those for fitting."""
        calls = sum(paid[1:])
        if drafts:
            calls += drafts + rung_calls(schedule(settings, drafts, order if share == 1 else sources, share), 1)
        if refined:
            calls += rounds * (refined + rung_calls(schedule(settings, refined, order)))
        if paid[1] < (paid[0] + 1) * n_held_out:  # held-out items get whatever is left
            calls = max(calls, int(budget))
        return WorkPlan(drafts, share, rounds, refined, *paid[:2], calls, paid[2])

    def refining(paid: tuple[int, int, int]) -> list[WorkPlan]:
        """Plans with at least one round, the dearest first: drafts weigh more than further rounds."""
        return [
            plan(
                paid,
                max(math.ceil(share * n_drafts), min(settings.finalists, n_drafts)),
                1.0,
                rounds,
                max(math.ceil(share * settings.refinements), min(settings.keep, n_drafts)),
            )
            for share in REFINED_SHARES
            for rounds in range(settings.rounds, 0, -1)
        ]

    report = (settings.ensemble, (settings.ensemble + 1) * n_held_out)
    whole = plan((*report, fitting), n_drafts, 1.0, settings.rounds, settings.refinements)
    if whole.calls <= budget:
        return whole
    # as many criteria in the final judge as leave at least one draft to be paid for; fitting comes first
    first = sources.up_to(0.0)
    one_draft = 1 + 2 * first
    affordable = [
        (ensemble, (ensemble + 1) * n_held_out, fits)
        for fits, ensemble in itertools.product((fitting, 0), range(settings.ensemble, 0, -1))
        if (ensemble + 1) * n_held_out + fits + one_draft <= budget
    ]
    paid = affordable[0] if affordable else (1, min(2 * n_held_out, int(budget) * 2 // 5), 0)
    ranking_alone = [plan(paid, math.ceil(arms * n_drafts), share) for arms, share in TIGHTER]
    few = plan(paid, max(0, min(n_drafts, (int(budget) - sum(paid[1:]) - first) // (first + 1))), 0.0)
    chosen = next((each for each in (*refining(paid), *ranking_alone) if each.calls <= budget), few)

    covered = [f"{chosen.drafts:,} of {n_drafts:,} drafts"] if chosen.drafts < n_drafts else []
    if chosen.drafts and chosen.share < 1:
        covered.append(f"their ranking on {sources.up_to(chosen.share):,} of {items.n:,} calibration items")
    if (chosen.rounds, chosen.refined) != (whole.rounds, whole.refined):
        each = f" with {chosen.refined:,} of {whole.refined:,} refinements each" if chosen.rounds else ""
        covered.append(f"{chosen.rounds} of {whole.rounds} rounds of refining{each}")
    if chosen.ensemble < whole.ensemble:
        covered.append(f"a final judge of {chosen.ensemble} criteria, not {whole.ensemble}")
    if chosen.fitting < fitting:
        covered.append(f"no strengths fitted to all labels (they take {fitting:,} calls)")
    if chosen.reserve < (chosen.ensemble + 1) * n_held_out:
        covered.append(f"not all {n_held_out:,} held-out items ({2 * n_held_out + one_draft:,} calls cover them)")
    return replace(chosen, cut=f"The budget of {settings.budget:,} calls covers {'; '.join(covered)}.")


def require_usable(golden: GoldenSet, task: Task, items: LabelledItems) -> None:
    """AspectError, with the way out, when the calibration labels are too few or all equal."""
    if items.n < LEAST:
        raise AspectError(
            f"aspect {task.aspect!r} has {golden.aspects[task.aspect].n_labelled} labels, of which {items.n} fall on "
            f"the calibration side; at least {LEAST} are needed there (we recommend {ENOUGH}). Label more items or "
            "choose a larger calibration share.",
            file=golden.name,
        )
    if float(np.ptp(items.labels)) == 0.0:
        raise AspectError(
            f"all {items.n} calibration labels of aspect {task.aspect!r} equal {items.labels[0]:g}: nothing can "
            "correlate with a constant. Choose another aspect, or label items on which raters differ.",
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
    n_held_out = len(split.held_out)
    plan = plan_work(settings, items, n_held_out, fitting_calls(judge, settings, items))
    once = judge.estimate(task, shown, CRITERIA_WORDS)
    notes = [judge.notice, unheeded(judge, settings)]
    if isinstance(judge, LLMJudge):
        if (samples := judge.sampling.samples) > 1:
            notes.append(f"Each score is the mean of {samples} replies: up to {samples * plan.calls:,} in all.")
        notes.append(references_words(judge, task, shown, plan.calls))
    return Estimate(
        plan.calls + before,
        *once.scaled(plan.calls / max(1, once.calls)),
        n_calibration=items.n,
        n_held_out=n_held_out,
        notes=tuple(filter(None, (*notes, plan.cut))),
        few_labels=few_labels(items.n, refining=plan.rounds > 0),
    )


def unheeded(judge: Judge, settings: CalibrationSettings) -> str:
    """Say that a judge that writes no criteria ignores `max_words`; "" for any other."""
    if settings.max_words is None or isinstance(judge, LLMJudge):
        return ""
    return f"max_words has no effect: the judge {judge.spec} puts its criteria together from clauses."
