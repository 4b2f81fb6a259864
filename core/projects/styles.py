"""Judging styles: what a grid will cost, its start, and the evaluation steps that come out of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from core.errors import NotFoundError, UsageError
from core.judging.styles import MOST_STEPS
from core.kept import Run
from core.projects.access import requires
from core.projects.runs import start_run
from core.projects.views.styles import StepsView, StylesEstimate, StylesRequest, StylesView
from core.records import Criteria, GoldenSet, Provenance, content_digest
from core.settings import Settings
from core.store.codec import pack, unpack
from core.store.results import RESULT, SNAPSHOT
from core.store.store import Store

if TYPE_CHECKING:
    from core.projects.style_grid.plan import GridPlan

_NO_MODEL = ("offline", "hf:")


@requires("viewer")
def estimate_styles(store: Store, settings: Settings, request: StylesRequest) -> StylesEstimate:
    """Calls, tokens and price of a grid before it starts, by cell and in total.

    Raises what the start would: UsageError for a judge that is no language model or criteria of another aspect,
    AuthError without a key, AspectError when too few labels are left to measure on, NotFoundError for unknown ids.
    """
    from core.projects.style_grid.estimate import estimated

    golden = store.goldens.load(request.golden_id)
    return estimated(golden, plan_of(store, golden, request).columns, request, settings)


@requires("reviewer", "started a grid of styles")
def start_styles(store: Store, settings: Settings, request: StylesRequest) -> str:
    """Put a grid of styles in the queue, see to a worker, and return the run's id.

    Each finished style enters the project's judges (kind "style").  NotFoundError for an unknown project, golden set,
    aspect or criteria; UsageError for a judge that is no language model or whose URL holds a password.
    """
    if re.search(r"://[^/\s]*@", request.judge_spec):
        raise UsageError("The judge's URL holds a user name or password. Leave it out; the key goes in OPENAI_API_KEY.")
    if request.judge_spec.startswith(_NO_MODEL):
        raise UsageError(
            f"The judge {request.judge_spec} cannot be asked in styles: it is no endpoint of a language model. Choose "
            "openai:MODEL@BASE_URL, or scripted, the stand-in for demonstrations."
        )
    store.projects.get(request.project_id)
    golden = store.goldens.get(request.golden_id)
    known = [one.aspect for one in golden.aspects]
    if unknown := [aspect for aspect in request.aspects if aspect not in known]:
        raise NotFoundError(f"{golden.name} has no aspect {unknown[0]!r}; it has {', '.join(known) or 'none'}.")
    for aspect in request.aspects:
        _criteria_of(store, request, aspect)
    what = "pilot of styles" if request.is_pilot else "styles"
    title = f"{what}: {len(request.styles)} × {', '.join(request.aspects)} · {golden.name} · {request.judge_spec}"
    return start_run(store, settings, "styles", request, title=title, judge_spec=request.judge_spec)


@requires("viewer")
def styles_so_far(store: Store, run_id: str) -> StylesView | None:
    """What a grid has come to by now, or in the end; None before its first sign.  NotFoundError for an unknown id."""
    store.runs.get(run_id)
    from core.projects.style_grid.plan import GridStanding

    if (result := store.results.document(run_id, RESULT)) is not None:
        return unpack(StylesView, result)
    snapshot = store.results.document(run_id, SNAPSHOT)
    return None if snapshot is None else unpack(GridStanding, snapshot).view


@requires("reviewer", "edited evaluation steps")
def save_steps(store: Store, run_id: str, aspect: str, text: str) -> None:
    """Keep a person's version of the evaluation steps of an aspect; an empty text goes back to the model's.

    It wins over the model's wherever steps of this aspect are offered next; what the run asked already stays as it
    was.  NotFoundError for an unknown run or an aspect that it does not have, UsageError for an overlong text.
    """
    request = _styles_request(store.runs.get(run_id))
    if aspect not in request.aspects:
        raise NotFoundError(f"Run {run_id} has no aspect {aspect!r}; it has {', '.join(request.aspects)}.")
    if len(text) > MOST_STEPS:
        raise UsageError(f"Evaluation steps may have {MOST_STEPS:,} characters; these have {len(text):,}.")
    edited = StepsView(aspect, text.strip(), edited=True, run_id=run_id)
    store.results.put_document(run_id, steps_document(aspect, edited=True), pack(edited))


@requires("viewer")
def run_steps(store: Store, run_id: str, aspect: str) -> StepsView | None:
    """The steps of an aspect in a run: a person's version if there is one, else the model's, else None."""
    for edited in (True, False):
        found = store.results.document(run_id, steps_document(aspect, edited=edited))
        if found is not None and (steps := unpack(StepsView, found)).text:
            return steps
    return None


@requires("viewer")
def find_steps(store: Store, project_id: str, golden_id: str, aspect: str) -> StepsView | None:
    """The steps of an aspect in the newest grid of this golden set that has some."""
    for run in store.runs.all(project_id):
        if run.kind == "styles" and run.golden_id == golden_id and (steps := run_steps(store, run.run_id, aspect)):
            return steps
    return None


def steps_document(aspect: str, *, edited: bool) -> str:
    """Name of the document that holds an aspect's steps: the model's and a person's lie apart, so neither is lost."""
    return f"steps {'edited' if edited else 'written'} {content_digest('aspect', aspect)[7:19]}"


# ── the plan of a run ────────────────────────────────────────────────────────────────────────────────────────


def plan_of(store: Store, golden: GoldenSet, request: StylesRequest, run_id: str = "") -> GridPlan:
    """The grid that `request` asks for, with the criteria of the project and what they saw; prices not yet in it."""
    from core.projects.style_grid.plan import GridPlan, column_of
    from core.projects.style_grid.seen import criteria_saw
    from core.public import task_of

    columns = []
    for aspect in request.aspects:
        task = task_of(golden, aspect)
        criteria = _criteria_of(store, request, aspect)
        columns.append(column_of(golden, task, request, criteria, criteria_saw(store, golden, criteria)))
    return GridPlan(request, tuple(columns), {}, run_id=run_id)


def _criteria_of(store: Store, request: StylesRequest, aspect: str) -> Criteria:
    criteria_id = request.criteria.get(aspect, "")
    if not criteria_id:
        return Criteria("", aspect, Provenance("none"))
    found = store.criteria.get(request.project_id, criteria_id).criteria
    if found.aspect != aspect:
        raise UsageError(f"The criteria {criteria_id} are for {found.aspect!r} and cannot judge {aspect!r}.")
    return found


def _styles_request(run: Run) -> StylesRequest:
    if run.kind != "styles":
        raise NotFoundError(f"Run {run.run_id} is no grid of styles.")
    return unpack(StylesRequest, run.request_json)
