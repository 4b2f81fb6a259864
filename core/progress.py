"""Report the progress of a long computation, and stop it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from core.records import Usage


class Snapshot(Protocol):
    """The progress of a computation. Screens show it, and the store can save it."""

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
    """Progress of a computation that has no leaderboard: `calls` out of `calls_expected` calls are done."""

    phase: str
    message: str
    calls: int
    calls_expected: int
    usage: Usage = field(default_factory=Usage)


class Progress(Protocol):
    """Receiver of progress reports.

    Both methods are cheap, and raise `CancelledRunError` (or another JobError) if the computation must stop.
    """

    def advance(self, done: int, of: int) -> None:
        """Report progress since the last snapshot: `done` out of `of` calls are complete."""
        ...

    def publish(self, snapshot: Snapshot) -> None:
        """Publish a snapshot.  The same inputs and replies give the same snapshots in the same order."""
        ...


class Silent:
    """Progress that reports nothing and never stops the computation."""

    def advance(self, done: int, of: int) -> None:
        """Do nothing."""

    def publish(self, snapshot: Snapshot) -> None:
        """Do nothing."""


@dataclass(slots=True)
class Shown:
    """Progress that calls `show` with every snapshot, and with a `Stage` when calls are made."""

    show: Callable[[Any], None]
    _last: Snapshot | None = field(default=None, init=False)

    def advance(self, done: int, of: int) -> None:
        if (last := self._last) is not None:
            self.show(Stage(last.phase, last.message, last.calls + done, last.calls_expected, last.usage))

    def publish(self, snapshot: Snapshot) -> None:
        self._last = snapshot
        self.show(snapshot)


SILENT = Silent()
