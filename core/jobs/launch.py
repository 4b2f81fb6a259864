"""Start the worker process from the web process, at most one per `CONCORD_HOME`.

The worker is a process of its own, in a session of its own: a web process that ends or restarts leaves it running.
It ends by itself when no run is left and the web process that last asked for it has been gone for
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
from core.files import make_private
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


_started: dict[Path, tuple[subprocess.Popen[bytes], float]] = {}
"""Home → the worker process that this process last started for it, and when."""


def ensure_worker(settings: Settings) -> None:
    """Start a worker unless one is alive, or `settings.worker` says that workers run elsewhere.

    Cheap enough (well under a millisecond) to call at every opening of a screen.  JobError when it cannot start.
    """
    if settings.worker != "auto":
        return
    home, watch, me = settings.home.absolute(), watch_file(settings), str(os.getpid())
    try:
        if not watch.exists() or watch.read_text() != me:
            make_private(home)
            watch.write_text(me)
    except OSError as error:
        raise JobError(f"{home} cannot be written: {error.strerror}. Set CONCORD_HOME.") from error
    if home in _started:
        process, at = _started[home]
        if process.poll() is None and time.monotonic() - at < _STARTING_SECONDS:
            return  # it is still on its way to the lock
    try:
        with FileLock(lock_file(settings), timeout=0):
            pass
    except Timeout:  # a worker is alive
        return
    _start(replace(settings, home=home))


def _start(settings: Settings) -> None:
    """Settings go through a pipe: the key stands neither in the process list nor in a file."""
    file = settings.home / "worker.log"  # tracebacks of failed runs among it
    if file.exists() and file.stat().st_size > _KEPT_LOG_BYTES:
        file.replace(file.with_suffix(".old.log"))
    command = [sys.executable, "-c", _CODE, str(Path(__file__).parents[2])]
    try:
        with file.open("ab") as sink:
            child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sink, stderr=sink, start_new_session=True)
        assert child.stdin is not None
        with child.stdin as pipe:
            pipe.write(TypeAdapter(Settings).dump_json(settings))
    except OSError as error:
        raise JobError(f"The worker process cannot be started: {error.strerror}.") from error
    _started[settings.home] = child, time.monotonic()
