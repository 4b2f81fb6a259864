"""How far a command is, on standard error."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import typer

if TYPE_CHECKING:
    from core.progress import Shown

LOG_SECONDS = 30
"""Between two lines where standard error is no terminal."""


class Show(Protocol):
    """Takes what is being done, how much is done, and of how much (None while not known)."""

    def __call__(self, message: str, done: float, of: float | None, /) -> None: ...


@contextmanager
def progress_bar(unit: str) -> Iterator[Show]:
    """A bar with the units done, those a second and the time left; in a log, a line every half minute."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _LogLines(unit)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} " + unit),
        TextColumn("{task.fields[pace]}"),
    )
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None, pace="")

        def show(message: str, done: float, of: float | None) -> None:
            speed = bar.tasks[0].speed
            pace = f"{speed:,.0f} {unit}/s" if speed and speed >= 1 else ""
            bar.update(task, description=message, completed=done, total=of, pace=pace)

        yield show


@contextmanager
def calls_shown() -> Iterator[Shown]:
    """The progress of a long computation as a bar in calls."""
    from core.progress import Shown

    with progress_bar("calls") as show:
        yield Shown(lambda snapshot: show(snapshot.message, snapshot.calls, snapshot.calls_expected or None))


class _LogLines:
    """E.g. ``scoring: 120,000 of 1,000,000 items, 1,650 items/s, 8 min 53 s left``."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._last = time.monotonic()
        self._begun: tuple[float, float] | None = None

    def __call__(self, message: str, done: float, of: float | None) -> None:
        now = time.monotonic()
        since, before = self._begun = self._begun or (now, done)
        if now - self._last < LOG_SECONDS:
            return
        self._last = now
        line = f"{message}: {done:,.0f}{'' if of is None else f' of {of:,.0f}'} {self._unit}"
        pace = (done - before) / (now - since) if now > since else 0.0
        if pace > 0:
            line += f", {pace:,.0f} {self._unit}/s" if pace >= 1 else ""
            if of is not None:
                minutes, seconds = divmod(round((of - done) / pace), 60)
                line += f", {minutes} min {seconds} s left"
        typer.echo(line, err=True)
