"""AutoCalibrate (001, Algorithm 1; departures in METHODS §4): draft, revisit, refine, report.

What chooses and what reports never share items: drafts see calibration items only, candidates are ranked on
calibration, refinements pass a gate on an inner fold of calibration, and held-out is scored once, at the end, with
the final judge, the best single criteria and the judge without criteria.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from core.calibration.budget import Request, WorkPlan, cut_words, plan_work, require_usable, spread
from core.calibration.draft import distinct, draft_requests
from core.calibration.pool import AskedJudge, CallBudget, CandidatePool, ensemble_scores
from core.calibration.records import Calibration, Phase, WorkDone
from core.calibration.refine import Folds, gate, refine_requests
from core.calibration.revisit import STEP_CALLS, Order, revisit
from core.calibration.settings import CalibrationSettings
from core.data.labels_needed import few_held_out, few_labels
from core.data.texts import KnownTexts
from core.judging.base import DraftBatch
from core.records import Alignment, Criteria, FloatArray, GoldenSet, Provenance, ScoreMatrix, Split, Task, Unscored
from core.stats import Difference, LabelledItems, claim, fit_isotonic, gain_words


@dataclass
class _Run:
    """What the phases of one calibration share."""

    asked: AskedJudge
    split: Split
    pool: CandidatePool
    order: Order
    held_out: LabelledItems
    plan: WorkPlan
    problems: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    @property
    def golden(self) -> GoldenSet:
        return self.asked.golden

    @property
    def task(self) -> Task:
        return self.asked.task

    @property
    def settings(self) -> CalibrationSettings:
        return self.pool.settings

    def publish(self, phase: Phase, round_: int, message: str, *, final: bool = False) -> None:
        self.asked.progress.publish(self.pool.standing(phase, round_, message, final=final))

    def out_of_budget(self, where: str) -> None:
        self.cut.append(f"The budget of {self.settings.budget:,} calls was used up {where}.")


def calibration(
    asked: AskedJudge, split: Split, settings: CalibrationSettings, *, judge_state: Mapping[str, Any] | None = None
) -> Calibration:
    """Calibrate the judge `asked`, publishing the leaderboard as it goes.

    `split` comes from `core.data.split_sources`; `judge_state` is the prepared judge's, carried into the result.
    Raises AspectError before the first call when the labels cannot rank anything.
    """
    run = _start(asked, split, settings)
    pool, plan = run.pool, run.plan
    run.publish("draft", 0, f"drafting {plan.drafts} criteria")
    requests = draft_requests(asked.golden, pool.items.labels, pool.items.positions, settings)
    drafts = _ask(run, asked.draft, spread(requests, plan.drafts))
    pool.add(drafts)
    revisited = revisit(asked, pool, drafts, run.order, phase="revisit", round_=0, share=plan.share)
    if revisited.out_of_budget:
        run.out_of_budget("while the drafts were scored")
    pool.mark(revisited.complete, "kept")
    pool.note_best(pool.with_status("kept"))
    for round_ in range(1, plan.rounds + 1):
        _refine_round(run, round_)
        if pool.rounds_done < round_:
            break
    return _report(run, judge_state or {})


def _start(asked: AskedJudge, split: Split, settings: CalibrationSettings) -> _Run:
    golden, task = asked.golden, asked.task
    items, held_out = (LabelledItems.of(golden, task.aspect, part) for part in (split.calibration, split.held_out))
    require_usable(golden, task, items)
    level = settings.level or items.usual_level
    plan = plan_work(settings, items, held_out.n)
    pool = CandidatePool(items, settings, level, CallBudget(settings.budget, plan.reserve))
    pool.calls_expected = plan.calls
    baseline = Criteria("", task.aspect, Provenance("none", note="the judge without criteria"))
    pool.add([baseline], "baseline")
    run = _Run(asked, split, pool, Order(items.sources, settings.seed), held_out, plan)
    if cut := cut_words(plan, settings, items, held_out.n):
        run.cut.append(cut)
    few = (few_labels(items.n, refining=plan.rounds > 0), few_held_out(held_out.n))
    run.warnings += [one for one in few if one]
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


def _refine_round(run: _Run, round_: int) -> None:
    """One round: parents are the top K, children race, pass the gate, and join the pool (001 steps 9-15)."""
    pool = run.pool
    folds = Folds.of(pool.items, run.settings)
    parents = pool.ranked(pool.with_status("kept"))[: run.settings.keep]
    requests = spread(refine_requests(run.golden, pool, folds, parents, round_), run.plan.refined)
    if not requests:
        why = "judge and people part on no item far enough" if parents else "no draft could be scored"
        run.not_run.append(f"Refinement ended before round {round_}: {why}.")
        return
    run.publish("refine", round_, f"refining {len(parents)} criteria, {len(requests)} proposals")
    children = _ask(run, run.asked.refine, requests)
    pool.add(children)
    revisited = revisit(run.asked, pool, children, run.order, phase="refine", round_=round_)
    if revisited.out_of_budget:
        run.out_of_budget(f"in refinement round {round_}")
    if not children or revisited.items == run.order.source_ends[-1]:
        gate(pool, folds, [pool.entries[i].criteria for i in revisited.complete])
        pool.rounds_done = round_
    else:
        pool.mark(revisited.complete, "stopped")
    pool.note_best(pool.with_status("kept"))
    run.publish("refine", round_, f"round {round_} done")


def _report(run: _Run, judge_state: Mapping[str, Any]) -> Calibration:
    """Choose the final judge on calibration, then score it and the judge without criteria on held-out, once."""
    pool = run.pool
    pool.refresh(final=True)
    baseline = pool.entries[pool.with_status("baseline")[0]].criteria
    ranked = pool.ranked(pool.with_status("kept"))[: run.plan.ensemble]
    chosen = tuple(pool.entries[i].criteria for i in ranked) or (baseline,)
    if not ranked:
        run.warnings.append("No criteria could be scored: the final judge is the one without criteria.")
    pool.mark(ranked, "chosen")
    criteria = tuple({one.criteria_id: one for one in (*chosen, baseline)}.values())
    held_out = HeldOut(affordable_held_out(pool, run.held_out, len(criteria)), criteria)
    if held_out.items.n < run.held_out.n:
        run.out_of_budget(f"when {held_out.items.n:,} of {run.held_out.n:,} held-out items were scored")
    held_out.collect(run.asked, pool)
    result = _result(run, chosen, baseline, held_out, judge_state)
    run.publish("done", pool.rounds_done, "done", final=True)
    return result


def _result(
    run: _Run, chosen: tuple[Criteria, ...], baseline: Criteria, held_out: HeldOut, judge_state: Mapping[str, Any]
) -> Calibration:
    pool = run.pool
    columns = {
        one.criteria_id: (pool.entries[one.criteria_id].values, held_out.scores[one.criteria_id])
        for one in (*chosen, baseline)
    }
    members = {one.criteria_id: np.concatenate(columns[one.criteria_id]) for one in chosen}
    positions = np.concatenate([pool.items.positions, held_out.items.positions])
    item_ids = tuple(run.golden.items[int(p)].item_id for p in positions)
    scores = final_scores(item_ids, members, pool.reasons(members))
    # with a budget, fewer than all calibration items may have been scored
    asked = np.logical_and.reduce([pool.entries[criteria_id].asked for criteria_id in columns])

    def aligned(on_calibration: FloatArray, on_held_out: FloatArray) -> dict[str, Alignment]:
        return {
            "calibration": pool.align(on_calibration[None, asked], pool.items.take(asked))[0],
            "held_out": pool.align(on_held_out[None, :], held_out.items)[0],
        }

    on_calibration, on_held_out = scores.values[0, : pool.items.n], scores.values[0, pool.items.n :]
    final = aligned(on_calibration, on_held_out)
    gain = gain_over_none(pool, held_out.items, on_held_out, held_out.scores[baseline.criteria_id], chosen[0])
    to_people = fit_isotonic(on_calibration, pool.items.labels, run.task.scale)
    run.problems.update(f"unread: {one.reason}" for reasons in pool.unscored.values() for one in reasons.values())
    remarks = [
        *([] if claim(gain.value, gain.interval, gain.p) == "higher" else [gain_words(gain)]),
        *unread_warning(scores),
        *([f"Map to the human scale: {to_people.reason}."] if to_people.reason else []),
    ]
    return Calibration(
        task=run.task,
        settings=run.settings,
        golden_name=run.golden.name,
        golden_digest=run.golden.digest,
        split=run.split,
        texts=KnownTexts.of(run.golden, run.split.calibration, run.split.held_out),
        chosen=chosen,
        candidates=pool.candidates(),
        calibration=final["calibration"],
        held_out=final["held_out"],
        best_single=aligned(*columns[chosen[0].criteria_id]),
        no_criteria=aligned(*columns[baseline.criteria_id]),
        gain=gain,
        scores=scores,
        isotonic=None if to_people.map is None else to_people.map.as_json(),
        curve=tuple(pool.curve),
        calls=pool.budget.calls,
        usage=pool.budget.usage,
        work=_work_done(run, held_out.items.n),
        judge_state=judge_state,
        warnings=(*run.warnings, *remarks),
        stopped_early=" ".join(run.cut),
        problems=dict(run.problems),
    )


def _work_done(run: _Run, n_held_out: int) -> WorkDone:
    pool, settings = run.pool, run.settings
    drafts, refinements = (
        [entry for entry in pool.entries.values() if entry.criteria.provenance.origin == origin]
        for origin in ("draft", "refine")
    )
    return WorkDone(
        drafts_asked=settings.plan.n_drafts,
        drafts_made=len(drafts),
        drafts_ranked=sum(bool(draft.asked.any()) for draft in drafts),
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
    order = Order(items.sources, pool.settings.seed)
    n_items = max((end for end in order.source_ends if end * n_criteria <= left), default=0)
    return items.take(np.sort(order.items[:n_items]))


class HeldOut:
    """Scores of a few criteria on the held-out items, gathered batch by batch."""

    def __init__(self, items: LabelledItems, criteria: Sequence[Criteria]) -> None:
        self.items, self.criteria = items, tuple(criteria)
        self.scores = {one.criteria_id: np.full(items.n, np.nan) for one in self.criteria}

    def collect(self, asked: AskedJudge, pool: CandidatePool) -> None:
        size = max(1, STEP_CALLS // max(len(self.criteria), 1))
        for start in range(0, self.items.n, size):
            positions = tuple(int(p) for p in self.items.positions[start : start + size])
            matrix = asked.score(self.criteria, positions)
            for criteria_id, row in zip(matrix.criteria_ids, matrix.values, strict=True):
                self.scores[criteria_id][start : start + len(positions)] = row
            pool.take(matrix)
            done = start + len(positions)
            message = f"{done} of {self.items.n} held-out items scored"
            asked.progress.publish(pool.standing("held-out", pool.rounds_done, message))


def final_scores(
    item_ids: tuple[str, ...], members: Mapping[str, FloatArray], reasons: Mapping[str, Unscored]
) -> ScoreMatrix:
    """The final judge's scores as the first row ("final"), those of its members (criteria id → (n_items,)) below.

    `reasons` (item id → Unscored) tell why the final judge has no score for some items.
    """
    rows = np.stack(list(members.values()))
    joined = ensemble_scores(rows)
    missing = tuple(
        reasons.get(item_id, Unscored(item_id, "budget", "not asked for: the budget was used up"))
        for item_id, value in zip(item_ids, joined, strict=True)
        if np.isnan(value)
    )
    return ScoreMatrix(("final", *members), item_ids, np.vstack([joined, rows]), {"final": missing} if missing else {})


def unread_warning(scores: ScoreMatrix) -> list[str]:
    """A sentence when the final judge could not score items it was asked for; nothing otherwise."""
    missing = [one for one in scores.unscored.get("final", ()) if one.reason != "budget"]
    if not missing:
        return []
    reasons = ", ".join(sorted({one.reason for one in missing}))
    return [
        f"{len(missing)} of {len(scores.item_ids)} items have no score ({reasons}). They are counted, never guessed; "
        "the replies stand in the verdicts."
    ]


def gain_over_none(
    pool: CandidatePool, items: LabelledItems, final: FloatArray, bare: FloatArray, best: Criteria
) -> Difference:
    """The final judge minus the one without criteria on the held-out items (n,) that both scored.

    Undefined where the final judge has no criteria itself (`best` is its first).
    """
    gain = pool.difference(final, bare, items)
    if best.text:
        return gain
    return replace(gain, value=None, interval=None, p=None, reason="the final judge is the one without criteria")
