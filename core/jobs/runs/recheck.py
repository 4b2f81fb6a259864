"""A recheck: newer labelled items scored by a finished calibration's judge, compared with its exported alignment."""

from __future__ import annotations

import numpy as np

from core.drift.newer import newer_items
from core.drift.outcome import Recheck
from core.drift.recheck import Asked, recheck_scores
from core.export import CalibratedJudge, final_verdicts, judge_card
from core.jobs.runs.work import RunWork
from core.judge_loading import restored
from core.progress import Stage
from core.projects.runs import load_calibration
from core.projects.views.recheck import RecheckRequest
from core.records import Criteria, FloatArray, Item, Scored

BATCH = 50
"""Items between two snapshots."""


def run_recheck(work: RunWork) -> Recheck:
    """Open the judge as its file would be, score, and compare; nothing enters the project's judges."""
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
