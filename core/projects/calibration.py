"""Calibrations: what one will cost, and its start."""

from __future__ import annotations

import re
from collections.abc import Mapping

from core.calibration.steps import Estimate
from core.errors import NotFoundError, UsageError
from core.projects.access import requires
from core.projects.criteria import list_criteria
from core.projects.reviews import list_reviews
from core.projects.runs import load_calibration, start_run
from core.projects.triage import list_openings, record_opening
from core.projects.views import CalibrationRequest
from core.projects.views.reviews import Review
from core.records import GoldenSet
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
    """The text of `judge.yaml` of a finished calibration, with all that the project knows about it.

    Who approved its criteria on which evidence, the ceiling, how often the held-out items were opened, how much people
    did.  A judge with criteria that nobody approved is exported too: the file then says so among its warnings.  Raises
    as `load_calibration`.
    """
    from core.export.judge_file import judge_yaml
    from core.public import known_of

    calibration, run = load_calibration(store, run_id), store.runs.get(run_id)
    golden, aspect = store.goldens.load(run.golden_id), calibration.task.aspect
    reviews = list_reviews(store, run.project_id)
    known = known_of(golden, calibration)
    known["reviews"] = reviews
    known["held_out_opened"] = len(list_openings(store, run.project_id, run.golden_id, aspect))
    known["people"] = _people(store, run.project_id, golden, aspect, reviews)
    return judge_yaml(calibration, **known)


def _people(
    store: Store, project_id: str, golden: GoldenSet, aspect: str, reviews: Mapping[str, Review]
) -> dict[str, int]:
    """How much people did for the criteria of an aspect."""
    about = list_criteria(store, project_id, aspect)
    ours = [reviews[one.criteria_id] for one in about if one.criteria_id in reviews]
    return {
        "raters": len({rating.rater_id for rating in golden.ratings if rating.aspect == aspect}),
        "edits": sum(one.origin == "edit" for one in about),
        "comments": sum(len(one.comments) for one in ours),
        "decisions": sum(len(one.changes) for one in ours),
    }


def _refuse_secrets(spec: str) -> None:
    """Specs are stored and shown, so they must not hold a password."""
    if re.search(r"://[^/\s]*@", spec):
        raise UsageError("The judge's URL holds a user name or password. Leave it out; the key goes in OPENAI_API_KEY.")
