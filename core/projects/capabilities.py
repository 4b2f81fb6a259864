"""What a kind of run wants of a worker, and what a worker can do."""

from __future__ import annotations

from core.errors import ConcordError
from core.jobs.routing import Wants
from core.projects.convert import request_of
from core.projects.views.metrics import MetricsRequest
from core.projects.views.repeval import RepEvalRequest
from core.repeval.states import EMBEDDED
from core.settings import Settings
from core.store.rows import RunRow

_MODEL_KINDS = ("repeval", "metrics")  # only their requests name models that run in the worker


def wants_of(run: RunRow) -> Wants:
    """ "gpu" for a run whose work is a model in the worker: RepEval with any but the embedded encoder or with a device
    asked for, and metrics that name a model.  "any" for all others: their models are behind an endpoint or small.
    """
    if run.kind not in _MODEL_KINDS:
        return "any"
    try:
        request = request_of(run)
    except (ConcordError, TypeError, ValueError, KeyError, AttributeError):  # of another version: its worker says so
        return "any"
    if isinstance(request, RepEvalRequest):
        model = request.model
        wanted = model.device in ("cuda", "mps") or (model.name != EMBEDDED and model.device != "cpu")
    else:
        wanted = isinstance(request, MetricsRequest) and any(":" in name.removeprefix("hf:") for name in request.names)
    return "gpu" if wanted else "any"


def capability_of(settings: Settings) -> str:
    """What `settings` say this worker can do, else what its machine shows: cuda, mps, gpu or cpu."""
    if settings.capability:
        return settings.capability
    from core.repeval.states.devices import find_capability

    return find_capability()
