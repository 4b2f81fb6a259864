"""The newest calibrated judge of an aspect as files for other tools."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.projects.access import requires
from core.projects.analyses import calibrations_of
from core.projects.calibration import judge_file
from core.projects.views import RunSummary
from core.store.store import Store

if TYPE_CHECKING:
    from core.export.adapters import Adapter

__all__ = ["JudgeAdapters", "judge_adapters"]


@dataclass(frozen=True, slots=True)
class JudgeAdapters:
    """The calibration that the files are from, its judge.yaml, and the adapters."""

    run: RunSummary
    judge_file: str
    adapters: tuple[Adapter, ...]


@requires("viewer")
def judge_adapters(
    store: Store, project_id: str, golden_id: str, aspect: str, run_id: str | None = None
) -> JudgeAdapters | None:
    """The adapters of the calibration `run_id`, else of the newest of `aspect` that came to a result.

    None where there is none; a `run_id` that is no such calibration counts as none given.  JudgeError when the judge
    cannot be handed on.
    """
    import yaml

    from core.export.adapters import adapters

    runs = calibrations_of(store, project_id, golden_id, aspect)
    if not runs:
        return None
    run = next((one for one in runs if one.run_id == run_id), runs[0])
    text = judge_file(store, run.run_id)
    return JudgeAdapters(run, text, adapters(yaml.safe_load(text)))
