"""Judges of a project, to be compared: as screens show them, what came in files, and metrics entered as judges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.calibration.calibration_records import Calibration
from core.data.split import KnownTexts, text_digest
from core.errors import UsageError
from core.metrics import Metric, MetricScores, as_judge, kept, make_metric, score_or_reason
from core.progress import Stage
from core.project_records import JUDGES, GoldenSummary, JudgeEntry
from core.projects.judge_line import JudgeLine, JudgeVersion, compared_before, judge_line
from core.projects.labelling import rated_in
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.run_work import RunWork, list_held_out_accesses, load_calibration, start_run
from core.records import GoldenSet, JudgeScores, Measure, Scale
from core.settings import Settings
from core.store.store import Store
from core.wording import number

if TYPE_CHECKING:
    from core.data.reply_files import Recording
    from core.data.verdict_imports import ImportChoices, ImportPreview

_LONGEST_NAME = 120
_LEAST_ALIKE = 10
"""Texts on which verdicts have to equal those of a judge before they count as its own."""
_MADE_NAME = re.compile(r" · (calibrated|version \d+)$")
"""How a run names its judge; what is called otherwise, somebody renamed."""


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


def _check_name(name: str) -> None:
    if not name.strip():
        raise UsageError("A judge needs a name.")
    if len(name) > _LONGEST_NAME:
        raise UsageError(f"The judge's name has {len(name)} characters; at most {_LONGEST_NAME} are shown.")


# ── as screens show them ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class JudgesShown:
    """`entries`: judges that are no version of the judge, and one version of it; oldest first, versions named so.

    `version` is the one among them (None where none was measured on this golden set), `own` its judge's id, `baseline`
    the id of the same judge without criteria ("" where it is not here).  `aside` are the other versions, and the
    judges without criteria of their calibrations.  `looks`: how often the held-out items were looked
    at.  `no_p`: why no comparison with ours on them is tested.  `rated_in`: the labelling pass that ceiling and
    annotator test are of, "" for the file.
    """

    line: JudgeLine
    entries: tuple[JudgeEntry, ...]
    aside: tuple[JudgeEntry, ...] = ()
    version: JudgeVersion | None = None
    own: str = ""
    baseline: str = ""
    looks: int = 0
    no_p: str = ""
    rated_in: str = ""

    @property
    def measure(self) -> Measure | None:
        """What the judge in use was measured by; None without one."""
        version = self.line.default or self.version
        newest = None if version is None else version.newest
        return None if newest is None else Measure(newest.calibration.statistic, newest.calibration.level)


def judges_shown(store: Store, project_id: str, golden_id: str, aspect: str) -> JudgesShown:
    """The judges of an aspect of a golden set, with the version in use in place of all versions.

    Where that was not measured on this golden set the newest version that was stands for it, a retired one last.
    """
    line, rated = judge_line(store, project_id, aspect), rated_in(store, project_id, golden_id, aspect)
    of_version: dict[str, JudgeVersion] = {}
    entries = []
    for entry in store.judges.all(project_id, golden_id, aspect):
        judge, version = entry.judge, line.of_run(entry.judge.run_id) if entry.judge.run_id else None
        if version is not None and judge.kind == "calibrated":
            of_version[entry.judge_id] = version
            named = version.label.capitalize() if _MADE_NAME.search(entry.name) else f"{entry.name}, {version.label}"
            judge = replace(judge, name=named)
        entries.append(replace(entry, judge=judge))
    if not of_version:
        return JudgesShown(line, tuple(entries), rated_in=rated)
    shown = max(of_version.values(), key=lambda version: (version.state != "retired", version.number))
    if line.default in of_version.values() and line.default is not None:
        shown = line.default
    # its judge is that of its last measurement here, of an earlier one where that was removed
    measured = shown.on(golden_id)
    ours = [entry for entry in entries if of_version.get(entry.judge_id) == shown]
    last = [entry for entry in ours if measured is not None and entry.judge.run_id == measured.run_id]
    own = (last or ours)[-1].judge_id
    # of the judges without criteria that runs of the line left, the one of its calibration, else of its measurement
    runs = {entry.run_id for version in line.versions for entry in version.measured}
    runs |= {version.made.base_run for version in line.versions}
    bare = [entry for entry in entries if entry.judge.kind == "no criteria" and entry.judge.run_id in runs]
    left_by = (shown.made.base_run, measured.run_id if measured is not None else "")
    baseline = next((entry.judge_id for run_id in left_by for entry in bare if entry.judge.run_id == run_id), "")
    aside = of_version.keys() - {own}
    if baseline:
        aside |= {entry.judge_id for entry in bare} - {baseline}
    accesses = list_held_out_accesses(store, project_id, golden_id, aspect)
    return JudgesShown(
        line,
        tuple(entry for entry in entries if entry.judge_id not in aside),
        tuple(entry for entry in entries if entry.judge_id in aside),
        shown,
        own,
        baseline,
        len(accesses),
        compared_before(line, golden_id, accesses, before=measured.number if measured else None),
        rated,
    )


def as_compared(store: Store, project_id: str, entries: Sequence[JudgeEntry]) -> list[JudgeScores]:
    """What `entries` gave, a calibrated judge with its scores mapped to the raters' scale as well.

    A judge whose run asked no model costs no call, whatever judges of its make do.
    """
    free = {run.run_id for run in store.runs.all(project_id) if not (run.usage.requests or run.usage.cached)}
    judges = []
    for entry in entries:
        judge, made = entry.judge, calibration_behind(store, project_id, entry.judge_id)
        if judge.run_id in free:
            judge = replace(judge, calls_per_item=0.0)
        if made is not None and made.score_map is not None:
            judge = replace(judge, mapped=made.score_map.apply(judge.values))
        judges.append(judge)
    return judges


def calibration_behind(store: Store, project_id: str, judge_id: str) -> Calibration | None:
    """What made a calibrated judge, with its own map and intervals; None for others, an ablation's variants too."""
    judge = store.judges.get(project_id, judge_id).judge
    if judge.kind != "calibrated" or not judge.run_id or store.runs.get(judge.run_id).kind not in JUDGES:
        return None
    return load_calibration(store, judge.run_id)


# ── files of replies or scores ───────────────────────────────────────────────────────────────────────────────


@requires("reviewer", reads=True)
def read_recording(store: Store, data: bytes, name: str, *, max_mb: float) -> Recording:
    """A file of replies or scores that somebody sent; its table is read as `core.data.read_upload`.

    GoldenError for a file that cannot be read.
    """
    from core.data import read_upload
    from core.data.reply_files import MAX_ROWS, load_recording
    from core.data.tables import LIMITS

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
    project, as texts and scores show, has seen the labels that it has.  UsageError for a preview with problems or an
    empty name, NotFoundError for an unknown project.
    """
    store.projects.get(project_id)
    judge = preview.as_judge(name)
    digests = [text_digest(item) for item in store.goldens.load(preview.golden_id).items]
    for entry in reversed(store.judges.all(project_id, None, judge.aspect)):
        if entry.judge.kind == "imported" or not entry.judge.seen:
            continue
        theirs = [text_digest(item) for item in store.goldens.load(entry.golden_id).items]
        scores = dict(zip(theirs, entry.judge.upward.tolist(), strict=True))
        known = np.array([scores.get(digest, np.nan) for digest in digests])
        both = ~np.isnan(known) & ~np.isnan(judge.upward)
        varied = both.sum() >= _LEAST_ALIKE and np.ptp(known[both]) > 0
        if varied and np.allclose(known[both], judge.upward[both]):
            met = {theirs[k] for k in entry.judge.seen}
            seen = tuple(k for k, digest in enumerate(digests) if digest in met)
            judge = replace(judge, seen=seen, note=f"{judge.note} These are the verdicts of {entry.name}.".strip())
            break
    return add_judge(store, project_id, preview.golden_id, judge, preview.replies)


# ── fitted RepEval scores (`repeval.yaml`) that people bring to Compare ──────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RepEvalFile:
    """A `repeval.yaml` as `text`, to be a judge called `name`.

    `model` is what a person named as the place of its model, ID_OR_PATH, and allowed with that; "" for the embedded one
    and for those that the installation lists.
    """

    name: str
    text: str
    model: str = ""

    @property
    def card(self) -> Mapping[str, Any]:
        """The checked content.  JudgeError for a damaged or edited file."""
        from core.judge_files.judge_reading import card_of_text

        return card_of_text(self.text, self.name, "repeval")

    @property
    def fitted_with(self) -> str:
        """The model whose hidden states it projects; `EMBEDDED` comes with Concord."""
        return str(self.card["scorer"]["model"])

    @property
    def words(self) -> str:
        """On what it was fitted, and how it aligned there."""
        card, told = self.card, self.card["alignment"]
        value = "undefined" if told["value"] is None else number(told["value"], 3)
        ends = f" [{number(told['interval'][0], 3)}, {number(told['interval'][1], 3)}]" if told.get("interval") else ""
        where = f"Fitted on {card['task']['aspect']} of {card['golden']['name']} by {card['method']}."
        stood = f"{told['statistic']} {value}{ends}, {told['level']} level, n = {told['n']}"
        return f"{where} On unseen items of it: {stood}."

    def differences(self, golden: GoldenSummary, aspect: str) -> list[str]:
        """What sets `golden` apart from what it was fitted on, in sentences."""
        from core.repeval.fitted import differences

        card, ours = self.card, golden.aspect(aspect)
        assert ours is not None
        task, scale = card["task"], Scale(*(card["task"]["scale"][end] for end in ("low", "high", "step")))
        theirs = (card["golden"]["name"], task["kind"], task["aspect"], scale)
        return differences((golden.name, golden.kind, aspect, ours.scale), theirs)

    def metric(self, settings: Settings) -> Metric:
        """What rates by the file; no model is loaded.  ConsentError where nobody has allowed its model."""
        from core.judge_files.loaded import repeval_judge

        judge = repeval_judge(self.card, f"hf:{self.model}" if self.model else None, settings, where=self.name)
        if judge.refusal is not None:
            raise judge.refusal
        return judge.metric

    def as_judge(self, metric: Metric, scores: MetricScores, golden: GoldenSet, aspect: str) -> JudgeScores:
        """As a judge of `aspect`; it saw the labels of the items whose texts it was fitted on."""
        card = self.card
        fitted_on = set(KnownTexts.from_json(card["texts"]).calibration)
        seen = tuple(k for k, item in enumerate(golden.items) if text_digest(item) in fitted_on)
        where = f"{card['task']['aspect']} of {card['golden']['name']}"
        note = f"RepEval, {card['method']}, fitted on {where}. {metric.measures}"
        return replace(as_judge(metric, scores, aspect), name=self.name, kind="repeval", seen=seen, note=note)


# ── metrics, each entered as a judge ─────────────────────────────────────────────────────────────────────────


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
    files: tuple[RepEvalFile, ...] = ()

    @property
    def names_a_model(self) -> bool:
        """Whether a metric is a model that runs in the worker."""
        return any(":" in name.removeprefix("hf:") for name in self.names) or any(file.model for file in self.files)


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
    the files as `RepEvalFile.metric`.
    """
    summary, _ = require_aspect(store, request.golden_id, request.aspect)
    names = (*request.names, *(file.name for file in request.files))
    if not names:
        raise UsageError("No metric is chosen; choose at least one.")
    if len(set(names)) < len(names):
        raise UsageError("Each metric may be named once.")
    for file in request.files:
        _check_name(file.name)
        file.metric(settings)
    golden = store.goldens.load(request.golden_id)
    for name in request.names:
        make_metric(name, golden=golden)
    shown = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
    return start_run(store, settings, "metrics", request, title=f"metrics · {summary.name} · {shown}", judge_spec=shown)


def run_metrics(work: RunWork) -> MetricsResult:
    """Score metric by metric; one that fails is left out with its reason, and the others go on.

    What a metric gave is cached by the content of its items, so that another attempt, or run, finds it.
    """
    request, golden = work.request(MetricsRequest), work.golden
    files = {file.name: file for file in request.files}
    metrics = {name: make_metric(name, golden=golden) for name in request.names}
    metrics |= {name: file.metric(work.settings) for name, file in files.items()}
    expected = len(golden.items) * len(metrics)
    scored: dict[str, MetricScores] = {}
    left_out: dict[str, str] = {}
    for number_done, (name, metric) in enumerate(metrics.items()):
        work.progress.publish(Stage("metrics", name, number_done * len(golden.items), expected))
        scores = score_or_reason(kept(metric, work.store.blocks), golden.items, work.progress.advance)
        if isinstance(scores, str):
            left_out[name] = scores
        else:
            scored[name] = scores
    work.progress.publish(Stage("done", "done", expected, expected))
    labelled = [name for name, labels in golden.aspects.items() if labels.n_labelled and request.every_aspect]
    aspects = tuple(dict.fromkeys((request.aspect, *labelled)))
    entered = {}
    for name, scores in scored.items():
        if name in files:
            entered[name] = work.add_judge(files[name].as_judge(metrics[name], scores, golden, request.aspect))
            continue
        ids = [work.add_judge(as_judge(metrics[name], scores, aspect)) for aspect in aspects]
        entered[name] = ids[0]
    return MetricsResult(entered, left_out, aspects, tuple(name for name in scored if name in files))
