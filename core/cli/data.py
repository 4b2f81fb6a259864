"""The commands about golden files: check one, fetch a public one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.options import Golden, JsonFlag
from core.cli.progress import progress_bar
from core.cli.words import tell
from core.errors import UsageError

commands = typer.Typer(add_completion=False)

_WORDS_OF_CHECK = {
    "catalogue": "equal to the catalogue's",
    "earlier fetch": "equal to that of the earlier fetch",
}


@commands.command()
def check(golden: Golden, as_json: JsonFlag = False) -> None:
    """Findings on a golden file: counts, scales, groups, ids, labels."""
    from core.data import check_file

    report = check_file(golden)
    tell(report, as_json, _words_of_check)
    if any(finding["severity"] == "error" for finding in report["findings"]):
        raise typer.Exit(1)


@commands.command()
def fetch(
    name: Annotated[str, typer.Argument(help="The set, such as summeval; --list shows all.")] = "",
    *,
    out: Annotated[Path | None, typer.Option(help="Golden file to write; NAME.jsonl where you stand.")] = None,
    files: Annotated[
        list[Path] | None, typer.Option("--from", help="Convert a file downloaded by hand; once for each file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite, and accept what changed at its home.")] = False,
    show: Annotated[bool, typer.Option("--list", help="The sets, their licences and addresses.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Download a public set of human ratings from its home and convert it to a golden file."""
    from core.data.public_sets import CATALOGUE, fetch_benchmark, find_benchmark
    from core.settings import Settings

    if show:
        tell({"benchmarks": [one.as_json() for one in CATALOGUE]}, as_json, _words_of_list)
        return
    if not name:
        known = ", ".join(one.name for one in CATALOGUE)
        raise UsageError(f"Name the set to fetch: {known}. --list tells more.")
    benchmark = find_benchmark(name)
    record = Settings.from_environment().home / "benchmarks" / f"{benchmark.name}.json"
    with progress_bar("MB") as bar:
        found = fetch_benchmark(
            benchmark,
            out or Path(f"{benchmark.name}.jsonl"),
            record=record,
            files=files or (),
            force=force,
            progress=lambda file, done, of: bar(file, done / 1e6, None if of is None else of / 1e6),
        )
    tell(found.as_json(), as_json, _words_of_fetched)


def _words_of_list(body: dict[str, Any]) -> list[str]:
    lines = []
    for one in body["benchmarks"]:
        sizes = f"{one['n_items']:,} items of {one['n_sources']:,} sources"
        lines += [
            f"{one['name']:<13} {one['title']}: {one['task']}, {sizes}",
            f"{'':<13} {', '.join(one['aspects'])} ({one['scale']})",
            f"{'':<13} licence: {one['licence']}; {one['home']}",
        ]
    return lines


def _words_of_fetched(body: dict[str, Any]) -> list[str]:
    sizes = f"{_count(body['n_items'], 'item')} of {_count(body['n_sources'], 'source')}"
    systems = _count(body["n_systems"], "system") if body["n_systems"] else "systems not named"
    lines = [f"{body['title']}: {sizes}, {systems}, written to {body['out']}"]
    for aspect, facts in body["aspects"].items():
        low, high = facts["scale"]
        raters = f", {_count(facts['n_raters'], 'rater')}" if facts["n_raters"] else ", no individual ratings"
        lines.append(f"  {aspect}: {_count(facts['n_labelled'], 'label')} on {low:g} to {high:g}{raters}")
    lines += [_words_of_file(file) for file in body["files"]]
    lines += [f"Note: {note}" for note in body["notes"]]
    if body["warnings"]:
        lines.append(f"{_count(len(body['warnings']), 'warning')}: python -m core check {body['out']} shows them.")
    return [*lines, f"Licence: {body['licence']}", f"Cite: {body['citation']}"]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _words_of_file(file: dict[str, Any]) -> str:
    size = f"{file['n_bytes'] / 1e6:,.2f} MB, sha256 {file['sha256'][:12]}…"
    known = _WORDS_OF_CHECK.get(file["checked"], "with nothing to compare it with")
    pinned = "; the address names a commit" if file["pinned"] else ""
    return f"{file['file']}: {size} {known}{pinned} ({file['address']})"


def _words_of_check(report: dict[str, Any]) -> list[str]:
    lines = [f"{report['n_items']} items, {report['n_sources']} sources, {report['n_systems']} systems"]
    for aspect, told in report["aspects"].items():
        lines.append(f"  {aspect}: {told['n_labelled']} labels on {told['scale'][0]:g} to {told['scale'][1]:g}")
    for finding in report["findings"]:
        where = ", ".join(f"{part} {finding[part]}" for part in ("row", "column") if finding[part] is not None)
        lines.append(f"{finding['severity']}: {finding['message']}{f' ({where})' if where else ''}")
    return lines
