"""A calibration, and the judges that it leaves to be compared."""

from __future__ import annotations

import numpy as np

from core.calibration.loop import calibration
from core.calibration.steps import Calibration
from core.jobs.runs.work import RunWork
from core.projects.views import CalibrationRequest
from core.public import split_for, task_of
from core.records import Alignment, GoldenSet, JudgeScores, ScoreMatrix
from core.store.criteria import Stood


def run_calibration(work: RunWork) -> Calibration:
    """Calibrate, and enter the criteria, how each stood, and the judges."""
    request, golden = work.request(CalibrationRequest), work.golden
    task = task_of(golden, request.aspect, request.definition, request.scale)
    split = split_for(golden, task.aspect, request.settings)
    state = work.prepared(request.judge_spec, task, split.calibration)
    with work.asking(state, task) as asked:
        result = calibration(asked, split, request.settings, judge_state=state)
    every = {one.criteria.criteria_id: one.criteria for one in result.candidates}
    every |= {one.criteria_id: one for one in result.chosen}
    work.add_criteria(list(every.values()))
    work.add_standings(_standings(result))
    bare = [one.criteria.criteria_id for one in result.candidates if one.status == "baseline"]
    for judge in judges_of(result, golden, work.run.run_id, work.scores(bare)):
        work.add_judge(judge)
    return result


def judges_of(result: Calibration, golden: GoldenSet, run_id: str, bare: ScoreMatrix) -> list[JudgeScores]:
    """The judges that a calibration leaves to be compared: the final one, and the same without criteria.

    The final judge has seen the labels of the calibration items; the one without criteria has seen none.
    """
    spec, aspect = str(result.judge_state.get("spec", "judge")), result.task.aspect
    at = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    values = np.full(len(golden.items), np.nan)
    values[[at[item_id] for item_id in result.scores.item_ids]] = result.scores.values[0]
    members = "one criteria" if len(result.chosen) == 1 else f"the mean of {len(result.chosen)} criteria"
    final = JudgeScores(
        name=f"{spec} · calibrated",
        kind="calibrated",
        aspect=aspect,
        values=values,
        unscored=result.scores.unscored.get("final", ()),
        seen=result.split.calibration,
        note=f"The judge {spec} with {members}, calibrated on {len(result.split.calibration)} items.",
        run_id=run_id,
        calls_per_item=float(len(result.chosen)),
    )
    plain = [
        JudgeScores(
            name=f"{spec} · no criteria",
            kind="no criteria",
            aspect=aspect,
            values=row,
            unscored=bare.unscored.get(name, ()),
            note=f"The judge {spec} that knows the name of the aspect and no criteria.",
            run_id=run_id,
            calls_per_item=1.0,
        )
        for name, row in zip(bare.criteria_ids, bare.values, strict=True)
    ]
    return [final, *plain]


def _standings(result: Calibration) -> list[Stood]:
    """How candidates stood: all on calibration, the best single and the baseline on held-out too."""
    found = [
        Stood(one.criteria.criteria_id, "calibration", one.status, one.alignment)
        for one in result.candidates
        if one.alignment is not None
    ]
    best = result.chosen[0]
    if best.text:
        found.append(_held_out(best.criteria_id, "chosen", result.best_single["held_out"]))
    found += [
        _held_out(one.criteria.criteria_id, "baseline", result.no_criteria["held_out"])
        for one in result.candidates
        if one.status == "baseline"
    ]
    return found


def _held_out(criteria_id: str, status: str, alignment: Alignment) -> Stood:
    return Stood(criteria_id, "held-out", status, alignment)
