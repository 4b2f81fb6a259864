"""The command that writes the report on a calibrated judge (report)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.options import AspectOption, JsonFlag
from core.cli.words import tell

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
    from core.api.project import write_report
    from core.report.findings import headline, limits

    written = write_report(project, aspect, out, golden=golden, run=run)
    report, head, cautions = written.report, headline(written.report), limits(written.report)
    files = {"html": written.html, "markdown": written.markdown, "csv": written.csv}
    people, beside = report.raters.ceiling.alignment, report.raters.beside
    body: dict[str, Any] = {
        "project": report.project,
        "golden": {"name": report.golden.name, "digest": report.golden.golden_id},
        "aspect": aspect,
        "run": report.run.run_id,
        "headline": head.sentence,
        "standing": head.standing,
        "calibration": report.calibration.calibration.as_json(),
        "held_out": report.held_out.as_json(),
        "ceiling": None if people is None else people.as_json(),
        "beside_people": None if beside is None else beside.as_json(),
        "annotator_tests": [test.as_json() for test in report.raters.tests],
        "limits": [{"title": limit.title, "text": limit.text} for limit in cautions],
        "files": {kind: str(path) for kind, path in files.items()},
        "bytes": {kind: path.stat().st_size for kind, path in files.items()},
        "out": str(out),
    }
    lines = [head.sentence, *head.details, *(f"Keep in mind: {limit.title}. {limit.text}" for limit in cautions)]
    tell(body, as_json, lambda b: [*lines, f"Written: {', '.join(b['files'].values())}"])
