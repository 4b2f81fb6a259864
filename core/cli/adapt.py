"""The command that takes a judge file to another tool: adapt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from core.cli.options import JsonFlag
from core.cli.words import tell
from core.errors import UsageError

if TYPE_CHECKING:
    from core.export.adapters import Adapter

commands = typer.Typer(add_completion=False)


@commands.command()
def adapt(
    judge: Annotated[Path, typer.Argument(help="A judge.yaml.")],
    *,
    to: Annotated[str, typer.Option("--to", help="The tool; --list names them.")] = "",
    out: Annotated[Path | None, typer.Option(help="File or folder to write to; else standard output.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Every tool, with what is kept and lost.")] = False,
    accept_edited: Annotated[
        bool, typer.Option("--accept-edited", help="Take a judge file changed after its export.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """A calibrated judge as a file for another tool; what the tool cannot hold is said in the file."""
    from core.export import read_card
    from core.export.adapters import NAMES, adapter, adapters
    from core.files import write_text

    if bool(to) == listed:
        raise UsageError(f"Name one tool with --to ({', '.join(NAMES)}), or ask for --list.")
    card = read_card(judge, accept_edited=accept_edited)
    if listed:
        found = [_told(one) for one in adapters(card)]
        tell({"adapters": found}, as_json, lambda _: [line for one in found for line in _words(one)])
        return
    made = adapter(card, to)
    for line in made.lost:
        typer.echo(f"Lost: {line}", err=True)
    if out is None:
        tell(_told(made) | {"text": made.text}, as_json, lambda _: [made.text.rstrip("\n")])
        return
    path = out / made.file_name if out.is_dir() else out
    write_text(path, made.text)
    tell(_told(made) | {"out": str(path)}, as_json, lambda _: [f"Written to {path}"])


def _told(one: Adapter) -> dict[str, Any]:
    told = {"name": one.name, "title": one.title, "file_name": one.file_name}
    return told | {"kept": list(one.kept), "lost": list(one.lost)}


def _words(one: dict[str, Any]) -> list[str]:
    return [
        f"{one['name']}: {one['title']} ({one['file_name']})",
        *(f"  kept: {line}" for line in one["kept"]),
        *(f"  lost: {line}" for line in one["lost"]),
    ]
