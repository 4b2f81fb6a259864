"""The report on a calibrated judge: everything that the store knows of it, gathered into one record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from core.errors import JobError
from core.project_records import Run
from core.projects.calibration import calibration_asked, judge_runs
from core.projects.criteria import criteria_names
from core.projects.judge_line import JudgeVersion, as_claimed, judge_line, used_before
from core.projects.label_passes import picked_labels, seen_labels
from core.projects.misaligned_items import list_triage
from core.projects.project_judges import as_compared
from core.projects.run_work import list_held_out_accesses, load_calibration
from core.report.headline import day
from core.report.report_facts import Report, ReportedJudge, is_simulated, misaligned, raters_of
from core.store.store import Store
from core.wording import VERSION_STATES


@dataclass(frozen=True, slots=True)
class MeasuredJudge:
    """A judge that a golden set has figures on, by the run that measured it; `version` is None where none was kept."""

    run: Run
    version: JudgeVersion | None
    held_out: bool

    @property
    def words(self) -> str:
        """E.g. "version 3 (current)"; "calibration of 22 November 2026" where it is no version."""
        missing = "" if self.held_out else ", not measured on held-out items"
        if self.version is None:
            return f"calibration of {day(self.run.created_at)}{missing}"
        return f"{self.version.name} ({VERSION_STATES[self.version.state]}{missing})"


def measured_judges(store: Store, project_id: str, golden_id: str, aspect: str) -> tuple[MeasuredJudge, ...]:
    """What a golden set has figures on: the version in use first, then by run, newest first; each version once."""
    line, judges = judge_line(store, project_id, aspect), []
    for run in judge_runs(store, project_id, golden_id, aspect):
        version = line.of_run(run.run_id)
        measured = None if version is None else version.on(golden_id)
        if measured is None or measured.run_id == run.run_id:
            judges.append(MeasuredJudge(run, version, measured is None or measured.held_out is not None))
    return tuple(judges)


def report(store: Store, project_id: str, golden_id: str, aspect: str, run_id: str | None = None) -> Report:
    """All facts on the judge of calibration or version `run_id` (None: the one in use, else the newest with a result).

    Reads only; nothing new is asked of a judge.  NotFoundError for unknown ids, JobError while no calibration of that
    aspect has come to a result, or for a version that was not measured on held-out items.  `core.report` draws it.
    """
    run = _calibration_run(store, project_id, golden_id, aspect, run_id)
    calibration = as_claimed(store, run.run_id, load_calibration(store, run.run_id))
    if not calibration.held_out.n:
        raise JobError(
            "This version of the judge was not measured on held-out items, so there is nothing to report. Figures "
            "on the calibration set are optimistic. Measure the judge on held-out items first."
        )
    line, openings = judge_line(store, project_id, aspect), list_held_out_accesses(store, project_id, golden_id, aspect)
    used = used_before(line, run, openings)
    triage = list_triage(store, project_id, golden_id, aspect)
    judged = ReportedJudge(store.goldens.load(golden_id), calibration, run.run_id)
    board, aside = judged.board(as_compared(store, project_id, store.judges.all(project_id, golden_id, aspect)))
    names = criteria_names(store, project_id, aspect)
    return Report(
        project=store.projects.get(project_id).name,
        made_at=datetime.now(UTC),
        golden=store.goldens.get(golden_id),
        simulated=is_simulated(judged.golden, aspect),
        run=run,
        asked=calibration_asked(store, run.run_id),
        judged=judged,
        raters=raters_of(judged).without_claim(used),
        line=line,
        seen_before=used,
        chosen=tuple((names.get(each.criteria_id, "Criteria"), each) for each in calibration.chosen if each.text),
        board=board.without_p(0, used),
        aside=aside,
        means=judged.means(
            seen=seen_labels(store, project_id, golden_id, judged.scores),
            picked=picked_labels(store, project_id, golden_id, aspect),
        ),
        examination=judged.examined(),
        curve=judged.curve(),
        sure=judged.sure(),
        misaligned=misaligned(judged, {item_id: found for item_id, found in triage.items() if found.verdict}),
        openings=tuple(openings),
    )


def _calibration_run(store: Store, project_id: str, golden_id: str, aspect: str, run_id: str | None) -> Run:
    """The calibration or version `run_id`, or the one in use, else the newest of that aspect with a result."""
    name = store.goldens.get(golden_id).name
    complete = judge_runs(store, project_id, golden_id, aspect)
    if run_id is not None and all(run.run_id != run_id for run in complete):
        store.runs.get(run_id)
        raise JobError(
            f"Run {run_id[:40]} is no finished calibration of {aspect} on {name}, so there is nothing to report. Name "
            "one that is, or leave it out to take the newest."
        )
    if not complete:
        raise JobError(
            f"No calibration of {aspect} on {name} has come to a result yet, so there is nothing to report. Run one to "
            "its end first."
        )
    return next((run for run in complete if run.run_id == run_id), complete[0])
