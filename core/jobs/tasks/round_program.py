"""A refinement round as a durable run: the generator of `core.calibration.rounds`, with every answer stored."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from core.calibration.rounds import RoundAsked, RoundResult, refinement_round
from core.errors import JobError
from core.jobs.documents import JUDGE, RESULT
from core.jobs.tasks.convert import calibration_asked, request_of
from core.jobs.tasks.programs import JudgeProgram, JudgeState
from core.jobs.views.rounds import RoundRequest
from core.public import split_for, task_of
from core.settings import Settings
from core.store.codec import pack, unpack
from core.store.criteria import Stood
from core.store.rows import RunRow
from core.store.store import Store


class RoundProgram(JudgeProgram):
    def __init__(self, store: Store, settings: Settings, run: RunRow) -> None:
        request = request_of(run)
        assert isinstance(request, RoundRequest)
        of = calibration_asked(store, request.run_id)
        golden = store.goldens.load(request.golden_id)
        super().__init__(store, settings, run, golden, task_of(golden, of.aspect, of.definition, of.scale))
        self._request, self._chosen = request, of.settings

    def steps(self) -> Generator[Any, Any, RoundResult]:
        judge = self.store.results.document(self._request.run_id, JUDGE)
        if judge is None:
            raise JobError(f"Run {self._request.run_id} has no judge to refine with.")
        self.restore(unpack(JudgeState, judge).state)
        parents = tuple(self.store.criteria.get(self.run.project_id, one).criteria for one in self._request.parent_ids)
        place = {item_id: k for k, item_id in enumerate(self.golden.item_ids)}
        asked = RoundAsked(
            parents,
            tuple(place.get(item_id, -1) for item_id in self._request.item_ids),
            1 + max(one.provenance.round for one in parents),
            self._request.settings,
        )
        split = split_for(self.golden, self.task.aspect, self._chosen)
        return (yield from refinement_round(self.golden, self.task, split, self._chosen, asked))

    def finish(self, result: RoundResult) -> str:
        """Store the proposals and how they stood beside their parents; people decide on them."""
        run = self.run
        self.store.criteria.add(run.project_id, run.golden_id, [one.criteria for one in result.proposals])
        stood = {one.parent_id: Stood(one.parent_id, "calibration", "", one.calibration.b) for one in result.proposals}
        proposed = [
            Stood(one.criteria.criteria_id, "calibration", "proposed", one.calibration.a) for one in result.proposals
        ]
        self.store.criteria.record(run.project_id, run.run_id, [*stood.values(), *proposed])
        self.store.results.put_document(run.run_id, RESULT, pack(result))
        return "done"
