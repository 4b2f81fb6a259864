"""Work with a stored project from a notebook, and write its report to files.

::

    project = core.open_project("Summaries", create=True)
    golden_id = project.add("golden.jsonl")
    run_id = project.start_calibration(golden_id, "coherence", judge="offline", preset="quick")
    result = project.wait(run_id)            # a Calibration
    project.report(golden_id, "coherence")   # all facts on the calibrated judge

Projects are stored in `CONCORD_HOME`, or in the database of `CONCORD_DATABASE_URL`. The notebook's user has the admin
role. Everything else is in `core.projects`, such as ``projects.judge_file(project.store, run_id)``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.data import load_golden
from core.errors import JobError, NotFoundError
from core.files import write_text
from core.judging.scoring_styles import Asking
from core.projects.calibration import CalibrationRequest
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
    """A stored project, opened with `core.open_project`."""

    def __init__(self, store: Store, settings: Settings, project_id: str) -> None:
        self.store, self.settings, self.project_id = store, settings, project_id

    def add(self, golden: GoldenSet | Path | str, **columns: Any) -> str:
        """Add a golden set, or the file at a path, and return its id. `columns` are as in `core.load_golden`."""
        if not isinstance(golden, GoldenSet):
            golden = load_golden(golden, **columns)
        return projects.add_golden(self.store, self.project_id, golden)

    def _golden_id(self, name: str) -> str:
        goldens = [(golden.golden_id, golden.name) for golden in self.store.goldens.all(self.project_id)]
        return named(name, goldens, "golden set", "in the project")

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
        """Enqueue a calibration with the arguments of `core.calibrate`, and return the run id.

        `golden` is the id or unique name of a golden set of the project.
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
        """Wait for a run and return its result, such as a `Calibration`.

        Raises:
            JobError: The run fails or is cancelled, or takes longer than `seconds`. After such a timeout, the run
                continues.
        """
        end = None if seconds is None else time.monotonic() + seconds
        while not (run := self.store.runs.get(run_id)).finished:
            if end is not None and time.monotonic() > end:
                raise JobError(
                    f"Run {run_id} is still {run.status} after {seconds:g} s: {run.message}. The run continues."
                )
            time.sleep(_POLL_SECONDS)
        outcome = projects.run_view(self.store, run_id).outcome
        if outcome is None:
            raise JobError(f"Run {run_id} was {run.status}: {run.error or run.message}")
        return outcome

    def report(self, golden: str, aspect: str, run_id: str | None = None) -> Report:
        """Return the report on the judge that run `run_id` measured.

        If `run_id` is None, the report is on the default version, or else on the judge of the newest run.
        """
        return projects.report(self.store, self.project_id, self._golden_id(golden), aspect, run_id)

    def export(self, path: Path | str) -> ProjectFile:
        """Export the whole project to a zip file for `import-project`."""
        return projects.export_project(self.store, self.settings, self.project_id, Path(path))


def open_project(name_or_id: str, home: Path | str | None = None, *, create: bool = False) -> Project:
    """Open a stored project.

    Args:
        name_or_id: Its id or unique name.
        home: Folder of the store; None takes it from the environment.
        create: Create the project if it does not exist.

    Raises:
        NotFoundError: The project is unknown. The message lists the projects.
        UsageError: Several projects have the name.
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
    """A report that was written to files, with the paths."""

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
    """Write the report on a calibrated judge to the folder `out`: `report.html`, `appendix.html`, `figures.csv`.

    Args:
        project: Name or id of the project.
        golden: Name or id of the golden set; "" takes the newest with a result.
        run: Id of the run that made the judge; "" takes the default version of the judge.

    Raises:
        NotFoundError: A name is unknown.
        UsageError: A name is ambiguous.
        JobError: There is no result.
    """
    opened, folder = open_project(project), Path(out)
    if not golden:
        goldens = [each.golden_id for each in opened.store.goldens.all(opened.project_id)]
        if not goldens:
            raise NotFoundError(
                f"The project {project!r} has no golden set to report on. Add a golden set, and calibrate a judge."
            )
        runs = ((each, projects.judge_runs(opened.store, opened.project_id, each, aspect)) for each in goldens)
        golden = next((golden_id for golden_id, finished in runs if finished), goldens[0])
    report = opened.report(golden, aspect, run or None)
    written = WrittenReport(report, *(folder / name for name in REPORT_FILES))
    write_text(written.html, html_page(report))
    write_text(written.appendix, appendix_page(report))
    write_text(written.csv, figures_csv(report))
    return written
