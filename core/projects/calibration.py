"""Calibrate judges and measure judge versions: requests, estimates, runs and results.

A *judge run* is a run that produces a judge: a calibration, or the measurement of a version. When a golden set grows,
its sources keep their part of the split (calibration or held-out).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace

import numpy as np

from core.calibration.calibration_records import Calibration, CalibrationSettings, Estimate, LeaderboardSnapshot
from core.errors import CriteriaError, JobError, UsageError
from core.judging.judge_protocol import CallEstimate, Judge, judge_state
from core.judging.scoring_styles import Asking
from core.project_records import JUDGES, WITH_RESULT, CriteriaAlignment, Run, Side
from core.projects.judge_line import (
    JudgeLine,
    VersionMade,
    VersionMeasured,
    VersionOrigin,
    compared_before,
    judge_line,
)
from core.projects.labelling import get_anchors, with_reasons
from core.projects.project_list import require_aspect
from core.projects.start_and_resume import (
    KINDS,
    JudgeState,
    Kind,
    RunWork,
    is_imported,
    judge_run,
    list_held_out_accesses,
    load_calibration,
    load_judge_state,
    require_judge,
    start_run,
)
from core.providers.completions import ReplyStore
from core.records import Anchor, FloatArray, GoldenSet, JudgeScores, Scale, Split, Task
from core.settings import Settings
from core.stats import Difference
from core.store.database import unpack
from core.store.runs import JUDGE, SNAPSHOT
from core.store.store import Store, requires
from core.wording import judge_words


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """Request to calibrate a judge on an aspect of a golden set.

    Attributes:
        scale: None for the scale of the aspect.
        split_from: Id of a judge run on an earlier golden set. The sources of that run keep their part of the split
            (calibration or held-out).
        levels: Level descriptions at the start of the run.
    """

    project_id: str
    golden_id: str
    aspect: str
    judge_spec: str = "offline"
    settings: CalibrationSettings = field(default_factory=CalibrationSettings)
    definition: str = ""
    scale: Scale | None = None
    split_from: str = ""
    asking: Asking = field(default_factory=Asking)
    levels: tuple[Anchor, ...] = ()

    def task(self, golden: GoldenSet) -> Task:
        """Return the judging task. Raises AspectError if the golden set does not have the aspect."""
        from core.data.split import task_of

        task = task_of(golden, self.aspect, self.definition, self.scale)
        return replace(task, levels=tuple(level for level in self.levels if task.scale.holds(level.value)))


@dataclass(frozen=True, slots=True)
class VersionRequest:
    """Request to measure a version of the judge of an aspect.

    Attributes:
        criteria_ids: The criteria that the version scores with, best first.
        golden_id: "" for the golden set of the default version.
        run_id: Calibration whose prompt and sampling the version uses; "" for the calibration of the default version.
        version: The number of the version; 0 for the next version.
        held_out: Whether to score held-out items as well as calibration items.
        split_from: Id of the run whose split is used; "" for `run_id`.
        judge_spec: SPEC of another model; "" for the model of `run_id` (or of the default version, if `run_id` is "").
    """

    project_id: str
    aspect: str
    criteria_ids: tuple[str, ...]
    golden_id: str = ""
    run_id: str = ""
    version: int = 0
    held_out: bool = True
    split_from: str = ""
    judge_spec: str = ""


def estimate(store: Store, settings: Settings, request: CalibrationRequest) -> Estimate:
    """Estimate calls, tokens and price of a calibration.

    Raises AspectError unless the aspect has at least two different labels, JudgeError if the judge cannot be created,
    and NotFoundError for an unknown golden set.
    """
    from core.calibration.loop import estimate as estimate_of
    from core.judging.judge_specs import make_judge

    golden, request = store.goldens.load(request.golden_id), _with_levels(store, request)
    split = _asked_split(store, with_kept_split(store, request), golden)
    task = request.task(golden)
    with closing(make_judge(request.judge_spec, settings, store.replies, asking=request.asking)) as judge:
        written = with_reasons(store, request.project_id, golden, request.aspect)
        return estimate_of(written, task, judge, request.settings, asking=request.asking, split=split)


def key_named(settings: Settings, base_url: str) -> str:
    """Return the name of the environment variable whose key is sent to `base_url`; "" if no key is sent.

    A `base_url` of "" means the default endpoint. Raises UsageError for a bad URL or an invalid endpoint file.
    """
    from core.judging.judge_specs import JudgeSpec, endpoint_of
    from core.providers.endpoints import Installation

    return Installation.of(settings).key_name(endpoint_of(JudgeSpec("openai", base_url=base_url), settings))


@requires("reviewer", reads=True)
def check_connection(store: Store, settings: Settings, judge: str) -> str:
    """Test the connection to a model with one short request (see `core.judging.judge_specs.check_connection`)."""
    from core.judging import judge_specs

    return judge_specs.check_connection(judge, settings)


def _check_calibration(
    store: Store, settings: Settings, request: CalibrationRequest
) -> tuple[CalibrationRequest, str, str]:
    golden, _ = require_aspect(store, request.golden_id, request.aspect)
    title = f"{request.aspect} · {golden.name} · {judge_words(request.judge_spec)}"
    return _with_levels(store, with_kept_split(store, request)), title, request.judge_spec


def _with_levels(store: Store, request: CalibrationRequest) -> CalibrationRequest:
    """Copy the level descriptions into a request, so that later edits do not change the run."""
    if request.levels or not request.settings.levels or request.judge_spec == "offline":
        return request
    return replace(request, levels=get_anchors(store, request.project_id, request.golden_id, request.aspect).anchors)


def run_calibration(work: RunWork) -> Calibration:
    """Run a calibration. The prompts include the reasons that raters gave for labels."""
    from core.calibration.loop import calibrate
    from core.judging.judge_specs import NAMED, make_judge

    request, golden = work.request(CalibrationRequest), work.golden
    spec, asking = request.judge_spec, request.asking
    with closing(make_judge(spec, work.settings, work.replies, asking=asking, gate=NAMED)) as judge:
        result = calibrate(
            with_reasons(work.store, request.project_id, golden, request.aspect, work.run.created_at),
            request.task(golden),
            judge,
            request.settings,
            work.progress,
            asking=asking,
            split=_asked_split(work.store, request, golden),
            recorder=work,
        )
    return replace(result, golden_digest=golden.digest)  # the digest of the stored golden set, which has no reasons


# ── requests and splits of judge runs ──────────────────────────────────────────────────────────────────────────


def version_asked(run: Run) -> VersionRequest:
    """Return the request of a run that measures a version."""
    return unpack(VersionRequest, run.request_json)


def calibration_asked(store: Store, run_id: str) -> CalibrationRequest:
    """Return the request of the calibration that a judge run, re-scoring or refinement round is based on.

    The request has the golden set of the run. If a model wrote the definition of the aspect, as in some older runs, the
    request has that definition. Raises JobError for any other kind of run.
    """
    run = store.runs.get(judge_run(store, run_id))
    if run.kind == "version":
        return replace(calibration_asked(store, version_asked(run).run_id), golden_id=run.golden_id)
    if run.kind != "calibration":
        raise JobError(f"Run {run_id} is not a calibration. Give the id of the judge's calibration.")
    request = unpack(CalibrationRequest, run.request_json)
    if request.definition:
        return request
    made = store.results.read(run.run_id, JUDGE, JudgeState)  # in older runs the model wrote the definition
    return request if made is None else replace(request, definition=made.prepared.definition)


def split_of_run(store: Store, run_id: str, golden: GoldenSet) -> Split:
    """Return the split that a run used; `golden` is its golden set."""
    run = store.runs.get(judge_run(store, run_id))
    if run.kind != "version":
        return _asked_split(store, calibration_asked(store, run.run_id), golden)
    asked = version_asked(run)
    return carried_split(store, asked.split_from or asked.run_id, golden)


def _asked_split(store: Store, request: CalibrationRequest, golden: GoldenSet) -> Split:
    if request.split_from:
        return carried_split(store, request.split_from, golden)
    return request.settings.split_of(golden, request.aspect)


def carried_split(store: Store, earlier_id: str, golden: GoldenSet) -> Split:
    """Split `golden` like an earlier run: sources of that run stay in the same part."""
    from core.data.split import grown_split

    earlier = store.runs.get(earlier_id)
    old = store.goldens.load(earlier.golden_id)
    split = split_of_run(store, earlier_id, old)
    if old.digest == golden.digest:
        return split
    share = calibration_asked(store, earlier_id).settings.calibration_share
    return grown_split(split, old, golden, aspect=earlier.aspect, fraction=share)


def with_kept_split(store: Store, request: CalibrationRequest) -> CalibrationRequest:
    """Return the request with `split_from` set, if the judge of its aspect was first measured on another golden set.

    Sources that were split before then keep their part of the split. The request stays unchanged if its split settings
    differ from the earlier settings, or if `split_from` is already set.
    """
    line = judge_line(store, request.project_id, request.aspect)
    measured = [entry for version in line.versions for entry in version.measured]
    if request.split_from or line.default is None or request.golden_id == measured[0].golden_id:
        return request
    last = line.default.on(request.golden_id) or line.default.newest
    if last is None or calibration_asked(store, last.run_id).settings.split != request.settings.split:
        return request
    return replace(request, split_from=last.run_id)


# ── finished judge runs ────────────────────────────────────────────────────────────────────────────────────────


def judge_runs(store: Store, project_id: str, golden_id: str, aspect: str) -> list[Run]:
    """List the finished judge runs of an aspect: the run of the default version, then the others, newest first."""
    about = (golden_id, aspect)
    runs = [run for run in store.runs.all(project_id) if run.kind in JUDGES and (run.golden_id, run.aspect) == about]
    version = judge_line(store, project_id, aspect).default
    measured = None if version is None else version.on(golden_id)
    finished = (run for run in runs if run.status in WITH_RESULT)
    return sorted(finished, key=lambda run: measured is None or run.run_id != measured.run_id)


# ── make and measure versions ──────────────────────────────────────────────────────────────────────────────────


@requires("reviewer")
def make_version(
    store: Store,
    settings: Settings,
    request: VersionRequest,
    *,
    origin: VersionOrigin = "criteria",
    note: str = "",
) -> str:
    """Create the next version of a judge from criteria, and start measuring it. Return the run id.

    Args:
        origin: Where the criteria come from.

    Raises:
        UsageError: A version with these criteria exists, or there are more than 25 criteria.
        CriteriaError: Criteria belong to another aspect, or have no text.
        JobError: There is no judge.
    """
    project_id, aspect = request.project_id, request.aspect
    line, ids = judge_line(store, project_id, aspect), tuple(dict.fromkeys(request.criteria_ids))
    for criteria in [store.criteria.get(project_id, criteria_id).criteria for criteria_id in ids]:
        if criteria.aspect != aspect:
            raise CriteriaError(f"These criteria are for {criteria.aspect}, not for {aspect}.")
        if not criteria.text:
            raise CriteriaError(
                "A version of the judge must have criteria, because a judge without criteria is the baseline. Add at "
                "least one criterion."
            )
    request = _completed(store, line, replace(request, criteria_ids=ids))
    for version in line.versions:
        made = version.made
        if (made.base_run, made.judge_spec, ids) == (request.run_id, request.judge_spec, version.criteria_ids):
            raise UsageError(
                f"Version {version.number} ({version.state}) already has these criteria and this judge. To create a "
                "new version, change the criteria."
            )
    parent = line.default.number if line.default else 0
    made = VersionMade(request.run_id, ids, origin, parent, note.strip(), request.judge_spec, subject=aspect)
    require_judge(store, request.run_id)
    entered = store.events.add(project_id, made, store.actor)
    number = judge_line(store, project_id, aspect).made_by(entered).number
    return start_run(store, settings, replace(request, version=number))


@requires("reviewer")
def measure_version(
    store: Store,
    settings: Settings,
    project_id: str,
    aspect: str,
    number: int,
    *,
    golden_id: str = "",
    held_out: bool = True,
) -> str:
    """Start measuring a version again, for example on a newer golden set; return the run id.

    Raises NotFoundError for an unknown version or golden set, and JobError if the version's judge was deleted.
    """
    line = judge_line(store, project_id, aspect)
    made = line.get(number).made
    require_judge(store, made.base_run)
    request = VersionRequest(project_id, aspect, made.criteria_ids, golden_id, made.base_run, number, held_out)
    request = replace(request, judge_spec=made.judge_spec)
    return start_run(store, settings, _completed(store, line, request))


def _check_version(store: Store, settings: Settings, request: VersionRequest) -> tuple[VersionRequest, str, str]:
    spec = request.judge_spec or store.runs.get(request.run_id).judge_spec
    return request, f"{request.aspect} · judge version {request.version} · {judge_words(spec)}", spec


def estimate_version(store: Store, settings: Settings, request: VersionRequest) -> CallEstimate:
    """Estimate the maximum cost of measuring a version.

    Raises the same errors as `make_version`, and JudgeError for an unusable judge.
    """
    from core.calibration.loop import CRITERIA_WORDS, cross_fitting_calls
    from core.stats import LabelledItems

    request = _completed(store, judge_line(store, request.project_id, request.aspect), request)
    golden, asked = store.goldens.load(request.golden_id), calibration_asked(store, request.run_id)
    split = carried_split(store, request.split_from or request.run_id, golden)
    n_items = len(split.calibration) + (len(split.held_out) if request.held_out else 0)
    calls = (len(request.criteria_ids) + 1) * n_items
    with closing(with_model(store, settings, request.run_id, request.judge_spec, store.replies)) as judge:
        if len(request.criteria_ids) == 1:
            calls += cross_fitting_calls(
                judge, asked.settings, LabelledItems.of(golden, request.aspect, split.calibration)
            )
        once = judge.estimate(asked.task(golden), [golden.items[p] for p in split.calibration], CRITERIA_WORDS)
    return CallEstimate(calls, *once.scaled(calls / max(1, once.calls)))


def with_model(store: Store, settings: Settings, run_id: str, spec: str, replies: ReplyStore | None = None) -> Judge:
    """Restore the judge of a judge run, with another model.

    Args:
        spec: SPEC of the model; "" keeps the model of the run. Another model is prepared with the calibration items of
            the run.
    """
    from core.judging.judge_specs import NAMED, other_judge, restore_judge

    state, run = require_judge(store, run_id), store.runs.get(run_id)
    if spec in ("", state["spec"]):
        return restore_judge(state, settings, replies, gate=NAMED)
    if run.kind == "version":
        return with_model(store, settings, version_asked(run).run_id, spec, replies)
    golden = store.goldens.load(run.golden_id)
    items = [golden.items[k] for k in split_of_run(store, run_id, golden).calibration]
    return other_judge(state, spec, settings, replies).prepare(calibration_asked(store, run_id).task(golden), items)


def _completed(store: Store, line: JudgeLine, request: VersionRequest) -> VersionRequest:
    """Fill in the judge, golden set and split of a request. Raises JobError if there is no judge."""
    default, base, spec = line.default, request.run_id, request.judge_spec
    if not base and default is not None and not is_imported(store, default.made.base_run):
        base, spec = default.made.base_run, spec or default.made.judge_spec
    if not base:
        project = store.projects.get(request.project_id)
        runs = [run for run in store.runs.all(request.project_id) if not project.came_with(run)]
        own = (run.run_id for run in runs if run.kind == "calibration" and run.aspect == line.aspect)
        base = next((run_id for run_id in own if store.results.read(run_id, JUDGE, JudgeState)), "")
    if not base:
        raise JobError(f"No calibration of {line.aspect} has produced a judge yet. Start a calibration.")
    calibrated_on = store.runs.get(base).golden_id
    last = None if default is None else default.newest
    golden_id = request.golden_id or (calibrated_on if last is None else last.golden_id)
    require_aspect(store, golden_id, line.aspect)
    split_from = ""
    if golden_id != calibrated_on and default is not None and last is not None:
        split_from = (default.on(golden_id) or last).run_id
    spec = "" if spec == (load_judge_state(store, base) or {}).get("spec") else spec
    return replace(request, golden_id=golden_id, run_id=base, split_from=split_from, judge_spec=spec)


def in_place_of_parent(store: Store, project_id: str, aspect: str, criteria_id: str) -> tuple[str, ...]:
    """Return the criteria ids of the default version, with `criteria_id` instead of its closest ancestor.

    Returns () if nothing would change, or if the version has only one criteria text.
    """
    version = judge_line(store, project_id, aspect).default
    ids = version.criteria_ids if version is not None else ()
    if len(ids) < 2 or criteria_id in ids:
        return ()
    ancestors, generation = set[str](), {criteria_id}
    while generation and not ancestors & set(ids):
        known = [store.criteria.get(project_id, name) for name in generation]
        generation = {parent for entry in known for parent in entry.parents} - ancestors
        ancestors |= generation
    if not ancestors & set(ids):
        return ()
    return tuple(dict.fromkeys(criteria_id if name in ancestors else name for name in ids))


def version_run(store: Store, project_id: str, aspect: str, number: int) -> Run | None:
    """Return the newest run that measures a version, whatever its status; None if there is none."""
    runs = (run for run in store.runs.all(project_id) if run.kind == "version" and run.aspect == aspect)
    return next((run for run in runs if version_asked(run).version == number), None)


# ── the run, and its results in the project ────────────────────────────────────────────────────────────────────


def run_version_measurement(work: RunWork) -> Calibration:
    """Score the items that a version has not scored, and return its alignment and scores."""
    from core.calibration.loop import measure

    request, golden = work.request(VersionRequest), work.golden
    asked, state = calibration_asked(work.store, request.run_id), require_judge(work.store, request.run_id)
    if request.judge_spec:
        with closing(with_model(work.store, work.settings, request.run_id, request.judge_spec)) as other:
            state = judge_state(other)
    work.keep(JUDGE, JudgeState(state))
    criteria = [work.store.criteria.get(request.project_id, name).criteria for name in request.criteria_ids]
    task, split = asked.task(golden), split_of_run(work.store, work.run.run_id, golden)
    with work.asking(state, task) as judge:
        return measure(judge, split, asked.settings, criteria, held_out=request.held_out)


def enter_judge(work: RunWork, result: Calibration) -> None:
    """Save the results of a judge run in the project: criteria, alignments, judge, baseline, and measured version.

    A second call changes nothing. A calibration without criteria proposes no version.
    """
    run, store = work.run, work.store
    version = work.request(VersionRequest) if run.kind == "version" else None
    base_run = run.run_id if version is None or version.judge_spec else version.run_id
    criteria = {candidate.criteria.criteria_id: candidate.criteria for candidate in result.candidates}
    work.add_criteria(list((criteria | {chosen.criteria_id: chosen for chosen in result.chosen}).values()))
    work.add_alignments(_alignments(work, result))
    called = judge_words(str(result.judge_state.get("spec", "judge")))
    members = "one set of criteria" if len(result.chosen) == 1 else f"the mean of {len(result.chosen)} sets of criteria"
    turned = result.scores.turned
    final = JudgeScores(
        name=f"{called} · calibrated" if version is None else f"{called} · version {version.version}",
        kind="calibrated",
        aspect=result.task.aspect,
        values=_over_all(result.scores.values[0], result, work.golden),
        unscored=result.scores.unscored.get("final", ()),
        seen=result.split.calibration,
        note=f"{called} with {members}, calibrated on {len(result.split.calibration)} items.",
        run_id=run.run_id,
        calls_per_item=float(sum(len(each.weights) or 1 for each in result.chosen)),
        turned=None if turned is None else _over_all(turned[0], result, work.golden),
    )
    work.add_judge(final)
    listed = store.judges.all(run.project_id, run.golden_id, run.aspect)
    if not any(entry.judge.kind == "no criteria" and entry.judge.run_id == base_run for entry in listed):
        baselines = [each.criteria.criteria_id for each in result.candidates if each.status == "baseline"]
        bare = store.results.scores(run.run_id, work.golden.item_ids, baselines)
        for k, name in enumerate(bare.criteria_ids):
            baseline = replace(
                final,
                name=f"{called} · baseline",
                kind="no criteria",
                values=bare.values[k],
                unscored=bare.unscored.get(name, ()),
                seen=(),
                note=f"{called}, given only the name of the aspect and no criteria.",
                calls_per_item=1.0,
                turned=None if bare.turned is None else bare.turned[k],
            )
            work.add_judge(baseline)
    if version is not None:
        _enter_measurement(work, version.version, result)
    elif any(chosen.text for chosen in result.chosen):
        line = judge_line(store, run.project_id, run.aspect)
        ids, parent = tuple(chosen.criteria_id for chosen in result.chosen), line.default.number if line.default else 0
        made = VersionMade(run.run_id, ids, "calibration", parent, subject=run.aspect)
        entered = store.events.add(run.project_id, made, store.actor, form=f"version:{run.run_id}")
        _enter_measurement(work, judge_line(store, run.project_id, run.aspect).made_by(entered).number, result)


def _alignments(work: RunWork, result: Calibration) -> list[CriteriaAlignment]:
    """Return the alignments of a judge run for the project.

    All candidates are measured on calibration items, and the best one and the baseline also on held-out items.
    """
    alignments = [
        work.alignment(candidate.criteria.criteria_id, "calibration", candidate.alignment, candidate.status)
        for candidate in result.candidates
        if candidate.alignment is not None
    ]
    best = result.chosen[0]
    if best.text:
        alignments.append(work.alignment(best.criteria_id, "held-out", result.best_single.held_out, "chosen"))
    bare = [candidate.criteria.criteria_id for candidate in result.candidates if candidate.status == "baseline"]
    without = result.no_criteria.held_out
    return alignments + [work.alignment(criteria_id, "held-out", without, "baseline") for criteria_id in bare]


def _enter_measurement(work: RunWork, number: int, result: Calibration) -> None:
    """Log the measurement of a version, and compare it with the default version on common items."""
    from core.stats import LabelledItems, paired_difference

    run, store, golden, chosen = work.run, work.store, work.golden, result.settings
    line = judge_line(store, run.project_id, run.aspect)
    other = line.default if line.default is not None and line.default.number != number else None
    known = None if other is None else other.on(run.golden_id)
    gains: dict[Side, Difference] = {}
    if known is not None:
        theirs = load_calibration(store, known.run_id)
        new, old = (_over_all(each.scores.values[0], each, golden) for each in (result, theirs))
        shared: dict[Side, set[int]] = {"calibration": {*result.split.calibration} & {*theirs.split.calibration}}
        if result.held_out.n and theirs.held_out.n:
            shared["held-out"] = {*result.split.held_out} & {*theirs.split.held_out}
        for side, positions in shared.items():
            if positions:
                items = LabelledItems.of(golden, result.task.aspect, sorted(positions))
                at, measure = items.positions, result.calibration.measure
                gains[side] = paired_difference(new[at], old[at], items, measure, seed=chosen.seed)
    held_out = gains.get("held-out")
    accesses = list_held_out_accesses(store, run.project_id, run.golden_id, run.aspect)
    if held_out is not None and (reason := compared_before(line, run.golden_id, accesses)):
        held_out = replace(held_out, p=None, p_reason=reason)
    opened = result.held_out.n > 0
    entry = VersionMeasured(
        number,
        run.run_id,
        run.golden_id,
        result.calibration,
        result.held_out if opened else None,
        other.number if other is not None and gains else 0,
        gains.get("calibration"),
        held_out,
        len(accesses) if opened else 0,
        subject=run.aspect,
    )
    store.events.add(run.project_id, entry, store.actor, form=f"measured:{run.run_id}")


def _over_all(scores: FloatArray, result: Calibration, golden: GoldenSet) -> FloatArray:
    """Return the scores of a judge run as (n_items,) in the order of `golden`, NaN for unscored items."""
    known = dict(zip(result.scores.item_ids, scores.tolist(), strict=True))
    return np.array([known.get(item_id, np.nan) for item_id in golden.item_ids], dtype=np.float64)


KINDS["calibration"] = Kind(
    CalibrationRequest,
    Calibration,
    "started a calibration",
    _check_calibration,
    run_calibration,
    opens=lambda request: "a calibration measured its best criteria",
    documents={SNAPSHOT: LeaderboardSnapshot},
    enter=enter_judge,
)
KINDS["version"] = Kind(
    VersionRequest,
    Calibration,
    "started measuring a version of the judge",
    _check_version,
    run_version_measurement,
    opens=lambda request: "a version of the judge was measured" if request.held_out else "",
    documents={SNAPSHOT: LeaderboardSnapshot},
    enter=enter_judge,
)
