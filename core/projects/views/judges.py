"""Judges of a project, as Compare and Fusion list them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.records import JudgeScores


@dataclass(frozen=True)
class JudgeView:
    """A judge with its scores over all items of its golden set."""

    judge_id: str
    golden_id: str
    judge: JudgeScores
    created_at: datetime

    @property
    def name(self) -> str:
        return self.judge.name
