"""Calibrations: what is asked for, what one will cost, its start, the run, and the judge that it hands on."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from core.calibration.records import Calibration, Estimate
from core.calibration.settings import CalibrationSettings
from core.errors import JobError
from core.project_records import WITH_RESULT, CriteriaAlignment, Run
from core.projects.criteria import list_criteria, list_reviews
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.runs import RunWork, judge_run, list_held_out_accesses, load_calibration, start_run
from core.records import GoldenSet, JudgeScores, Scale, ScoreMatrix, Split, Task
from core.settings import Settings
from core.store.codec import unpack
from core.store.store import Store

if TYPE_CHECKING:
    from core.export.adapters import Adapter


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """What a person asks for.  `scale` None takes the aspect's own; `definition` may be empty."""

    project_id: str
    golden_id: str
    aspect: str
    judge_spec: str = "offline"
    settings: CalibrationSettings = field(default_factory=CalibrationSettings)
    definition: str = ""
    scale: Scale | None = None

    def task(self, golden: GoldenSet) -> Task:
        """What the judge is asked to do.  AspectError for labels that cannot rank anything."""
        from core.data.split import task_of

        return task_of(golden, self.aspect, self.definition, self.scale)

    def split(self, golden: GoldenSet) -> Split:
        """The calibration and held-out items of `golden`."""
        from core.api.measures import split_for

        return split_for(golden, self.aspect, self.settings)


def estimate(store: Store, settings: Settings, request: CalibrationRequest) -> Estimate:
    """Calls, tokens and price of the calibration before it starts.

    Raises what the start would: AspectError for labels that cannot rank anything, JudgeError for a judge that
    cannot be made, NotFoundError for an unknown golden set.
    """
    from core.calibration.budget import estimate as estimate_of
    from core.judging.registry import make_judge

    golden = store.goldens.load(request.golden_id)
    task, split = request.task(golden), request.split(golden)
    with closing(make_judge(request.judge_spec, settings, store.replies)) as judge:
        return estimate_of(golden, task, split, request.settings, judge)


@requires("reviewer", "started a calibration")
def start_calibration(store: Store, settings: Settings, request: CalibrationRequest) -> str:
    """Start a calibration (`start_run`).  NotFoundError for an unknown golden set, or one without that aspect."""
    golden, _ = require_aspect(store, request.golden_id, request.aspect)
    return start_run(
        *(store, settings, "calibration", request),
        title=f"{request.aspect} · {golden.name} · {request.judge_spec}",
        judge_spec=request.judge_spec,
        opens="a calibration reports its winner on them",
    )


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────


def run_calibration(work: RunWork) -> Calibration:
    """Calibrate, and enter the criteria, their alignments, and the judges."""
    from core.calibration.loop import calibration

    request, golden = work.request(CalibrationRequest), work.golden
    task, split = request.task(golden), request.split(golden)
    state = work.prepared(request.judge_spec, task, split.calibration)
    with work.asking(state, task) as judge:
        result = calibration(judge, split, request.settings, judge_state=state)
    every = {candidate.criteria.criteria_id: candidate.criteria for candidate in result.candidates}
    every |= {criteria.criteria_id: criteria for criteria in result.chosen}
    work.add_criteria(list(every.values()))
    work.add_alignments(_alignments(work, result))
    bare = [candidate.criteria.criteria_id for candidate in result.candidates if candidate.status == "baseline"]
    for scores in judges_of(result, golden, work.run.run_id, work.scores(bare)):
        work.add_judge(scores)
    return result


def judges_of(result: Calibration, golden: GoldenSet, run_id: str, bare: ScoreMatrix) -> list[JudgeScores]:
    """The judges that a calibration leaves to be compared: the final one, and the same without criteria.

    The final judge has seen the labels of the calibration items; the one without criteria has seen none.
    """
    spec, aspect = str(result.judge_state.get("spec", "judge")), result.task.aspect
    at = {item_id: k for k, item_id in enumerate(golden.item_ids)}
    values = np.full(len(golden.items), np.nan)
    values[[at[item_id] for item_id in result.scores.item_ids]] = result.scores.values[0]
    members = "one set of criteria" if len(result.chosen) == 1 else f"the mean of {len(result.chosen)} sets of criteria"
    final = JudgeScores(
        name=f"{spec} · calibrated",
        kind="calibrated",
        aspect=aspect,
        values=values,
        unscored=result.scores.unscored.get("final", ()),
        seen=result.split.calibration,
        note=f"The judge {spec} with {members}, calibrated on {len(result.split.calibration)} items.",
        run_id=run_id,
        calls_per_item=float(len(result.chosen)),
    )
    plain = [
        JudgeScores(
            name=f"{spec} · no criteria",
            kind="no criteria",
            aspect=aspect,
            values=row,
            unscored=bare.unscored.get(name, ()),
            note=f"The judge {spec} that knows the name of the aspect and no criteria.",
            run_id=run_id,
            calls_per_item=1.0,
        )
        for name, row in zip(bare.criteria_ids, bare.values, strict=True)
    ]
    return [final, *plain]


def _alignments(work: RunWork, result: Calibration) -> list[CriteriaAlignment]:
    """Of all candidates on calibration, of the best single one and the baseline on held-out too."""
    alignments = [
        work.alignment(candidate.criteria.criteria_id, "calibration", candidate.alignment, candidate.status)
        for candidate in result.candidates
        if candidate.alignment is not None
    ]
    best = result.chosen[0]
    if best.text:
        alignments.append(work.alignment(best.criteria_id, "held-out", result.best_single["held_out"], "chosen"))
    bare = [candidate.criteria.criteria_id for candidate in result.candidates if candidate.status == "baseline"]
    without = result.no_criteria["held_out"]
    return alignments + [work.alignment(criteria_id, "held-out", without, "baseline") for criteria_id in bare]


# ── finished calibrations ────────────────────────────────────────────────────────────────────────────────────


def calibration_asked(store: Store, run_id: str) -> CalibrationRequest:
    """What the calibration `run_id` was asked for.  JobError for a run of another kind."""
    run = store.runs.get(run_id)
    if run.kind != "calibration":
        raise JobError(f"Run {run_id} is no calibration; name the calibration whose judge is meant.")
    return unpack(CalibrationRequest, run.request_json)


def scored_as(store: Store, run_id: str) -> CalibrationRequest:
    """What the calibration was asked for whose judge scored in this run (a calibration, a re-scoring or a round)."""
    return calibration_asked(store, judge_run(store, run_id))


def calibrations_of(store: Store, project_id: str, golden_id: str, aspect: str) -> list[Run]:
    """The project's calibrations of that aspect that came to a result, newest first."""
    return [
        run
        for run in store.runs.all(project_id)
        if (run.kind, run.golden_id, run.aspect) == ("calibration", golden_id, aspect) and run.status in WITH_RESULT
    ]


def judge_file(store: Store, run_id: str) -> str:
    """The text of `judge.yaml` of a finished calibration, with all that the project knows about it.

    Who approved its criteria on which evidence, the ceiling, how often the held-out items were opened, how much people
    did.  A judge with criteria that nobody approved is exported too: the file then says so among its warnings.  Raises
    as `load_calibration`.
    """
    from core.api.measures import known_of
    from core.export.judge_writing import judge_yaml

    calibration, run = load_calibration(store, run_id), store.runs.get(run_id)
    golden, aspect = store.goldens.load(run.golden_id), calibration.task.aspect
    reviews = list_reviews(store, run.project_id)
    entries = list_criteria(store, run.project_id, aspect)
    ours = [reviews[entry.criteria_id] for entry in entries if entry.criteria_id in reviews]
    known = known_of(golden, calibration)
    known["reviews"] = reviews
    known["held_out_opened"] = len(list_held_out_accesses(store, run.project_id, run.golden_id, aspect))
    known["people"] = {
        "raters": len({rating.rater_id for rating in golden.ratings if rating.aspect == aspect}),
        "edits": sum(entry.origin == "edit" for entry in entries),
        "comments": sum(len(review.comments) for review in ours),
        "decisions": sum(len(review.changes) for review in ours),
    }
    return judge_yaml(calibration, **known)


@dataclass(frozen=True, slots=True)
class JudgeAdapters:
    """The calibration that the files are from, its judge.yaml, and the adapters."""

    run: Run
    judge_file: str
    adapters: tuple[Adapter, ...]


def judge_adapters(
    store: Store, project_id: str, golden_id: str, aspect: str, run_id: str | None = None
) -> JudgeAdapters | None:
    """The judge as files for other tools: of the calibration `run_id`, else of the newest of `aspect` with a result.

    None where there is none; a `run_id` that is no such calibration counts as none given.  JudgeError when the judge
    cannot be handed on.
    """
    import yaml

    from core.export.adapters import adapters

    runs = calibrations_of(store, project_id, golden_id, aspect)
    if not runs:
        return None
    run = next((finished for finished in runs if finished.run_id == run_id), runs[0])
    text = judge_file(store, run.run_id)
    return JudgeAdapters(run, text, adapters(yaml.safe_load(text)))
