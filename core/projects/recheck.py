"""Rechecks: a finished calibration's judge on newer labels, compared with its exported alignment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from core.drift.outcome import Recheck
from core.errors import UsageError
from core.kept import WITH_RESULT
from core.progress import Stage
from core.projects.access import requires
from core.projects.project_list import require_aspect
from core.projects.runs import RunWork, load_calibration, start_run
from core.records import Criteria, FloatArray, Item, Scored
from core.settings import Settings
from core.store.codec import unpack
from core.store.results import RESULT
from core.store.store import Store

if TYPE_CHECKING:
    from core.export import CalibratedJudge


BATCH = 50
"""Items between two snapshots."""


@dataclass(frozen=True, slots=True)
class RecheckRequest:
    """Recheck the judge of the finished calibration `run_id` on the labels of the golden set `golden_id`.

    `fall` is the fall that matters, `alpha` the accepted chance of a false alarm; with `no_criteria` the same judge
    without criteria scores the items too, at one more call an item.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    fall: float = 0.1
    alpha: float = 0.05
    no_criteria: bool = True


@dataclass(frozen=True, slots=True)
class DatedRecheck:
    """A finished recheck: when it was, of the judge of which calibration, on which golden set, and what it found."""

    run_id: str
    created_at: datetime
    calibration_id: str
    golden_id: str
    outcome: Recheck


@requires("viewer")
def list_rechecks(store: Store, project_id: str, aspect: str, calibration_id: str = "") -> tuple[DatedRecheck, ...]:
    """The finished rechecks of an aspect (of one calibration's judge), oldest first."""
    found = []
    for run in reversed(store.runs.all(project_id)):
        if run.kind == "recheck" and run.aspect == aspect and run.status in WITH_RESULT:
            outcome = store.results.read(run.run_id, RESULT, Recheck)
            judged = unpack(RecheckRequest, run.request_json).run_id
            if outcome is not None and calibration_id in ("", judged):
                found.append(DatedRecheck(run.run_id, run.created_at, judged, run.golden_id, outcome))
    return tuple(found)


@requires("reviewer", "started a recheck")
def start_recheck(store: Store, settings: Settings, request: RecheckRequest) -> str:
    """Put a recheck in the queue, see to a worker, and return the run's id.

    `run_view(...).outcome` is then a `Recheck`.  NotFoundError for an unknown project, run or golden set, JobError for
    a calibration without a result, UsageError for one of another project, a golden set without labels on the aspect,
    or a `fall` or `alpha` that is no such number, GoldenError where none of the labels is newer than the judge.
    """
    from core.drift.recheck import newer_items
    from core.export import judge_card

    store.projects.get(request.project_id)
    run = store.runs.get(request.run_id)
    calibration = load_calibration(store, request.run_id)
    if run.project_id != request.project_id:
        raise UsageError("The judge belongs to another project.")
    if request.aspect != calibration.task.aspect:
        raise UsageError(f"The judge rates {calibration.task.aspect!r}, not {request.aspect!r}.")
    summary, aspect = require_aspect(store, request.golden_id, request.aspect)
    if aspect.n_labelled < 2:
        raise UsageError(
            f"{summary.name} has {aspect.n_labelled} labels of {request.aspect}; a recheck needs at least 2."
        )
    if not 0 < request.fall <= 1 or not 0 < request.alpha < 0.5:
        raise UsageError("The fall that matters lies between 0 and 1, the chance of a false alarm between 0 and 0.5.")
    old = store.goldens.load(run.golden_id)
    newer_items(judge_card(calibration), store.goldens.load(request.golden_id), request.aspect, old)
    spec = str(calibration.judge_state.get("spec", ""))
    return start_run(store, settings, "recheck", request, title=f"recheck · {summary.name}", judge_spec=spec)


def run_recheck(work: RunWork) -> Recheck:
    """Open the judge as its file would be, score, and compare; nothing enters the project's judges."""
    from core.api.loading import restored
    from core.drift.recheck import Asked, newer_items, recheck_scores
    from core.export import final_verdicts, judge_card

    request, golden = work.request(RecheckRequest), work.golden
    calibration = load_calibration(work.store, request.run_id)
    old = work.store.goldens.load(work.store.runs.get(request.run_id).golden_id)
    card = judge_card(calibration)
    newer = newer_items(card, golden, request.aspect, old)
    wanted = np.union1d(newer.used, newer.evaluated_on).tolist()  # its earlier verdicts stand beside both
    bare = newer.used.tolist() if request.no_criteria else []
    judge = restored(card, work.settings, work.replies, gate=work.gate)
    try:
        scoring = _Scoring(work, judge, expected=len(wanted) * len(judge.criteria) + len(bare))
        scores = scoring.scores(wanted, "scoring the newer items", without_criteria=False)
        without = scoring.scores(bare, "scoring without criteria", without_criteria=True) if bare else None
        work.progress.publish(Stage("done", "done", scoring.expected, scoring.expected))
    finally:
        judge.close()
    earlier = {
        verdict.item_id: verdict.value if isinstance(verdict, Scored) else float("nan")
        for verdict in final_verdicts(calibration, old)
    }
    return recheck_scores(
        card,
        golden,
        request.aspect,
        scores,
        before=earlier,
        old=old,
        against=without,
        against_name="the judge without criteria" if without is not None else "",
        asked=Asked(alpha=request.alpha, fall=request.fall),
        notes=judge.marks,
    )


class _Scoring:
    """Scores by item id, some items at a time; NaN = unscored."""

    def __init__(self, work: RunWork, judge: CalibratedJudge, expected: int) -> None:
        self._work, self._judge, self.expected = work, judge, expected
        self._done = 0

    def scores(self, positions: list[int], message: str, *, without_criteria: bool) -> dict[str, float]:
        found: dict[str, float] = {}
        each = 1 if without_criteria else len(self._judge.criteria)
        for start in range(0, len(positions), BATCH):
            self._work.progress.publish(Stage("recheck", message, self._done, self.expected))
            items = [self._work.golden.items[k] for k in positions[start : start + BATCH]]
            values = self._bare(items) if without_criteria else self._final(items)
            found |= zip((item.item_id for item in items), values.tolist(), strict=True)
            self._done += len(items) * each
        return found

    def _final(self, items: list[Item]) -> FloatArray:
        verdicts = self._judge.score(items, on_progress=self._work.progress.advance)
        return np.array([verdict.value if isinstance(verdict, Scored) else np.nan for verdict in verdicts])

    def _bare(self, items: list[Item]) -> FloatArray:
        task = self._judge.task
        criteria = [Criteria("", task.aspect)]
        matrix = self._judge.judge.score(task, items, criteria, on_progress=self._work.progress.advance)
        values: FloatArray = matrix.values[0]
        return values
