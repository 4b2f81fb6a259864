"""AutoCalibrate (Liu et al. 2023, Algorithm 1): draft criteria, keep the best, refine them, and report.

Drafts, rankings and refinements use calibration items. The chosen judge, its best single criteria and the baseline are
scored once on the held-out items, at the end. Part of a budget is reserved for the held-out items. When the rest is
spent, the search stops, and the result lists the skipped work.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.calibration.calibration_records import Calibration, CalibrationSettings, Estimate, SplitAlignment, WorkDone
from core.calibration.clause_weights import weigh_clauses
from core.calibration.proposals import (
    draft_requests,
    fitting_request,
    folds_of,
    gate,
    new_criteria,
    refine_requests,
    with_examples,
    without_examples_of,
)
from core.calibration.racing import (
    BoundJudge,
    CandidatePool,
    Order,
    Recorder,
    ScoreTable,
    ensemble_scores,
    race_calls,
    racing_order,
    revisit,
    schedule,
    step_items,
    whole_sources,
)
from core.data.split import ENOUGH, LEAST, KnownTexts, few_labels, task_of, too_few_to_stack
from core.errors import AspectError, JudgeError, UsageError
from core.findings.agreement import contradiction_words, gain_warning
from core.judging.judge_protocol import CLAUSES, Judge, judge_state
from core.judging.llm_judge import LLMJudge, added_prompt_words, require_references
from core.judging.scoring_styles import STEPS_LIKE, Asking
from core.progress import SILENT, Progress
from core.records import Criteria, FloatArray, GoldenSet, Provenance, ScoreMatrix, Split, Task, Unscored
from core.stats import LabelledItems, fit_isotonic, paired_difference
from core.stats.correlation import source_folds
from core.stats.on_scale import fit_intervals
from core.wording import counted, money

CRITERIA_WORDS = 120  # typical length of drafted criteria
DOLLAR_STEP = 8
"""Held-out items in a step that a budget in dollars may stop: the scores of a stopped step are not used."""
CROSSED = 10
"""Folds of sources that scores are crossed over: each is fitted to nine tenths of the labels."""


@dataclass
class _Run:
    """State shared by the phases of one calibration.

    `fitting` is the number of calls reserved for fitting strengths. `cut` lists the work that the budget did not cover,
    and `not_run` the work that wasn't needed. `fitted` are the criteria with fitted strengths and their cross-fitted
    scores (n_items,); None for other judges.
    """

    pool: CandidatePool
    split: Split
    baseline: Criteria
    order: Order
    held_out: LabelledItems
    fitting: int
    problems: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    fitted: tuple[Criteria, FloatArray] | None = None

    def none_readable(self, what: str) -> JudgeError:
        reasons = "; ".join(f"{count} × {problem}" for problem, count in self.problems.most_common(3))
        return JudgeError(f"No {what} could be read, so there is nothing to calibrate: {reasons}")


def calibrate(
    golden: GoldenSet,
    aspect: str | Task,
    judge: Judge,
    settings: CalibrationSettings,
    progress: Progress = SILENT,
    *,
    asking: Asking | None = None,
    split: Split | None = None,
    recorder: Recorder | None = None,
) -> Calibration:
    """Calibrate `judge` on one aspect of `golden`, and publish the leaderboard as it changes.

    Args:
        aspect: The name of the aspect, or a `Task` for it.
        progress: Receives each leaderboard, and can stop the run.
        asking: If its `writes_steps` is true, the judge writes evaluation steps first.
        split: Calibration and held-out items; None splits according to `settings`.
        recorder: Stores the prepared judge, criteria and scores as they arrive.

    Raises:
        AspectError: There are too few labels, or all are equal; raised before the first call.
        UsageError: With a budget in dollars, the model's price is unknown or the budget is too small for one call.
    """
    task, split, items, judge, settings = _prepared(golden, aspect, judge, settings, split)
    shown, recorder = [golden.items[position] for position in split.calibration], recorder or Recorder()
    limit = calls_within(settings, judge, task, golden, split)
    ready, prepared = judge.made_ready(task, shown, writes_steps=asking is not None and asking.writes_steps)
    recorder.set_judge(ready, prepared)
    if settings.budget_usd is not None:  # a limit for this calibration only
        ready = ready.within(max(0.0, settings.budget_usd - (prepared.usage.cost or 0.0)))
    asked = BoundJudge(ready, golden, task, progress, prepared=prepared, recorder=recorder)
    run = _start(asked, split, settings, opened=split.held_out, limit=limit)
    pool, order = run.pool, run.order

    # Draft: criteria that explain the labels of sampled exemplars
    first = schedule(settings, settings.plan.n_drafts, order)[0][1]  # items that every draft is scored on
    n_drafts = int(min(settings.plan.n_drafts, max(1, (pool.table.left - first) / (1 + first))))
    if n_drafts < settings.plan.n_drafts:
        run.cut.append(f"{n_drafts} of {settings.plan.n_drafts} drafts")
    pool.publish("draft", f"drafting {n_drafts} criteria")
    requests = draft_requests(golden, task.aspect, items, settings)[:n_drafts]
    drafts = new_criteria(asked, requests, pool.table, run.problems, pool.entries)
    if not drafts:
        raise pool.table.ended or run.none_readable("draft")
    pool.add(drafts)

    # Revisit: keep the drafts with the best agreement on calibration items
    kept, n_items, ended = revisit(pool, drafts, order, phase="revisit", round_=0)
    if ended:
        run.cut.append(f"the ranking of drafts on {n_items} of {items.n} calibration items")
    pool.mark(kept, "kept")
    if run.fitting and pool.table.left < run.fitting:
        run.cut.append("criteria without fitted strengths")
    elif run.fitting:
        run.fitted = fit_strengths(pool)

    # Refine: improve the best drafts on their misaligned items
    for round_ in range(1, (settings.rounds or 0) + 1):
        if not _refine_round(run, round_):
            break
    return _report(run)


def _prepared(
    golden: GoldenSet, aspect: str | Task, judge: Judge, settings: CalibrationSettings, split: Split | None
) -> tuple[Task, Split, LabelledItems, Judge, CalibrationSettings]:
    """Return the task, the split, the calibration items, the judge with its examples, and the settings with rounds."""
    task = task_of(golden, aspect) if isinstance(aspect, str) else aspect
    if not settings.levels or not isinstance(judge, LLMJudge):
        task = replace(task, levels=())
    split = split or settings.split_of(golden, task.aspect)
    items = _usable_items(golden, task, split)
    judge = with_examples(judge, golden, items, task.scale, settings)
    return task, split, items, judge, settings.with_rounds(items.n)


def _usable_items(golden: GoldenSet, task: Task, split: Split) -> LabelledItems:
    """Return the labelled calibration items. Raises AspectError if the labels are too few or all equal."""
    items = LabelledItems.of(golden, task.aspect, split.calibration)
    if items.n < LEAST:
        raise AspectError(
            f"aspect {task.aspect!r} has {golden.aspects[task.aspect].n_labelled} labels, of which {items.n} are in "
            f"the calibration set. That set needs at least {LEAST} labels (we recommend {ENOUGH}). Label more items, "
            "or choose a larger calibration share.",
            file=golden.name,
        )
    if float(np.ptp(items.labels)) == 0.0:
        raise AspectError(
            f"all {items.n} calibration labels for aspect {task.aspect!r} are {items.labels[0]:g}, so agreement with "
            "them is undefined. Choose another aspect, or label items of varying quality.",
            file=golden.name,
        )
    return items


def measure(
    judge: BoundJudge,
    split: Split,
    settings: CalibrationSettings,
    criteria: Sequence[Criteria],
    *,
    held_out: bool = True,
) -> Calibration:
    """Measure a judge with given criteria, and the baseline. Nothing is drafted or refined, and there is no budget.

    Args:
        criteria: The score of an item is its mean score over all criteria.
        held_out: Whether to score held-out items. If false, their alignments are undefined.
    """
    settings = replace(settings, budget=None, budget_usd=None, rounds=0, ensemble=len(criteria))
    held_out_items = [judge.golden.items[position] for position in split.held_out]
    judge = replace(judge, judge=without_examples_of(judge.judge, held_out_items))
    run = _start(judge, split, settings, opened=split.held_out if held_out else ())
    pool = run.pool
    pool.add(criteria, "running")
    every = [entry.criteria for entry in pool.entries.values()]
    calls = len(every) * (pool.items.n + run.held_out.n)
    calls += cross_fitting_calls(judge.judge, settings, pool.items) if len(criteria) == 1 else 0
    pool.calls_expected = calls
    pool.score_all(every)
    pool.mark([each.criteria_id for each in criteria], "kept")
    run.fitted = fitted_again(pool, criteria)
    seen = "" if run.fitted else seen_labels_warning(judge.judge, criteria)
    run.warnings += filter(None, [unread_lines_warning(judge.judge, criteria), seen])
    result = _report(run)
    n, asked = run.held_out.n, len(split.held_out)
    work = WorkDone(held_out_asked=asked, held_out_scored=n, calls_planned=calls, calls_used=pool.table.calls)
    return replace(result, work=work)


def _start(
    judge: BoundJudge, split: Split, settings: CalibrationSettings, *, opened: Sequence[int], limit: float = math.inf
) -> _Run:
    """Create the candidate pool; `opened` are the positions of the held-out items to score."""
    golden, task, before = judge.golden, judge.task, judge.prepared
    items, held_out = _usable_items(golden, task, split), LabelledItems.of(golden, task.aspect, opened)
    fitting = fitting_calls(judge.judge, settings, items)
    most = most_calls(settings, items, held_out.n, fitting) + before.calls
    table = ScoreTable(golden.item_ids, limit, settings.budget_usd)
    table.spend(before.calls, before.usage)
    order = racing_order(items, settings, may_end_early=limit < most)
    if limit < most:
        table.reserve = min((settings.ensemble + 1) * held_out.n, limit // 2)
    pool = CandidatePool(judge, items, settings, table)
    pool.calls_expected = int(min(limit, most))
    baseline = Criteria("", task.aspect, Provenance("none", note="the judge without criteria"))
    pool.add([baseline], "baseline")
    run = _Run(pool, split, baseline, order, held_out, fitting)
    unseen = "The judge was measured only on the items that it was calibrated on, so this figure is optimistic."
    run.warnings += filter(None, [few_labels(items.n, held_out.n if opened else ENOUGH), "" if opened else unseen])
    if split.dropped:
        run.warnings.append(
            f"{split.dropped} items were left out because their source and their system belong to different sets."
        )
    return run


def _refine_round(run: _Run, round_: int) -> bool:
    """Run one round: draft children of the best criteria, race and gate them.  False if it could not finish."""
    pool, table = run.pool, run.pool.table
    train, inner = folds_of(pool.items, pool.settings.seed, gated=pool.settings.refine_gate)
    parents = pool.ranked(pool.with_status("kept"))[: pool.settings.keep]
    requests = refine_requests(pool, train, parents, round_)
    if not requests:
        why = "the judge is close to the raters on every item" if parents else "no draft could be scored"
        run.not_run.append(f"Refinement stopped before round {round_}: {why}.")
        return False
    n = len(requests)
    while n and n + race_calls(pool.settings, n, run.order) > table.left:
        n -= 1
    if n < len(requests):
        run.cut.append(f"{n} of {len(requests)} refinements in round {round_}")
    if not n:
        return False
    pool.publish("refine", f"asking for {n} refinements of {len(parents)} sets of criteria", round_)
    children = new_criteria(pool.judge, requests[:n], table, run.problems, pool.entries)
    pool.add(children)
    complete, n_items, ended = revisit(pool, children, run.order, phase="refine", round_=round_)
    if children and n_items < pool.items.n:  # a child is compared with its parent on all items
        run.cut.append(f"part of refinement round {round_}")
        pool.mark(complete, "stopped")
        return False
    gate(pool, inner, complete)
    pool.rounds_done = round_
    pool.publish("refine", f"round {round_} done", round_)
    return not ended


def _report(run: _Run) -> Calibration:
    """Choose the final judge on calibration items, then score it and the baseline once on held-out items."""
    pool, table, judge, baseline = run.pool, run.pool.table, run.pool.judge, run.baseline
    items, scale, settings = run.pool.items, judge.task.scale, run.pool.settings
    pool.refresh()
    members = _final_members(run)
    crossed = weigh_clauses(pool, members) if run.fitted is None else run.fitted[1]
    chosen = tuple(pool.entries[name].criteria for name in members)
    pool.mark(members, "chosen")
    scored = list({each.criteria_id: each for each in (*chosen, baseline)}.values())
    held_out = _score_held_out(run, scored)
    # with a budget, fewer than all calibration items may have been scored
    all_asked = np.logical_and.reduce([pool.asked(each.criteria_id) for each in scored])
    final, bare = table.mean(members), table.values[baseline.criteria_id]

    def aligned(values: FloatArray) -> SplitAlignment:
        sides = (items.take(all_asked), held_out)
        return SplitAlignment(*(pool.align(values[None, side.positions], side)[0] for side in sides))

    of_final, of_baseline, of_best = aligned(final), aligned(bare), aligned(table.values[members[0]])
    at = held_out.positions
    gain = paired_difference(final[at], bare[at], held_out, pool.measure, seed=[settings.seed, 10])
    if chosen == (baseline,):
        undefined = "the final judge is the baseline"
        gain = replace(gain, value=None, interval=None, p=None, reason=undefined)
    judged = crossed[items.positions]
    score_map, no_map = fit_isotonic(judged, items.labels, scale)
    scores = _final_scores(run, members, final, [*items.positions.tolist(), *at.tolist()])
    run.problems.update(f"unread: {lost.reason}" for reasons in table.unscored.values() for lost in reasons.values())
    if np.isnan(scores.values).all() and run.problems:
        raise run.none_readable("score")
    run.warnings += filter(None, [gain_warning(gain), contradiction_words(gain.a, "The calibrated judge")])
    missing = [lost for lost in scores.unscored.get("final", ()) if lost.reason != "budget"]
    if missing:
        reasons = ", ".join(sorted({lost.reason for lost in missing}))
        run.warnings.append(f"{len(missing)} of {len(scores.item_ids)} items couldn't be scored ({reasons}).")
    run.warnings += judge.judge.remarks
    if no_map:
        run.warnings.append(f"Scores aren't mapped to the human scale: {no_map}.")
    stopped = f"The {settings.budget_words} covered only {'; '.join(run.cut)}." if run.cut else ""
    pool.publish("done", "done")
    return Calibration(
        task=judge.task,
        settings=settings,
        golden_name=judge.golden.name,
        golden_digest=judge.golden.digest,
        golden_columns=dict(judge.golden.columns),
        split=run.split,
        texts=KnownTexts.of(judge.golden, run.split.calibration, run.split.held_out),
        chosen=chosen,
        candidates=pool.candidates(),
        calibration=of_final.calibration,
        held_out=of_final.held_out,
        best_single=of_best,
        no_criteria=of_baseline,
        gain=gain,
        scores=scores,
        isotonic=None if score_map is None else score_map.as_json(),
        calls=table.calls,
        usage=table.usage,
        work=_work_done(run, held_out.n, stopped),
        judge_state=judge_state(judge.judge),
        warnings=tuple(run.warnings),
        stopped_early=stopped,
        problems=dict(run.problems),
        intervals=fit_intervals(judged, items.labels, items.sources, scale).as_json(),
    )


def _final_members(run: _Run) -> list[str]:
    """Return the ids of the final judge's criteria: those with fitted strengths, else the best on calibration items."""
    pool, n_held_out = run.pool, max(1, run.held_out.n)
    pool.table.reserve = 0
    if run.fitted is not None:
        # don't rank them: criteria picked on calibration look too good there, while fitted strengths are shrunk
        return [run.fitted[0].criteria_id]
    kept, wanted = pool.ranked(pool.with_status("kept")), pool.settings.ensemble
    if not kept:
        run.warnings.append("None of the criteria could be scored, so the final judge has no criteria.")
        return [run.baseline.criteria_id]
    affordable = int(max(1, min(wanted, pool.table.left / n_held_out - 1)))
    if affordable < min(wanted, len(kept)):
        run.cut.append(f"{affordable} of {wanted} sets of criteria in the final judge")
    return kept[:affordable]


def _score_held_out(run: _Run, scored: Sequence[Criteria]) -> LabelledItems:
    """Score as many held-out items as the budget covers, in whole random sources; return the scored items."""
    pool, table, held_out = run.pool, run.pool.table, run.held_out
    if table.left < held_out.n * len(scored):
        order = whole_sources(held_out.sources, pool.settings.seed)
        n_items = max(order.ends[order.ends * len(scored) <= table.left].tolist(), default=0)
        held_out = held_out.take(np.sort(order.items[:n_items]))
    size = step_items(held_out.n, len(scored))
    if table.dollars is not None:
        size = min(size, DOLLAR_STEP)
    for start in range(0, held_out.n, size):
        if not table.ask(pool.judge, scored, held_out.positions[start : start + size].tolist()):
            held_out = held_out.take(np.arange(held_out.n) < start)
            break
        pool.publish("held-out", f"{min(start + size, held_out.n)} of {held_out.n} held-out items scored")
    if held_out.n < run.held_out.n:
        run.cut.append(f"{held_out.n:,} of {run.held_out.n:,} held-out items")
    return held_out


def _final_scores(run: _Run, members: Sequence[str], final: FloatArray, positions: Sequence[int]) -> ScoreMatrix:
    """Return scores at `positions`: the final judge in the first row ("final"), then its members."""
    table, items = run.pool.table, run.pool.judge.golden.items
    ids, reasons = tuple(items[k].item_id for k in positions), table.reasons(members)
    missing = tuple(
        reasons.get(item_id, Unscored(item_id, "budget", "not requested because the budget was used up"))
        for item_id, value in zip(ids, final[positions], strict=True)
        if np.isnan(value)
    )
    rows, turned = np.stack([final, *(table.values[name] for name in members)]), table.turned(members)
    if turned is not None:
        turned = np.vstack([ensemble_scores(turned), turned])[:, positions]
    unscored = {"final": missing} if missing else {}
    return ScoreMatrix(("final", *members), ids, rows[:, positions], unscored, turned=turned)


def _work_done(run: _Run, n_held_out: int, stopped: str) -> WorkDone:
    pool, settings, fitted = run.pool, run.pool.settings, run.fitted and run.fitted[0].criteria_id
    drafts, refinements = (
        [e for name, e in pool.entries.items() if e.criteria.provenance.origin == origin and name != fitted]
        for origin in ("draft", "refine")
    )
    return WorkDone(
        drafts_asked=settings.plan.n_drafts,
        drafts_made=len(drafts),
        drafts_ranked=sum(draft.calls > 0 for draft in drafts),
        rounds_asked=settings.rounds or 0,
        rounds_done=pool.rounds_done,
        refined_asked=(settings.rounds or 0) * settings.refinements,
        refined_made=len(refinements),
        refined_accepted=sum(child.status in ("kept", "chosen") for child in refinements),
        held_out_asked=run.held_out.n,
        held_out_scored=n_held_out,
        calls_planned=pool.calls_expected,
        calls_used=pool.table.calls,
        budget=settings.budget,
        left_out=(*filter(None, [stopped]), *run.not_run),
    )


# ── cost before the first call ────────────────────────────────────────────────────────────────────────────────────────


def calls_within(settings: CalibrationSettings, judge: Judge, task: Task, golden: GoldenSet, split: Split) -> float:
    """Return the maximum number of calls within the budgets in calls and dollars; infinity without a budget.

    A budget in dollars is divided by the estimated price of a call. Raises UsageError if the model's price is unknown,
    or if the budget is too small for one call.
    """
    limit = math.inf if settings.budget is None else settings.budget
    if settings.budget_usd is None:
        return limit
    judge.within(settings.budget_usd)
    once = judge.estimate(task, [golden.items[position] for position in split.calibration], CRITERIA_WORDS)
    if not once.cost:
        return limit
    each = once.cost / max(1, once.calls)
    calls = int(settings.budget_usd / each)
    if not calls:
        raise UsageError(
            f"The {settings.budget_words} doesn't cover a single call, which costs about {money(each)}. Raise the "
            "budget."
        )
    return min(calls, limit)


def most_calls(settings: CalibrationSettings, items: LabelledItems, n_held_out: int, fitting: int) -> int:
    """Return the maximum number of calls of a calibration. `fitting` is the result of `fitting_calls`."""
    order, n_drafts, n_refined = racing_order(items, settings), settings.plan.n_drafts, settings.refinements
    calls = n_drafts + race_calls(settings, n_drafts, order, with_baseline=True) + fitting
    if settings.rounds:
        calls += settings.rounds * (n_refined + race_calls(settings, n_refined, order))
    return calls + (settings.ensemble + 1) * n_held_out


def estimate(
    golden: GoldenSet,
    aspect: str | Task,
    judge: Judge,
    settings: CalibrationSettings,
    *,
    asking: Asking | None = None,
    split: Split | None = None,
) -> Estimate:
    """Estimate calls, tokens and price of `calibrate` with the same arguments. Raises the same errors."""
    asking = asking or Asking()
    task, split, items, judge, settings = _prepared(golden, aspect, judge, settings, split)
    shown = [golden.items[p] for p in split.calibration]
    if isinstance(judge, LLMJudge):
        require_references(judge.sampling, task, shown)
        judge = judge.with_sampling(replace(judge.sampling, steps=STEPS_LIKE)) if asking.writes_steps else judge
    n_held_out = len(split.held_out)
    most = most_calls(settings, items, n_held_out, fitting_calls(judge, settings, items)) + asking.writes_steps
    limit = calls_within(settings, judge, task, golden, split)
    calls = int(min(limit, most))
    once = judge.estimate(task, shown, CRITERIA_WORDS)
    notes = [judge.notice]
    if isinstance(judge, LLMJudge):
        notes.append(reasons_words(golden, task.aspect, split, settings))
        samples = judge.sampling.samples
        if judge.sampling.form == "clauses":
            total = f"with {CLAUSES} clauses, up to {CLAUSES * samples * calls:,} replies in total"
            notes.append(f"Each score needs {counted(samples, 'reply', 'replies')} for each clause: {total}.")
        elif samples > 1:
            notes.append(
                f"Each score is the mean of {samples} replies, so up to {samples * calls:,} replies are needed."
            )
        notes.append(added_prompt_words(judge, task, shown, calls))
    if limit < most:
        notes.append(
            f"The {settings.budget_words} may stop the search early. A complete search needs up to {most:,} calls."
        )
    return Estimate(
        calls,
        *once.scaled(calls / max(1, once.calls)),
        n_calibration=items.n,
        n_held_out=n_held_out,
        notes=tuple(filter(None, notes)),
        rounds=settings.rounds or 0,
        few_labels=few_labels(items.n),
    )


def reasons_words(golden: GoldenSet, aspect: str, split: Split, settings: CalibrationSettings) -> str:
    """Return a sentence on how many calibration items have reasons, and whether these are used; "" if none exist."""
    reasons = golden.reasons(aspect)
    n = sum(golden.items[position].item_id in reasons for position in split.calibration)
    if not n:
        return ""
    use = "use" if settings.reasons else "ignore"
    return f"Raters gave reasons for {counted(n, 'calibration item')}. Drafting and refining {use} these reasons."


# ── final criteria with strengths fitted to all calibration items, for judges that support it ─────────────────────────
#
# Scores on the items that strengths were fitted to are optimistic.  The map to the human scale and the intervals
# therefore use cross-fitted scores: each fold of sources is scored by criteria fitted to the other folds.


def cross_fitting_calls(judge: Judge, settings: CalibrationSettings, items: LabelledItems) -> int:
    """Return the maximum number of calls to cross-fit the strengths of criteria; 0 if they are not cross-fitted."""
    wanted = judge.fits_strengths and settings.fit_strengths and settings.refine_gate
    if not wanted or too_few_to_stack(items.n):
        return 0
    return 1 + min(CROSSED, np.unique(items.sources).size) + items.n


def fitting_calls(judge: Judge, settings: CalibrationSettings, items: LabelledItems) -> int:
    """Return the maximum number of calls of `fit_strengths`; 0 if it is skipped."""
    crossing = cross_fitting_calls(judge, settings, items)
    return crossing + items.n if crossing else 0


def fit_strengths(pool: CandidatePool) -> tuple[Criteria, FloatArray] | None:
    """Add criteria with fitted strengths to the pool. Return them and their cross-fitted scores (n_items,).

    Returns None if the fit fails, or if the pool already has these criteria.
    """
    found = _fitted_to(pool, pool.items)
    if found is None or found.criteria_id in pool.entries:
        return None
    pool.add([found])
    pool.score_all([found])
    pool.mark([found.criteria_id], "kept")
    return found, _crossed(pool)


def fitted_again(pool: CandidatePool, criteria: Sequence[Criteria]) -> tuple[Criteria, FloatArray] | None:
    """Return the criteria with cross-fitted scores if fitting their strengths again changes nothing, else None."""
    if len(criteria) != 1 or not cross_fitting_calls(pool.judge.judge, pool.settings, pool.items):
        return None
    found = _fitted_to(pool, pool.items)
    same = found is not None and found.criteria_id == criteria[0].criteria_id
    return (criteria[0], _crossed(pool)) if same else None


def seen_labels_warning(judge: Judge, criteria: Sequence[Criteria]) -> str:
    """Return a warning that fitted strengths make the intervals and score map optimistic; "" if none were fitted."""
    from core.judging.offline.features import states_strength

    if not judge.fits_strengths or not any(states_strength(each.text) for each in criteria):
        return ""
    return (
        "The criteria contain clause strengths that were fitted to labels, so the intervals and the map to the human "
        "scale may be too optimistic. To make them reliable, calibrate again."
    )


def unread_lines_warning(judge: Judge, criteria: Sequence[Criteria]) -> str:
    """Return a warning that lists the lines of `criteria` that `judge` can't interpret; "" if there are none."""
    lines = [f"“{line}”" for each in criteria for line in judge.unread_lines(each)]
    if not lines:
        return ""
    return (
        f"The {judge.spec} judge ignores any text that it can't interpret: {' '.join(lines)} Use a "
        "phrase that the judge knows, such as “Penalise texts that repeat themselves.”"
    )


def _fitted_to(pool: CandidatePool, items: LabelledItems) -> Criteria | None:
    request = fitting_request(pool.judge.golden, items, pool.settings)
    return next(iter(new_criteria(pool.judge, [request], pool.table, Counter())), None)


def _crossed(pool: CandidatePool) -> FloatArray:
    """Return cross-fitted scores (n_items,) of calibration items, by folds of sources; NaN elsewhere."""
    items, table = pool.items, pool.table
    folds, scores = source_folds(items.sources, CROSSED, pool.settings.seed), np.full(len(table.places), np.nan)
    for fold in range(int(folds.max()) + 1):
        found, out = _fitted_to(pool, items.take(folds != fold)), items.positions[folds == fold]
        if found is not None:
            matrix = pool.judge.score([found], out.tolist())
            table.spend(matrix.calls, matrix.usage)
            scores[out] = matrix.values[0]
    return scores
