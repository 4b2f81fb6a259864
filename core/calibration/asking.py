"""A judge with the golden set that it is asked about, and whom it tells how far it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.judging.base import DraftBatch, DraftRequest, Judge, RefineRequest
from core.progress import SILENT, Progress
from core.records import Criteria, GoldenSet, ScoreMatrix, Task


@dataclass(frozen=True)
class AskedJudge:
    """What calibrations, rounds and ablations ask; a worker's own kind keeps the answers too."""

    judge: Judge
    golden: GoldenSet
    task: Task
    progress: Progress = SILENT

    def draft(self, requests: Sequence[DraftRequest]) -> DraftBatch:
        """New criteria from labelled exemplars."""
        return self.judge.draft(self.task, requests)

    def refine(self, requests: Sequence[RefineRequest]) -> DraftBatch:
        """Criteria made better by what they got wrong."""
        return self.judge.refine(self.task, requests)

    def score(self, criteria: Sequence[Criteria], positions: Sequence[int]) -> ScoreMatrix:
        """Scores of all `criteria` on the items at `positions` (into `GoldenSet.items`)."""
        items = [self.golden.items[position] for position in positions]
        return self.judge.score(self.task, items, criteria, on_progress=self.progress.advance)
