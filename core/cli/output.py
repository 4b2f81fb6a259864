"""Print results as one JSON object or as text, and progress on standard error."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from core.progress import Stage
from core.wording import duration, money, number, range_words

if TYPE_CHECKING:
    from core.findings import Finding
    from core.progress import Shown
    from core.records import Alignment

UNITS = {"batch": "requests", "parts": "parts"}
"""What is counted in phases where it is not the command's usual unit."""
LOG_SOON, LOG_SECONDS = 1.0, 30.0
"""Seconds until the first line, and between two lines; on a terminal the first holds for all."""
_CLEAR = "\r\x1b[2K"
WIDTH = 100
"""Columns that a line for people takes at most."""
MOST_CAUTIONS = 3


def tell(body: Mapping[str, Any], lines: Sequence[str], as_json: bool) -> None:
    """Print `body` as one JSON object, or the `lines` for people, on standard output."""
    typer.echo(json.dumps(body, ensure_ascii=False, allow_nan=False) if as_json else "\n".join(wrapped(lines)))


def wrapped(lines: Sequence[str]) -> list[str]:
    """Break lines over `WIDTH` columns; what follows is indented below the line's own start.  Leave out empty ones."""
    broken = []
    for line in filter(None, lines):
        if len(line) <= WIDTH or line.startswith("Next: "):  # a command is there to be copied
            broken.append(line)
        else:
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            broken += textwrap.wrap(
                line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
    return broken


def finding_lines(
    finding: Finding, details: Sequence[str] = (), more: Sequence[str] = (), *, verbose: bool = False
) -> list[str]:
    """The headline, `details`, the basis, up to three cautions, of `more` among them, and the next step."""
    lines = [finding.headline, *details, finding.detail]
    return [*lines, *cautions([*finding.cautions, *more], verbose), finding.next_step]


def cautions(texts: Sequence[str], verbose: bool) -> list[str]:
    """Give each caution a line: the first sentence of the first three, or with `verbose` all of every one."""
    if verbose:
        return [f"Caution: {text}" for text in texts]
    short = [re.split(r"(?<=[a-z0-9)%]\.)\s+(?=[A-Z])", text, maxsplit=1)[0] for text in texts[:MOST_CAUTIONS]]
    more = len(texts) - MOST_CAUTIONS
    return [*(f"Caution: {text}" for text in short), f"{more} more: --verbose shows them." if more > 0 else ""]


def alignment_words(alignment: Alignment) -> str:
    """An alignment on one line, with everything that belongs to the number."""
    a = alignment
    groups = f" in {a.n_groups} groups, {a.n_left_out} left out" if a.level == "sample" else ""
    unread = f", {a.n_unscored} unscored" if a.n_unscored else ""
    reason = because(a.reason if a.value is None else f"no interval: {a.no_interval}" if a.no_interval else "")
    method = f"; interval: {a.interval.method}" if a.interval and a.level == "system" else ""
    figures = f"{number(a.value)}{interval_words(a.interval)}, n = {a.n}"
    return f"{a.statistic}, {a.level} level: {figures}{groups}{unread}{reason}{method}"


def alignment_line(name: str, alignment: Mapping[str, Any], remark: str = "") -> str:
    """One row of a table of alignments: `alignment` as JSON has it, `remark` behind it."""
    unread = f", {alignment['n_unscored']} unscored" if alignment["n_unscored"] else ""
    why = because(alignment["reason"] or "") if alignment["value"] is None else ""
    figures = f"{number(alignment['value'])}{why}{interval_words(alignment['interval'])}, n = {alignment['n']}"
    return f"  {name + ' ':<28}{figures}{unread}{remark}"


def interval_words(ends: Iterable[float] | None) -> str:
    """``" [0.10, 0.20]"``; nothing where there is none."""
    return f" {range_words(ends)}" if ends else ""


def facts(title: str, body: Mapping[str, Any], left_out: Sequence[str] = ()) -> str:
    """The numbers and words of a JSON object on one line: ``errors: mae 0.52, bias −0.05, n 120``."""
    said = []
    for name, value in body.items():
        if name not in left_out and not isinstance(value, dict | bool) and value not in (None, "", []):
            figure = number(value) if isinstance(value, float) else value
            figure = interval_words(value).strip() if isinstance(value, list) else figure
            said.append(f"{name.replace('_', ' ')} {figure}")
    return f"{title}: {', '.join(said)}"


def tell_measured(
    body: Mapping[str, Any], lines: Sequence[str], off: Sequence[str], results: Sequence[Any], as_json: bool
) -> None:
    """`tell`, with what to know of the scores (`off`) and of items that a judge was calibrated on."""
    tell({**body, **noted(off), **seen_counts(*results)}, [*lines, *off, *seen_words(*results)], as_json)


def seen_words(*results: Any) -> list[str]:
    """One line on the items that a judge was calibrated on, left out or kept; none where there are none."""
    counts = seen_counts(*results)
    if n := counts["n_calibration_kept"]:
        return [
            f"Optimistic: {n:,} of the items were used to choose or fit the judge. Leave out --all-items for a "
            "figure to report."
        ]
    if n := counts["n_calibration_left_out"]:
        return [f"Left out: {n:,} labelled items that the judge was calibrated on (--all-items keeps them)."]
    return []


def seen_counts(*results: Any) -> dict[str, int]:
    """How many items that a judge was calibrated on were left out or kept, as JSON has it; the larger of several."""
    names = ("n_calibration_left_out", "n_calibration_kept")
    return {name: max(getattr(result, name) for result in results) for name in names}


def because(reason: str) -> str:
    """The reason in brackets, where there is one."""
    return f" ({reason})" if reason else ""


def place(row: int | None, column: str | None) -> str:
    """`` (row 3, column x)``, as far as known."""
    return because(", ".join(f"{name} {at}" for name, at in (("row", row), ("column", column)) if at is not None))


def notes(*texts: str) -> list[str]:
    """One line each."""
    return [f"Note: {text}" for text in texts if text]


def noted(texts: Sequence[str]) -> dict[str, list[str]]:
    """Notes on the input, for the JSON; empty if there are none."""
    return {"notes": list(texts)} if texts else {}


def written_to(out: str) -> list[str]:
    """The last line of a command's output; none if it wrote no file."""
    return [f"Written to {out}"] if out else []


def spent(usage: Mapping[str, Any]) -> str:
    """``", cost $0.12"``, ``", cost —"`` where nobody knows; nothing where no model was asked."""
    return f", cost {money(usage['cost'])}" if usage["requests"] or usage["cached"] else ""


# ── how far it is ────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def stages_shown(unit: str = "calls") -> Iterator[Shown]:
    """Print how far a long computation is: on a terminal on one line, elsewhere a line every half minute."""
    from core.progress import Shown

    lines, ended, on_terminal = LogLines(unit), threading.Event(), sys.stderr.isatty()

    def keep_printing() -> None:
        seconds = LOG_SOON
        while not ended.wait(seconds):  # also while nothing comes
            line = lines.line()
            if on_terminal:
                width = shutil.get_terminal_size().columns - 1
                typer.echo(f"{_CLEAR}{line[:width]}", err=True, nl=False)
            else:
                typer.echo(line, err=True)
            seconds = LOG_SOON if on_terminal else LOG_SECONDS
        typer.echo(_CLEAR if on_terminal else "", err=True, nl=False)

    printing = threading.Thread(target=keep_printing, name="concord-log", daemon=True)
    printing.start()
    try:
        yield Shown(lines.show)
    finally:
        ended.set()
        printing.join()


class LogLines:
    """E.g. ``scoring: 120,000 of 1,000,000 items, 1,650 items/s, 9 min left``."""

    def __init__(self, unit: str) -> None:
        self._usual, self._now = unit, Stage("", "starting", 0, 0)
        self._begun = (time.monotonic(), 0)

    def show(self, now: Any) -> None:
        """Note how far it is: the message, the calls done, of how many (0 while not known)."""
        if not self._now.calls_expected or now.calls < self._now.calls:
            self._begun = (time.monotonic(), now.calls)  # another phase: what is there already is no part of the pace
        self._now = now

    def line(self) -> str:
        """How far it is now."""
        now, (since, before) = self._now, self._begun
        done, of, seconds = now.calls, now.calls_expected, time.monotonic() - since
        unit = UNITS.get(now.phase, self._usual)
        line = f"{now.message}{spent(asdict(now.usage))}: {done:,.0f}{f' of {of:,.0f}' if of else ''} {unit}"
        pace = (done - before) / seconds if seconds > 0 else 0.0
        if pace <= 0:
            return f"{line}, {duration(seconds)} so far"
        line += f", {pace:,.0f} {unit}/s" if pace >= 1 else ""
        return f"{line}, {duration((of - done) / pace)} left" if of else line
