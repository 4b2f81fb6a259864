"""The command that writes the report on a calibrated judge (report)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.cli.options import AspectOption, JsonFlag
from core.cli.words import tell
from core.errors import NotFoundError, UsageError

if TYPE_CHECKING:
    from core.kept import GoldenSummary, ProjectSummary
    from core.store.store import Store

commands = typer.Typer(add_completion=False)


@commands.command()
def report(
    *,
    project: Annotated[str, typer.Option("--project", help="The project's name, or its id.")],
    aspect: AspectOption,
    out: Annotated[Path, typer.Option(help="Folder for report.html, report.md and figures.csv.")],
    golden: Annotated[str, typer.Option(help="Name or id; default: the newest with a finished calibration.")] = "",
    run: Annotated[str, typer.Option(help="Id of a calibration; default: the newest finished one.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Write all that is known of a calibrated judge as one HTML page, as Markdown, and every figure as CSV."""
    from core import projects
    from core.export import write_text
    from core.report.headline import headline
    from core.report.limits import limits
    from core.report.markdown import markdown_page
    from core.report.page import html_page
    from core.report.rows import figures_csv
    from core.settings import Settings

    store = projects.open_store(Settings.from_environment())
    chosen = projects.find_project(store, project)
    view = _golden(store, chosen, golden, aspect)
    found = projects.report(store, chosen.project_id, view.golden_id, aspect, run or None)
    files = {
        "html": (out / "report.html", html_page(found)),
        "markdown": (out / "report.md", markdown_page(found)),
        "csv": (out / "figures.csv", figures_csv(found)),
    }
    for path, text in files.values():
        write_text(path, text)
    head, told = headline(found), limits(found)
    people, beside = found.labelling.ceiling, found.labelling.beside
    body: dict[str, Any] = {
        "project": chosen.name,
        "golden": {"name": view.name, "digest": view.golden_id},
        "aspect": aspect,
        "run": found.result.run_id,
        "headline": head.sentence,
        "standing": head.standing,
        "calibration": found.result.final.calibration.as_json(),
        "held_out": found.result.final.held_out.as_json(),
        "ceiling": None if people is None else people.as_json(),
        "beside_people": None if beside is None else beside.as_json(),
        "annotator_tests": [one.as_json() for one in found.labelling.tests],
        "limits": [{"title": one.title, "text": one.text} for one in told],
        "files": {kind: str(path) for kind, (path, _) in files.items()},
        "bytes": {kind: path.stat().st_size for kind, (path, _) in files.items()},
        "out": str(out),
    }
    lines = [head.sentence, *head.details, *(f"Keep in mind: {one.title}. {one.text}" for one in told)]
    tell(body, as_json, lambda b: [*lines, f"Written: {', '.join(b['files'].values())}"])


def _golden(store: Store, project: ProjectSummary, wanted: str, aspect: str) -> GoldenSummary:
    """The golden set of that id or name; without one the newest that has a finished calibration of the aspect."""
    from core import projects

    listed = projects.list_goldens(store, project.project_id)
    if not listed:
        raise NotFoundError(f"The project {project.name!r} has no golden set, so there is nothing to report.")
    if not wanted:
        ready = (one for one in listed if projects.calibrations_of(store, project.project_id, one.golden_id, aspect))
        return next(ready, listed[0])
    found = [one for one in listed if wanted in (one.golden_id, one.name)]
    if not found:
        known = ", ".join(repr(one.name) for one in listed[:10])
        raise NotFoundError(f"There is no golden set {wanted[:80]!r} in {project.name!r}; there is {known}.")
    if len(found) > 1:
        ids = ", ".join(one.golden_id for one in found)
        raise UsageError(f"{len(found)} golden sets are called {wanted!r}. Name one by its id: {ids}.")
    return found[0]
