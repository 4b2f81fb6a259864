"""Baseline metrics: which there are, and the start of their computation."""

from __future__ import annotations

from core.errors import NotFoundError, UsageError
from core.projects.access import requires
from core.projects.runs import start_run
from core.projects.views.metrics import MetricsRequest
from core.settings import Settings
from core.store.store import Store

_TITLED = 4


@requires("reviewer", "computed metrics")
def start_metrics(store: Store, settings: Settings, request: MetricsRequest) -> str:
    """Put the computation of metrics in the queue, see to a worker, and return the run's id.

    `run_view(...).outcome` is then a `MetricsView`.  NotFoundError for an unknown project, golden set or aspect,
    UsageError for no name, one that means nothing, or one that comes twice.
    """
    from core.fusion.assistants import make_assistant

    store.projects.get(request.project_id)
    row = store.goldens.get(request.golden_id)
    if request.aspect not in {one.aspect for one in row.aspects}:
        raise NotFoundError(f"{row.name} has no aspect {request.aspect!r}.")
    if not request.names:
        raise UsageError("No metric is chosen; choose at least one.")
    if len(set(request.names)) < len(request.names):
        raise UsageError("Each metric may be named once.")
    golden = store.goldens.load(request.golden_id)
    for name in request.names:
        make_assistant(name, golden=golden, aspect=request.aspect)
    shown = ", ".join(request.names[:_TITLED]) + (" …" if len(request.names) > _TITLED else "")
    return start_run(store, settings, "metrics", request, title=f"metrics · {row.name} · {shown}", judge_spec=shown)
