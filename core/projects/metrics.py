"""Baseline metrics over a golden set, each entered as a judge: what is asked for, the start, the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from core.errors import UsageError
from core.metrics import MetricScores, as_judge, kept, make_metric, score_or_reason
from core.progress import Stage
from core.projects.access import requires
from core.projects.project_list import require_aspect
from core.projects.runs import RunWork, start_run
from core.settings import Settings
from core.store.store import Store

_TITLED = 4


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """Compute the metrics `names` (see `core.metrics`) for all items of a golden set.

    A metric reads the texts and not the labels, so its scores serve every aspect: with `every_aspect` one judge is
    entered for each labelled aspect, else for `aspect` alone.
    """

    project_id: str
    golden_id: str
    aspect: str
    names: tuple[str, ...]
    every_aspect: bool = True


@dataclass(frozen=True)
class MetricsResult:
    """Name → the judge entered for the aspect asked for; name → the reason, in words, where there is none.

    `aspects` are those for which judges were entered.
    """

    judges: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    aspects: tuple[str, ...] = ()


@requires("reviewer", "computed metrics")
def start_metrics(store: Store, settings: Settings, request: MetricsRequest) -> str:
    """Put the computation of metrics in the queue, see to a worker, and return the run's id.

    `run_view(...).outcome` is then a `MetricsResult`.  NotFoundError for an unknown project, golden set or aspect,
    UsageError for no name, one that means nothing, or one that comes twice.
    """
    store.projects.get(request.project_id)
    summary, _ = require_aspect(store, request.golden_id, request.aspect)
    if not request.names:
        raise UsageError("No metric is chosen; choose at least one.")
    if len(set(request.names)) < len(request.names):
        raise UsageError("Each metric may be named once.")
    golden = store.goldens.load(request.golden_id)
    for name in request.names:
        make_metric(name, golden=golden, aspect=request.aspect)
    shown = ", ".join(request.names[:_TITLED]) + (" …" if len(request.names) > _TITLED else "")
    return start_run(store, settings, "metrics", request, title=f"metrics · {summary.name} · {shown}", judge_spec=shown)


def names_a_model(request: MetricsRequest) -> bool:
    """Whether a metric is a model that runs in the worker."""
    return any(":" in name.removeprefix("hf:") for name in request.names)


def run_metrics(work: RunWork) -> MetricsResult:
    """Score metric by metric; one that fails is left out with its reason, and the others go on.

    What a metric gave is kept by the content of its items, so that another attempt, or run, finds it.
    """
    request, items = work.request(MetricsRequest), work.golden.items
    expected, aspects = len(items) * len(request.names), _aspects(work, request)
    metrics = {name: make_metric(name, golden=work.golden, aspect=request.aspect) for name in request.names}
    scored: dict[str, MetricScores] = {}
    left_out: dict[str, str] = {}
    for number, (name, metric) in enumerate(metrics.items()):
        work.progress.publish(Stage("metrics", name, number * len(items), expected))
        scores = score_or_reason(kept(metric, work.store.blocks), items, work.progress.advance)
        if isinstance(scores, str):
            left_out[name] = scores
        else:
            scored[name] = scores
    work.progress.publish(Stage("done", "done", expected, expected))
    entered = {}
    for name, scores in scored.items():
        for aspect in (request.aspect,) if _asks_about_an_aspect(name) else aspects:
            judge_id = work.add_judge(as_judge(metrics[name], scores, aspect))
            if aspect == request.aspect:
                entered[name] = judge_id
    return MetricsResult(entered, left_out, aspects)


def _aspects(work: RunWork, request: MetricsRequest) -> tuple[str, ...]:
    if not request.every_aspect:
        return (request.aspect,)
    labelled = (name for name, labels in work.golden.aspects.items() if labels.n_labelled)
    return tuple(dict.fromkeys((request.aspect, *labelled)))


def _asks_about_an_aspect(name: str) -> bool:
    """UniEval asks about the one aspect; every other metric knows none."""
    return name.removeprefix("hf:").startswith("unieval:")
