"""Re-scoring edited criteria beside their parent."""

from __future__ import annotations

from dataclasses import replace

from core.errors import JobError
from core.jobs.documents import JUDGE
from core.projects.access import requires
from core.projects.convert import judge_run
from core.projects.runs import start_run
from core.projects.triage import record_opening
from core.projects.views import RescoreRequest
from core.settings import Settings
from core.store.store import Store


@requires("reviewer", "re-scored an edit")
def start_rescore(store: Store, settings: Settings, request: RescoreRequest) -> str:
    """Score the edited criteria and their parent with the judge of `request.run_id`, on that run's calibration items.

    A re-scoring or a round has the judge of the calibration it began from.  Held-out items are left alone unless
    `request.held_out`.  Returns the id of a durable run whose `run_view` has the outcome in `rescore`.  NotFoundError
    for unknown criteria or run; JobError when the run has no judge yet.
    """
    new = store.criteria.get(request.project_id, request.criteria_id).criteria
    store.criteria.get(request.project_id, request.parent_id)
    request = replace(request, run_id=judge_run(store, request.run_id))
    run = store.runs.get(request.run_id)
    if store.results.document(run.run_id, JUDGE) is None:
        raise JobError(f"Run {run.run_id} has not come to its judge yet; wait for its first candidates.")
    by = new.provenance.author
    title = f"{request.aspect} · edit{f' by {by}' if by else ''} · {run.judge_spec}"
    run_id = start_run(store, settings, "rescore", request, title=title, judge_spec=run.judge_spec)
    if request.held_out:
        why = "an edit was scored on them"
        record_opening(store, request, why, run_id=run_id)
    return run_id
