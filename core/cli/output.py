"""Print results as one JSON object or as text on standard output, and progress on standard error."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from core.progress import Stage
from core.wording import counted, duration, measure_name, money, number, range_words

if TYPE_CHECKING:
    from core.findings import Finding
    from core.progress import Shown
    from core.records import Alignment

LOG_SOON, LOG_SECONDS = 1.0, 30.0
"""Seconds until the first progress line and between lines, if there is no terminal."""
_CLEAR = "\r\x1b[2K"
WIDTH = 100
"""Maximum width of a printed line in columns."""
MOST_CAUTIONS = 3


wants_json: ContextVar[bool] = ContextVar("wants_json", default=False)
"""Whether the command was given --json."""
wants_verbose: ContextVar[bool] = ContextVar("wants_verbose", default=False)
"""Whether the command was given --verbose."""


def tell(body: Mapping[str, Any], lines: Sequence[str]) -> None:
    """Print `body` as a JSON object (with --json), or else `lines` as text."""
    typer.echo(json.dumps(body, ensure_ascii=False, allow_nan=False) if wants_json.get() else "\n".join(wrapped(lines)))


def wrapped(lines: Sequence[str]) -> list[str]:
    """Wrap lines that are longer than `WIDTH`, indent the continuation lines, and drop empty lines."""
    broken = []
    for line in filter(None, lines):
        if len(line) <= WIDTH or line.startswith("Next: "):  # users copy commands as a whole
            broken.append(line)
        else:
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            broken += textwrap.wrap(
                line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
    return broken


def finding_lines(finding: Finding, details: Sequence[str] = (), more: Sequence[str] = ()) -> list[str]:
    """Format a finding: headline, `details`, basis, cautions (including `more`) and next step."""
    return [finding.headline, *details, finding.detail, *cautions([*finding.cautions, *more]), finding.next_step]


def cautions(texts: Sequence[str]) -> list[str]:
    """Format up to three cautions, each cut to its first sentence. With --verbose, format all in full."""
    if wants_verbose.get():
        return [f"Caution: {text}" for text in texts]
    short = [re.split(r"(?<=[a-z0-9)%]\.)\s+(?=[A-Z])", text, maxsplit=1)[0] for text in texts[:MOST_CAUTIONS]]
    more = len(texts) - MOST_CAUTIONS
    return [
        *(f"Caution: {text}" for text in short),
        f"{counted(more, 'more caution')}. To see all cautions, add --verbose." if more > 0 else "",
    ]


def alignment_words(a: Alignment) -> str:
    """Format an alignment on one line, with statistic, level, value, interval, n and caveats."""
    groups = f" in {counted(a.n_groups, 'source')}" if a.level == "sample" else ""
    groups += f" ({a.n_left_out:,} left out)" if a.n_left_out else ""
    unread = f", {a.n_unscored} unscored" if a.n_unscored else ""
    reason = because(a.reason or (a.no_interval and f"no interval: {a.no_interval}"))
    method = f"; interval: {a.interval.method}" if a.interval and a.level == "system" else ""
    figures = f"{number(a.value)}{interval_words(a.interval)}, n = {a.n}{groups}"
    return f"{measure_name(a.statistic, a.level)}: {figures}{unread}{reason}{method}"


def alignment_line(name: str, alignment: Mapping[str, Any], remark: str = "") -> str:
    """Format an alignment (a JSON object) as a table row that starts with `name` and ends with `remark`."""
    unread = f", {alignment['n_unscored']} unscored" if alignment["n_unscored"] else ""
    lacks = alignment.get("no_interval", "")
    why = because(alignment["reason"] or (lacks and f"no interval: {lacks}"))
    figures = f"{number(alignment['value'])}{interval_words(alignment['interval'])}, n = {alignment['n']}"
    return f"  {name + ' ':<28}{figures}{unread}{why}{remark}"


def interval_words(ends: Iterable[float] | None) -> str:
    """Format an interval as ``" [0.10, 0.20]"``; "" if there is none."""
    return f" {range_words(ends)}" if ends else ""


def facts(title: str, body: Mapping[str, Any], left_out: Sequence[str] = ()) -> str:
    """Format the values of a JSON object on one line, such as ``errors: mae 0.52, bias −0.05, n 120``.

    Leaves out the keys in `left_out`, nested objects, true, false, and empty values.
    """
    said = []
    for name, value in body.items():
        if name not in left_out and not isinstance(value, dict | bool) and value not in (None, "", []):
            figure = number(value) if isinstance(value, float) else value
            figure = range_words(value) if isinstance(value, list) else figure
            said.append(f"{name.replace('_', ' ')} {figure}")
    return f"{title}: {', '.join(said)}"


def tell_measured(body: Mapping[str, Any], lines: Sequence[str], off: Sequence[str], results: Sequence[Any]) -> None:
    """Print a measurement as `tell` does, with notes.

    `off` are notes on scores that are off the scale. Another note says how many calibration items `results` left out or
    kept.
    """
    tell({**body, **noted(off), **seen_counts(*results)}, [*lines, *off, *seen_words(*results)])


def seen_words(*results: Any) -> list[str]:
    """Return a line about the calibration items that were left out or kept, as a list; [] if there are none.

    Calibration items are items whose labels were used to choose or fit the judge.
    """
    counts = seen_counts(*results)
    if n := counts["n_calibration_kept"]:
        return [
            f"Optimistic: {n:,} of the items were used to choose or fit the judge. To get a figure that you can "
            "report, remove --all-items."
        ]
    if n := counts["n_calibration_left_out"]:
        return [
            f"Left out: {n:,} labelled items that the judge was calibrated on. To keep these items, add --all-items."
        ]
    return []


def seen_counts(*results: Any) -> dict[str, int]:
    """Return a dict with the largest number of calibration items left out of a result, and the largest number kept."""
    names = ("n_calibration_left_out", "n_calibration_kept")
    return {name: max(getattr(result, name) for result in results) for name in names}


def because(reason: str) -> str:
    """Format a reason as `` (reason)``; "" if it is empty."""
    return f" ({reason})" if reason else ""


def place(row: int | None, column: str | None) -> str:
    """Format a position as `` (row 3, column x)``, without the parts that are None."""
    return because(", ".join(f"{name} {at}" for name, at in (("row", row), ("column", column)) if at is not None))


def notes(*texts: str) -> list[str]:
    """Format notes as one line each. Empty notes are dropped."""
    return [f"Note: {text}" for text in texts if text]


def noted(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return ``{"notes": […]}`` for the JSON output; {} if there are no notes."""
    return {"notes": list(texts)} if texts else {}


def written_to(out: str) -> list[str]:
    """Return a line that names the output folder; empty if no file was written."""
    return [f"Written to {out}"] if out else []


def spent(usage: Mapping[str, Any]) -> str:
    """Format the cost as ``", cost $0.12"``, or ``", cost —"`` for an unknown price; "" if no model was called."""
    return f", cost {money(usage['cost'])}" if usage["requests"] or usage["cached"] else ""


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def stages_shown(unit: str = "calls") -> Iterator[Shown]:
    """Show progress within this context: on one line of a terminal, or else as a new line every half minute."""
    from core.progress import Shown

    lines, on_terminal = ProgressLine(unit), sys.stderr.isatty()
    due = time.monotonic() + LOG_SOON

    def show(now: Any) -> None:
        nonlocal due
        lines.show(now)
        if time.monotonic() < due:
            return
        due = time.monotonic() + (LOG_SOON if on_terminal else LOG_SECONDS)
        width = shutil.get_terminal_size().columns - 1
        line = f"{_CLEAR}{lines.line()[:width]}" if on_terminal else lines.line()
        typer.echo(line, err=True, nl=not on_terminal)

    try:
        yield Shown(show)
    finally:
        if on_terminal:
            typer.echo(_CLEAR, err=True, nl=False)


class ProgressLine:
    """Progress as a line of text, such as ``scoring: 120,000 of 1,000,000 items, 9 min left``."""

    def __init__(self, unit: str) -> None:
        self._unit, self._now = unit, Stage("", "starting", 0, 0)
        self._begun = (time.monotonic(), 0)

    def show(self, now: Any) -> None:
        """Set the progress that `line` formats."""
        if not self._now.calls_expected or now.calls < self._now.calls:
            self._begun = (time.monotonic(), now.calls)  # a new phase or a resumed run: earlier items took no time
        self._now = now

    def line(self) -> str:
        now, (since, before) = self._now, self._begun
        done, of, seconds = now.calls, now.calls_expected, time.monotonic() - since
        line = f"{now.message}{spent(asdict(now.usage))}: {done:,.0f}{f' of {of:,.0f}' if of else ''} {self._unit}"
        if of and done > before:
            return f"{line}, {duration(seconds * (of - done) / (done - before))} left"
        return f"{line}, {duration(seconds)} so far"
