"""Export the results of a project: report, `judge.yaml`, adapters, `repeval.yaml` and `fused.yaml`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from core.errors import JobError, JudgeError, NotFoundError, UsageError
from core.fusion.fusion_settings import FusionRequest, FusionRunView, FusionSettings
from core.project_records import Run
from core.projects.calibration import calibration_asked, judge_runs
from core.projects.criteria import criteria_names
from core.projects.judge_line import JudgeVersion, drop_invalid_p, judge_line, learnt_from, seen_labels, used_before
from core.projects.labelling import list_triage
from core.projects.method_runs import RepEvalOutcome, steadiness_of
from core.projects.project_judges import (
    as_compared,
    fusion_inputs,
    get_fusion,
    judges_shown,
    part_facts,
    unseen_and_asked,
)
from core.projects.start_and_resume import list_held_out_accesses, load_calibration
from core.report.headline import day
from core.report.report_facts import Report, ReportedJudge, is_simulated, raters_of
from core.store.database import unpack
from core.store.runs import RESULT
from core.store.store import Store
from core.wording import VERSION_STATES

if TYPE_CHECKING:
    from core.judge_files.adapters import Adapter
    from core.judge_files.documents import FusedPart


@dataclass(frozen=True, slots=True)
class MeasuredJudge:
    """A judge that a run measured on a golden set.

    `version` is None if the calibration created no version.
    """

    run: Run
    version: JudgeVersion | None
    held_out: bool

    @property
    def words(self) -> str:
        """The name to display, such as "version 3 (current)" or "calibration of 22 November 2026"."""
        missing = "" if self.held_out else ", not measured on held-out items"
        if self.version is None:
            return f"calibration of {day(self.run.created_at)}{missing}"
        return f"{self.version.name} ({VERSION_STATES[self.version.state]}{missing})"


def measured_judges(store: Store, project_id: str, golden_id: str, aspect: str) -> tuple[MeasuredJudge, ...]:
    """List the judges measured on a golden set. Each version is listed once.

    The default version comes first. The others follow, newest run first.
    """
    line, judges = judge_line(store, project_id, aspect), []
    for run in judge_runs(store, project_id, golden_id, aspect):
        version = line.of_run(run.run_id)
        measured = None if version is None else version.on(golden_id)
        if measured is None or measured.run_id == run.run_id:
            judges.append(MeasuredJudge(run, version, measured is None or measured.held_out is not None))
    return tuple(judges)


def report(store: Store, project_id: str, golden_id: str, aspect: str, run_id: str | None = None) -> Report:
    """Return the report on a calibrated judge. No model is called.

    Args:
        run_id: The run that measured the judge. None chooses the default version, or else the judge of the newest run.

    Raises:
        NotFoundError: An id is unknown.
        JobError: There is no result, or the judge was not measured on held-out items.
    """
    run = _calibration_run(store, project_id, golden_id, aspect, run_id)
    calibration = drop_invalid_p(store, run.run_id, load_calibration(store, run.run_id))
    if not calibration.held_out.n:
        raise JobError(
            "This version of the judge hasn't been measured on held-out items, and figures on the calibration set are "
            "too optimistic to report. Measure the version on held-out items."
        )
    line, openings = judge_line(store, project_id, aspect), list_held_out_accesses(store, project_id, golden_id, aspect)
    used = used_before(line, run, openings)
    judged = ReportedJudge(store.goldens.load(golden_id), calibration, run.run_id)
    # as on Compare, other versions are left out: each extra judge is an extra comparison to correct for
    shown = judges_shown(store, project_id, golden_id, aspect)
    entries = [*shown.entries, *(each for each in shown.aside if each.judge.run_id == run.run_id)]
    board, aside = judged.board(as_compared(store, project_id, entries))
    names = criteria_names(store, project_id, aspect)
    return Report(
        project=store.projects.get(project_id).name,
        made_at=datetime.now(UTC),
        golden=store.goldens.get(golden_id),
        simulated=is_simulated(judged.golden, aspect),
        run=run,
        asked=calibration_asked(store, run.run_id),
        judged=judged,
        raters=raters_of(judged, used),
        line=line,
        seen_before=used,
        chosen=tuple((names.get(each.criteria_id, "Criteria"), each) for each in calibration.chosen if each.text),
        board=board.without_p(0, used),
        aside=aside,
        means=judged.means(seen_labels(store, project_id, golden_id, judged.scores)),
        examination=judged.examined(),
        curve=judged.curve(),
        n_doubted=sum(
            found.verdict == "label wrong" for found in list_triage(store, project_id, golden_id, aspect).values()
        ),
        openings=tuple(openings),
        steadiness=steadiness_of(store, run.run_id),
    )


def _calibration_run(store: Store, project_id: str, golden_id: str, aspect: str, run_id: str | None) -> Run:
    """Return the judge run `run_id` (None: that of the default version, else the newest).

    Raises JobError if there is none.
    """
    name = store.goldens.get(golden_id).name
    complete = judge_runs(store, project_id, golden_id, aspect)
    if run_id is not None and all(run.run_id != run_id for run in complete):
        store.runs.get(run_id)
        raise JobError(f"Run {run_id[:40]} isn't a finished calibration of {aspect} on {name}. Choose another run.")
    if not complete:
        raise JobError(
            f"There is no report yet, because no calibration of {aspect} on {name} has a result. Start a calibration, "
            "or wait for one to finish."
        )
    return next((run for run in complete if run.run_id == run_id), complete[0])


# ── files for other tools ──────────────────────────────────────────────────────────────────────────────────────


def judge_file(store: Store, run_id: str) -> str:
    """Return `judge.yaml` of the judge that a run calibrated.

    Besides the judge, the file contains its version, approvals, and a warning if nobody approved the judge. It also
    contains the numbers of raters, edits and decisions, and how often users opened held-out results. Raises the same
    errors as `load_calibration`.
    """
    from core.judge_files.judge_writing import card_arguments, judge_yaml

    calibration, run = drop_invalid_p(store, run_id, load_calibration(store, run_id)), store.runs.get(run_id)
    golden, aspect = store.goldens.load(run.golden_id), calibration.task.aspect
    entries = store.criteria.all(run.project_id, aspect)
    line = judge_line(store, run.project_id, aspect)
    version = line.of_run(run_id)
    known = card_arguments(golden, calibration)
    known["version"] = version
    if version is not None:
        learnt = learnt_from(store, run.project_id, run.golden_id, version, calibration.split.calibration)
        calibration = replace(calibration, texts=calibration.texts.learnt_from(golden, learnt))
    known["held_out_opened"] = len(list_held_out_accesses(store, run.project_id, run.golden_id, aspect))
    known["people"] = {
        "raters": len({rating.rater_id for rating in golden.ratings if rating.aspect == aspect}),
        "edits": sum(entry.origin == "edit" for entry in entries),
        "decisions": sum(len(version.decisions) for version in line.versions),
    }
    return judge_yaml(calibration, **known)


def judge_adapters(store: Store, run_id: str) -> tuple[Adapter, ...]:
    """Return files that let other tools use the judge that a run calibrated.

    Raises JudgeError if the judge cannot be exported.
    """
    import yaml

    from core.judge_files.adapters import adapters

    return adapters(yaml.safe_load(judge_file(store, run_id)))


def repeval_file(store: Store, run_id: str) -> str:
    """Return `repeval.yaml` of a finished RepEval run, for `score --judge-file`.

    Raises NotFoundError if the run is unknown, or if its score cannot be applied to other items.
    """
    from core.judge_files.judge_writing import yaml_text
    from core.repeval.fitted import repeval_card

    run = store.runs.get(run_id)
    outcome = store.results.read(run_id, RESULT, RepEvalOutcome) if run.kind == "repeval" else None
    if outcome is None or outcome.result.scorer is None:
        raise NotFoundError(
            f"Run {run_id} can score only its own items. To score other items, run RepEval again with the "
            "method ridge or paper-pca."
        )
    return yaml_text(repeval_card(store.goldens.load(run.golden_id), outcome.result, created=run.finished_at))


def fused_file(store: Store, project_id: str, judge_id: str) -> str:
    """Return `fused.yaml` of a saved fusion, for `score --judge-file`.

    The file contains metrics, calibrated judges, RepEval directions and, for a fusion by a language model, its plan.
    Other judges of the fusion cannot be stored. For them, the file names the input column with their scores.

    Raises NotFoundError if the judge is not a fusion, or if one of the fused judges was deleted.
    """
    from core.data.split import KnownTexts
    from core.fusion.fused_run import fused_card
    from core.judge_files.judge_writing import yaml_text

    judge = store.judges.get(project_id, judge_id).judge
    if judge.run_id:
        return yaml_text(_model_card(store, project_id, judge_id))
    kept = get_fusion(store, project_id, judge_id)
    golden = store.goldens.load(kept.golden_id)
    labelled = np.flatnonzero(~np.isnan(golden.labels(kept.aspect)))
    card = fused_card(
        golden,
        kept.aspect,
        texts=KnownTexts.of(golden, judge.seen, np.setdiff1d(labelled, judge.seen)),
        state=kept.state,
        parts=[_recipe(store, part) for part in kept.parts],
        alignment=kept.told["fused"],
        measured={name: kept.told[name] for name in ("parts", "left_out", "n_fit", "n_report", "notes")},
    )
    return yaml_text(card)


def _model_card(store: Store, project_id: str, judge_id: str) -> dict[str, Any]:
    """Return the content of the file of a fusion by a language model, measured on items that no part has seen."""
    from core.comparison import usual_level
    from core.data.split import KnownTexts
    from core.fusion.fused_run import fused_card
    from core.fusion.stack import Agreement

    judge = store.judges.get(project_id, judge_id).judge
    run = store.runs.get(judge.run_id)
    outcome = store.results.read(run.run_id, RESULT, FusionRunView)
    if outcome is None or not outcome.judge_state or outcome.judges != {judge.aspect: judge_id}:
        raise NotFoundError(
            f"The run that made {judge.name} didn't save the fusion for {judge.aspect}, so this judge can't rate other "
            "items. Start the fusion again."
        )
    request = unpack(FusionRequest, run.request_json)
    said = replace(request.settings, plan=outcome.plan, criteria=outcome.criteria)
    golden, asked, _ = fusion_inputs(store, replace(request, settings=said))
    at = unseen_and_asked(golden, judge)
    report = at[~np.isnan(golden.labels(judge.aspect)[at])]
    matrix = np.vstack([judge.values, *(part.upward for part in asked.parts)])
    agreement = Agreement(golden, judge.aspect, FusionSettings(level=usual_level(golden, judge.aspect)))
    own, *others = agreement.align(matrix, report)
    of_parts = {part.name: alignment.as_json() for part, alignment in zip(asked.parts, others, strict=True)}
    facts = [
        part_facts(part.name, store.judges.get(project_id, part_id).judge, part_id)
        for part, part_id in zip(asked.parts, request.judge_ids, strict=True)
    ]
    return fused_card(
        golden,
        judge.aspect,
        texts=KnownTexts.of(golden, judge.seen, report),
        state=asked.state(outcome.judge_state),
        parts=[_recipe(store, part) for part in facts],
        alignment=own,
        measured={"parts": of_parts, "n_fit": len(judge.seen), "n_report": len(report)},
    )


def _recipe(store: Store, part: Mapping[str, Any]) -> FusedPart:
    """Describe how to compute a part on other items. If that is impossible, its scores are read from a column."""
    from core.judge_files import judge_card
    from core.judge_files.documents import FusedPart
    from core.metrics import make_metric

    name, kind, run_id = str(part["name"]), part["kind"], part["run_id"]
    found: dict[str, Any] = {}
    # the run has another kind or was deleted, an imported file is damaged, or a metric was renamed
    with suppress(JobError, JudgeError, NotFoundError, UsageError):
        if kind == "calibrated" and run_id:
            found["judge"] = judge_card(load_calibration(store, run_id))
        elif kind == "repeval" and run_id and store.runs.get(run_id).kind == "repeval":
            outcome = store.results.read(run_id, RESULT, RepEvalOutcome)
            scorer = None if outcome is None else outcome.result.scorer  # None for an SVM or an older run
            found["repeval"] = None if scorer is None else scorer.as_json()
        elif kind == "metric":
            metric = str(part.get("metric") or name)
            if not metric.startswith("metric_"):
                make_metric(metric)
            found["assistant"] = metric
    return FusedPart(name, higher_is_better=part["higher_is_better"], **found)
