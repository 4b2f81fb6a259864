"""A kept project in a notebook: the same runs, judges and criteria that the screens show, and its report as files.

::

    project = core.open_project("Summaries", create=True)
    golden_id = project.add("golden.jsonl")
    run_id = project.start_calibration(golden_id, "coherence", judge="offline", preset="quick")
    result = project.wait(run_id)            # Calibration, found again by project.calibration(run_id)
    project.report(golden_id, "coherence")   # all that is known of the calibrated judge

Everything lies in `CONCORD_HOME` (or the database that `CONCORD_DATABASE_URL` names), so a screen that is open beside
the notebook shows it too.  Whoever runs this process may do everything, as at the command line.  What has no method
here is a function of `core.projects`: ``projects.resume_run(project.store, project.settings, run_id)``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core import projects
from core.calibration.calibration_records import Calibration, CalibrationSettings
from core.data import load_golden
from core.errors import JobError, NotFoundError
from core.files import write_text
from core.judging.scoring_styles import Asking
from core.project_records import CriteriaEntry, GoldenSummary, JudgeEntry, ProjectSummary, Run
from core.projects.calibration import CalibrationRequest
from core.projects.judge_line import JudgeLine
from core.projects.project_files import ProjectFile
from core.projects.project_list import named
from core.records import GoldenSet
from core.report.page import appendix_page, figures_csv, html_page
from core.report.report_facts import Report
from core.settings import Settings
from core.store.store import Store

_POLL_SECONDS = 0.5
REPORT_FILES = ("report.html", "appendix.html", "figures.csv")


class Project:
    """A project of the store, opened by `core.open_project`."""

    def __init__(self, store: Store, settings: Settings, project_id: str) -> None:
        self.store, self.settings, self.project_id = store, settings, project_id

    def __repr__(self) -> str:
        about = self.summary
        return f"Project({about.name!r}, {about.n_goldens} golden sets, {about.n_runs} runs)"

    @property
    def summary(self) -> ProjectSummary:
        return self.store.projects.get(self.project_id)

    # ── golden sets ──────────────────────────────────────────────────────────────────────────────────────────

    @property
    def goldens(self) -> list[GoldenSummary]:
        """The project's golden sets, newest first."""
        return self.store.goldens.all(self.project_id)

    def add(self, golden: GoldenSet | Path | str, **columns: Any) -> str:
        """Add a golden set, or the one in a file (`columns` as for `core.load_golden`); returns its id."""
        if not isinstance(golden, GoldenSet):
            golden = load_golden(golden, **columns)
        return projects.add_golden(self.store, self.project_id, golden)

    def golden(self, name: str) -> GoldenSet:
        """The golden set of that id, or the only one of that name.

        NotFoundError lists those there are; UsageError where several have the name.
        """
        return self.store.goldens.load(self._golden_id(name))

    def _golden_id(self, name: str) -> str:
        return named(name, [(golden.golden_id, golden.name) for golden in self.goldens], "golden set", "in the project")

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def runs(self) -> list[Run]:
        """The project's runs of every kind, newest first."""
        return self.store.runs.all(self.project_id)

    def start_calibration(
        self,
        golden: str,
        aspect: str,
        judge: str = "offline",
        *,
        settings: CalibrationSettings | None = None,
        definition: str = "",
        asking: Asking | None = None,
        **choices: Any,
    ) -> str:
        """Put a calibration in the queue, see to a worker, and return the run's id; arguments as `core.calibrate`.

        `golden` is the id or name of a golden set of the project.
        """
        chosen = replace(settings or CalibrationSettings(), **choices)
        request = CalibrationRequest(
            self.project_id,
            self._golden_id(golden),
            aspect,
            judge,
            chosen,
            definition=definition,
            asking=asking or Asking(),
        )
        return projects.start_run(self.store, self.settings, request)

    def wait(self, run_id: str, seconds: float | None = None) -> Any:
        """The result of a run, once its worker has done it: a `Calibration`, or the record of its kind.

        JobError where the run failed or was cancelled, or after so many `seconds`; the run itself goes on.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while not (run := self.store.runs.get(run_id)).finished:
            if end is not None and time.monotonic() > end:
                raise JobError(f"Run {run_id} is {run.status} after {seconds:g} s: {run.message}.")
            time.sleep(_POLL_SECONDS)
        outcome = projects.run_view(self.store, run_id).outcome
        if outcome is None:
            raise JobError(f"Run {run_id} was {run.status}: {run.error or run.message}")
        return outcome

    # ── what came of them ────────────────────────────────────────────────────────────────────────────────────

    def calibration(self, run_id: str) -> Calibration:
        """The result of a finished calibration.  JobError while there is none."""
        return projects.load_calibration(self.store, run_id)

    def judge_file(self, run_id: str) -> str:
        """The text of `judge.yaml` of a finished calibration, for `core.load_judge`."""
        return projects.judge_file(self.store, run_id)

    def judges(self, golden: str | None = None, aspect: str | None = None) -> list[JudgeEntry]:
        """Judges to be compared, with their scores; of one golden set, of one aspect."""
        golden_id = None if golden is None else self._golden_id(golden)
        return self.store.judges.all(self.project_id, golden_id, aspect)

    def criteria(self, aspect: str | None = None) -> Sequence[CriteriaEntry]:
        """The project's criteria with their alignments, newest first."""
        return self.store.criteria.all(self.project_id, aspect)

    # ── versions of the judge ────────────────────────────────────────────────────────────────────────────────

    def versions(self, aspect: str) -> JudgeLine:
        """The versions of the judge of an aspect: `.versions`, oldest first, and `.current`."""
        return projects.judge_line(self.store, self.project_id, aspect)

    def report(self, golden: str, aspect: str, run_id: str | None = None) -> Report:
        """All facts on the newest calibrated judge of the aspect, or on that of `run_id`."""
        return projects.report(self.store, self.project_id, self._golden_id(golden), aspect, run_id)

    def export(self, path: Path | str) -> ProjectFile:
        """Write the whole project as one zip, which `import-project` reads."""
        return projects.export_project(self.store, self.settings, self.project_id, Path(path))


def open_project(name_or_id: str, home: Path | str | None = None, *, create: bool = False) -> Project:
    """The kept project of that id, or the only one of that name; `create` makes one where there is none.

    It lies where the environment says, or in the folder `home`.  NotFoundError lists the projects there are;
    UsageError where several have the name.
    """
    settings = Settings.from_environment()
    if home is not None:
        settings = replace(settings, home=Path(home).expanduser().absolute(), database_url="")
    store = projects.open_store(settings)
    try:
        project = projects.find_project(store, name_or_id)
    except NotFoundError:
        if not create:
            raise
        project = projects.create_project(store, name_or_id)
    return Project(store, settings, project.project_id)


@dataclass(frozen=True)
class WrittenReport:
    """The facts of a report and the files written: page, appendix, and figures as CSV."""

    report: Report
    html: Path
    appendix: Path
    csv: Path


def write_report(
    project: str,
    aspect: str,
    out: str | Path,
    *,
    golden: str = "",
    run: str = "",
) -> WrittenReport:
    """Write all that a project of `CONCORD_HOME` knows of a calibrated judge into the folder `out`.

    The files are `report.html` (one page), `appendix.html` (all the rest) and `figures.csv`, as `python -m core report`
    writes them.  `project` is a name or an id, `golden` too ("": the newest golden set with a
    finished calibration of `aspect`); `run` is the id of the calibration or version to report on ("": that of the
    version in use).  NotFoundError for unknown names, UsageError for a name that several have, JobError while no
    calibration of that aspect has come to a result; nothing is written then.
    """
    opened, folder = open_project(project), Path(out)
    if not golden:
        goldens = [each.golden_id for each in opened.goldens]
        if not goldens:
            raise NotFoundError(
                f"The project {opened.summary.name!r} has no golden set, so there is nothing to report."
            )
        runs = ((each, projects.calibrations_of(opened.store, opened.project_id, each, aspect)) for each in goldens)
        golden = next((golden_id for golden_id, finished in runs if finished), goldens[0])
    report = opened.report(golden, aspect, run or None)
    written = WrittenReport(report, *(folder / name for name in REPORT_FILES))
    write_text(written.html, html_page(report))
    write_text(written.appendix, appendix_page(report))
    write_text(written.csv, figures_csv(report))
    return written
