"""Manage the judges of a project: calibrated, uploaded, computed by metrics, or fused from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from core.calibration.calibration_records import Calibration
from core.data.split import text_digest
from core.errors import NotFoundError, UsageError
from core.fusion.fusion_settings import FusionEstimate, FusionRequest, FusionRunView, FusionSettings
from core.fusion.stack import seen_sources
from core.metrics import as_judge, kept, make_metric, readable, score_or_reason
from core.progress import Stage
from core.project_records import JUDGES, JudgeEntry
from core.projects.judge_line import JudgeLine, JudgeVersion, compared_before, judge_line
from core.projects.project_list import require_aspect
from core.projects.start_and_resume import KINDS, Kind, RunWork, list_held_out_accesses, load_calibration
from core.records import Alignment, GoldenSet, IntArray, JudgeScores, Measure
from core.settings import Settings
from core.store.log import Entry
from core.store.runs import RESULT
from core.store.store import Store, requires

if TYPE_CHECKING:
    from core.data.judge_results import ImportPreview
    from core.fusion.model_rating import FusionJudge
    from core.fusion.stack import Fusion

LEAST_ALIKE = 10
"""Minimum number of equal verdicts before an uploaded file counts as the same judge."""


@requires("reviewer", "added a judge")
def add_judge(
    store: Store,
    project_id: str,
    golden_id: str,
    judge: JudgeScores,
    replies: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Add a judge with its scores and replies (item id → replies), and return its id.

    Adding the same judge again changes nothing.

    Raises:
        NotFoundError: The golden set or aspect is unknown.
        UsageError: The judge's name is empty.
    """
    require_aspect(store, golden_id, judge.aspect)
    if not judge.name.strip():
        raise UsageError("The judge has no name. Enter a name.")
    return store.judges.add(project_id, golden_id, judge, replies)


@requires("reviewer", "removed a judge")
def remove_judge(store: Store, project_id: str, judge_id: str) -> None:
    """Delete a judge, but not the run that made it."""
    store.judges.remove(project_id, judge_id)


# ── for comparison ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class JudgesShown:
    """The judges of an aspect on a golden set, with only one version of the calibrated judge for comparisons.

    Attributes:
        line: All versions of the calibrated judge.
        entries: Judges to compare.
        aside: Judges not to compare: other versions of the calibrated judge, and their baselines.
        version: The version of the calibrated judge in `entries`; None if none was measured on this golden set.
        own: Judge id of `version`; "" if there is no version.
        baseline: Judge id of the baseline (the judge without criteria) of `version`; "" if there is none.
        no_p: For `version` and newer versions, maps the judge id to the reason why its comparisons have no p value; ""
            if they have one.
    """

    line: JudgeLine
    entries: tuple[JudgeEntry, ...]
    aside: tuple[JudgeEntry, ...] = ()
    version: JudgeVersion | None = None
    own: str = ""
    baseline: str = ""
    no_p: Mapping[str, str] = field(default_factory=dict)

    @property
    def measure(self) -> Measure | None:
        """The statistic and level of the default version; None if it was never measured."""
        version = self.line.default or self.version
        newest = None if version is None else version.newest
        return None if newest is None else Measure(newest.calibration.statistic, newest.calibration.level)


def judges_shown(store: Store, project_id: str, golden_id: str, aspect: str) -> JudgesShown:
    """Return the judges of an aspect on a golden set, with only one version of the calibrated judge.

    Only versions measured on the golden set are considered. The default version is chosen if possible, otherwise the
    newest version that is not retired, otherwise the newest.
    """
    line = judge_line(store, project_id, aspect)
    of_version: dict[str, JudgeVersion] = {}
    entries = []
    for entry in store.judges.all(project_id, golden_id, aspect):
        judge, version = readable(entry.judge), line.of_run(entry.judge.run_id) if entry.judge.run_id else None
        if version is not None and judge.kind == "calibrated":
            of_version[entry.judge_id] = version
            judge = replace(judge, name=version.label.capitalize())
        entries.append(replace(entry, judge=judge))
    if not of_version:
        return JudgesShown(line, tuple(entries))
    shown = max(of_version.values(), key=lambda each: (each == line.default, each.state != "retired", each.number))
    measured = shown.on(golden_id)
    newest = {version.number: judge_id for judge_id, version in of_version.items()}
    own = newest[shown.number]
    # the baseline of the measurement (which may use another model), else that of the calibration
    runs = {entry.run_id for version in line.versions for entry in version.measured}
    runs |= {version.made.base_run for version in line.versions}
    bare = {
        entry.judge.run_id: entry.judge_id
        for entry in entries
        if entry.judge.kind == "no criteria" and entry.judge.run_id in runs
    }
    baseline = bare.get(measured.run_id if measured else "") or bare.get(shown.made.base_run, "")
    aside = {*of_version, *(bare.values() if baseline else ())} - {own, baseline}
    accesses = list_held_out_accesses(store, project_id, golden_id, aspect)
    no_p = {
        newest[version.number]: compared_before(
            line, golden_id, accesses, before=last.number if (last := version.on(golden_id)) else None
        )
        for version in of_version.values()
        if version == shown or (version.number > shown.number and version.state != "retired")
    }
    return JudgesShown(
        line,
        tuple(entry for entry in entries if entry.judge_id not in aside),
        tuple(entry for entry in entries if entry.judge_id in aside),
        shown,
        own,
        baseline,
        no_p,
    )


def as_compared(store: Store, project_id: str, entries: Sequence[JudgeEntry]) -> list[JudgeScores]:
    """Return the scores of judges, mapped to the raters' scale for calibrated judges.

    A judge counts as free if its run called no language model.
    """
    free = {run.run_id for run in store.runs.all(project_id) if not (run.usage.requests or run.usage.cached)}
    judges = []
    for entry in entries:
        judge, made = entry.judge, calibration_of(store, project_id, entry.judge_id)
        if judge.run_id in free:
            judge = replace(judge, calls_per_item=0.0)
        if made is not None and made.score_map is not None:
            judge = replace(judge, mapped=made.score_map.apply(judge.values))
        judges.append(judge)
    return judges


def calibration_of(store: Store, project_id: str, judge_id: str) -> Calibration | None:
    """Return the calibration that made a judge; None for judges that were not calibrated."""
    judge = store.judges.get(project_id, judge_id).judge
    if judge.kind != "calibrated" or not judge.run_id or store.runs.get(judge.run_id).kind not in JUDGES:
        return None
    return load_calibration(store, judge.run_id)


# ── files of replies or scores ─────────────────────────────────────────────────────────────────────────────────


@requires("reviewer")
def import_judge(store: Store, project_id: str, preview: ImportPreview, name: str) -> str:
    """Add an uploaded file (`preview`) as a judge called `name`, with its replies. Return the id of the judge.

    The same file always becomes the same judge, whatever its name. If its verdicts equal those of another judge of this
    project, the uploaded judge counts as having seen the same labels as the other judge.

    Raises UsageError if the name is empty or the preview has problems.
    """
    judge = preview.as_judge(name)
    digests = [text_digest(item) for item in store.goldens.load(preview.golden_id).items]
    for entry in reversed(store.judges.all(project_id, None, judge.aspect)):
        if entry.judge.kind == "imported" or not entry.judge.seen:
            continue
        theirs = [text_digest(item) for item in store.goldens.load(entry.golden_id).items]
        scores = dict(zip(theirs, entry.judge.upward.tolist(), strict=True))
        known = np.array([scores.get(digest, np.nan) for digest in digests])
        both = ~np.isnan(known) & ~np.isnan(judge.upward)
        varied = both.sum() >= LEAST_ALIKE and np.ptp(known[both]) > 0
        if varied and np.allclose(known[both], judge.upward[both]):
            met = {theirs[k] for k in entry.judge.seen}
            seen = tuple(k for k, digest in enumerate(digests) if digest in met)
            judge = replace(
                judge, seen=seen, note=f"{judge.note} These verdicts are identical to those of {entry.name}.".strip()
            )
            break
    return add_judge(store, project_id, preview.golden_id, judge, preview.replies)


# ── metrics as judges ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class MetricsRequest:
    """A request to compute metrics for a golden set, and to add them as judges of every labelled aspect."""

    project_id: str
    golden_id: str
    aspect: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class MetricsResult:
    """The results of a metrics run.

    `judges` maps metrics to judge ids. `left_out` has the reason for each metric that was not added.
    """

    judges: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    aspects: tuple[str, ...] = ()


def _check_metrics(store: Store, settings: Settings, request: MetricsRequest) -> tuple[MetricsRequest, str, str]:
    summary, _ = require_aspect(store, request.golden_id, request.aspect)
    names = request.names
    if not names:
        raise UsageError("Choose at least one metric.")
    golden = store.goldens.load(request.golden_id)
    for name in names:
        make_metric(name, golden=golden)
    shown = ", ".join(names)
    return request, f"metrics · {summary.name} · {shown}", shown


def run_metrics(work: RunWork) -> MetricsResult:
    """Compute each metric, and add it as a judge. A metric that fails is left out, with the reason.

    A resumed run does not compute cached scores again.
    """
    request, golden = work.request(MetricsRequest), work.golden
    expected = len(golden.items) * len(request.names)
    labelled = (name for name, labels in golden.aspects.items() if labels.n_labelled)
    aspects = tuple(dict.fromkeys((request.aspect, *labelled)))
    entered: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for n_done, name in enumerate(request.names):
        work.progress.publish(Stage("metrics", name, n_done * len(golden.items), expected))
        metric = make_metric(name, golden=golden)
        scores = score_or_reason(kept(metric, work.store.blocks), golden.items, work.progress.advance)
        if isinstance(scores, str):
            left_out[name] = scores
        else:
            entered[name], *_ = [work.add_judge(as_judge(metric, scores, aspect)) for aspect in aspects]
    work.progress.publish(Stage("done", "done", expected, expected))
    return MetricsResult(entered, left_out, aspects)


KINDS["metrics"] = Kind(MetricsRequest, MetricsResult, "computed metrics", _check_metrics, run_metrics, lane="model")


# ── fusion without calls ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class FusionKept(Entry):
    """Log entry of a fusion that was saved as a judge. The entry's subject is the judge's id.

    `parts`, `state` (of the estimator) and `told` (the result) are JSON.
    """

    kind = "fusion kept"
    does = "saved a fusion as a judge"
    golden_id: str
    aspect: str
    parts: tuple[Mapping[str, Any], ...]
    state: Mapping[str, Any]
    told: Mapping[str, Any]


def fuse_judges(
    store: Store, project_id: str, golden_id: str, aspect: str, *, judge_ids: Sequence[str], settings: FusionSettings
) -> Fusion:
    """Fuse judges without calling a model, and store nothing.

    Raises:
        NotFoundError: A judge is unknown.
        UsageError: Fewer than two judges are usable, or a judge belongs to another golden set or aspect.
        AspectError: Too few items are new to all of the judges.
    """
    from core.fusion.stack import fuse

    return fuse(*_judges(store, project_id, golden_id, aspect, judge_ids), settings)


@requires("reviewer")
def save_fusion(
    store: Store,
    project_id: str,
    golden_id: str,
    aspect: str,
    *,
    judge_ids: Sequence[str],
    settings: FusionSettings,
    name: str = "",
) -> str:
    """Save a fusion as a judge for comparison and export. Return its id. Raises the same errors as `fuse_judges`."""
    from core.fusion.stack import fuse

    golden, aspect, judges = _judges(store, project_id, golden_id, aspect, judge_ids)
    fusion = fuse(golden, aspect, judges, settings)
    judge = replace(fusion.judge, name=name.strip()[:120] or fusion.judge.name)
    ids = dict(zip((part.name for part in judges), judge_ids, strict=True))
    # everything that is needed to compute the part on other items
    parts = tuple(
        part_facts(part, store.judges.get(project_id, ids[part]).judge, ids[part]) for part in fusion.state["parts"]
    )
    kept = FusionKept(golden_id, aspect, parts, fusion.state, fusion.as_json())

    def keep() -> str:
        judge_id = store.judges.add(project_id, golden_id, judge)
        store.events.add(project_id, replace(kept, subject=judge_id), store.actor)
        return judge_id

    return store.together(keep)


def get_fusion(store: Store, project_id: str, judge_id: str) -> FusionKept:
    """Return the log entry of a saved fusion. Raises NotFoundError if the judge isn't a saved fusion."""
    logged = store.events.all(project_id, FusionKept, judge_id)
    if not logged:
        raise NotFoundError(
            f"The judge {judge_id[:24]!r} isn't a fusion from the Fusion screen. Choose a saved fusion."
        )
    return logged[-1]


def part_facts(name: str, judge: JudgeScores, judge_id: str) -> dict[str, Any]:
    """Return a JSON description of a judge that is part of a fusion. `name` is its name in the fusion."""
    about = {key: getattr(judge, key) for key in ("kind", "run_id", "higher_is_better")}
    return about | {"name": name, "judge_id": judge_id, "metric": judge.name if judge.kind == "metric" else ""}


def _judges(
    store: Store, project_id: str, golden_id: str, aspect: str, judge_ids: Sequence[str]
) -> tuple[GoldenSet, str, list[JudgeScores]]:
    """Load a golden set and judges with readable names.

    Raises UsageError if a judge belongs to another set or aspect.
    """
    rows = [store.judges.get(project_id, judge_id) for judge_id in judge_ids]
    for row in rows:
        if row.golden_id != golden_id or row.judge.aspect != aspect:
            raise UsageError(
                f"{row.judge.name} (aspect: {row.judge.aspect}) belongs to another golden set or aspect. Choose judges "
                "for the same golden set and aspect."
            )
    return store.goldens.load(golden_id), aspect, readable_judges(store, project_id, rows)


def readable_judges(store: Store, project_id: str, entries: Sequence[JudgeEntry]) -> list[JudgeScores]:
    """Return the scores of judges under readable, unique names, such as "Version 2" or "ROUGE-2" (for ``rouge2``)."""
    from core.comparison import unique_names

    lines = {aspect: judge_line(store, project_id, aspect) for aspect in {entry.judge.aspect for entry in entries}}
    judges = []
    for judge in [readable(entry.judge) for entry in entries]:
        version = lines[judge.aspect].of_run(judge.run_id) if judge.kind == "calibrated" and judge.run_id else None
        judges.append(judge if version is None else replace(judge, name=version.name.capitalize()))
    return [replace(judge, name=name) for judge, name in zip(judges, unique_names(judges), strict=True)]


# ── by a model ─────────────────────────────────────────────────────────────────────────────────────────────────


def fusion_inputs(store: Store, request: FusionRequest) -> tuple[GoldenSet, FusionJudge, tuple[int, ...]]:
    """Return the golden set, the `FusionJudge`, and the positions of the items to rate with a language model.

    Raises:
        NotFoundError: The aspect or a judge is unknown.
        UsageError: There are no judges to fuse.
    """
    from core.data.split import task_of, whole_sources
    from core.fusion.model_rating import FusionJudge

    store.projects.get(request.project_id)
    require_aspect(store, request.golden_id, request.aspect)
    where = (request.project_id, request.golden_id, request.aspect)
    golden, aspect, parts = _judges(store, *where, request.judge_ids)
    if not parts:
        raise UsageError("An LLM fusion needs at least one part. Choose a judge.")
    positions = np.arange(len(golden.items))
    if request.n_items is not None:
        rng = np.random.default_rng([request.settings.seed, 6])
        positions = whole_sources(golden.source_codes, positions, request.n_items, rng)
    said = request.settings
    judge = FusionJudge(task_of(golden, aspect), tuple(parts), said.plan, said.criteria)
    return golden, judge, tuple(positions.tolist())


def estimate_fusion(store: Store, settings: Settings, request: FusionRequest) -> FusionEstimate:
    """Estimate calls, tokens and price of a fusion by a language model.

    Raises UsageError if `judge_spec` is not a language model, and AuthError if its key is not set.
    """
    from core.fusion.model_rating import estimate_rating
    from core.judging.judge_specs import language_model

    golden, judge, positions = fusion_inputs(store, request)
    with closing(language_model(request.judge_spec, settings)) as model:
        return estimate_rating(judge, golden.items, positions, request.settings, cost_of=model.cost_of)


def _check_fusion(store: Store, settings: Settings, request: FusionRequest) -> tuple[FusionRequest, str, str]:
    estimate_fusion(store, settings, request)
    return request, f"LLM fusion · {request.aspect} · {request.judge_spec}", request.judge_spec


def run_fusion(work: RunWork) -> FusionRunView:
    """Rate as many items with a language model as the budget allows, and add a judge with these ratings."""
    from core.fusion.model_rating import rate_by_model
    from core.judging.judge_specs import NAMED, language_model

    request = work.request(FusionRequest)
    settings, spec = request.settings, request.judge_spec
    golden, judge, positions = fusion_inputs(work.store, request)
    with closing(language_model(spec, work.settings, work.replies, gate=NAMED)) as model:
        ratings = rate_by_model(model, golden.items, judge, positions, settings, progress=work.progress)
    fused = JudgeScores(
        name=f"LLM fusion · {spec}",
        kind="fused",
        aspect=request.aspect,
        values=ratings.values(len(golden.items)),
        unscored=ratings.verdicts.unscored,
        seen=tuple(sorted(set().union(*(part.seen for part in judge.parts)))),
        note=f"{spec} rates {request.aspect} from the scores of {len(judge.parts)} parts.",
        run_id=work.run.run_id,
        calls_per_item=1.0,
    )
    replies = {verdict.item_id: verdict.raw for verdict in ratings.verdicts if verdict.raw}
    return FusionRunView(
        {request.aspect: work.add_judge(fused, replies)},
        ratings.judge.plan,
        ratings.calls,
        {request.aspect: ratings.unread} if ratings.unread else {},
        f"The budget of {settings.budget} calls was used up. {ratings.n_left} items weren't rated."
        if ratings.n_left
        else "",
        model.as_state(),
        ratings.judge.criteria,
    )


# ── agreement of a fusion by a model ───────────────────────────────────────────────────────────────────────────


def unseen_and_asked(golden: GoldenSet, judge: JudgeScores) -> IntArray:
    """Return the positions of items that a judge was asked to score, in sources whose labels it has not seen."""
    asked = ~np.isnan(judge.values) | np.isin(golden.item_ids, [verdict.item_id for verdict in judge.unscored])
    return np.flatnonzero(asked & ~seen_sources(golden, [judge]))


def fusion_result(store: Store, run_id: str, settings: FusionSettings) -> Alignment | None:
    """Return the alignment that run `run_id` measured for a fusion by a language model.

    The statistic and level are those of `settings`. Only labelled items from sources that are new to all fused judges
    count. Returns None if the fusion was deleted or is unfinished.
    """
    from core.fusion.stack import Agreement, require_systems

    run = store.runs.get(run_id)
    outcome = store.results.read(run_id, RESULT, FusionRunView)
    if outcome is None or run.aspect not in outcome.judges:
        return None
    try:
        judge = store.judges.get(run.project_id, outcome.judges[run.aspect]).judge
    except NotFoundError:
        return None
    golden = store.goldens.load(run.golden_id)
    at = unseen_and_asked(golden, judge)
    require_systems(golden, settings.measure.level, at)
    return Agreement(golden, run.aspect, settings).align(judge.values[None, :], at)[0]


KINDS["fusion"] = Kind(FusionRequest, FusionRunView, "started an LLM fusion", _check_fusion, run_fusion)
