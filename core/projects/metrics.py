"""Baseline metrics over a golden set, each entered as a judge: what is asked for, the start, the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.errors import ConcordError, JobError, StoreError, UsageError
from core.fusion.assistants import Assistant, AssistantScores, kept, make_assistant, unusable
from core.progress import Stage
from core.projects.access import requires
from core.projects.goldens import require_aspect
from core.projects.runs import start_run
from core.records import JudgeScores
from core.settings import Settings
from core.store.store import Store

if TYPE_CHECKING:
    from core.projects.work import RunWork

_TITLED = 4


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """Compute the assistants `names` (see `core.fusion.assistants`) for all items of a golden set.

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
        make_assistant(name, golden=golden, aspect=request.aspect)
    shown = ", ".join(request.names[:_TITLED]) + (" …" if len(request.names) > _TITLED else "")
    return start_run(store, settings, "metrics", request, title=f"metrics · {summary.name} · {shown}", judge_spec=shown)


def names_a_model(request: MetricsRequest) -> bool:
    """Whether a metric is a model that runs in the worker."""
    return any(":" in name.removeprefix("hf:") for name in request.names)


def run_metrics(work: RunWork) -> MetricsResult:
    """Score metric by metric; one that fails is left out with its reason, and the others go on.

    Left out are metrics whose needs no item meets, that fail, or that give nothing or one number throughout.  What a
    metric gave is kept by the content of its items, so that another attempt, or run, finds it.
    """
    request, golden = work.request(MetricsRequest), work.golden
    assistants = {
        name: kept(make_assistant(name, golden=golden, aspect=request.aspect), work.store.blocks)
        for name in request.names
    }
    scores: dict[str, AssistantScores] = {}
    left_out: dict[str, str] = {}
    n_items = len(golden.items)
    expected = n_items * len(assistants)
    for number, (name, assistant) in enumerate(assistants.items()):
        work.progress.publish(Stage("metrics", name, number * n_items, expected))
        reason, scored = _scored(work, assistant)
        if scored is None:
            left_out[name] = reason
        else:
            scores[name] = scored
    work.progress.publish(Stage("done", "done", expected, expected))
    aspects = _aspects(work, request)
    entered = {}
    for name, scored in scores.items():
        for aspect in (request.aspect,) if _asks_about_an_aspect(name) else aspects:
            judge_id = work.add_judge(judge_of(assistants[name], scored, aspect))
            if aspect == request.aspect:
                entered[name] = judge_id
    return MetricsResult(entered, left_out, aspects)


def _scored(work: RunWork, assistant: Assistant) -> tuple[str, AssistantScores | None]:
    """The metric's scores over all items, or the reason why they cannot serve."""
    items, watch = work.golden.items, _Watch(work.progress.advance)
    if reason := assistant.missing(work.golden):
        return reason, None
    try:
        scores = assistant.score(items, watch)
    except Exception as error:  # one metric must not end the others; its reason is kept
        if watch.interrupted or isinstance(error, (JobError, StoreError)):
            raise
        return _reason(error), None
    if scores.values.shape != (len(items),):
        return f"it returned numbers of shape {scores.values.shape} for {len(items)} items", None
    reason = unusable(scores)
    return reason, None if reason else scores


def _aspects(work: RunWork, request: MetricsRequest) -> tuple[str, ...]:
    if not request.every_aspect:
        return (request.aspect,)
    labelled = (name for name, labels in work.golden.aspects.items() if labels.n_labelled)
    return tuple(dict.fromkeys((request.aspect, *labelled)))


def _asks_about_an_aspect(name: str) -> bool:
    """UniEval asks about the one aspect; every other metric knows none."""
    return name.removeprefix("hf:").startswith("unieval:")


def judge_of(assistant: Assistant, scores: AssistantScores, aspect: str) -> JudgeScores:
    """The metric as a judge of `aspect`.

    It names no run: the same metric computed again is the same judge.
    """
    return JudgeScores(
        name=assistant.name,
        kind="metric",
        aspect=aspect,
        values=scores.values,
        unscored=scores.unscored,
        on_scale=False,
        higher_is_better=assistant.higher_is_better,
        note=f"{assistant.measures} {scores.note}".strip(),
        calls_per_item=0.0,
    )


class _Watch:
    """Progress, and whether an error came from the run (cancelled, say) and not from the metric."""

    def __init__(self, on_progress: Callable[[int, int], None]) -> None:
        self._on_progress = on_progress
        self.interrupted = False

    def __call__(self, done: int, asked: int) -> None:
        try:
            self._on_progress(done, asked)
        except BaseException:
            self.interrupted = True
            raise


def _reason(error: Exception) -> str:
    if isinstance(error, ConcordError):
        return str(error)
    said = " ".join(str(error).split())[:200]
    return f"it failed: {type(error).__name__}{': ' + said if said else ''}"
