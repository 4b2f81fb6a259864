"""Calibrations: what one will cost, and its start."""

from __future__ import annotations

import re

from core.calibration.steps import Estimate
from core.errors import NotFoundError, UsageError
from core.jobs.tasks.access import requires
from core.jobs.tasks.reviews import list_reviews
from core.jobs.tasks.runs import load_calibration, start_run
from core.jobs.tasks.triage import record_opening
from core.jobs.views import CalibrationRequest
from core.settings import Settings
from core.store.store import Store

__all__ = ["estimate", "judge_file", "load_calibration", "start_calibration"]


@requires("viewer")
def estimate(store: Store, settings: Settings, request: CalibrationRequest) -> Estimate:
    """Calls, tokens and price of the calibration before it starts.

    Raises what the start would: AspectError for labels that cannot rank anything, JudgeError for a judge that
    cannot be made, NotFoundError for an unknown golden set.
    """
    from core.calibration.estimate import estimate as estimate_of
    from core.judging.registry import make_judge
    from core.public import split_for, task_of

    golden = store.goldens.load(request.golden_id)
    task = task_of(golden, request.aspect, request.definition, request.scale)
    split = split_for(golden, request.aspect, request.settings)
    judge = make_judge(request.judge_spec, settings, store.replies)
    try:
        return estimate_of(golden, task, split, request.settings, judge)
    finally:
        judge.close()


@requires("reviewer", "started a calibration")
def start_calibration(store: Store, settings: Settings, request: CalibrationRequest) -> str:
    """Put a calibration in the queue, see to a worker, and return the run's id.

    NotFoundError for an unknown project or golden set or a golden set without that aspect.
    """
    _refuse_secrets(request.judge_spec)
    store.projects.get(request.project_id)
    golden = store.goldens.get(request.golden_id)
    known = [one.aspect for one in golden.aspects]
    if request.aspect not in known:
        raise NotFoundError(f"{golden.name} has no aspect {request.aspect!r}; it has {', '.join(known) or 'none'}.")
    title = f"{request.aspect} · {golden.name} · {request.judge_spec}"
    run_id = start_run(store, settings, "calibration", request, title=title, judge_spec=request.judge_spec)
    why = "a calibration reports its winner on them"
    record_opening(store, request, why, run_id=run_id)
    return run_id


@requires("viewer")
def judge_file(store: Store, run_id: str) -> str:
    """The text of `judge.yaml` of a finished calibration, with who approved its criteria on which evidence.

    A judge with criteria that nobody approved is exported too: the file then says so among its warnings.  Raises as
    `load_calibration`.
    """
    from core.export.judge_file import judge_yaml

    reviews = list_reviews(store, store.runs.get(run_id).project_id)
    return judge_yaml(load_calibration(store, run_id), reviews=reviews)


def _refuse_secrets(spec: str) -> None:
    """Specs are stored and shown, so they must not hold a password."""
    if re.search(r"://[^/\s]*@", spec):
        raise UsageError("The judge's URL holds a user name or password. Leave it out; the key goes in OPENAI_API_KEY.")
