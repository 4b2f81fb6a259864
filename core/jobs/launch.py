"""Start the worker process from the web process, at most one per `CONCORD_HOME`.

The worker is a process of its own, in a session of its own: a web process that ends or restarts leaves it running.
It ends by itself when no run is left and the web process that last asked for it has been gone for
`core.jobs.worker.LINGER_SECONDS`.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from core.errors import JobError, StoreError, hide
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


# ── its log: no key, prompt, item's text or reply; errors are named by their class and place ───────────────────────


LogForm = Literal["text", "json"]
_ROOT = Path(__file__).parents[2]
_PLAIN = (StoreError, JobError)  # their messages are ours alone; others may quote a file or an endpoint


def log_to_stderr(form: LogForm) -> None:
    """Write Concord's own log lines to standard error, as text or as one JSON object each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(form))
    logging.basicConfig(handlers=[handler])
    for name in ("concord", "core"):
        logging.getLogger(name).setLevel(logging.INFO)


class LineFormatter(logging.Formatter):
    """A log record as a line: errors by their class and where they came up, without what they say of data."""

    def __init__(self, form: LogForm) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        arguments = record.args if isinstance(record.args, tuple) else ()
        said = record.msg % tuple(map(_bare, arguments)) if arguments else str(_bare(record.msg))
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        where = []
        for frame in traceback.extract_tb(error.__traceback__) if error else ():  # the outermost first
            file = Path(frame.filename)
            short = file.relative_to(_ROOT) if file.is_relative_to(_ROOT) else file.name
            where.append(f"{short}:{frame.lineno} in {frame.name}")
        if self._form == "json":
            fields: dict[str, Any] = {"at": at, "level": record.levelname, "logger": record.name, "message": said}
            fields |= {} if error is None else {"error": type(error).__name__, "where": where}
            return hide(json.dumps(fields, ensure_ascii=False))
        ending = "" if error is None else f"\n  {type(error).__name__} at " + "\n    ".join(where)
        return hide(f"{at} {record.levelname} {record.name}: {said}{ending}")


def _bare(value: object) -> object:
    return type(value).__name__ if isinstance(value, BaseException) and not isinstance(value, _PLAIN) else value
