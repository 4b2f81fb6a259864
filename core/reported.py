"""The report on a calibrated judge that a project keeps, written as files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core import projects
from core.errors import NotFoundError, UsageError
from core.files import write_text
from core.kept import ProjectSummary
from core.report.facts import Report
from core.report.markdown import markdown_page
from core.report.page import html_page
from core.report.rows import figures_csv
from core.settings import Settings
from core.store.store import Store


@dataclass(frozen=True)
class WrittenReport:
    """What is known of the judge, and where it was written: a page, the same as Markdown, and every figure as CSV."""

    report: Report
    html: Path
    markdown: Path
    csv: Path


def write_report(project: str, aspect: str, out: str | Path, *, golden: str = "", run: str = "") -> WrittenReport:
    """Write all that a project of `CONCORD_HOME` knows of a calibrated judge into the folder `out`.

    The files are `report.html`, `report.md` and `figures.csv`, as `python -m core report` writes them.  `project` is a
    name or an id, `golden` too ("": the newest golden set with a finished calibration of `aspect`); `run` is the id of
    a calibration ("": the newest finished one).  NotFoundError for unknown names, UsageError for a name that several
    have, JobError while no calibration of that aspect has come to a result; nothing is written then.
    """
    store, folder = projects.open_store(Settings.from_environment()), Path(out)
    kept = projects.find_project(store, project)
    report = projects.report(store, kept.project_id, _golden_id(store, kept, golden, aspect), aspect, run or None)
    written = WrittenReport(report, folder / "report.html", folder / "report.md", folder / "figures.csv")
    page = html_page(report)
    write_text(written.html, page)
    write_text(written.markdown, markdown_page(page))
    write_text(written.csv, figures_csv(report))
    return written


def _golden_id(store: Store, project: ProjectSummary, wanted: str, aspect: str) -> str:
    """The golden set of that id or name; without one the newest that has a finished calibration of the aspect."""
    listed = projects.list_goldens(store, project.project_id)
    if not listed:
        raise NotFoundError(f"The project {project.name!r} has no golden set, so there is nothing to report.")
    if not wanted:
        ready = (one for one in listed if projects.calibrations_of(store, project.project_id, one.golden_id, aspect))
        return next(ready, listed[0]).golden_id
    matching = [one for one in listed if wanted in (one.golden_id, one.name)]
    if not matching:
        known = ", ".join(repr(one.name) for one in listed[:10])
        raise NotFoundError(f"There is no golden set {wanted[:80]!r} in {project.name!r}; there is {known}.")
    if len(matching) > 1:
        ids = ", ".join(one.golden_id for one in matching)
        raise UsageError(f"{len(matching)} golden sets are called {wanted!r}. Name one by its id: {ids}.")
    return matching[0].golden_id
