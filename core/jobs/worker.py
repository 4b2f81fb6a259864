"""Worker process that executes queued runs.

``python -m core worker`` runs until SIGTERM or Ctrl-C. The app starts its own worker (`core.jobs.queue`), which ends
when it is idle and the web process has ended. Several hosts can each run a worker on the same Postgres, each with its
own `CONCORD_WORKER_ID`.

A worker can be killed at any moment; the next worker resumes its runs. Workers do not listen on any port.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from core.errors import ConcordError, JobError
from core.files import make_private, owner_only, secure_home
from core.jobs.queue import Queue, lock_file, log_to_stderr, watch_file
from core.projects.project_list import open_store
from core.projects.start_and_resume import execute_run, lane_of
from core.settings import Settings, tune_garbage_collector
from core.store.store import Store

LINGER_SECONDS = 120.0
"""How long a worker started by the app waits, without runs and without the web process, before it ends."""
_TICK, _BEAT = 0.1, 2.0
BEHIND_THE_SCREENS = 5
"""Niceness of a worker next to the web process, so that screens stay fast."""
log = logging.getLogger("concord.jobs")


def run_worker(settings: Settings, *, linger: float | None = None) -> None:
    """Execute queued runs until the process is stopped.

    With `linger`, also stop when no worker has been needed for `linger` seconds.

    Raises:
        JobError: A live worker has the same `CONCORD_HOME` or worker id.
    """
    log_to_stderr()
    make_private(settings.home.absolute())
    try:
        lock = FileLock(lock_file(settings)).acquire(timeout=0)
    except Timeout:
        raise JobError(
            f"A worker is already running for {settings.home}. One worker is enough: it processes several runs at once."
        ) from None
    with lock, owner_only():
        secure_home(settings.home)
        with open_store(settings) as store:
            _work(settings, store, linger)


def _work(settings: Settings, store: Store, linger: float | None) -> None:
    worker_id = settings.worker_id or socket.gethostname()
    place = f"{socket.gethostname()}, {settings.home.absolute()}"
    for other in store.workers.alive():  # a worker of this CONCORD_HOME must be dead: this process holds its lock
        if other.worker_id == worker_id and other.place != place:
            raise JobError(
                f"A worker named {worker_id!r} is already running on {other.place}. Set CONCORD_WORKER_ID to another "
                "name."
            )
    store.workers.register(worker_id, place, os.getpid())
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    def keep_beating() -> None:
        while not stop.wait(_BEAT):
            try:
                store.workers.heartbeat(worker_id)
            except ConcordError as error:
                log.warning("couldn't write a heartbeat; trying again: %s", error)

    threading.Thread(target=keep_beating, name="heartbeat", daemon=True).start()
    queue = Queue(store, worker_id, lambda run, progress: execute_run(store, settings, run, progress), lane_of)
    queue.requeue_own()
    tune_garbage_collector()
    log.info("worker %s is ready (process %s)", worker_id, os.getpid())
    needed_at = time.monotonic()
    while not stop.wait(_TICK):
        try:
            if linger is None or _watched(watch_file(settings)) or not queue.idle:
                needed_at = time.monotonic()
            elif time.monotonic() - needed_at >= linger:
                break
            queue.tick()
        except ConcordError as error:
            log.warning("couldn't read the queue; trying again: %s", error)
    stop.set()
    queue.stop()
    store.workers.unregister(worker_id)


def _watched(file: Path) -> bool:
    """Return whether the web process that last asked for a worker is alive."""
    if sys.platform == "win32":  # on Windows, signal 0 would end the process
        return True
    try:
        os.kill(int(file.read_text()), 0)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True


def main() -> None:
    """Run the worker that the app starts. It reads its settings as JSON from standard input."""
    settings = TypeAdapter(Settings).validate_json(sys.stdin.read())
    if hasattr(os, "nice"):
        os.nice(BEHIND_THE_SCREENS)
    try:
        run_worker(settings, linger=LINGER_SECONDS)
    except ConcordError as error:
        log.warning("%s", error)
    sys.stderr.flush()
    os._exit(0)  # a run in progress holds a thread; the next worker resumes it
