"""What commands print: one JSON object, or lines for people; and how far a command is, on standard error."""

from __future__ import annotations

import json
import re
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

import typer

from core.wording import money

if TYPE_CHECKING:
    from core.progress import Shown, Snapshot
    from core.records import Alignment, Interval

UNITS = {"batch": "requests", "parts": "parts"}
"""What is counted in phases where it is not the command's usual unit."""

LOG_SOON, LOG_SECONDS = 1.0, 30.0
"""Until the first line, and between two lines, where standard error is not a terminal."""


WIDTH = 100
"""Columns that a line for people takes at most."""
MOST_CAUTIONS = 3


def tell(body: Mapping[str, Any], lines: Sequence[str], as_json: bool) -> None:
    """Print `body` as one JSON object, or the `lines` for people, on standard output."""
    typer.echo(json.dumps(body, ensure_ascii=False, allow_nan=False) if as_json else "\n".join(wrapped(lines)))


def wrapped(lines: Sequence[str]) -> list[str]:
    """Break lines over `WIDTH` columns; what follows is indented below the line's own start."""
    return [part for line in lines for part in _wrapped(line)]


def _wrapped(line: str) -> list[str]:
    if len(line) <= WIDTH or line.startswith("Next: "):  # a command is there to be copied
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(
        line,
        WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
        replace_whitespace=False,
    )


def cautions(texts: Sequence[str], verbose: bool) -> list[str]:
    """Give each caution a line: the first sentence of the first three, or with `verbose` all of every one."""
    if verbose:
        return [f"Caution: {text}" for text in texts]
    lines = [f"Caution: {first_sentence(text)}" for text in texts[:MOST_CAUTIONS]]
    more = len(texts) - MOST_CAUTIONS
    return [*lines, f"{more} more: --verbose shows them."] if more > 0 else lines


def first_sentence(text: str) -> str:
    """Return the text up to the first full stop before a capital letter."""
    return re.split(r"(?<=[a-z0-9)%]\.)\s+(?=[A-Z])", text, maxsplit=1)[0]


def alignment_words(alignment: Alignment) -> str:
    """An alignment on one line, with everything that belongs to the number."""
    ends, a = alignment.interval, alignment
    groups = f" in {a.n_groups} groups, {a.n_left_out} left out" if a.level == "sample" else ""
    unread = f", {a.n_unscored} unscored" if a.n_unscored else ""
    reason = because(a.reason if a.value is None else f"no interval: {a.no_interval}" if a.no_interval else "")
    method = f"; interval: {ends.method}" if ends and a.level == "system" else ""
    figures = f"{number(a.value)}{interval_words(ends)}, n = {a.n}"
    return f"{a.statistic}, {a.level} level: {figures}{groups}{unread}{reason}{method}"


def seen_words(*results: Any) -> list[str]:
    """One line on the items that a judge was calibrated on, left out or kept; none where there are none."""
    counts = seen_counts(*results)
    if n := counts["n_calibration_kept"]:
        return [
            f"Optimistic: {n:,} of the items chose or fitted the judge. Leave out --all-items for a figure to report."
        ]
    if n := counts["n_calibration_left_out"]:
        return [f"Left out: {n:,} labelled items that the judge was calibrated on (--all-items keeps them)."]
    return []


def seen_counts(*results: Any) -> dict[str, int]:
    """How many items that a judge was calibrated on were left out or kept, as JSON has it; the larger of several."""
    names = ("n_calibration_left_out", "n_calibration_kept")
    return {name: max(getattr(result, name) for result in results) for name in names}


def alignment_line(name: str, alignment: Mapping[str, Any], remark: str = "") -> str:
    """One row of a table of alignments: `alignment` as JSON has it, `remark` behind it."""
    interval = interval_words(alignment["interval"])
    unread = f", {alignment['n_unscored']} unscored" if alignment["n_unscored"] else ""
    why = because(alignment["reason"] or "") if alignment["value"] is None else ""
    return f"  {name + ' ':<28}{number(alignment['value'])}{why}{interval}, n = {alignment['n']}{unread}{remark}"


def number(value: float | None) -> str:
    """Three digits, or a dash for what is undefined."""
    from core.wording import number as shown

    return shown(value, 3)


def signed(value: float | None, interval: Interval | Sequence[float] | None = None) -> str:
    """``"+0.150 [−0.010, +0.310]"``: a difference with its interval, where it has one; a dash for what is undefined."""
    from core.wording import signed as shown

    return shown(value, 3) + _range(interval, shown)


def interval_words(interval: Interval | Sequence[float] | None) -> str:
    """``" [0.100, 0.200]"``; nothing where there is none."""
    from core.wording import number as shown

    return _range(interval, shown)


def _range(interval: Interval | Sequence[float] | None, shown: Callable[[float | None, int], str]) -> str:
    if not interval:
        return ""
    low, high = interval if isinstance(interval, Sequence) else (interval.low, interval.high)
    return f" [{shown(low, 3)}, {shown(high, 3)}]"


def probability(value: float | None, limit: float | None = None) -> str:
    """``"p = 0.012"``; small ones as ``"p < 0.001"``; `limit` as in `p_figure`."""
    from core.stats.claims import ALPHA
    from core.wording import p_figure

    return p_figure(value, "p = —", limit=limit or ALPHA)


def because(reason: str) -> str:
    """The reason in brackets, where there is one."""
    return f" ({reason})" if reason else ""


def place(row: int | None, column: str | None) -> str:
    """`` (row 3, column x)``, as far as known."""
    return because(", ".join(f"{name} {at}" for name, at in (("row", row), ("column", column)) if at is not None))


def notes(*texts: str) -> list[str]:
    """One line each."""
    return [f"Note: {text}" for text in texts]


def noted(texts: Sequence[str]) -> dict[str, list[str]]:
    """What to know of the input, for the JSON; nothing where there is nothing to say."""
    return {"notes": list(texts)} if texts else {}


def written_to(out: str) -> list[str]:
    """The last line of what a command says; none where it wrote nothing."""
    return [f"Written to {out}"] if out else []


def spent(usage: Mapping[str, Any]) -> str:
    """``", cost $0.12"``, ``", cost —"`` where nobody knows; nothing where no model was asked."""
    return f", cost {money(usage['cost'])}" if usage["requests"] or usage["cached"] else ""


# ── how far it is ────────────────────────────────────────────────────────────────────────────────────────────


class Show(Protocol):
    """Takes what is being done, how much is done, of how much (None while not known), and another unit than usual."""

    def __call__(self, message: str, done: float, of: float | None, unit: str = "", /) -> None: ...


@contextmanager
def progress_bar(unit: str) -> Iterator[Show]:
    """Show a bar with the units done, the pace and the time left; in a log, print a line every half minute."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        lines, ended = LogLines(unit), threading.Event()
        printing = threading.Thread(target=lines.keep_printing, args=(ended,), name="concord-log", daemon=True)
        printing.start()
        try:
            yield lines
        finally:
            ended.set()
            printing.join()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} {task.fields[unit]}"),
        TextColumn("{task.fields[pace]}"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None, pace="", unit=unit)

        def show(message: str, done: float, of: float | None, other: str = "") -> None:
            speed = bar.tasks[0].speed
            pace = f"{speed:,.0f} {other or unit}/s" if speed and speed >= 1 else ""
            bar.update(task, description=message, completed=done, total=of, pace=pace, unit=other or unit)

        yield show


@contextmanager
def stages_shown(unit: str = "calls") -> Iterator[Shown]:
    """The progress of a long computation as a bar in calls, or in items."""
    from core.progress import Shown

    with progress_bar(unit) as show:

        def shown(now: Snapshot) -> None:
            cost = spent(asdict(now.usage))
            show(f"{now.message}{cost}", now.calls, now.calls_expected or None, UNITS.get(now.phase, ""))

        yield Shown(shown)


class LogLines:
    """E.g. ``scoring: 120,000 of 1,000,000 items, 1,650 items/s, 8 min 53 s left``."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._message, self._shown_unit = "starting", unit
        self._done: float = 0.0
        self._of: float | None = None
        self._begun = (time.monotonic(), 0.0)

    def __call__(self, message: str, done: float, of: float | None, unit: str = "") -> None:
        if self._of is None or done < self._done:  # another phase: what is there already is no part of the pace
            self._begun = (time.monotonic(), done)
        self._message, self._done, self._of = message, done, of
        self._shown_unit = unit or self._unit

    def line(self) -> str:
        """How far it is now."""
        since, before = self._begun
        seconds = time.monotonic() - since
        unit = self._shown_unit
        line = f"{self._message}: {self._done:,.0f}{'' if self._of is None else f' of {self._of:,.0f}'} {unit}"
        pace = (self._done - before) / seconds if seconds > 0 else 0.0
        if pace <= 0:
            return f"{line}, {_duration(seconds)} so far"
        line += f", {pace:,.0f} {unit}/s" if pace >= 1 else ""
        return line if self._of is None else f"{line}, {_duration((self._of - self._done) / pace)} left"

    def keep_printing(self, ended: threading.Event) -> None:
        """Print a line soon, then one each `LOG_SECONDS`, though nothing may have come meanwhile, until `ended`."""
        seconds = LOG_SOON
        while not ended.wait(seconds):
            typer.echo(self.line(), err=True)
            seconds = LOG_SECONDS


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
