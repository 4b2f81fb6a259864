"""Judges of a project, to be compared: what runs left, what came in files, and baseline metrics entered as judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from core.data.split import text_digest
from core.errors import UsageError
from core.metrics import MetricScores, as_judge, kept, make_metric, score_or_reason
from core.progress import Stage
from core.projects.judge_files import JudgeFile
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.runs import RunWork, start_run
from core.records import JudgeScores
from core.settings import Settings
from core.store.store import Store

if TYPE_CHECKING:
    from core.data.recordings import Recording
    from core.data.verdict_imports import ImportChoices, ImportPreview

_LONGEST_NAME = 120

_LEAST_ALIKE = 10
"""Texts on which verdicts have to equal those of a judge before they count as its own."""


@requires("reviewer", "added a judge")
def add_judge(
    store: Store,
    project_id: str,
    golden_id: str,
    judge: JudgeScores,
    replies: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Enter a judge with its scores, and its replies by item id where there are any; returns its id.

    The same judge a second time changes nothing.  NotFoundError for an unknown project, golden set or aspect,
    UsageError for an empty name.
    """
    store.projects.get(project_id)
    require_aspect(store, golden_id, judge.aspect)
    _check_name(judge.name)
    return store.judges.add(project_id, golden_id, judge, replies)


@requires("reviewer", "renamed a judge")
def rename_judge(store: Store, project_id: str, judge_id: str, name: str) -> None:
    """NotFoundError for an unknown id, UsageError for an empty or endless name."""
    _check_name(name)
    store.judges.rename(project_id, judge_id, name.strip())


@requires("reviewer", "removed a judge")
def remove_judge(store: Store, project_id: str, judge_id: str) -> None:
    """Remove a judge; a run that made it stays."""
    store.judges.remove(project_id, judge_id)


# ── files of replies or scores ───────────────────────────────────────────────────────────────────────────────


@requires("reviewer", reads=True)
def read_recording(store: Store, data: bytes, name: str, *, max_mb: float) -> Recording:
    """A file of replies or scores that somebody sent; its table is read as `core.data.read_upload`.

    GoldenError for a file that cannot be read.
    """
    from core.data import read_upload
    from core.data.recordings import MAX_ROWS, load_recording
    from core.data.sources import LIMITS

    most = max(MAX_ROWS, LIMITS.items)
    return load_recording(data, name, max_mb=max_mb, max_rows=most, read=read_upload)


@requires("reviewer", reads=True)
def preview_import(
    store: Store,
    golden_id: str,
    aspect: str,
    file: bytes | Recording,
    name: str = "",
    *,
    choices: ImportChoices | None = None,
    max_mb: float = 200,
) -> ImportPreview:
    """How a file would come in as a judge of `aspect`; nothing is stored.

    `file` is its content (then `name` gives its ending) or what `load_recording` made of it.  NotFoundError for an
    unknown golden set, GoldenError for a file that cannot be read, AspectError and UsageError as
    `core.data.verdict_imports`.
    """
    from core.data.verdict_imports import match
    from core.judging.parse import read_rating

    golden = store.goldens.load(golden_id)
    recording = read_recording(store, file, name, max_mb=max_mb) if isinstance(file, bytes) else file
    return match(recording, golden, aspect, choices, read_reply=read_rating)


@requires("reviewer")
def import_judge(store: Store, project_id: str, preview: ImportPreview, name: str) -> str:
    """Enter what a person was shown as a judge called `name`, with its replies; returns the judge's id.

    The same file with the same choices makes one judge, whatever the name.  A file of the verdicts of a judge of this
    project has seen the labels that it has.  UsageError for a preview with problems or an empty name, NotFoundError for
    an unknown project.
    """
    store.projects.get(project_id)
    judge, replies = preview.as_judge(name)
    return add_judge(store, project_id, preview.golden_id, _with_seen(store, project_id, preview, judge), replies)


def _with_seen(store: Store, project_id: str, preview: ImportPreview, judge: JudgeScores) -> JudgeScores:
    """With the labels that a judge of the project saw, where these are its verdicts, as texts and scores tell."""
    digests = [text_digest(item) for item in store.goldens.load(preview.golden_id).items]
    for entry in reversed(store.judges.all(project_id, None, judge.aspect)):
        if entry.judge.kind == "imported" or not entry.judge.seen:
            continue
        theirs = [text_digest(item) for item in store.goldens.load(entry.golden_id).items]
        scores = dict(zip(theirs, entry.judge.upward.tolist(), strict=True))
        kept = np.array([scores.get(digest, np.nan) for digest in digests])
        both = ~np.isnan(kept) & ~np.isnan(judge.upward)
        if both.sum() < _LEAST_ALIKE or np.ptp(kept[both]) == 0 or not np.allclose(kept[both], judge.upward[both]):
            continue
        met = {theirs[k] for k in entry.judge.seen}
        seen = tuple(k for k, digest in enumerate(digests) if digest in met)
        return replace(judge, seen=seen, note=f"{judge.note} These are the verdicts of {entry.name}.".strip())
    return judge


def _check_name(name: str) -> None:
    if not name.strip():
        raise UsageError("A judge needs a name, so that people can tell it from others.")
    if len(name) > _LONGEST_NAME:
        raise UsageError(f"The judge's name has {len(name)} characters; at most {_LONGEST_NAME} are shown.")


# ── baseline metrics, each entered as a judge ────────────────────────────────────────────────────────────────────

_TITLED = 4


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """Compute the metrics `names` (see `core.metrics`) for all items of a golden set.

    A metric reads the texts and not the labels, so its scores serve every aspect: with `every_aspect` one judge is
    entered for each labelled aspect, else for `aspect` alone.  `files` are fitted RepEval scores, each a judge of
    `aspect`.
    """

    project_id: str
    golden_id: str
    aspect: str
    names: tuple[str, ...] = ()
    every_aspect: bool = True
    files: tuple[JudgeFile, ...] = ()


@dataclass(frozen=True)
class MetricsResult:
    """Name → the judge entered for the aspect asked for; name → the reason, in words, where there is none.

    `aspects` are those for which judges were entered; those in `of_one` rate the aspect asked for alone.
    """

    judges: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    aspects: tuple[str, ...] = ()
    of_one: tuple[str, ...] = ()


@requires("reviewer", "computed metrics")
def start_metrics(store: Store, settings: Settings, request: MetricsRequest) -> str:
    """Start the computation of metrics (`start_run`).

    NotFoundError for an unknown golden set or aspect, UsageError for no name, an unknown or a repeated one; errors of
    the files as `JudgeFile.opened`.
    """
    summary, _ = require_aspect(store, request.golden_id, request.aspect)
    names = (*request.names, *(file.name for file in request.files))
    if not names:
        raise UsageError("No metric is chosen; choose at least one.")
    if len(set(names)) < len(names):
        raise UsageError("Each metric may be named once.")
    for file in request.files:
        _check_name(file.name)
        file.opened(settings)
    golden = store.goldens.load(request.golden_id)
    for name in request.names:
        make_metric(name, golden=golden)
    shown = ", ".join(names[:_TITLED]) + (" …" if len(names) > _TITLED else "")
    return start_run(store, settings, "metrics", request, title=f"metrics · {summary.name} · {shown}", judge_spec=shown)


def names_a_model(request: MetricsRequest) -> bool:
    """Whether a metric is a model that runs in the worker."""
    return any(":" in name.removeprefix("hf:") for name in request.names) or any(file.model for file in request.files)


def run_metrics(work: RunWork) -> MetricsResult:
    """Score metric by metric; one that fails is left out with its reason, and the others go on.

    What a metric gave is kept by the content of its items, so that another attempt, or run, finds it.
    """
    request, items = work.request(MetricsRequest), work.golden.items
    expected = len(items) * (len(request.names) + len(request.files))
    labelled = [name for name, labels in work.golden.aspects.items() if labels.n_labelled and request.every_aspect]
    aspects = tuple(dict.fromkeys((request.aspect, *labelled)))
    files = {file.name: file.opened(work.settings) for file in request.files}
    metrics = {name: make_metric(name, golden=work.golden) for name in request.names}
    metrics |= {name: file.metric for name, file in files.items()}
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
    of_one = tuple(name for name in scored if name in files)
    entered = {}
    for name, scores in scored.items():
        for aspect in (request.aspect,) if name in of_one else aspects:
            file = files.get(name)
            judge = file.as_judge(scores, work.golden, aspect) if file else as_judge(metrics[name], scores, aspect)
            judge_id = work.add_judge(judge)
            if aspect == request.aspect:
                entered[name] = judge_id
    return MetricsResult(entered, left_out, aspects, of_one)
