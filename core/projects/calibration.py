"""Calibrations of a project: what is asked for, what one will cost, its start, its run, and the sides of its split.

A *judge run* is a calibration, or the measurement of a version that people made: both come to a judge.  Of a finished
one, ablations say what each part of its judge brings, analyses what the candidates tell, and rechecks whether the judge
still holds on newer labels.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.calibration.ablate import Ablation, AblationRow, Analyses
from core.calibration.calibration_records import Calibration, CalibrationSettings, Estimate
from core.comparison.recheck import Recheck, RecheckSettings, newer_items, recheck
from core.errors import JobError, UsageError
from core.judging.scoring_styles import Asking
from core.project_records import JUDGES, WITH_RESULT, Run
from core.projects.judge_line import judge_line
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.run_work import (
    JudgeState,
    RunWork,
    judge_run,
    load_calibration,
    load_scores,
    require_judge,
    start_run,
)
from core.records import GoldenSet, JudgeScores, Scale, Split, Task
from core.settings import Settings
from core.store.codec import unpack
from core.store.runs import JUDGE, RESULT
from core.store.store import Store
from core.wording import judge_words


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """What a person asks for.  `scale` None takes the aspect's own; `definition` may be empty.

    `asking` is how the judge is asked for a score.  `split_from` names the calibration or version, of an earlier golden
    set, whose known sources keep their side.
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

    def task(self, golden: GoldenSet) -> Task:
        """What the judge is asked to do.  AspectError for labels that cannot rank anything."""
        from core.data.split import task_of

        return task_of(golden, self.aspect, self.definition, self.scale)


@dataclass(frozen=True, slots=True)
class VersionRequest:
    """Measure a judge of `aspect` that follows `criteria_ids` (best first): version `version`, 0 for the next one.

    It keeps the model, prompt and sampling of calibration `run_id`, "" for those of the judge in use.  `golden_id` ""
    is the golden set that judge was last measured on.  Without `held_out` only calibration items are scored.
    `split_from` names the run whose sides are kept where that is not the calibration itself.
    """

    project_id: str
    aspect: str
    criteria_ids: tuple[str, ...]
    golden_id: str = ""
    run_id: str = ""
    version: int = 0
    held_out: bool = True
    split_from: str = ""


def estimate(store: Store, settings: Settings, request: CalibrationRequest) -> Estimate:
    """Calls, tokens and price of the calibration before it starts.

    Raises what the start would: AspectError for labels that cannot rank anything, JudgeError for a judge that
    cannot be made, NotFoundError for an unknown golden set.
    """
    from core.calibration.loop import estimate as estimate_of
    from core.judging.judge_specs import make_judge

    golden = store.goldens.load(request.golden_id)
    split = _asked_split(store, keeping_sides(store, request), golden)
    task = request.task(golden)
    with closing(make_judge(request.judge_spec, settings, store.replies, asking=request.asking)) as judge:
        return estimate_of(golden, task, judge, request.settings, asking=request.asking, split=split)


def key_named(settings: Settings, base_url: str) -> str:
    """The environment variable whose key goes to `base_url` ("": the usual endpoint); "" for none.

    UsageError for what is no base URL, or for a faulty endpoint file.
    """
    from core.judging.judge_specs import JudgeSpec, endpoint_of
    from core.providers.endpoints import Installation

    return Installation.of(settings).key_name(endpoint_of(JudgeSpec("openai", base_url=base_url), settings))


@requires("reviewer", "started a calibration")
def start_calibration(store: Store, settings: Settings, request: CalibrationRequest) -> str:
    """Start a calibration (`start_run`).  NotFoundError for an unknown golden set, or one without that aspect."""
    golden, _ = require_aspect(store, request.golden_id, request.aspect)
    title = f"{request.aspect} · {golden.name} · {judge_words(request.judge_spec)}"
    opens = "a calibration reports its winner on them"
    request = keeping_sides(store, request)
    return start_run(store, settings, "calibration", request, title=title, judge_spec=request.judge_spec, opens=opens)


def run_calibration(work: RunWork) -> Calibration:
    """Calibrate."""
    from core.calibration.loop import calibrate

    request, golden = work.request(CalibrationRequest), work.golden
    with work.opened(request.judge_spec, request.asking) as judge:
        return calibrate(
            golden,
            request.task(golden),
            judge,
            request.settings,
            work.progress,
            asking=request.asking,
            split=_asked_split(work.store, request, golden),
            keeper=work,
        )


# ── what a run was asked for, and on which sides it scored ───────────────────────────────────────────────────


def version_asked(run: Run) -> VersionRequest:
    """What a run of kind "version" was asked for."""
    return unpack(VersionRequest, run.request_json)


def calibration_asked(store: Store, run_id: str) -> CalibrationRequest:
    """What the calibration was asked for whose judge scored in this run, with the definition that its judge wrote.

    The run is a calibration, a version (then with the version's golden set), a re-scoring or a round.  JobError for a
    run of another kind.
    """
    run = store.runs.get(judge_run(store, run_id))
    if run.kind == "version":
        return replace(calibration_asked(store, version_asked(run).run_id), golden_id=run.golden_id)
    if run.kind != "calibration":
        raise JobError(f"Run {run_id} is not a calibration; name the calibration whose judge is meant.")
    request = unpack(CalibrationRequest, run.request_json)
    if request.definition:
        return request
    made = store.results.read(run.run_id, JUDGE, JudgeState)  # of older runs the model wrote the definition
    return request if made is None else replace(request, definition=made.prepared.definition)


def sides_of(store: Store, run_id: str, golden: GoldenSet) -> Split:
    """The sides on which a run scored; `golden` is its golden set.  Known sources stay on their side as labels grow."""
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
    """The split of an earlier run, carried over to `golden` where that is another golden set."""
    from core.data.split import grown_split

    earlier = store.runs.get(earlier_id)
    old = store.goldens.load(earlier.golden_id)
    split = sides_of(store, earlier_id, old)
    if old.digest == golden.digest:
        return split
    share = calibration_asked(store, earlier_id).settings.calibration_share
    return grown_split(split, old, golden, aspect=earlier.aspect, fraction=share)


def keeping_sides(store: Store, request: CalibrationRequest) -> CalibrationRequest:
    """The request with the run whose sides it keeps: that of the judge in use, where its line began on other labels."""
    line = judge_line(store, request.project_id, request.aspect)
    measured = [entry for version in line.versions for entry in version.measured]
    if request.split_from or line.default is None or request.golden_id == measured[0].golden_id:
        return request
    last = line.default.on(request.golden_id) or line.default.newest
    if last is None or calibration_asked(store, last.run_id).settings.split != request.settings.split:
        return request
    return replace(request, split_from=last.run_id)


# ── finished judge runs ──────────────────────────────────────────────────────────────────────────────────────


def judge_runs(store: Store, project_id: str, golden_id: str, aspect: str) -> list[Run]:
    """The runs of that aspect that came to a judge: that of the version in use first, the others newest first."""
    about = (golden_id, aspect)
    runs = [run for run in store.runs.all(project_id) if run.kind in JUDGES and (run.golden_id, run.aspect) == about]
    version = judge_line(store, project_id, aspect).default
    measured = None if version is None else version.on(golden_id)
    finished = (run for run in runs if run.status in WITH_RESULT)
    return sorted(finished, key=lambda run: measured is None or run.run_id != measured.run_id)


def calibrations_of(store: Store, project_id: str, golden_id: str, aspect: str) -> list[Run]:
    """The project's calibrations of that aspect that came to a result, newest first."""
    runs = [run for run in judge_runs(store, project_id, golden_id, aspect) if run.kind == "calibration"]
    return sorted(runs, key=lambda run: run.created_at, reverse=True)


# ── what is asked of a finished calibration ────────────────────────────────────────────────────────────────────────


__all__ = ["Ablation", "AblationRow", "Analyses"]  # for screens, which do not reach into the algorithms


@dataclass(frozen=True, slots=True)
class AblationRequest:
    """The ablation table of the finished calibration `run_id`."""

    project_id: str
    golden_id: str
    aspect: str
    run_id: str


def analyse_candidates(store: Store, run_id: str) -> Analyses:
    """Alignment by exemplar size and by length of a calibration's candidates; raises as `load_calibration`."""
    from core.calibration.ablate import analyse

    return analyse(load_calibration(store, run_id))


def estimate_ablation(store: Store, settings: Settings, request: AblationRequest) -> Estimate:
    """Calls, tokens and price of the ablation before it starts: only for scores that the calibration has not stored.

    Raises what the start would.
    """
    from core.calibration.ablate import estimate_ablation as estimate
    from core.judging.judge_specs import SILENT, restore_judge

    _require_calibration(store, request)
    calibration = load_calibration(store, request.run_id)
    golden = store.goldens.load(request.golden_id)
    state = require_judge(store, request.run_id)
    with closing(restore_judge(state, settings, store.replies, gate=SILENT)) as judge:
        return estimate(judge, golden, calibration, load_scores(store, request.run_id))


@requires("reviewer", "started an ablation")
def start_ablation(store: Store, settings: Settings, request: AblationRequest) -> str:
    """Start the ablation of a finished calibration (`start_run`); its new variants enter the project's judges.

    NotFoundError for an unknown run; JobError for one that is no finished calibration of this golden set and aspect.
    """
    _require_calibration(store, request)
    spec = store.runs.get(request.run_id).judge_spec
    title, opens = f"{request.aspect} · ablation · {judge_words(spec)}", "an ablation measured variants on them"
    return start_run(store, settings, "ablation", request, title=title, judge_spec=spec, opens=opens)


def run_ablation(work: RunWork) -> Ablation:
    """Score what is missing for the table, and enter the variants that are new among the judges."""
    from core.calibration.ablate import ablate

    request = work.request(AblationRequest)
    calibration = load_calibration(work.store, request.run_id)
    with work.asking(require_judge(work.store, request.run_id), calibration.task) as judge:
        scores = load_scores(work.store, request.run_id)
        result = ablate(judge, calibration, scores)
    called = judge_words(result.judge_spec)
    rows = dict(zip(result.scores.criteria_ids, result.scores.values, strict=True))
    for row in result.rows:
        if row.key in ("final", "without criteria"):  # among the judges since the calibration
            continue
        variant = JudgeScores(
            name=f"{called} · {row.key}",
            kind="calibrated",
            aspect=result.task.aspect,
            values=rows[row.key],
            unscored=result.scores.unscored.get(row.key, ()),
            seen=result.calibration_positions,  # their labels chose its criteria
            note=f"{row.what} The judge {called}, from an ablation of its calibration.",
            run_id=work.run.run_id,
            calls_per_item=float(len(row.criteria_ids)),
        )
        work.add_judge(variant)
    return result


def last_ablation(store: Store, run_id: str) -> Run | None:
    """The newest ablation of a calibration: one that is going on or done before one that failed; None without any."""
    runs = [run for run in store.runs.all(store.runs.get(run_id).project_id) if run.kind == "ablation"]
    ablations = [run for run in runs if unpack(AblationRequest, run.request_json).run_id == run_id]
    usable = [run for run in ablations if not run.finished or run.status in WITH_RESULT]
    return next(iter(usable or ablations), None)


def _require_calibration(store: Store, request: AblationRequest) -> None:
    store.projects.get(request.project_id)
    run = store.runs.get(request.run_id)
    ours = (run.project_id, run.golden_id, run.aspect) == (request.project_id, request.golden_id, request.aspect)
    if run.kind != "calibration" or run.status not in WITH_RESULT or not ours:
        raise JobError(
            f"Run {request.run_id} ({run.kind} of {run.aspect}, {run.status}) is no finished calibration of "
            f"{request.aspect} on this golden set. Run a calibration to its end first."
        )


# ── rechecks: the judge on newer labels, compared with its exported alignment ────────────────────────────────────


@dataclass(frozen=True, slots=True)
class RecheckRequest:
    """Recheck the judge of run `run_id` (a calibration or a version) on the labels of the golden set `golden_id`.

    `fall` is the fall that matters, `alpha` the accepted chance of a false alarm; with `no_criteria` the same judge
    without criteria scores the items too, at one more call an item.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    fall: float = 0.1
    alpha: float = 0.05
    no_criteria: bool = True


@dataclass(frozen=True, slots=True)
class DatedRecheck:
    """A finished recheck: when it was, of which version of the judge, on which golden set, and what it found.

    `judged_id` is the run that came to that judge; `version` is 0 where that is no version.
    """

    run_id: str
    created_at: datetime
    judged_id: str
    version: int
    golden_id: str
    outcome: Recheck

    @property
    def judge_name(self) -> str:
        return f"version {self.version}" if self.version else "a calibration"


def list_rechecks(store: Store, project_id: str, aspect: str) -> tuple[DatedRecheck, ...]:
    """The finished rechecks of the versions of the judge of an aspect, oldest first."""
    rechecks, line = [], judge_line(store, project_id, aspect)
    for run in reversed(store.runs.all(project_id)):
        if run.kind == "recheck" and run.aspect == aspect and run.status in WITH_RESULT:
            outcome = store.results.read(run.run_id, RESULT, Recheck)
            judged = unpack(RecheckRequest, run.request_json).run_id
            version = line.of_run(judged)
            if outcome is not None:
                number = 0 if version is None else version.number
                rechecks.append(DatedRecheck(run.run_id, run.created_at, judged, number, run.golden_id, outcome))
    return tuple(rechecks)


@requires("reviewer", "started a recheck")
def start_recheck(store: Store, settings: Settings, request: RecheckRequest) -> str:
    """Start a recheck (`start_run`).

    NotFoundError for an unknown run or golden set, JobError for a calibration without a result, UsageError for one of
    another project, a golden set without labels on the aspect, or a `fall` or `alpha` that is no such number,
    GoldenError where none of the labels is newer than the judge.
    """
    from core.judge_files import judge_card

    run = store.runs.get(request.run_id)
    calibration = load_calibration(store, request.run_id)
    if run.project_id != request.project_id:
        raise UsageError("The judge belongs to another project.")
    if request.aspect != calibration.task.aspect:
        raise UsageError(f"The judge rates {calibration.task.aspect!r}, not {request.aspect!r}.")
    summary, aspect = require_aspect(store, request.golden_id, request.aspect)
    if aspect.n_labelled < 2:
        raise UsageError(
            f"{summary.name} has {aspect.n_labelled} labels of {request.aspect}; a recheck needs at least 2."
        )
    if not 0 < request.fall <= 1 or not 0 < request.alpha < 0.5:
        raise UsageError("The fall that matters lies between 0 and 1, the chance of a false alarm between 0 and 0.5.")
    newer_items(judge_card(calibration), store.goldens.load(request.golden_id), request.aspect)
    spec = str(calibration.judge_state.get("spec", ""))
    version = judge_line(store, run.project_id, run.aspect).of_run(run.run_id)
    which = "" if version is None else f" of {version.name}"
    return start_run(store, settings, "recheck", request, title=f"recheck{which} · {summary.name}", judge_spec=spec)


def run_recheck(work: RunWork) -> Recheck:
    """Open the judge as its file would be, score, and compare; nothing enters the project's judges."""
    from core.judge_files import judge_card
    from core.judge_files.loaded import restored
    from core.judging.judge_specs import NAMED

    request = work.request(RecheckRequest)
    calibration = load_calibration(work.store, request.run_id)
    with closing(restored(judge_card(calibration), work.settings, work.replies, gate=NAMED)) as judge:
        return recheck(
            judge,
            work.golden,
            request.aspect,
            settings=RecheckSettings(request.alpha, request.fall, request.no_criteria),
            progress=work.progress,
        )
