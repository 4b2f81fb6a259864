"""Commands for golden sets: check, fetch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from core.cli.options import ForceFlag, GoldenFile, command
from core.cli.output import place, tell, wants_verbose
from core.wording import counted


@command("Judge")
def check(golden: GoldenFile) -> None:
    """Validate a golden set: columns, scales, groups, ids and labels."""
    from core.data import check_file

    report = check_file(golden.golden, values=golden.values or None, mapping=golden.mapped)
    tell(report, _check_words(report, golden))
    if any(finding["severity"] == "error" for finding in report["findings"]):
        raise typer.Exit(1)


@command("Data")
def fetch(
    name: Annotated[str, typer.Argument(help="Name of the set, such as summeval. Omit it to list all sets.")] = "",
    *,
    out: Annotated[
        Path | None, typer.Option(help="Golden set file to write (default: NAME.jsonl in the current folder).")
    ] = None,
    force: ForceFlag = False,
) -> None:
    """Download a public set of human ratings and convert it to a golden set."""
    from core.data.public_sets import CATALOGUE, fetch_benchmark, find_benchmark

    if not name:
        lines = []
        for each in CATALOGUE:
            sizes = f"{each.n_items:,} items from {each.n_sources:,} sources"
            lines.append(f"{each.name:<13} {each.title}: {', '.join(each.aspects)} ({each.scale}), {sizes}")
            lines.append(f"{'':<13} licence: {each.licence}; {each.home}")
        tell({"benchmarks": [each.as_json() for each in CATALOGUE]}, lines)
        return
    benchmark = find_benchmark(name)
    body = fetch_benchmark(benchmark, out or Path(f"{benchmark.name}.jsonl"), force=force)
    lines = [f"{body['title']}: {counted(body['n_items'], 'item')}, written to {body['out']}"]
    lines += [f"  {aspect}: {counted(facts['n_labelled'], 'label')}" for aspect, facts in body["aspects"].items()]
    if body["warnings"]:
        lines.append(
            f"{counted(len(body['warnings']), 'warning')}. To see them, run: python -m core check {body['out']}"
        )
    tell(body, [*lines, f"Licence: {body['licence']}", f"Cite: {body['citation']}"])


MOST_FINDINGS = 3
"""Maximum number of findings without --verbose, in addition to errors."""


def _check_words(report: dict[str, Any], golden: GoldenFile) -> list[str]:
    counts = f"{counted(report['n_items'], 'item')}, {counted(report['n_sources'], 'source')}"
    lines = [f"{counts}, {counted(report['n_systems'], 'system')}"]
    widest = max(map(len, report["aspects"]), default=0)
    for aspect, facts in report["aspects"].items():
        low, high = facts["scale"]
        lines.append(f"  {aspect:<{widest}}  {facts['n_labelled']:>5,} labels, {low:g} to {high:g}")
    causes = _by_cause(report["findings"])
    errors = [words for severity, words in causes if severity == "error"]
    others = [words for severity, words in causes if severity != "error"]
    shown = others if wants_verbose.get() else others[:MOST_FINDINGS]
    lines += [*errors, *shown]
    if len(shown) < len(others):
        lines.append(f"{counted(len(others) - len(shown), 'more finding')}. To see all findings, add --verbose.")
    if errors or not report["aspects"]:
        return (
            [*lines, "Next: correct the file, or add the options named in the errors. Then check the file again."]
            if errors
            else lines
        )
    given = [part for value in golden.values for part in ("--values", value)]
    given += [part for value in golden.mapped or () for part in ("--map", value)]
    named = shlex.join([str(golden.golden), "--aspect", next(iter(report["aspects"])), *given])
    return [*lines, f"Next: python -m core calibrate {named} --out out"]


def _by_cause(findings: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return (severity, text) per cause. Columns with the same finding share a line."""
    columns: dict[tuple[str, str, int | None], list[str]] = {}
    for finding in findings:
        named = columns.setdefault((finding["severity"], finding["message"], finding["row"]), [])
        named += [finding["column"]] if finding["column"] else []
    return [
        (severity, f"{severity.capitalize()}: {message}{place(row, ', '.join(named) or None)}")
        for (severity, message, row), named in columns.items()
    ]
