"""Report the progress of a long computation, and stop it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol

from core.records import Usage


class Snapshot(Protocol):
    """Where a computation stands, as a screen shows it; a record that the store can keep."""

    @property
    def phase(self) -> str: ...
    @property
    def message(self) -> str: ...
    @property
    def calls(self) -> int: ...
    @property
    def calls_expected(self) -> int: ...
    @property
    def usage(self) -> Usage: ...


@dataclass(frozen=True, slots=True)
class Stage:
    """A snapshot of computations that have no leaderboard: `calls` of `calls_expected` are done."""

    phase: str
    message: str
    calls: int
    calls_expected: int
    usage: Usage = field(default_factory=Usage)


class Progress(Protocol):
    """Both methods are cheap, and raise `CancelledRunError` (or another JobError) when the computation must stop."""

    def advance(self, done: int, of: int) -> None:
        """`done` of `of` calls are made since the last snapshot."""
        ...

    def publish(self, snapshot: Snapshot) -> None:
        """Show where the computation stands.  The same inputs and answers publish the same snapshots in order."""
        ...


class Silent:
    """Progress that reports nothing and never stops."""

    def advance(self, done: int, of: int) -> None:
        """Nothing."""

    def publish(self, snapshot: Snapshot) -> None:
        """Nothing."""


@dataclass(slots=True)
class Shown:
    """Every snapshot is shown, as a command does on a terminal, and again with the calls made since."""

    show: Callable[[Any], None]
    _last: Snapshot | None = field(default=None, init=False)

    def advance(self, done: int, of: int) -> None:
        if (last := self._last) is not None:
            calls = last.calls + done
            if "calls" in (each.name for each in fields(last)):  # type: ignore[arg-type]
                self.show(replace(last, calls=calls))  # type: ignore[type-var]
            else:  # it counts them itself
                self.show(Stage(last.phase, last.message, calls, last.calls_expected, last.usage))

    def publish(self, snapshot: Snapshot) -> None:
        self._last = snapshot
        self.show(snapshot)


SILENT = Silent()
