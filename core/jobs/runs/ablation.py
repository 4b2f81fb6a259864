"""An ablation of a finished calibration, and the variants that it leaves to be compared."""

from __future__ import annotations

from core.calibration.ablate import Ablation, ablation
from core.jobs.runs.work import RunWork
from core.projects.runs import load_calibration, load_scores
from core.projects.views.analyses import AblationRequest
from core.records import JudgeScores


def run_ablation(work: RunWork) -> Ablation:
    """Score what is missing for the table, and enter the variants that are new among the judges."""
    request = work.request(AblationRequest)
    calibration = load_calibration(work.store, request.run_id)
    with work.asking(work.judge_state(request.run_id), calibration.task) as asked:
        scores = load_scores(work.store, request.run_id)
        result = ablation(asked, calibration, scores, with_steps=request.with_steps)
    for judge in judges_of(result, work.run.run_id):
        work.add_judge(judge)
    return result


def judges_of(result: Ablation, run_id: str) -> list[JudgeScores]:
    """The ablated variants as judges; the final judge and the one without criteria stand there since the calibration.

    Each has seen the labels of the calibration items: they chose its criteria.
    """
    rows = dict(zip(result.scores.criteria_ids, result.scores.values, strict=True))
    return [
        JudgeScores(
            name=f"{result.judge_spec} · {row.key}",
            kind="calibrated",
            aspect=result.task.aspect,
            values=rows[row.key],
            unscored=result.scores.unscored.get(row.key, ()),
            seen=result.calibration_positions,
            note=f"{row.what} The judge {result.judge_spec}, from an ablation of its calibration.",
            run_id=run_id,
            calls_per_item=float(len(row.criteria_ids)),
        )
        for row in result.rows
        if row.key not in ("final", "without criteria")
    ]
