"""A recheck as a durable run: the labelled items scored batch by batch, then compared with the exported alignment."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.drift.newer import newer_items
from core.drift.outcome import Recheck
from core.drift.recheck import Asked, recheck_scores
from core.export import CalibratedJudge, final_verdicts, judge_card
from core.jobs.documents import RESULT
from core.jobs.journal import Journal
from core.jobs.tasks.consent import gate_of
from core.jobs.tasks.convert import request_of
from core.jobs.tasks.runs import load_calibration
from core.jobs.views.recheck import RecheckRequest
from core.judge_loading import restored
from core.records import Criteria, FloatArray, Scored, Usage, content_digest
from core.settings import Settings
from core.store.codec import Packed, pack, unpack
from core.store.rows import Progress, RunRow
from core.store.store import Store

BATCH = 50
"""Items of a step: a killed worker loses at most these (and their replies are kept by their requests)."""


@dataclass(frozen=True, slots=True)
class RecheckStep:
    """Score the items at `positions` with the judge, or with the same judge without criteria."""

    positions: tuple[int, ...]
    without_criteria: bool


@dataclass(frozen=True)
class RecheckPart:
    """(n,) scores of a step's items, NaN = unscored."""

    values: FloatArray


class RecheckProgram:
    """Opens the judge as its file would be, scores, and compares; nothing enters the shelf of judges."""

    def __init__(self, store: Store, settings: Settings, run: RunRow) -> None:
        request = request_of(run)
        assert isinstance(request, RecheckRequest)
        self.store, self.run, self._request = store, run, request
        self._calibration = load_calibration(store, request.run_id)
        self._golden = store.goldens.load(request.golden_id)
        self._old = store.goldens.load(store.runs.get(request.run_id).golden_id)
        self._card = judge_card(self._calibration)
        self._newer = newer_items(self._card, self._golden, request.aspect, self._old)
        replies = store.replies.of_run(run.run_id, run.project_id)
        self._judge: CalibratedJudge = restored(self._card, settings, replies, gate=gate_of(store, run))

    def steps(self) -> Generator[Any, Any, Recheck]:
        newer = self._newer
        asks = [(False, np.union1d(newer.used, newer.evaluated_on).tolist())]  # its earlier verdicts stand beside both
        if self._request.no_criteria:
            asks.append((True, newer.used.tolist()))
        each = len(self._judge.criteria)
        expected = sum(len(wanted) * (1 if without else each) for without, wanted in asks)
        done, found = 0, []
        for without, wanted in asks:
            values = dict[str, float]()
            for start in range(0, len(wanted), BATCH):
                told = "scoring without criteria" if without else "scoring the newer items"
                yield Progress("recheck", told, done, expected, Usage())
                positions = tuple(wanted[start : start + BATCH])
                part: RecheckPart = yield RecheckStep(positions, without)
                values |= zip((self._golden.item_ids[k] for k in positions), part.values.tolist(), strict=True)
                done += len(positions) * (1 if without else each)
            found.append(values)
        yield Progress("done", "done", expected, expected, Usage())
        return self._compared(found)

    def question(self, step: RecheckStep | Progress) -> str:
        if isinstance(step, Progress):
            return ""
        return content_digest("step", ["recheck", list(step.positions), step.without_criteria])

    def work(self, step: RecheckStep, on_progress: Callable[[int, int], None]) -> Packed:
        items = [self._golden.items[k] for k in step.positions]
        if step.without_criteria:
            bare = [Criteria("", self._judge.task.aspect)]
            matrix = self._judge.judge.score(self._judge.task, items, bare, on_progress=on_progress)
            return pack(RecheckPart(matrix.values[0]))
        verdicts = self._judge.score(items, on_progress=on_progress)
        return pack(RecheckPart(np.array([one.value if isinstance(one, Scored) else np.nan for one in verdicts])))

    def read(self, step: RecheckStep, stored: Packed) -> RecheckPart:
        return unpack(RecheckPart, stored)

    def keep(self, step: RecheckStep, answer: RecheckPart) -> None:
        """Nothing but the answer."""

    def note(self, snapshot: Progress, journal: Journal) -> None:
        journal.note(snapshot, lambda: Packed("{}"))

    def finish(self, result: Recheck) -> str:
        self.store.results.put_document(self.run.run_id, RESULT, pack(result))
        return "done"

    def close(self) -> None:
        self._judge.close()

    def _compared(self, found: list[dict[str, float]]) -> Recheck:
        request = self._request
        earlier = {
            one.item_id: one.value if isinstance(one, Scored) else float("nan")
            for one in final_verdicts(self._calibration, self._old)
        }
        return recheck_scores(
            self._card,
            self._golden,
            request.aspect,
            found[0],
            before=earlier,
            old=self._old,
            against=found[1] if len(found) > 1 else None,
            against_name="the judge without criteria" if len(found) > 1 else "",
            asked=Asked(alpha=request.alpha, fall=request.fall),
            notes=self._judge.marks,
        )
