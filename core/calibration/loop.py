"""AutoCalibrate (001, Algorithm 1; departures in METHODS §4): draft, revisit, refine, report.

What chooses and what reports never share items: drafts see calibration items only, candidates are ranked on
calibration, refinements pass a gate on an inner fold of calibration, and held-out is scored once, at the end, with
the final judge, the best of its criteria alone and the judge without criteria.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.calibration.budget import Request, WorkPlan, cut_words, plan_work, require_usable, spread, unheeded
from core.calibration.calibration_result import BothSides, Calibration, Phase, WorkDone
from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.candidate_pool import (
    AskedJudge,
    CallBudget,
    CandidatePool,
    Keeper,
    ScoreTable,
    ensemble_scores,
)
from core.calibration.fitting import (
    Fitted,
    crossing_calls,
    fit_strengths,
    fitted_again,
    fitting_calls,
    seen_labels_warning,
    unread_lines_warning,
)
from core.calibration.proposals import Folds, distinct, draft_requests, gate, refine_requests
from core.calibration.racing_order import Order, racing_order
from core.calibration.revisit import revisit, step_items
from core.data.split import KnownTexts, few_held_out, few_labels, task_of
from core.errors import JudgeError
from core.judging.judge_protocol import DraftBatch, Judge, judge_state
from core.judging.llm_judge import made_ready
from core.judging.scoring_styles import Asking
from core.progress import SILENT, Progress
from core.records import (
    Criteria,
    FloatArray,
    GoldenSet,
    IntArray,
    Provenance,
    ScoreMatrix,
    Split,
    Task,
    Unscored,
)
from core.stats import IsotonicFit, LabelledItems, claim, fit_isotonic, gain_words
from core.stats.claims import backwards_words, is_backwards
from core.stats.conformal import VerdictIntervals, fit_intervals


@dataclass
class _Run:
    """What the phases of one calibration share."""

    judge: AskedJudge
    split: Split
    pool: CandidatePool
    order: Order
    held_out: LabelledItems
    plan: WorkPlan
    problems: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    fitted: Fitted | None = None

    @property
    def golden(self) -> GoldenSet:
        return self.judge.golden

    @property
    def task(self) -> Task:
        return self.judge.task

    @property
    def settings(self) -> CalibrationSettings:
        return self.pool.settings

    def publish(self, phase: Phase, round_: int, message: str, *, final: bool = False) -> None:
        self.judge.progress.publish(self.pool.snapshot(phase, round_, message, final=final))

    def out_of_budget(self, where: str) -> None:
        self.cut.append(f"The budget of {self.settings.budget:,} calls was used up {where}.")


def calibrate(
    golden: GoldenSet,
    aspect: str | Task,
    judge: Judge,
    settings: CalibrationSettings,
    progress: Progress = SILENT,
    *,
    asking: Asking | None = None,
    split: Split | None = None,
    keeper: Keeper | None = None,
) -> Calibration:
    """Make `judge` ready and calibrate it on one aspect of `golden`, publishing the leaderboard as it goes.

    Args:
        golden: Items and labels.
        aspect: The aspect, or a whole task.  A definition of `MODEL_WRITES` lets the judge write it.
        judge: Who is asked; it carries its reply cache.
        settings: How to search, measure and split.
        progress: Gets each leaderboard, and may stop the work.
        asking: Whether the judge writes evaluation steps first.
        split: The two sides; by default those that `settings` ask for.
        keeper: Gets the judge made ready, criteria and scores as they come.

    Raises:
        AspectError: Before the first call, when the labels cannot rank anything.
    """
    task = task_of(golden, aspect) if isinstance(aspect, str) else aspect
    split, keeper = split or settings.split_of(golden, task.aspect), keeper or Keeper()
    items = [golden.items[position] for position in split.calibration]
    ready, task, prepared = made_ready(judge, task, items, asking or Asking())
    keeper.keep_judge(ready, prepared)
    asked = AskedJudge(ready, golden, task, progress, prepared=prepared, keeper=keeper)
    run = _start(asked, split, settings, split.held_out)
    run.warnings += filter(None, [unheeded(ready, settings)])
    pool, plan = run.pool, run.plan
    run.publish("draft", 0, f"drafting {plan.drafts} criteria")
    requests = draft_requests(golden, pool.items.labels, pool.items.positions, settings)
    drafts = _ask(run, asked.draft, spread(requests, plan.drafts))
    if requests and plan.drafts and not drafts:
        raise _none_readable("draft", run.problems)
    pool.add(drafts)
    revisited = revisit(asked, pool, drafts, run.order, phase="revisit", round_=0, share=plan.share)
    if revisited.out_of_budget:
        run.out_of_budget("while the drafts were scored")
    pool.mark(revisited.complete, "kept")
    pool.note_best(pool.with_status("kept"))
    run.fitted = fit_strengths(asked, pool, run.order) if plan.fitting else None
    for round_ in range(1, plan.rounds + 1):
        _refine_round(run, round_)
        if pool.rounds_done < round_:
            break
    return _report(run)


def measure(
    judge: AskedJudge,
    split: Split,
    settings: CalibrationSettings,
    criteria: Sequence[Criteria],
    *,
    held_out: bool = True,
) -> Calibration:
    """`judge` with `criteria` that people chose (the mean of their scores), measured as the winner of a calibration is.

    Nothing is drafted or refined; the judge without criteria is scored beside it.  Without `held_out` those items are
    left alone, and what would be measured on them is undefined.  Settings, split and errors as in `calibrate`; its
    budget does not apply.
    """
    settings = replace(settings, budget=None, rounds=0, ensemble=len(criteria))
    run = _start(judge, split, settings, split.held_out if held_out else ())
    pool, positions = run.pool, run.pool.items.positions
    baseline = [entry.criteria for entry in pool.entries.values()]
    pool.add(criteria, "running")
    every = tuple({each.criteria_id: each for each in (*criteria, *baseline)}.values())
    calls = len(every) * (len(positions) + run.held_out.n)
    if len(criteria) == 1:
        calls += crossing_calls(judge.judge, settings, pool.items)
    pool.calls_expected = calls
    size = step_items(len(positions), len(every))
    for start in range(0, len(positions), size):
        pool.score(judge, every, tuple(int(p) for p in positions[start : start + size]))
        done = min(start + size, len(positions))
        run.publish("revisit", 0, f"{done} of {len(positions)} calibration items scored")
    pool.mark([each.criteria_id for each in criteria], "kept")
    if lines := unread_lines_warning(judge.judge, criteria):
        run.warnings.append(lines)
    run.fitted = fitted_again(judge, pool, criteria)
    if run.fitted is None and (warning := seen_labels_warning(judge.judge, criteria)):
        run.warnings.append(warning)
    result = _report(run)
    n, asked = run.held_out.n, len(split.held_out)
    return replace(result, work=WorkDone(0, 0, 0, 0, 0, 0, 0, 0, asked, n, calls, pool.budget.calls))


def _start(judge: AskedJudge, split: Split, settings: CalibrationSettings, opened: Sequence[int]) -> _Run:
    """`opened` are the positions of the held-out items that will be looked at."""
    golden, task = judge.golden, judge.task
    items, held_out = (LabelledItems.of(golden, task.aspect, part) for part in (split.calibration, opened))
    require_usable(golden, task, items)
    level = settings.level or items.usual_level
    before = judge.prepared
    left = None if settings.budget is None else max(1, settings.budget - before.calls)
    fitting = fitting_calls(judge.judge, settings, items)
    plan = plan_work(replace(settings, budget=left), items, held_out.n, fitting)
    table = ScoreTable(golden.item_ids, CallBudget(settings.budget, plan.reserve, before.calls, before.usage))
    pool = CandidatePool(items, settings, level, table)
    pool.calls_expected = plan.calls + before.calls
    baseline = Criteria("", task.aspect, Provenance("none", note="the judge without criteria"))
    pool.add([baseline], "baseline")
    run = _Run(judge, split, pool, racing_order(items, settings, plan.share), held_out, plan)
    if cut := cut_words(plan, settings, items, held_out.n, fitting):
        run.cut.append(cut)
    unseen = (
        few_held_out(held_out.n) if opened else "Not measured on held-out items: the calibration figure is optimistic."
    )
    few = (few_labels(items.n, refining=plan.rounds > 0), unseen)
    run.warnings += [*(warning for warning in few if warning), *before.notes]
    if split.dropped:
        run.warnings.append(f"{split.dropped} items fall away because their system is held out on the other side.")
    return run


def _ask(
    run: _Run, ask: Callable[[Sequence[Request]], DraftBatch], requests: Sequence[Request]
) -> tuple[Criteria, ...]:
    """Have requests answered, and return the new criteria among the answers."""
    if not requests:
        return ()
    batch = ask(requests)
    run.pool.budget.spend(batch.calls, batch.usage)
    new = distinct(batch, known=tuple(run.pool.entries))
    run.problems.update(new.problems)
    return new.criteria


def _none_readable(what: str, problems: Counter[str]) -> JudgeError:
    reasons = "; ".join(f"{count} × {problem}" for problem, count in problems.most_common(3))
    return JudgeError(f"There is not one {what} that can be read, so there is nothing to calibrate: {reasons}")


def _refine_round(run: _Run, round_: int) -> None:
    """One round: parents are the top K, children race, pass the gate, and join the pool (001 steps 9-15)."""
    pool = run.pool
    folds = Folds.of(pool.items, run.settings) if run.settings.refine_gate else Folds.ungated(pool.items)
    parents = pool.ranked(pool.with_status("kept"))[: run.settings.keep]
    requests = spread(refine_requests(run.golden, pool, folds, parents, round_), run.plan.refined)
    if not requests:
        why = "judge and people part on no item far enough" if parents else "no draft could be scored"
        run.not_run.append(f"Refinement ended before round {round_}: {why}.")
        return
    run.publish("refine", round_, f"refining {len(parents)} criteria, {len(requests)} proposals")
    children = _ask(run, run.judge.refine, requests)
    pool.add(children)
    revisited = revisit(run.judge, pool, children, run.order, phase="refine", round_=round_)
    if revisited.out_of_budget:
        run.out_of_budget(f"in refinement round {round_}")
    if not children or revisited.items == pool.items.n:
        gate(pool, folds, [pool.entries[i].criteria for i in revisited.complete])
        pool.rounds_done = round_
    else:
        pool.mark(revisited.complete, "stopped")
    pool.note_best(pool.with_status("kept"))
    run.publish("refine", round_, f"round {round_} done")


def _report(run: _Run) -> Calibration:
    """Choose the final judge on calibration, then score it and the judge without criteria on held-out, once."""
    pool = run.pool
    pool.refresh(final=True)
    baseline = pool.entries[pool.with_status("baseline")[0]].criteria
    # ranks on calibration flatter what was picked there; fitted strengths were shrunk between sources
    ranked = pool.ranked(pool.with_status("kept"))[: run.plan.ensemble]
    if run.fitted is not None:
        ranked = [run.fitted.criteria.criteria_id]
    chosen = tuple(pool.entries[i].criteria for i in ranked) or (baseline,)
    if not ranked:
        run.warnings.append("No criteria could be scored: the final judge is the one without criteria.")
    pool.mark(ranked, "chosen")
    criteria = tuple({each.criteria_id: each for each in (*chosen, baseline)}.values())
    held_out = affordable_held_out(pool, run.held_out, len(criteria))
    if held_out.n < run.held_out.n:
        run.out_of_budget(f"when {held_out.n:,} of {run.held_out.n:,} held-out items were scored")
    size = step_items(held_out.n, len(criteria))
    for start in range(0, held_out.n, size):
        positions = tuple(int(p) for p in held_out.positions[start : start + size])
        pool.table.ask(run.judge, criteria, positions)
        done = start + len(positions)
        run.publish("held-out", pool.rounds_done, f"{done} of {held_out.n} held-out items scored")
    result = _result(run, chosen, baseline, held_out)
    if np.isnan(result.scores.values).all() and result.problems:
        raise _none_readable("score", run.problems)
    run.publish("done", pool.rounds_done, "done", final=True)
    return result


def _result(
    run: _Run,
    chosen: tuple[Criteria, ...],
    baseline: Criteria,
    held_out: LabelledItems,
) -> Calibration:
    pool, table = run.pool, run.pool.table
    members = [each.criteria_id for each in chosen]
    # with a budget, fewer than all calibration items may have been scored
    all_asked = np.logical_and.reduce([pool.asked(criteria_id) for criteria_id in (*members, baseline.criteria_id)])
    on_both = np.concatenate([pool.items.positions, held_out.positions])
    final = table.mean(members)
    scores = final_scores(run.golden, table, members, final, on_both)

    def aligned(values: FloatArray) -> BothSides:
        sides = (pool.items.take(all_asked), held_out)
        return BothSides(*(pool.align(values[None, items.positions], items)[0] for items in sides))

    of_final, bare = aligned(final), table.values(baseline.criteria_id)
    gain = pool.difference(final[held_out.positions], bare[held_out.positions], held_out)
    if not chosen[0].text:
        undefined = "the final judge is the one without criteria"
        gain = replace(gain, value=None, interval=None, p=None, reason=undefined)
    unfitted = np.stack([table.values(m) for m in members]) if run.fitted is None else run.fitted.crossed[None]
    to_people, intervals = _on_the_scale(run, unfitted)
    run.problems.update(f"unread: {lost.reason}" for reasons in table.unscored.values() for lost in reasons.values())
    gained = claim(gain.value, gain.interval, gain.p) == "higher"
    remarks = [
        *([] if gained and not is_backwards(gain.b) else [gain_words(gain)]),
        *filter(None, [backwards_words(gain.a, "The calibrated judge")]),
        *unread_warning(scores),
        *run.judge.judge.remarks,
        *([f"Map to the human scale: {to_people.reason}."] if to_people.reason else []),
    ]
    return Calibration(
        task=run.task,
        settings=run.settings,
        golden_name=run.golden.name,
        golden_digest=run.golden.digest,
        golden_columns=dict(run.golden.columns),
        split=run.split,
        texts=KnownTexts.of(run.golden, run.split.calibration, run.split.held_out),
        chosen=chosen,
        candidates=pool.candidates(),
        calibration=of_final.calibration,
        held_out=of_final.held_out,
        best_single=aligned(table.values(members[0])),
        no_criteria=aligned(bare),
        gain=gain,
        scores=scores,
        isotonic=None if to_people.map is None else to_people.map.as_json(),
        curve=tuple(pool.curve),
        calls=pool.budget.calls,
        usage=pool.budget.usage,
        work=_work_done(run, held_out.n),
        judge_state=judge_state(run.judge.judge),
        warnings=(*run.warnings, *remarks),
        stopped_early=" ".join(run.cut),
        problems=dict(run.problems),
        intervals=intervals.as_json(),
    )


def _on_the_scale(run: _Run, members: FloatArray) -> tuple[IsotonicFit, VerdictIntervals]:
    """The map to the human scale and how sure verdicts are, from `members` (k, n_items) on calibration items."""
    items, at = run.pool.items, run.pool.items.positions
    scale = run.task.scale
    scores = ensemble_scores(members[:, at])
    return fit_isotonic(scores, items.labels, scale), fit_intervals(scores, items.labels, items.sources, scale)


def _work_done(run: _Run, n_held_out: int) -> WorkDone:
    pool, settings = run.pool, run.settings
    ours = [each for each in pool.entries.values() if run.fitted is None or each.criteria is not run.fitted.criteria]
    drafts, refinements = (
        [each for each in ours if each.criteria.provenance.origin == origin] for origin in ("draft", "refine")
    )
    return WorkDone(
        drafts_asked=settings.plan.n_drafts,
        drafts_made=len(drafts),
        drafts_ranked=sum(draft.calls > 0 for draft in drafts),
        rounds_asked=settings.rounds,
        rounds_done=pool.rounds_done,
        refined_asked=settings.rounds * settings.refinements,
        refined_made=len(refinements),
        refined_accepted=sum(child.status in ("kept", "chosen") for child in refinements),
        held_out_asked=run.held_out.n,
        held_out_scored=n_held_out,
        calls_planned=run.plan.calls,
        calls_used=pool.budget.calls,
        budget=settings.budget,
        left_out=(*run.cut, *run.not_run),
    )


def affordable_held_out(pool: CandidatePool, items: LabelledItems, n_criteria: int) -> LabelledItems:
    """The part of held-out that the budget still covers: whole sources in random order; all without a budget."""
    left = pool.budget.left(with_reserve=True)
    if left is None or left >= items.n * n_criteria or items.n == 0:
        return items
    order = Order.whole(items.sources, pool.settings.seed)
    n_items = max((end for end in order.ends if end * n_criteria <= left), default=0)
    return items.take(np.sort(order.items[:n_items]))


def final_scores(
    golden: GoldenSet, table: ScoreTable, members: Sequence[str], final: FloatArray, positions: IntArray
) -> ScoreMatrix:
    """The final judge's scores at `positions` as the first row ("final"), those of its members below."""
    item_ids, reasons = tuple(golden.items[int(p)].item_id for p in positions), table.reasons(members)
    missing = tuple(
        reasons.get(item_id, Unscored(item_id, "budget", "not asked for: the budget was used up"))
        for item_id, value in zip(item_ids, final[positions], strict=True)
        if np.isnan(value)
    )
    rows, turned = np.stack([final, *(table.values(criteria_id) for criteria_id in members)]), table.turned(members)
    if turned is not None:
        turned = np.vstack([ensemble_scores(turned), turned])[:, positions]
    unscored = {"final": missing} if missing else {}
    return ScoreMatrix(("final", *members), item_ids, rows[:, positions], unscored, turned=turned)


def unread_warning(scores: ScoreMatrix) -> list[str]:
    """A sentence when the final judge could not score items it was asked for; nothing otherwise."""
    missing = [lost for lost in scores.unscored.get("final", ()) if lost.reason != "budget"]
    if not missing:
        return []
    reasons = ", ".join(sorted({lost.reason for lost in missing}))
    return [
        f"{len(missing)} of {len(scores.item_ids)} items have no score ({reasons}). They are counted, never guessed; "
        "the replies stand in the verdicts."
    ]
