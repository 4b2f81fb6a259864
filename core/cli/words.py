"""What commands print: one JSON object, or lines for people."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from core.records import Alignment


def tell(body: dict[str, Any], as_json: bool, words: Callable[[dict[str, Any]], list[str]]) -> None:
    """Print `body` as one JSON object, or the lines of `words`, on standard output."""
    if as_json:
        typer.echo(json.dumps(body, ensure_ascii=False, allow_nan=False))
    else:
        typer.echo("\n".join(words(body)))


def in_words(found: Alignment) -> str:
    """An alignment on one line, with everything that belongs to the number."""
    value = number(found.value)
    interval = f" [{found.interval.low:.3f}, {found.interval.high:.3f}]" if found.interval else ""
    groups = f" in {found.n_groups} groups, {found.n_left_out} left out" if found.level == "sample" else ""
    unread = f", {found.n_unscored} unscored" if found.n_unscored else ""
    reason = f" ({found.reason})" if found.value is None and found.reason else ""
    made = f"; interval: {found.interval.method}" if found.interval and found.level == "system" else ""
    return f"{found.statistic}, {found.level} level: {value}{interval}, n = {found.n}{groups}{unread}{reason}{made}"


def number(value: float | None) -> str:
    """Three digits, or a dash for what is undefined."""
    return "—" if value is None else f"{value:.3f}"


def probability(value: float | None) -> str:
    """``"p = 0.012"``; small ones as ``"p < 0.001"``."""
    if value is None:
        return "p = —"
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"


def alignment_line(name: str, alignment: dict[str, Any], remark: str = "") -> str:
    """One row of a table of alignments: `alignment` as JSON has it, `remark` behind it."""
    interval = f" [{alignment['interval'][0]:.3f}, {alignment['interval'][1]:.3f}]" if alignment["interval"] else ""
    unread = f", {alignment['n_unscored']} unscored" if alignment["n_unscored"] else ""
    return f"  {name:<28}{number(alignment['value'])}{interval}, n = {alignment['n']}{unread}{remark}"
