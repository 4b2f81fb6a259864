"""AutoCalibrate (001, Algorithm 1; departures in METHODS §4): draft, revisit, refine, report.

What chooses and what reports never share items: drafts see calibration items only, candidates are ranked on
calibration, refinements pass a gate on an inner fold of calibration, and held-out is scored once, at the end, with
the final judge, the best single criteria and the judge without criteria.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.calibration.asking import AskedJudge
from core.calibration.board import Board, Meter
from core.calibration.budget import WorkPlan, cut_words, finalists, plan_work, refined_asked, spread
from core.calibration.draft import distinct, draft_requests
from core.calibration.refine import Folds, gate, refine_requests
from core.calibration.report import (
    HeldOut,
    affordable_held_out,
    final_scores,
    gain_over_none,
    gain_remark,
    monotone_map,
    two_sides,
    unread_counts,
    unread_warning,
)
from core.calibration.revisit import Order, revisit
from core.calibration.settings import CalibrationSettings
from core.calibration.start import require_usable
from core.calibration.steps import Calibration, Phase, WorkDone
from core.data.labels_needed import few_held_out, few_labels
from core.data.texts import KnownTexts
from core.judging.base import DraftRequest, RefineRequest
from core.records import Criteria, GoldenSet, Provenance, Split, Task
from core.stats import LabelledItems


@dataclass
class _Run:
    """What the phases of one calibration share."""

    asked: AskedJudge
    split: Split
    board: Board
    order: Order
    held_out: LabelledItems
    plan: WorkPlan
    problems: dict[str, int] = field(default_factory=dict)
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
        return self.board.settings

    def count(self, problems: Mapping[str, int]) -> None:
        for reason, n in problems.items():
            self.problems[reason] = self.problems.get(reason, 0) + n

    def publish(self, phase: Phase, round_: int, message: str, *, final: bool = False) -> None:
        self.asked.progress.publish(self.board.standing(phase, round_, message, final=final))

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
    board, plan = run.board, run.plan
    run.publish("draft", 0, f"drafting {plan.drafts} criteria")
    requests = draft_requests(asked.golden, board.side.labels, board.side.positions, settings)
    drafts = _ask(run, spread(requests, plan.drafts))
    board.add(drafts)
    revisited = revisit(
        asked, board, drafts, run.order, finalists=finalists(settings), phase="revisit", round_=0, share=plan.share
    )
    if revisited.out_of_budget:
        run.out_of_budget("while the drafts were scored")
    board.mark(revisited.complete, "kept")
    board.note_best(board.with_status("kept"))
    for round_ in range(1, plan.rounds + 1):
        _refine_round(run, round_)
        if board.rounds_done < round_:
            break
    return _report(run, judge_state or {})


def _start(asked: AskedJudge, split: Split, settings: CalibrationSettings) -> _Run:
    golden, task = asked.golden, asked.task
    side, held_out = (
        LabelledItems.of(golden, task.aspect, split.calibration),
        LabelledItems.of(golden, task.aspect, split.held_out),
    )
    require_usable(golden, task, side)
    level = settings.level or side.usual_level
    plan = plan_work(settings, side, held_out.n)
    board = Board(side, settings, level, Meter(settings.budget, plan.reserve))
    board.calls_expected = plan.calls
    baseline = Criteria("", task.aspect, Provenance("none", note="the judge without criteria"))
    board.add([baseline], "baseline")
    run = _Run(asked, split, board, Order(side.sources, settings.seed), held_out, plan)
    if cut := cut_words(plan, settings, side, held_out.n):
        run.cut.append(cut)
    few = (few_labels(side.n, refining=plan.rounds > 0), few_held_out(held_out.n))
    run.warnings += [one for one in few if one]
    if split.dropped:
        run.warnings.append(f"{split.dropped} items fall away because their system is held out on the other side.")
    return run


def _ask(run: _Run, requests: Sequence[DraftRequest] | Sequence[RefineRequest]) -> tuple[Criteria, ...]:
    """Have requests answered, and return the new criteria among the answers."""
    if not requests:
        return ()
    drafts = tuple(r for r in requests if isinstance(r, DraftRequest))
    refinements = tuple(r for r in requests if isinstance(r, RefineRequest))
    batch = run.asked.draft(drafts) if drafts else run.asked.refine(refinements)
    run.board.meter.spend(batch.calls, batch.usage)
    found = distinct(batch, known=tuple(run.board.entries))
    run.count(found.problems)
    return found.criteria


def _refine_round(run: _Run, round_: int) -> None:
    """One round: parents are the top K, children race, pass the gate, and join the pool (001 steps 9-15)."""
    board = run.board
    folds = Folds.of(board.side, run.settings)
    parents = board.ranked(board.with_status("kept"))[: run.settings.keep]
    requests = spread(refine_requests(run.golden, board, folds, parents, round_), run.plan.refined)
    if not requests:
        why = "judge and people part on no item far enough" if parents else "no draft could be scored"
        run.not_run.append(f"Refinement ended before round {round_}: {why}.")
        return
    run.publish("refine", round_, f"refining {len(parents)} criteria, {len(requests)} proposals")
    children = _ask(run, requests)
    board.add(children)
    revisited = revisit(
        run.asked, board, children, run.order, finalists=finalists(run.settings), phase="refine", round_=round_
    )
    if revisited.out_of_budget:
        run.out_of_budget(f"in refinement round {round_}")
    if not children or revisited.items == run.order.source_ends[-1]:
        gate(board, folds, [board.entries[i].criteria for i in revisited.complete])
        board.rounds_done = round_
    else:
        board.mark(revisited.complete, "stopped")
    board.note_best(board.with_status("kept"))
    run.publish("refine", round_, f"round {round_} done")


def _report(run: _Run, judge_state: Mapping[str, Any]) -> Calibration:
    """Choose the final judge on calibration, then score it and the judge without criteria on held-out, once."""
    board = run.board
    board.refresh(final=True)
    baseline = board.entries[board.with_status("baseline")[0]].criteria
    ranked = board.ranked(board.with_status("kept"))[: run.plan.ensemble]
    chosen = tuple(board.entries[i].criteria for i in ranked) or (baseline,)
    if not ranked:
        run.warnings.append("No criteria could be scored: the final judge is the one without criteria.")
    board.mark(ranked, "chosen")
    criteria = tuple({one.criteria_id: one for one in (*chosen, baseline)}.values())
    gathered = HeldOut(affordable_held_out(board, run.held_out, len(criteria)), criteria)
    if gathered.side.n < run.held_out.n:
        run.out_of_budget(f"when {gathered.side.n:,} of {run.held_out.n:,} held-out items were scored")
    gathered.collect(run.asked, board)
    result = _result(run, chosen, baseline, gathered, judge_state)
    run.publish("done", board.rounds_done, "done", final=True)
    return result


def _result(
    run: _Run, chosen: tuple[Criteria, ...], baseline: Criteria, held_out: HeldOut, judge_state: Mapping[str, Any]
) -> Calibration:
    board, side = run.board, held_out.side
    members = {
        one.criteria_id: np.concatenate([board.entries[one.criteria_id].values, held_out.rows([one])[0]])
        for one in chosen
    }
    positions = np.concatenate([board.side.positions, side.positions])
    item_ids = tuple(run.golden.items[int(p)].item_id for p in positions)
    scores = final_scores(item_ids, members, board.reasons(members))
    asked = np.logical_and.reduce([board.entries[one.criteria_id].asked for one in (*chosen, baseline)])
    sides = (board.side.take(asked), side)  # with a budget, less than all calibration items may have been scored
    on_calibration, on_held_out = scores.values[0, : board.side.n], scores.values[0, board.side.n :]
    final = two_sides(board, sides, (on_calibration[asked], on_held_out))
    best, bare = (
        two_sides(board, sides, (board.entries[one.criteria_id].values[asked], held_out.rows([one])[0]))
        for one in (chosen[0], baseline)
    )
    gain = gain_over_none(board, side, on_held_out, held_out.rows([baseline])[0], chosen[0])
    fitted = monotone_map(board, on_calibration, run.task.scale)
    run.count(unread_counts(board))
    remarks = [
        *gain_remark(gain),
        *unread_warning(scores),
        *([f"Map to the human scale: {fitted.reason}."] if fitted.reason else []),
    ]
    return Calibration(
        task=run.task,
        settings=run.settings,
        golden_name=run.golden.name,
        golden_digest=run.golden.digest,
        split=run.split,
        texts=KnownTexts.of(run.golden, run.split.calibration, run.split.held_out),
        chosen=chosen,
        candidates=board.candidates(),
        calibration=final["calibration"],
        held_out=final["held_out"],
        best_single=best,
        no_criteria=bare,
        gain=gain,
        scores=scores,
        isotonic=None if fitted.map is None else fitted.map.as_json(),
        curve=tuple(board.curve),
        calls=board.meter.calls,
        usage=board.meter.usage,
        work=_work_done(run, side.n),
        judge_state=judge_state,
        warnings=(*run.warnings, *remarks),
        stopped_early=" ".join(run.cut),
        problems=run.problems,
    )


def _work_done(run: _Run, n_held_out: int) -> WorkDone:
    board, settings = run.board, run.settings
    of = {
        origin: [one for one in board.entries.values() if one.criteria.provenance.origin == origin]
        for origin in ("draft", "refine")
    }
    return WorkDone(
        drafts_asked=settings.plan.n_drafts,
        drafts_made=len(of["draft"]),
        drafts_ranked=sum(bool(one.asked.any()) for one in of["draft"]),
        rounds_asked=settings.rounds,
        rounds_done=board.rounds_done,
        refined_asked=settings.rounds * refined_asked(settings),
        refined_made=len(of["refine"]),
        refined_accepted=sum(one.status in ("kept", "chosen") for one in of["refine"]),
        held_out_asked=run.held_out.n,
        held_out_scored=n_held_out,
        calls_planned=run.plan.calls,
        calls_used=board.meter.calls,
        budget=settings.budget,
        left_out=(*run.cut, *run.not_run),
    )
