"""Names of the documents that runs keep in the store, and the record of the one that others read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.store.codec import unpack
from core.store.store import Store

STANDING = "standing"
"""The latest snapshot: of a leaderboard (`core.calibration.steps.Standing`), or of a grid of styles."""

JUDGE = "judge"
"""The judge made ready (`JudgeState`)."""

RESULT = "result"
"""What the run came to (`core.projects.kinds`)."""


@dataclass(frozen=True)
class JudgeState:
    """A judge made ready (`core.public.judge_state`): `restore_judge` makes it again."""

    state: Mapping[str, Any]


def kept_judge(store: Store, run_id: str) -> Mapping[str, Any] | None:
    """The state of the judge that a run made ready; None for a run without one."""
    kept = store.results.document(run_id, JUDGE)
    return None if kept is None else unpack(JudgeState, kept).state
