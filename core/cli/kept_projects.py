"""Commands for projects: report, export-project, import-project, demo, worker, storage."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.options import (
    AspectOption,
    ForceFlag,
    command,
    settings_and_store,
)
from core.cli.output import cautions, tell
from core.errors import UsageError
from core.wording import counted


@command("Projects")
def report(
    *,
    project: Annotated[str, typer.Option("--project", help="The project's name or id.")],
    aspect: AspectOption,
    out: Annotated[Path, typer.Option(help="Folder for report.html, appendix.html and figures.csv.")],
    golden: Annotated[
        str,
        typer.Option(help="Name or id of the golden set (default: the newest golden set with a finished calibration)."),
    ] = "",
    force: ForceFlag = False,
) -> None:
    """Write the report on a project's judge as HTML and CSV."""
    from core.files import require_new
    from core.projects.project import REPORT_FILES, write_report
    from core.report.headline import headline, headline_notes, limits, sign_off, standing

    require_new((out / name for name in REPORT_FILES), force=force)
    written = write_report(project, aspect, out, golden=golden)
    report, head, limited = written.report, headline(written.report), limits(written.report)
    version, people, beside = report.version, report.raters.ceiling, report.raters.beside
    body: dict[str, Any] = {
        "project": report.project,
        "golden": {"name": report.golden.name, "digest": report.golden.golden_id},
        "aspect": aspect,
        "run": report.run.run_id,
        "version": None if version is None else {"number": version.number, "state": version.state},
        "signed_off": sign_off(report),
        "headline": f"{head.headline} {head.detail}",
        "standing": standing(report),
        "calibration": report.calibration.calibration.as_json(),
        "held_out": report.held_out.as_json(),
        "ceiling": None if people.value is None else people.as_json(),
        "beside_people": beside and beside.as_json(),
        "annotator_tests": [] if report.raters.test is None else [report.raters.test.as_json()],
        "limits": [{"title": limit.headline, "text": limit.detail} for limit in limited],
        "files": {"html": str(written.html), "appendix": str(written.appendix), "csv": str(written.csv)},
        "out": str(out),
    }
    lines = [
        f"{head.headline} {head.detail}",
        *headline_notes(report),
        *cautions([f"{limit.headline}. {limit.detail}" for limit in limited]),
    ]
    tell(body, [*lines, f"Written: {', '.join(body['files'].values())}"])


@command("Projects", "export-project")
def export_project(
    project: Annotated[str, typer.Argument(help="The project's name or id.")],
    out: Annotated[
        str, typer.Option(help="Zip file to write, or a folder for the file. The name of a folder must end in /.")
    ],
    force: ForceFlag = False,
) -> None:
    """Export a project to a zip file. The file never contains a key."""
    from core import projects
    from core.files import is_folder, require_new

    settings, store = settings_and_store()
    chosen = projects.find_project(store, project)
    name = "-".join(re.findall(r"\w+", chosen.name.lower()))[:60] or "project"
    path = Path(out) / f"{name}.zip" if is_folder(out) else Path(out)
    require_new([path], force=force)
    exported = projects.export_project(store, settings, chosen.project_id, path)
    body = {
        "project": chosen.project_id,
        "name": exported.project,
        "out": str(path),
        "bytes": exported.size,
        "digest": exported.digest,
        "holds": dict(exported.holds),
    }
    lines = [f"{exported.project}: {exported.words}.", f"Written to {path}, {exported.size / 1e3:,.1f} kB."]
    tell(body, lines)


@command("Projects", "import-project")
def import_project(
    file: Annotated[Path, typer.Argument(help="Zip file that export-project wrote.")],
    name: Annotated[str, typer.Option(help="Name for the imported project (default: the name in the file).")] = "",
) -> None:
    """Create a project from a zip file that export-project wrote. Imported runs are read-only."""
    from core import projects

    settings, store = settings_and_store()
    imported = projects.import_project(store, settings, file, name=name)
    body = {
        "project": imported.project_id,
        "name": imported.project.name,
        "renamed": imported.renamed,
        "digest": imported.file.digest,
        "holds": dict(imported.file.holds),
        "home": str(settings.home),
    }
    lines = [f"{imported.project.name}: {imported.file.words}."]
    if imported.file.holds["runs"]:
        lines.append("Imported runs are read-only. To start a run of your own, choose a judge and calibrate it.")
    tell(body, lines)


@command("Projects")
def demo(
    reset: Annotated[bool, typer.Option("--reset", help="Restore the demo project to its original state.")] = False,
) -> None:
    """Add the finished demo project. It needs no key and no network."""
    from core import projects

    settings, store = settings_and_store()
    project = projects.reset_demo(store, settings) if reset else projects.ensure_demo(store, settings)
    projects.ensure_sample_project(store)
    sets = [golden.name for golden in store.goldens.all(project.project_id)]
    body = {"project": project.project_id, "golden_sets": sets, "runs": project.n_runs, "home": str(settings.home)}
    lines = [
        f"{project.name}: {project.n_runs} finished runs on {', '.join(sets)}. Folder: {settings.home}.",
        "The labels are simulated and the raters are fictional. The demo shows how Concord works, not how good a "
        "judge is.",
        "To open it, run: streamlit run app.py",
    ]
    tell(body, lines)


@command("Projects")
def worker() -> None:
    """Start a worker, which processes the queue of runs until you stop it."""
    from core.jobs.worker import run_worker
    from core.settings import Settings

    run_worker(Settings.from_environment())
    tell({"stopped": True}, ["Worker stopped."])


@command("Projects")
def storage(
    *,
    days: Annotated[
        float | None,
        typer.Option(
            "--older-than", help="Count cached replies and hidden states that are older than this number of days."
        ),
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete what --older-than counts.")] = False,
) -> None:
    """Show what is stored, and delete old cached replies and hidden states. Scores and reports are kept."""
    from core.projects.project_list import prune
    from core.projects.project_list import storage as measured

    if delete and days is None:
        raise UsageError("--delete requires --older-than DAYS.")
    settings, store = settings_and_store()
    body: dict[str, Any] = {"home": str(settings.home)}
    lines = []
    if days is not None:
        replies, n_states, states_bytes = prune(store, settings, days, delete=delete)
        states = {"n_states": n_states, "states_bytes": states_bytes}
        body["old"] = {"deleted": delete, "replies": asdict(replies), **states}
        lines = [
            f"{counted(replies.n, 'reply', 'replies')} ({_megabytes(replies.n_bytes)}) can be requested again.",
            f"{counted(n_states, 'file')} of hidden states ({_megabytes(states_bytes)}) can be computed again.",
            "All of these were deleted." if delete else "Nothing was deleted. To delete all of these, add --delete.",
        ]
    held = measured(store, settings)
    body["held"] = [asdict(each) for each in held]
    for each in held:
        lines.append(f"{each.what:<40} {each.n:>12,} {_megabytes(each.n_bytes):>12}")
    tell(body, [*lines, f"in {settings.home}"])


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.1f} MB"
