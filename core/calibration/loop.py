"""AutoCalibrate (the paper's Algorithm 1): draft, revisit, refine, report.

What chooses and what reports never share items: drafts see calibration items only, candidates are ranked on
calibration, refinements pass a gate on an inner fold of calibration, and held-out is scored once, at the end, with
the final judge, the best of its criteria alone and the baseline (no criteria).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from core.calibration.calibration_records import BothSides, Calibration, CalibrationSettings, Estimate, WorkDone
from core.calibration.proposals import (
    draft_requests,
    fitting_request,
    folds_of,
    gate,
    new_criteria,
    refine_requests,
    spread,
    with_examples,
    without_examples_of,
)
from core.calibration.racing import (
    AskedJudge,
    CandidatePool,
    Keeper,
    Order,
    ScoreTable,
    WorkPlan,
    ensemble_scores,
    plan_work,
    racing_order,
    revisit,
    schedule,
    step_items,
    whole_sources,
)
from core.data.split import ENOUGH, LEAST, KnownTexts, few_held_out, few_labels, task_of, too_few_to_stack
from core.errors import AspectError, JudgeError, UsageError
from core.findings.agreement import contradiction_words, gain_warning
from core.judging.judge_protocol import Judge, judge_state
from core.judging.llm_judge import LLMJudge, references_words, require_references, shown_words
from core.judging.scoring_styles import STEPS_LIKE, Asking
from core.progress import SILENT, Progress
from core.records import Criteria, FloatArray, GoldenSet, IntArray, Item, Provenance, ScoreMatrix, Split, Task, Unscored
from core.stats import LabelledItems, fit_isotonic
from core.stats.correlation import source_folds
from core.stats.on_scale import fit_intervals
from core.wording import counted, money

CRITERIA_WORDS = 120  # of drafted criteria, as language models write them
DOLLAR_STEP = 8
"""Held-out items in a step that a budget in dollars may stop: the scores of a stopped step are not used."""
CROSSED = 10
"""Folds of sources that scores are crossed over: each is fitted to nine tenths of the labels."""


@dataclass
class _Run:
    """What the phases of one calibration share; `fitted` are criteria with crossed scores (n_items,), where there are
    such."""

    pool: CandidatePool
    split: Split
    baseline: Criteria
    order: Order
    held_out: LabelledItems
    plan: WorkPlan
    problems: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    fitted: tuple[Criteria, FloatArray] | None = None

    def out_of_budget(self, when: str) -> None:
        self.cut.append(f"The {self.pool.settings.budget_words} was used up {when}.")

    def none_readable(self, what: str) -> JudgeError:
        reasons = "; ".join(f"{count} × {problem}" for problem, count in self.problems.most_common(3))
        return JudgeError(f"There is not one {what} that can be read, so there is nothing to calibrate: {reasons}")


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
        aspect: The aspect, or a whole task.
        judge: The judge to ask; it carries its reply cache.
        settings: How to search, measure and split.
        progress: Receives each leaderboard, and may stop the work.
        asking: Whether the judge writes evaluation steps first.
        split: Calibration and held-out set; by default those that `settings` ask for.
        keeper: Receives the judge made ready, criteria and scores as they come.

    Raises:
        AspectError: Before the first call, when the labels cannot rank anything.
    """
    task = task_of(golden, aspect) if isinstance(aspect, str) else aspect
    task = _shown_task(task, judge, settings)
    split, keeper = split or settings.split_of(golden, task.aspect), keeper or Keeper()
    items = [golden.items[position] for position in split.calibration]
    labelled = LabelledItems.of(golden, task.aspect, split.calibration)
    judge = with_examples(judge, golden, labelled, task.scale, settings.examples)
    calls_within(settings, judge, task, items)  # refuses a model without a price before it writes anything
    ready, prepared = judge.made_ready(task, items, writes_steps=asking is not None and asking.writes_steps)
    keeper.keep_judge(ready, prepared)
    if settings.budget_usd is not None:  # for this calibration alone: whoever keeps the judge may go on asking it
        ready = ready.within(max(0.0, settings.budget_usd - (prepared.usage.cost or 0.0)))
    asked = AskedJudge(ready, golden, task, progress, prepared=prepared, keeper=keeper)
    run = _start(asked, split, settings, split.held_out)
    pool, plan = run.pool, run.plan
    pool.publish("draft", f"drafting {plan.drafts} criteria")
    requests = spread(draft_requests(golden, task.aspect, pool.items, settings), plan.drafts)
    drafts = new_criteria(asked.draft, requests, pool.table, run.problems, pool.entries)
    if requests and not drafts:
        raise pool.table.ended or run.none_readable("draft")
    pool.add(drafts)
    complete, _, ended = revisit(pool, drafts, run.order, phase="revisit", round_=0, share=plan.share)
    if ended:
        run.out_of_budget("while the drafts were scored")
    pool.mark(complete, "kept")
    run.fitted = fit_strengths(pool, run.order) if plan.fitting else None
    for round_ in range(1, plan.rounds + 1):
        _refine_round(run, round_)
        if pool.rounds_done < round_:
            break
    return _report(run)


def _shown_task(task: Task, judge: Judge, settings: CalibrationSettings) -> Task:
    """`task` with its levels only where the judge reads them."""
    return task if settings.levels and isinstance(judge, LLMJudge) else replace(task, levels=())


def measure(
    judge: AskedJudge,
    split: Split,
    settings: CalibrationSettings,
    criteria: Sequence[Criteria],
    *,
    held_out: bool = True,
) -> Calibration:
    """Measure `judge` with `criteria` that people chose (the mean of their scores) as the winner of a calibration is.

    Nothing is drafted or refined; the baseline is scored too.  Without `held_out` those items are left alone, and what
    would be measured on them is undefined.  Settings, split and errors as in `calibrate`; its budget does not apply.
    """
    settings = replace(settings, budget=None, budget_usd=None, rounds=0, ensemble=len(criteria))
    held_out_items = [judge.golden.items[position] for position in split.held_out]
    judge = replace(judge, judge=without_examples_of(judge.judge, held_out_items))
    run = _start(judge, split, settings, split.held_out if held_out else ())
    pool = run.pool
    pool.add(criteria, "running")
    every = [entry.criteria for entry in pool.entries.values()]
    calls = len(every) * (pool.items.n + run.held_out.n)
    calls += crossing_calls(judge.judge, settings, pool.items) if len(criteria) == 1 else 0
    pool.calls_expected = calls
    size = step_items(pool.items.n, len(every))
    for start in range(0, pool.items.n, size):
        pool.score(every, pool.items.positions[start : start + size].tolist())
        done = min(start + size, pool.items.n)
        pool.publish("revisit", f"{done} of {pool.items.n} calibration items scored")
    pool.mark([each.criteria_id for each in criteria], "kept")
    run.fitted = fitted_again(pool, criteria)
    seen = "" if run.fitted else seen_labels_warning(judge.judge, criteria)
    run.warnings += filter(None, [unread_lines_warning(judge.judge, criteria), seen])
    result = _report(run)
    n, asked = run.held_out.n, len(split.held_out)
    return replace(result, work=WorkDone(0, 0, 0, 0, 0, 0, 0, 0, asked, n, calls, pool.table.calls))


def _start(judge: AskedJudge, split: Split, settings: CalibrationSettings, opened: Sequence[int]) -> _Run:
    """Plan the work; `opened` are the positions of the held-out items that will be looked at."""
    golden, task, before = judge.golden, judge.task, judge.prepared
    items, held_out = (LabelledItems.of(golden, task.aspect, part) for part in (split.calibration, opened))
    require_usable(golden, task, items)
    limit = calls_within(settings, judge.judge, task, [golden.items[k] for k in split.calibration])
    within = replace(settings, budget=limit)
    plan = plan_work(within, items, held_out.n, fitting_calls(judge.judge, settings, items), before.calls)
    table = ScoreTable(golden.item_ids, limit, reserve=plan.reserve, spent=before)
    table.dollars = settings.budget_usd
    pool = CandidatePool(judge, items, settings, table)
    pool.calls_expected = plan.calls + before.calls
    baseline = Criteria("", task.aspect, Provenance("none", note="the judge without criteria"))
    pool.add([baseline], "baseline")
    run = _Run(pool, split, baseline, racing_order(items, settings, plan.share), held_out, plan)
    run.cut += filter(None, [plan.cut])
    unseen = (
        few_held_out(held_out.n) if opened else "Not measured on held-out items: the calibration figure is optimistic."
    )
    run.warnings += filter(None, [few_labels(items.n, refining=plan.rounds > 0), unseen])
    if split.dropped:
        run.warnings.append(f"{split.dropped} items are left out because their system belongs to the other set.")
    return run


def _refine_round(run: _Run, round_: int) -> None:
    """One round: parents are the top K, children race, pass the gate, and join the pool (steps 9 to 15)."""
    pool = run.pool
    train, inner = folds_of(pool.items, pool.settings, gated=pool.settings.refine_gate)
    parents = pool.ranked(pool.with_status("kept"))[: pool.settings.keep]
    requests = spread(refine_requests(pool, train, parents, round_), run.plan.refined)
    if not requests:
        why = "judge and raters do not disagree enough on any item" if parents else "no draft could be scored"
        run.not_run.append(f"Refinement ended before round {round_}: {why}.")
        return
    pool.publish("refine", f"refining {len(parents)} criteria, {len(requests)} proposals", round_)
    children = new_criteria(pool.judge.draft, requests, pool.table, run.problems, pool.entries)
    pool.add(children)
    complete, n_items, ended = revisit(pool, children, run.order, phase="refine", round_=round_)
    if ended:
        run.out_of_budget(f"in refinement round {round_}")
    if not children or n_items == pool.items.n:
        gate(pool, inner, complete)
        pool.rounds_done = round_
    else:
        pool.mark(complete, "stopped")
    pool.publish("refine", f"round {round_} done", round_)


def _report(run: _Run) -> Calibration:
    """Choose the final judge on calibration, then score it and the baseline on held-out, once."""
    pool, table, judge, baseline = run.pool, run.pool.table, run.pool.judge, run.baseline
    pool.refresh(final=True)
    # ranks on calibration are optimistic for what was picked there; fitted strengths were shrunk between sources
    members = pool.ranked(pool.with_status("kept"))[: run.plan.ensemble]
    if run.fitted is not None:
        members = [run.fitted[0].criteria_id]
    if not members:
        run.warnings.append("No criteria could be scored: the final judge is the one without criteria.")
    pool.mark(members, "chosen")
    members = members or [baseline.criteria_id]
    chosen = tuple(pool.entries[name].criteria for name in members)
    scored = list({each.criteria_id: each for each in (*chosen, baseline)}.values())
    held_out = _affordable(run, len(scored))
    size = step_items(held_out.n, len(scored))
    if table.dollars is not None:
        size = min(size, DOLLAR_STEP)
    for start in range(0, held_out.n, size):
        if not table.ask(judge, scored, held_out.positions[start : start + size].tolist()):
            held_out = held_out.take(np.arange(held_out.n) < start)
            break
        pool.publish("held-out", f"{min(start + size, held_out.n)} of {held_out.n} held-out items scored")
    if held_out.n < run.held_out.n:
        run.out_of_budget(f"when {held_out.n:,} of {run.held_out.n:,} held-out items were scored")
    # with a budget, fewer than all calibration items may have been scored
    all_asked = np.logical_and.reduce([pool.asked(each.criteria_id) for each in scored])
    final, bare = table.mean(members), table.values[baseline.criteria_id]
    scores = _final_scores(run, members, final, np.concatenate([pool.items.positions, held_out.positions]))

    def aligned(values: FloatArray) -> BothSides:
        sides = (pool.items.take(all_asked), held_out)
        return BothSides(*(pool.align(values[None, items.positions], items)[0] for items in sides))

    of_final, of_baseline, of_best = aligned(final), aligned(bare), aligned(table.values[members[0]])
    gain = pool.difference(final[held_out.positions], bare[held_out.positions], held_out)
    if chosen == (baseline,):
        undefined = "the final judge is the one without criteria"
        gain = replace(gain, value=None, interval=None, p=None, reason=undefined)
    crossed = np.stack([table.values[name] for name in members]) if run.fitted is None else run.fitted[1][None]
    items, scale = pool.items, judge.task.scale
    judged = ensemble_scores(crossed[:, items.positions])
    score_map, no_map = fit_isotonic(judged, items.labels, scale)
    run.problems.update(f"unread: {lost.reason}" for reasons in table.unscored.values() for lost in reasons.values())
    if np.isnan(scores.values).all() and run.problems:
        raise run.none_readable("score")
    run.warnings += filter(None, [gain_warning(gain), contradiction_words(gain.a, "The calibrated judge")])
    missing = [lost for lost in scores.unscored.get("final", ()) if lost.reason != "budget"]
    if missing:
        reasons = ", ".join(sorted({lost.reason for lost in missing}))
        run.warnings.append(
            f"{len(missing)} of {len(scores.item_ids)} items have no score ({reasons}). They count as unscored; "
            "the replies are in the verdicts."
        )
    run.warnings += judge.judge.remarks
    if no_map:
        run.warnings.append(f"Map to the human scale: {no_map}.")
    pool.publish("done", "done")
    return Calibration(
        task=judge.task,
        settings=pool.settings,
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
        work=_work_done(run, held_out.n),
        judge_state=judge_state(judge.judge),
        warnings=tuple(run.warnings),
        stopped_early=" ".join(run.cut),
        problems=dict(run.problems),
        intervals=fit_intervals(judged, items.labels, items.sources, scale).as_json(),
    )


def _affordable(run: _Run, n_criteria: int) -> LabelledItems:
    """The part of held-out that the budget still covers: whole sources in random order; all without a budget."""
    items, left = run.held_out, run.pool.table.left(with_reserve=True)
    if left is None or left >= items.n * n_criteria:
        return items
    order = whole_sources(items.sources, run.pool.settings.seed)
    n_items = max(order.ends[order.ends * n_criteria <= left], default=0)
    return items.take(np.sort(order.items[:n_items]))


def _final_scores(run: _Run, members: Sequence[str], final: FloatArray, positions: IntArray) -> ScoreMatrix:
    """The final judge's scores at `positions` as the first row ("final"), those of its members below."""
    table, items = run.pool.table, run.pool.judge.golden.items
    ids, reasons = tuple(items[k].item_id for k in positions), table.reasons(members)
    missing = tuple(
        reasons.get(item_id, Unscored(item_id, "budget", "not asked for: the budget was used up"))
        for item_id, value in zip(ids, final[positions], strict=True)
        if np.isnan(value)
    )
    rows, turned = np.stack([final, *(table.values[name] for name in members)]), table.turned(members)
    if turned is not None:
        turned = np.vstack([ensemble_scores(turned), turned])[:, positions]
    unscored = {"final": missing} if missing else {}
    return ScoreMatrix(("final", *members), ids, rows[:, positions], unscored, turned=turned)


def _work_done(run: _Run, n_held_out: int) -> WorkDone:
    pool, settings, fitted = run.pool, run.pool.settings, run.fitted and run.fitted[0].criteria_id
    drafts, refinements = (
        [e for name, e in pool.entries.items() if e.criteria.provenance.origin == origin and name != fitted]
        for origin in ("draft", "refine")
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
        calls_used=pool.table.calls,
        budget=settings.budget,
        left_out=(*run.cut, *run.not_run),
    )


def calls_within(settings: CalibrationSettings, judge: Judge, task: Task, items: Sequence[Item]) -> int | None:
    """The most calls that both budgets allow, the one in dollars at the price of scoring `items`; None for no limit.

    UsageError for a model whose price is not known, and for dollars that pay for no call.
    """
    if settings.budget_usd is None:
        return settings.budget
    judge.within(settings.budget_usd)
    once = judge.estimate(task, items, CRITERIA_WORDS)
    if not once.cost:
        return settings.budget
    each = once.cost / max(1, once.calls)
    calls = int(settings.budget_usd / each)
    if not calls:
        raise UsageError(f"The {settings.budget_words} pays for no call: one costs about {money(each)}.")
    return calls if settings.budget is None else min(calls, settings.budget)


# ── before the first call ─────────────────────────────────────────────────────────────────────────────────────────────


def require_usable(golden: GoldenSet, task: Task, items: LabelledItems) -> None:
    """AspectError, with the way out, when the calibration labels are too few or all equal."""
    if items.n < LEAST:
        raise AspectError(
            f"aspect {task.aspect!r} has {golden.aspects[task.aspect].n_labelled} labels, {items.n} of them in "
            f"the calibration set; at least {LEAST} are required there (we recommend {ENOUGH}). Label more items or "
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
    """Estimate the calls of `calibrate` with the same arguments.  AspectError for labels that cannot rank anything."""
    task, asking = task_of(golden, aspect) if isinstance(aspect, str) else aspect, asking or Asking()
    task = _shown_task(task, judge, settings)
    split = split or settings.split_of(golden, task.aspect)
    shown = [golden.items[p] for p in split.calibration]
    items = LabelledItems.of(golden, task.aspect, split.calibration)
    judge = with_examples(judge, golden, items, task.scale, settings.examples)
    if isinstance(judge, LLMJudge):
        require_references(judge.sampling, task, shown)
        judge = judge.with_sampling(replace(judge.sampling, steps=STEPS_LIKE)) if asking.writes_steps else judge
    require_usable(golden, task, items)
    n_held_out = len(split.held_out)
    within = replace(settings, budget=calls_within(settings, judge, task, shown))
    plan = plan_work(within, items, n_held_out, fitting_calls(judge, settings, items))
    once = judge.estimate(task, shown, CRITERIA_WORDS)
    notes = [judge.notice]
    if isinstance(judge, LLMJudge):
        notes.append(reasons_words(golden, task.aspect, split, settings))
        if (samples := judge.sampling.samples) > 1:
            notes.append(f"Each score is the mean of {samples} replies: up to {samples * plan.calls:,} in all.")
        notes += [references_words(judge, task, shown, plan.calls), shown_words(judge, task, shown, plan.calls)]
    return Estimate(
        plan.calls + asking.writes_steps,
        *once.scaled(plan.calls / max(1, once.calls)),
        n_calibration=items.n,
        n_held_out=n_held_out,
        notes=tuple(filter(None, (*notes, plan.cut))),
        few_labels=few_labels(items.n, refining=plan.rounds > 0),
    )


def reasons_words(golden: GoldenSet, aspect: str, split: Split, settings: CalibrationSettings) -> str:
    """How many calibration items come with reasons, and whether they will be used; "" for none."""
    reasons = golden.reasons(aspect)
    n = sum(golden.items[position].item_id in reasons for position in split.calibration)
    if not n:
        return ""
    come = f"{counted(n, 'calibration item')} {'comes' if n == 1 else 'come'} with reasons from raters."
    return f"{come} Drafting and refining {'use them' if settings.reasons else 'do not use them'}."


# ── strengths fitted to all calibration items, for judges that can write such: the final judge's ──────────────────────
#
# Scores on items whose labels the strengths were fitted to lie closer to the labels than later ones will.  The map to
# the human scale and the intervals therefore rest on *crossed* scores: each fold of sources is scored by criteria
# fitted to the others.


def crossing_calls(judge: Judge, settings: CalibrationSettings, items: LabelledItems) -> int:
    """Calls that `fitted_again` makes at most; 0 for few labels, and without the gate, as in the paper."""
    wanted = judge.fits_strengths and settings.fit_strengths and settings.refine_gate
    if not wanted or too_few_to_stack(items.n):
        return 0
    return 1 + min(CROSSED, np.unique(items.sources).size) + items.n


def fitting_calls(judge: Judge, settings: CalibrationSettings, items: LabelledItems) -> int:
    """Calls that `fit_strengths` makes at most on these calibration items; 0 where it is left out."""
    crossing = crossing_calls(judge, settings, items)
    return crossing + items.n if crossing else 0


def fit_strengths(pool: CandidatePool, order: Order) -> tuple[Criteria, FloatArray] | None:
    """Have criteria fitted, score them on calibration items, and cross them; None where the labels show nothing."""
    found = _fitted_to(pool, pool.items)
    if found is None or found.criteria_id in pool.entries:
        return None
    pool.add([found])
    start = 0
    for _, end in schedule(pool.settings, pool.settings.plan.n_drafts, order):  # pause where the drafts' race paused
        pool.score([found], pool.items.positions[order.items[start:end]].tolist())
        start = end
        pool.publish("revisit", "strengths fitted to all calibration items", 0)
    pool.mark([found.criteria_id], "kept")
    return found, _crossed(pool)


def fitted_again(pool: CandidatePool, criteria: Sequence[Criteria]) -> tuple[Criteria, FloatArray] | None:
    """`criteria` with crossed scores, where these labels give exactly them; None for any others."""
    if len(criteria) != 1 or not crossing_calls(pool.judge.judge, pool.settings, pool.items):
        return None
    found = _fitted_to(pool, pool.items)
    same = found is not None and found.criteria_id == criteria[0].criteria_id
    return (criteria[0], _crossed(pool)) if same else None


def seen_labels_warning(judge: Judge, criteria: Sequence[Criteria]) -> str:
    """Warn that scores of fitted `criteria` are not crossed; "" where no strengths are stated."""
    from core.judging.offline.features import states_strength

    if not judge.fits_strengths or not any(states_strength(each.text) for each in criteria):
        return ""
    return (
        "The criteria state strengths that were fitted to labels, so the map to the human scale and the intervals may "
        "be too optimistic. Calibrate anew to get an honest map and intervals."
    )


def unread_lines_warning(judge: Judge, criteria: Sequence[Criteria]) -> str:
    """List the lines of `criteria` that `judge` cannot read, in a sentence; "" for none."""
    lines = [f"“{line}”" for each in criteria for line in judge.unread_lines(each)]
    if not lines:
        return ""
    return (
        f"The {judge.spec} judge cannot read these lines, so they have no effect: {' '.join(lines)}. "
        "It reads lines such as “Reward texts that are short.”, with the phrases of its feature table."
    )


def _fitted_to(pool: CandidatePool, items: LabelledItems) -> Criteria | None:
    request = fitting_request(pool.judge.golden, items, pool.settings)
    return next(iter(new_criteria(pool.judge.draft, [request], pool.table, Counter())), None)


def _crossed(pool: CandidatePool) -> FloatArray:
    """Scores (n_items,) of calibration items, each fold of sources by criteria fitted to the others; NaN elsewhere."""
    items, table = pool.items, pool.table
    folds, scores = source_folds(items.sources, CROSSED, pool.settings.seed), np.full(len(table.places), np.nan)
    for fold in range(int(folds.max()) + 1):
        found, out = _fitted_to(pool, items.take(folds != fold)), items.positions[folds == fold]
        if found is not None:
            matrix = pool.judge.score([found], out.tolist())
            table.spend(matrix.calls, matrix.usage)
            scores[out] = matrix.values[0]
    return scores
