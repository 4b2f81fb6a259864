"""What the function of a kind of run is given: what was asked, with what, and whom it tells how far it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from core.calibration.pool import AskedJudge
from core.jobs.progress import RunProgress
from core.judging.base import DraftBatch, DraftRequest, RefineRequest
from core.judging.registry import Gate, make_judge, restore_judge
from core.kept import CriteriaAlignment, Run, Side
from core.projects.consent import gate_of
from core.projects.runs import JudgeState
from core.public import judge_state
from core.records import Alignment, Criteria, GoldenSet, JudgeScores, ScoreMatrix, Task
from core.settings import Settings
from core.store.codec import unpack
from core.store.replies import RunReplies
from core.store.results import JUDGE
from core.store.store import Store

T = TypeVar("T")


@dataclass(frozen=True)
class RunWork:
    """A run at work.  Everything that it stores is refused once another attempt is under way."""

    store: Store
    settings: Settings
    run: Run
    progress: RunProgress

    def request(self, kind: type[T]) -> T:
        """What was asked for."""
        return unpack(kind, self.run.request_json)

    @cached_property
    def golden(self) -> GoldenSet:
        return self.store.goldens.load(self.run.golden_id)

    @cached_property
    def replies(self) -> RunReplies:
        """What the run was answered so far, and where new answers go."""
        return self.store.replies.of_run(self.run.run_id, self.run.project_id)

    @cached_property
    def gate(self) -> Gate:
        return gate_of(self.store, self.run)

    # ── what is kept ─────────────────────────────────────────────────────────────────────────────────────────

    def kept(self, name: str, kind: type[T]) -> T | None:
        """The document that an earlier attempt kept under that name."""
        return self.store.results.read(self.run.run_id, name, kind)

    def keep(self, name: str, document: object) -> None:
        """Keep a record with the run."""
        self.store.results.put_document(self.run.run_id, name, document, attempt=self.run.attempt)

    def add_criteria(self, criteria: Sequence[Criteria]) -> None:
        """Enter criteria among the project's; those that are there stay."""
        self.progress.check()
        self.store.criteria.add(self.run.project_id, self.run.golden_id, criteria)

    def alignment(self, criteria_id: str, side: Side, alignment: Alignment, status: str = "") -> CriteriaAlignment:
        """The alignment of criteria in this run, to be entered by `add_alignments`."""
        return CriteriaAlignment(criteria_id, self.run.run_id, side, alignment, status)

    def add_alignments(self, alignments: Sequence[CriteriaAlignment]) -> None:
        """Enter alignments of criteria in this run."""
        self.progress.check()
        self.store.criteria.record(self.run.project_id, alignments)

    def add_judge(self, judge: JudgeScores, replies: Mapping[str, tuple[str, ...]] | None = None) -> str:
        """Enter a judge among the project's, once; its id."""
        self.progress.check()
        return self.store.judges.add(self.run.project_id, self.run.golden_id, judge, replies)

    def scores(self, criteria_ids: Sequence[str]) -> ScoreMatrix:
        """What the run scored so far, over all items of the golden set."""
        return self.store.results.scores(self.run.run_id, self.golden.item_ids, criteria_ids)

    # ── judges ───────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def asking(self, state: Mapping[str, Any], task: Task) -> Iterator[AskedJudge]:
        """The judge of `state`, made again; its criteria and scores are kept with the run as they come."""
        judge = restore_judge(state, self.settings, self.replies, gate=self.gate)
        try:
            yield _KeptJudge(judge, self.golden, task, self.progress, work=self)
        finally:
            judge.close()

    def prepared(self, spec: str, task: Task, positions: Sequence[int]) -> Mapping[str, Any]:
        """The state of the judge `spec`, made ready with the items at `positions`: once, for all attempts."""
        if (kept := self.kept(JUDGE, JudgeState)) is not None:
            return kept.state
        judge = make_judge(spec, self.settings, self.replies, gate=self.gate)
        try:
            state = judge_state(judge.prepare(task, [self.golden.items[position] for position in positions]))
        finally:
            judge.close()
        self.keep(JUDGE, JudgeState(state))
        return state


@dataclass(frozen=True)
class _KeptJudge(AskedJudge):
    """What it answers is kept with the run, as it comes."""

    work: RunWork = field(kw_only=True)

    def draft(self, requests: Sequence[DraftRequest]) -> DraftBatch:
        return self._kept(super().draft(requests))

    def refine(self, requests: Sequence[RefineRequest]) -> DraftBatch:
        return self._kept(super().refine(requests))

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> ScoreMatrix:
        matrix = super().score(criteria, positions)
        run = self.work.run
        self.work.store.results.add_scores(run.run_id, positions, matrix, attempt=run.attempt)
        return matrix

    def _kept(self, batch: DraftBatch) -> DraftBatch:
        self.work.add_criteria([drafted.criteria for drafted in batch.drafted if drafted.criteria is not None])
        return batch
