"""The commands that take a project away and bring it in (export-project, import-project)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.cli.options import JsonFlag
from core.cli.words import tell

if TYPE_CHECKING:
    from core.projects.consent import AskedEndpoint


commands = typer.Typer(add_completion=False)


@commands.command("export-project")
def export_project(
    project: Annotated[str, typer.Argument(help="The project's name, or its id.")],
    out: Annotated[Path, typer.Option(help="The zip to write.")],
    without_replies: Annotated[
        bool, typer.Option("--without-replies", help="Leave out the replies that endpoints gave.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a whole project to one zip: golden sets, runs, criteria, labels, decisions, log. Never a key."""
    from core import projects
    from core.settings import Settings

    settings = Settings.from_environment()
    store = projects.open_store(settings)
    chosen = projects.find_project(store, project)
    told = projects.export_project(store, settings, chosen.project_id, out, replies=not without_replies)
    body = {
        **{"project": chosen.project_id, "name": told.project, "out": str(out), "bytes": told.size},
        **{"digest": told.digest, "holds": asdict(told.holds), "unfinished_runs": told.unfinished},
        **{"replies_without_run": told.replies_without_run},
    }
    lines = [f"{told.project}: {told.holds.words}.", f"Written to {out}, {told.size / 1e3:,.1f} kB."]
    if told.unfinished:
        lines.append(f"Note: runs that are not over leave as cancelled: {told.unfinished}.")
    if told.replies_without_run:
        lines.append(f"Note: replies that belong to no run stay here: {told.replies_without_run:,}.")
    tell(body, as_json, lambda _: lines)


@commands.command("import-project")
def import_project(
    file: Annotated[Path, typer.Argument(help="A zip that export-project wrote.")],
    name: Annotated[str, typer.Option(help="The project's name here; default: the name it had.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Make a new project of such a zip; nothing that is here changes, and a file that cannot be trusted is refused.

    Nothing in it asks an endpoint before somebody here allows it: allow-endpoint.
    """
    from core import projects
    from core.settings import Settings

    settings = Settings.from_environment()
    store = projects.open_store(settings)
    told = projects.import_project(store, settings, file, name=name)
    body: dict[str, Any] = {
        **{"project": told.project_id, "name": told.project.name, "renamed": told.renamed, "digest": told.digest},
        **{"holds": asdict(told.holds), "runs_renamed": told.runs_renamed, "home": str(settings.home)},
        "endpoints": [{"endpoint": one.endpoint, "models": list(one.models)} for one in told.endpoints],
    }
    lines = [f"{told.project.name}: {told.holds.words}."]
    if told.renamed:
        lines.append("Its name was taken here, so it got another.")
    if told.runs_renamed:
        lines.append(f"Runs that have a new id, since theirs is taken here: {told.runs_renamed}.")
    if told.endpoints:
        lines.append("Its runs and judges name these endpoints; nothing is sent there before allow-endpoint says so:")
        lines += [f"  {one.endpoint or 'the usual one here'}: {', '.join(one.models)}" for one in told.endpoints]
    tell(body, as_json, lambda _: lines)


@commands.command("allow-endpoint")
def allow_endpoint(
    project: Annotated[str, typer.Argument(help="The imported project's name, or its id.")],
    endpoint: Annotated[str, typer.Argument(help="A base URL; without one, those that its runs ask are listed.")] = "",
    with_key: Annotated[
        bool, typer.Option("--with-key", help="Send OPENAI_API_KEY there too, though it is no usual endpoint here.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Let an imported project send the texts of its items to an endpoint, or list the endpoints that its runs ask."""
    from core import projects
    from core.settings import Settings

    settings = Settings.from_environment()
    store = projects.open_store(settings)
    project_id = projects.find_project(store, project).project_id
    if endpoint:
        projects.allow_endpoint(store, settings, project_id, endpoint, with_key=with_key)
    listed = projects.endpoints_of_project(store, settings, project_id)
    body = {"project": project_id, "endpoints": [_told(one) for one in listed]}
    tell(body, as_json, lambda _: [_words(one) for one in listed] or ["Nothing in this project waits for a word."])


def _told(one: AskedEndpoint) -> dict[str, Any]:
    return {
        **{"endpoint": one.endpoint, "models": list(one.models), "allowed": one.allowed, "with_key": one.with_key},
        **{"by": one.by, "at": None if one.at is None else one.at.isoformat(timespec="seconds")},
    }


def _words(one: AskedEndpoint) -> str:
    models = f" ({', '.join(one.models)})" if one.models else ""
    if not one.allowed:
        return f"not allowed  {one.endpoint}{models}"
    return f"allowed {'with' if one.with_key else 'without'} the key  {one.endpoint}{models}"
