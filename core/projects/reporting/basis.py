"""What every part of a report needs: one finished calibration, its golden set, and the final judge's scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.calibration.steps import Calibration
from core.errors import JobError
from core.kept import Run
from core.projects.calibration import CalibrationRequest
from core.projects.runs import load_calibration
from core.records import FloatArray, GoldenSet, IntArray, JudgeScores
from core.store.codec import unpack
from core.store.store import Store

_COMPLETE = ("done", "budget")


@dataclass(frozen=True)
class Basis:
    """A calibration that came to a result, in one project."""

    store: Store
    run: Run
    golden: GoldenSet
    asked: CalibrationRequest
    calibration: Calibration

    @property
    def project_id(self) -> str:
        return self.run.project_id

    @property
    def aspect(self) -> str:
        return self.run.aspect

    @cached_property
    def values(self) -> FloatArray:
        """(n_items,) the final judge's scores in the golden set's order, NaN = none."""
        place = {item_id: k for k, item_id in enumerate(self.golden.item_ids)}
        values = np.full(len(self.golden.items), np.nan)
        found = self.calibration.scores
        values[[place[item_id] for item_id in found.item_ids]] = found.values[0]
        return values

    @cached_property
    def labels(self) -> FloatArray:
        """(n_items,) the gold labels, NaN = none."""
        return self.golden.labels(self.aspect)

    @cached_property
    def calibration_at(self) -> IntArray:
        return np.asarray(self.calibration.split.calibration, dtype=np.intp)

    @cached_property
    def told_at(self) -> IntArray:
        """Positions of the held-out items that the judge is told on: labelled and scored."""
        at = np.asarray(self.calibration.split.held_out, dtype=np.intp)
        return at[~np.isnan(self.values[at]) & ~np.isnan(self.labels[at])]

    @cached_property
    def judge(self) -> JudgeScores:
        """The final judge as the shelf holds it."""
        return JudgeScores(
            name=f"{self.calibration.judge_state.get('spec', 'judge')} · calibrated",
            kind="calibrated",
            aspect=self.aspect,
            values=self.values,
            seen=self.calibration.split.calibration,
            run_id=self.run.run_id,
            calls_per_item=float(len(self.calibration.chosen)),
        )


def basis_of(store: Store, project_id: str, golden_id: str, aspect: str, run_id: str | None) -> Basis:
    """The calibration `run_id`, or the newest of that aspect that came to a result.

    JobError where there is none, or where that run is no such calibration; NotFoundError for unknown ids.
    """
    store.projects.get(project_id)
    name = store.goldens.get(golden_id).name
    found = [
        run
        for run in store.runs.all(project_id)
        if (run.kind, run.golden_id, run.aspect) == ("calibration", golden_id, aspect) and run.status in _COMPLETE
    ]
    if run_id is not None and all(run.run_id != run_id for run in found):
        store.runs.get(run_id)
        raise JobError(
            f"Run {run_id[:40]} is no finished calibration of {aspect} on {name}, so there is nothing to report. Name "
            "one that is, or leave it out to take the newest."
        )
    if not found:
        raise JobError(
            f"No calibration of {aspect} on {name} has come to a result yet, so there is nothing to report. Run one to "
            "its end first."
        )
    run = next((one for one in found if one.run_id == run_id), found[0])
    result, asked = load_calibration(store, run.run_id), unpack(CalibrationRequest, run.request_json)
    return Basis(store, run, store.goldens.load(golden_id), asked, result)
