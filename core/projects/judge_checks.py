"""What is asked of a finished calibration.

Ablations say what each part of its judge brings, analyses what the candidates tell, rechecks whether the judge still
holds on newer labels.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from core.calibration.ablate import Ablation, AblationRow, Analyses
from core.calibration.calibration_records import Estimate
from core.comparison.recheck import Recheck, RecheckSettings, newer_items, recheck
from core.errors import JobError, UsageError
from core.project_records import WITH_RESULT, Run
from core.projects.judge_line import judge_line
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.run_work import RunWork, load_calibration, load_scores, require_judge, start_run
from core.records import JudgeScores
from core.settings import Settings
from core.store.codec import unpack
from core.store.runs import RESULT
from core.store.store import Store
from core.wording import judge_words

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
    old = store.goldens.load(run.golden_id)
    newer_items(judge_card(calibration), store.goldens.load(request.golden_id), request.aspect, old)
    spec = str(calibration.judge_state.get("spec", ""))
    version = judge_line(store, run.project_id, run.aspect).of_run(run.run_id)
    which = "" if version is None else f" of {version.name}"
    return start_run(store, settings, "recheck", request, title=f"recheck{which} · {summary.name}", judge_spec=spec)


def run_recheck(work: RunWork) -> Recheck:
    """Open the judge as its file would be, score, and compare; nothing enters the project's judges."""
    from core.judge_files import final_verdicts, judge_card
    from core.judge_files.loaded import restored
    from core.judging.judge_specs import NAMED

    request = work.request(RecheckRequest)
    calibration = load_calibration(work.store, request.run_id)
    old = work.store.goldens.load(work.store.runs.get(request.run_id).golden_id)
    with closing(restored(judge_card(calibration), work.settings, work.replies, gate=NAMED)) as judge:
        return recheck(
            judge,
            work.golden,
            request.aspect,
            before=final_verdicts(calibration, old),
            old=old,
            settings=RecheckSettings(request.alpha, request.fall, request.no_criteria),
            progress=work.progress,
        )
