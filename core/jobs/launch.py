"""Start the worker process from the web process, at most one per `CONCORD_HOME`.

The worker is a process of its own, in a session of its own: a web process that ends or restarts leaves it running.
It ends by itself when no run is left to do and the web process that last asked for it has been gone for
`core.jobs.worker.LINGER_SECONDS`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from core.errors import JobError
from core.owner_only import make_private
from core.settings import Settings

_STARTING_SECONDS = 20.0
_KEPT_LOG_BYTES = 2_000_000
_CODE = "import sys; sys.path.insert(0, sys.argv[1]); from core.jobs.worker import main; main()"


def lock_file(settings: Settings) -> Path:
    """Held by the one worker of this `CONCORD_HOME` for as long as it lives."""
    return settings.home.absolute() / "worker.lock"


def watch_file(settings: Settings) -> Path:
    """Process id of the web process that last asked for a worker."""
    return settings.home.absolute() / "worker.watch"


class _Child:
    """The worker that this process started last, and those before it that still run (for other homes)."""

    process: subprocess.Popen[bytes] | None = None
    earlier: tuple[subprocess.Popen[bytes], ...] = ()
    home: Path | None = None
    started: float = 0.0


def ensure_worker(settings: Settings) -> None:
    """Start a worker unless one lives, or `settings.worker` says that workers run elsewhere.

    Cheap enough (well under a millisecond) to call at every opening of a screen.  JobError when it cannot start.
    """
    if settings.worker != "auto":
        return
    _say_who_watches(settings)
    if _just_started(settings):
        return
    try:
        with FileLock(lock_file(settings), timeout=0):
            pass
    except Timeout:  # a worker lives
        return
    _start(settings)


def _say_who_watches(settings: Settings) -> None:
    file, me = watch_file(settings), str(os.getpid())
    try:
        if not file.exists() or file.read_text() != me:
            make_private(file.parent)
            file.write_text(me)
    except OSError as error:
        raise JobError(f"{file.parent} cannot be written: {error.strerror}. Set CONCORD_HOME.") from error


def _just_started(settings: Settings) -> bool:
    """Whether the last child is still on its way to the lock (poll also reaps one that ended)."""
    child = _Child.process
    if child is None or child.poll() is not None or _Child.home != settings.home:
        return False
    return time.monotonic() - _Child.started < _STARTING_SECONDS


def _start(settings: Settings) -> None:
    """Settings go through a pipe: the key stands neither in the process list nor in a file."""
    file = settings.home.absolute() / "worker.log"  # tracebacks of failed runs among it
    if file.exists() and file.stat().st_size > _KEPT_LOG_BYTES:
        file.replace(file.with_suffix(".old.log"))
    root = Path(__file__).parents[2]
    try:
        with file.open("ab") as sink:
            child = subprocess.Popen(
                [sys.executable, "-c", _CODE, str(root)],
                stdin=subprocess.PIPE,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        assert child.stdin is not None
        with child.stdin as pipe:
            pipe.write(TypeAdapter(Settings).dump_json(replace(settings, home=settings.home.absolute())))
    except OSError as error:
        raise JobError(f"The worker process cannot be started: {error.strerror}.") from error
    before = (*_Child.earlier, *([_Child.process] if _Child.process is not None else []))
    _Child.earlier = tuple(older for older in before if older.poll() is None)  # held until they end, to be reaped
    _Child.process, _Child.home, _Child.started = child, settings.home, time.monotonic()
