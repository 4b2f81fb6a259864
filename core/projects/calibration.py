"""Calibrations: what is asked for, what one will cost, its start, the run, and the judge that it hands on."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from core.calibration.calibration_result import Calibration, Estimate
from core.calibration.calibration_settings import CalibrationSettings
from core.errors import JobError
from core.judging.scoring_styles import MODEL_WRITES, Asking
from core.project_records import JUDGES, WITH_RESULT, CriteriaAlignment, Run
from core.projects.criteria import Comment
from core.projects.judge_line import as_claimed, final_turned, final_values, judge_line, propose, version_asked
from core.projects.project_list import require_aspect
from core.projects.roles import requires
from core.projects.runs import JudgeState, RunWork, judge_run, list_held_out_accesses, load_calibration, start_run
from core.records import GoldenSet, JudgeScores, Scale, ScoreMatrix, Split, Task
from core.settings import Settings
from core.store.codec import unpack
from core.store.results import JUDGE
from core.store.store import Store
from core.wording import judge_words

if TYPE_CHECKING:
    from core.judge_files.adapters import Adapter


@dataclass(frozen=True, slots=True)
class CalibrationRequest:
    """What a person asks for.  `scale` None takes the aspect's own; `definition` may be empty.

    `asking` is how the judge is asked for a score; with `define` its model says what the aspect means, where
    `definition` is empty.  `split_from` names the calibration or version, of an earlier golden set, whose known sources
    keep their side.
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
    define: bool = False

    def task(self, golden: GoldenSet) -> Task:
        """What the judge is asked to do.  AspectError for labels that cannot rank anything."""
        from core.data.split import task_of

        return task_of(golden, self.aspect, self.definition, self.scale)

    def defined_task(self, golden: GoldenSet) -> Task:
        """That task for a judge which writes the definition where that is asked for."""
        task = self.task(golden)
        return replace(task, definition=MODEL_WRITES) if self.define and not task.definition.strip() else task


def estimate(store: Store, settings: Settings, request: CalibrationRequest) -> Estimate:
    """Calls, tokens and price of the calibration before it starts.

    Raises what the start would: AspectError for labels that cannot rank anything, JudgeError for a judge that
    cannot be made, NotFoundError for an unknown golden set.
    """
    from core.calibration.budget import estimate as estimate_of
    from core.judging.judge_specs import make_judge

    golden = store.goldens.load(request.golden_id)
    split = _asked_split(store, keeping_sides(store, request), golden)
    with closing(make_judge(request.judge_spec, settings, store.replies, asking=request.asking)) as judge:
        return estimate_of(
            golden, request.defined_task(golden), judge, request.settings, asking=request.asking, split=split
        )


def key_named(settings: Settings, base_url: str) -> str:
    """The environment variable whose key goes to `base_url` ("": the usual endpoint); "" for none.

    UsageError for what is no base URL, or for a faulty endpoint file.
    """
    from core.judging.judge_specs import JudgeSpec, endpoint_of
    from core.providers.installation import Installation

    return Installation.of(settings).key_name(endpoint_of(JudgeSpec("openai", base_url=base_url), settings))


@requires("reviewer", "started a calibration")
def start_calibration(store: Store, settings: Settings, request: CalibrationRequest) -> str:
    """Start a calibration (`start_run`).  NotFoundError for an unknown golden set, or one without that aspect."""
    golden, _ = require_aspect(store, request.golden_id, request.aspect)
    request = keeping_sides(store, request)
    return start_run(
        *(store, settings, "calibration", request),
        title=f"{request.aspect} · {golden.name} · {judge_words(request.judge_spec)}",
        judge_spec=request.judge_spec,
        opens="a calibration reports its winner on them",
    )


# ── the run ──────────────────────────────────────────────────────────────────────────────────────────────────


def run_calibration(work: RunWork) -> Calibration:
    """Calibrate."""
    from core.calibration.loop import calibrate

    request, golden = work.request(CalibrationRequest), work.golden
    with work.opened(request.judge_spec, request.asking) as judge:
        return calibrate(
            golden,
            request.defined_task(golden),
            judge,
            request.settings,
            work.progress,
            asking=request.asking,
            split=_asked_split(work.store, request, golden),
            keeper=work,
        )


def enter_calibration(work: RunWork, result: Calibration) -> None:
    """Enter the criteria, their alignments, the judges, and the final one as a version."""
    every = {candidate.criteria.criteria_id: candidate.criteria for candidate in result.candidates}
    every |= {criteria.criteria_id: criteria for criteria in result.chosen}
    work.add_criteria(list(every.values()))
    work.add_alignments(criteria_alignments(work, result))
    bare = [candidate.criteria.criteria_id for candidate in result.candidates if candidate.status == "baseline"]
    run_id = work.run.run_id
    final = final_judge(result, work.golden, run_id, f"{judge_words(spec_of(result))} · calibrated")
    for scores in (final, *bare_judges(result, run_id, work.scores(bare))):
        work.add_judge(scores)
    propose(work, result)


def final_judge(result: Calibration, golden: GoldenSet, run_id: str, name: str) -> JudgeScores:
    """The final judge of a calibration or a version, as one of the project's; it has seen the calibration labels."""
    called = judge_words(spec_of(result))
    members = "one set of criteria" if len(result.chosen) == 1 else f"the mean of {len(result.chosen)} sets of criteria"
    return JudgeScores(
        name=name,
        kind="calibrated",
        aspect=result.task.aspect,
        values=final_values(result, golden),
        unscored=result.scores.unscored.get("final", ()),
        seen=result.split.calibration,
        note=f"The judge {called} with {members}, calibrated on {len(result.split.calibration)} items.",
        run_id=run_id,
        calls_per_item=float(len(result.chosen)),
        turned=final_turned(result, golden),
    )


def bare_judges(result: Calibration, run_id: str, bare: ScoreMatrix) -> list[JudgeScores]:
    """The same judge without criteria, with which a calibration or a version is compared; it has seen no labels."""
    called = judge_words(spec_of(result))
    return [
        JudgeScores(
            name=f"{called} · no criteria",
            kind="no criteria",
            aspect=result.task.aspect,
            values=row,
            unscored=bare.unscored.get(name, ()),
            note=f"The judge {called} that knows the name of the aspect and no criteria.",
            run_id=run_id,
            calls_per_item=1.0,
            turned=None if bare.turned is None else bare.turned[k],
        )
        for k, (name, row) in enumerate(zip(bare.criteria_ids, bare.values, strict=True))
    ]


def spec_of(result: Calibration) -> str:
    """What the judge is, as it was asked for."""
    return str(result.judge_state.get("spec", "judge"))


def criteria_alignments(work: RunWork, result: Calibration) -> list[CriteriaAlignment]:
    """Of all candidates on calibration, of the best single one and the baseline on held-out too."""
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


# ── finished calibrations ────────────────────────────────────────────────────────────────────────────────────


def calibration_asked(store: Store, run_id: str) -> CalibrationRequest:
    """What the calibration `run_id` was asked for, with the definition that its judge wrote.

    Of a version it is what its calibration was asked for, on the version's golden set.  JobError for a run of another
    kind.
    """
    run = store.runs.get(run_id)
    if run.kind == "version":
        base = calibration_asked(store, version_asked(run).run_id)
        return replace(base, golden_id=run.golden_id)
    if run.kind != "calibration":
        raise JobError(f"Run {run_id} is no calibration; name the calibration whose judge is meant.")
    request = unpack(CalibrationRequest, run.request_json)
    made = store.results.read(run_id, JUDGE, JudgeState) if request.define else None
    return request if made is None else replace(request, definition=made.prepared.definition or request.definition)


def scored_as(store: Store, run_id: str) -> CalibrationRequest:
    """What the calibration was asked for whose judge scored in this run (a calibration, a re-scoring or a round)."""
    return calibration_asked(store, judge_run(store, run_id))


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


def judge_runs(store: Store, project_id: str, golden_id: str, aspect: str) -> list[Run]:
    """The runs of that aspect that came to a judge, of calibrations and versions: that of the one in use first.

    The others follow newest first.
    """
    runs = [
        run
        for run in store.runs.all(project_id)
        if run.kind in JUDGES and (run.golden_id, run.aspect) == (golden_id, aspect) and run.status in WITH_RESULT
    ]
    version = judge_line(store, project_id, aspect).default
    measured = None if version is None else version.on(golden_id)
    return sorted(runs, key=lambda run: measured is None or run.run_id != measured.run_id)


def calibrations_of(store: Store, project_id: str, golden_id: str, aspect: str) -> list[Run]:
    """The project's calibrations of that aspect that came to a result, newest first."""
    runs = [run for run in judge_runs(store, project_id, golden_id, aspect) if run.kind == "calibration"]
    return sorted(runs, key=lambda run: run.created_at, reverse=True)


def judge_file(store: Store, run_id: str) -> str:
    """The text of `judge.yaml` of a finished calibration or version, with all that the project knows about it.

    Which version it is and who signed it off on which evidence, the ceiling, how often the held-out items were opened,
    how much people did.  A judge that nobody approved is exported too: the file then says so among its warnings.
    Raises as `load_calibration`.
    """
    from core.judge_files.judge_writing import judge_yaml, known_of
    from core.projects.pass_results import learnt_from

    calibration, run = as_claimed(store, run_id, load_calibration(store, run_id)), store.runs.get(run_id)
    golden, aspect = store.goldens.load(run.golden_id), calibration.task.aspect
    entries = store.criteria.all(run.project_id, aspect)
    ours = {entry.criteria_id for entry in entries}
    line = judge_line(store, run.project_id, aspect)
    version = line.of_run(run_id)
    known = known_of(golden, calibration)
    known["version"] = version
    if version is not None:
        learnt = learnt_from(store, run.project_id, run.golden_id, version, calibration.split.calibration)
        calibration = replace(calibration, texts=calibration.texts.learnt_from(golden, learnt))
    known["held_out_opened"] = len(list_held_out_accesses(store, run.project_id, run.golden_id, aspect))
    known["people"] = {
        "raters": len({rating.rater_id for rating in golden.ratings if rating.aspect == aspect}),
        "edits": sum(entry.origin == "edit" for entry in entries),
        "comments": sum(comment.subject in ours for comment in store.events.all(run.project_id, Comment)),
        "decisions": sum(len(version.decisions) for version in line.versions),
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
    """The judge as files for other tools: of the calibration or version `run_id`, else the one in use (`judge_runs`).

    None where there is none; a `run_id` that is no such run counts as none given.  JudgeError when the judge
    cannot be handed on.
    """
    import yaml

    from core.judge_files.adapters import adapters

    runs = judge_runs(store, project_id, golden_id, aspect)
    if not runs:
        return None
    run = next((finished for finished in runs if finished.run_id == run_id), runs[0])
    text = judge_file(store, run.run_id)
    return JudgeAdapters(run, text, adapters(yaml.safe_load(text)))
