"""Refinement rounds that people ask for, their proposals, and the family tree of criteria."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from core.calibration.settings import RoundSettings
from core.projects.views import CriteriaSummary, DifferenceView
from core.projects.views.reviews import ReviewState
from core.records import Criteria

ProposalState = Literal["open", "accepted", "rejected"]


@dataclass(frozen=True, slots=True)
class RoundRequest:
    """Refine `parent_ids` with the judge of calibration `run_id`.

    `item_ids` are the calibration items to learn from; empty to sample each parent's most misaligned ones.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    parent_ids: tuple[str, ...]
    item_ids: tuple[str, ...] = ()
    settings: RoundSettings = field(default_factory=RoundSettings)


@dataclass(frozen=True)
class ProposalView:
    """A proposal beside its parent: differences proposal minus parent, on calibration and on the inner fold.

    Their p values are corrected (Holm) over the proposals of the round.

    `seen` is the number of the decision in the log (0 for none): hand it back to `decide_proposal`.  `edited_id` is
    the edit of it that was accepted in its place, if any.
    """

    run_id: str
    criteria: Criteria
    parent: Criteria
    calibration: DifferenceView
    inner: DifferenceView
    state: ProposalState
    reason: str
    decided_by: str
    decided_at: datetime | None
    seen: int
    edited_id: str = ""


@dataclass(frozen=True)
class Relative:
    """A version in the family tree: `depth` steps from its oldest ancestor, `children` the versions made from it."""

    criteria: CriteriaSummary
    depth: int
    children: tuple[str, ...]
    review: ReviewState
