"""The report on a calibrated judge: everything that is known of it, gathered into one record."""

from __future__ import annotations

from datetime import UTC, datetime

from core.projects.access import requires
from core.projects.project_list import get_project
from core.projects.triage import list_openings
from core.projects.views.reports import Report
from core.store.store import Store


@requires("viewer")
def report(store: Store, project_id: str, golden_id: str, aspect: str, run_id: str | None = None) -> Report:
    """All facts on the judge of calibration `run_id` (None: the newest of that aspect that came to a result).

    Reads only; nothing new is asked of a judge.  NotFoundError for unknown ids, JobError while no calibration of that
    aspect has come to a result.  `core.report` draws it.
    """
    from core.projects.reporting.basis import basis_of
    from core.projects.reporting.evidence import costs, misaligned, reproduce
    from core.projects.reporting.history import history, others_approved
    from core.projects.reporting.people import judged, labelling
    from core.projects.reporting.results import result

    basis = basis_of(store, project_id, golden_id, aspect, run_id)
    told = history(basis)
    return Report(
        project=get_project(store, project_id).name,
        made_at=datetime.now(UTC),
        judged=judged(basis),
        labelling=labelling(basis),
        history=told,
        result=result(basis),
        misaligned=misaligned(basis, told.meetings),
        openings=tuple(list_openings(store, project_id, golden_id, aspect)),
        costs=costs(basis),
        reproduce=reproduce(basis),
        others_approved=others_approved(basis, told),
    )
