"""Queue runs, track the progress of a running run, and start a worker process.

The queue is the table of runs. A worker claims a queued run by an atomic update, calls the function for this kind of
run, and stores the result or the error. A resumed run calls the function again and finds its stored replies
(`core.projects.start_and_resume`).

::

    a run is queued                 ──▶  a worker claims it as attempt n
    its worker dies and restarts    ──▶  the worker queues the run again, as attempt n + 1
    its worker sends no heartbeats  ──▶  another worker queues the run again, as attempt n + 1

An older attempt can no longer write, and stops when it next reports progress.

The worker runs in its own process session, so it survives the web process. The worker ends when no run is left and the
web process that last asked for a worker has been gone for `core.jobs.worker.LINGER_SECONDS`.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeVar

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from core.errors import CancelledRunError, ConcordError, JobError, LostRunError, StoreError, hide
from core.files import make_private
from core.progress import Snapshot, Stage
from core.project_records import WITH_RESULT, Run
from core.settings import Settings
from core.store.runs import SNAPSHOT
from core.store.store import Store

Lane = Literal["usual", "model"]

# ── progress of a running run ──────────────────────────────────────────────────────────────────────────────────

T = TypeVar("T")
_INTERVAL = 0.4
_GRACE = 1.0  # seconds for the work to notice the stop by itself


class RunProgress:
    """The `Progress` of a running run. Use it as a context manager around the work.

    A thread writes the stage and the latest snapshot twice a second, and checks whether the run must stop. A run must
    stop if it was cancelled, or taken over by another worker.

    A resumed run repeats its earlier snapshots. Repeated snapshots stay hidden. The attribute `remarks` is a function
    that returns texts to add to each message.
    """

    def __init__(self, store: Store, run: Run, worker_stops: threading.Event) -> None:
        self._store, self._run_id, self._attempt = store, run.run_id, run.attempt
        self._worker_stops = worker_stops
        self._shown_before, self._published = run.snapshots, 0
        self._stage = Stage(run.phase, run.message, run.calls, run.calls_expected, run.usage)
        self._snapshot: Snapshot | None = None
        self._base_calls = self._calls_before = run.calls
        self._written = self._stage
        self._stop: ConcordError | None = None
        self._lock = threading.Lock()
        self.remarks: Callable[[], Sequence[str]] = tuple
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, name=f"progress-{run.run_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        if kind is None or (issubclass(kind, ConcordError) and not issubclass(kind, LostRunError)):
            self._write()

    def publish(self, snapshot: Snapshot) -> None:
        """Publish a snapshot, as in `core.progress.Progress`."""
        self.check()
        with self._lock:
            self._published += 1
            if self._published >= self._shown_before:
                self._stage = Stage(
                    snapshot.phase,
                    ". ".join((snapshot.message, *self.remarks())),
                    max(snapshot.calls, self._calls_before),  # the lost worker may have got further in this snapshot
                    snapshot.calls_expected,
                    snapshot.usage,
                )
                self._base_calls = snapshot.calls
                if not isinstance(snapshot, Stage):
                    self._snapshot = snapshot

    def advance(self, done: int, of: int) -> None:
        """Report the number of calls done, as in `core.progress.Progress`."""
        with self._lock:
            if self._published >= self._shown_before:
                self._stage = replace(self._stage, calls=max(self._stage.calls, self._base_calls + done))
        self.check()

    def check(self) -> None:
        """Raise CancelledRunError, LostRunError or the store's error if the run must stop."""
        if self._stop is not None:
            raise self._stop

    def wait_for(self, work: Future[T]) -> T:
        """Wait for the result of `work`.

        If the run must stop, wait at most one more second, and raise the same errors as `check` if `work` still has no
        result.
        """
        while self._stop is None:
            try:
                return work.result(timeout=0.1)
            except NotYet:
                if work.done():
                    return work.result()
        try:
            return work.result(timeout=_GRACE)
        except (NotYet, ConcordError):
            raise self._stop from None

    def _keep_writing(self) -> None:
        while not self._done.wait(_INTERVAL) and self._stop is None:
            try:
                self._write()
                reason = self._store.runs.must_stop(self._run_id, self._attempt)
            except ConcordError as error:
                self._stop = error
                return
            if self._worker_stops.is_set():
                self._stop = LostRunError("The worker is stopping. The next worker resumes the run.")
            elif reason == "cancelled":
                self._stop = CancelledRunError("The run was cancelled. Paid replies stay cached.")
            elif reason == "lost":
                self._stop = LostRunError("Another worker has taken over the run.")

    def _write(self) -> None:
        with self._lock:
            stage, snapshot, self._snapshot = self._stage, self._snapshot, None
            shown = max(self._published, self._shown_before)
        if snapshot is not None:
            self._store.results.put_document(self._run_id, SNAPSHOT, snapshot, attempt=self._attempt)
        if stage != self._written or snapshot is not None:
            self._store.runs.progress(self._run_id, self._attempt, stage, shown)
            self._written = stage


# ── the queue ──────────────────────────────────────────────────────────────────────────────────────────────────


RUNS_AT_ONCE: dict[Lane, int] = {"usual": 4, "model": 1}
"""Lane → maximum number of simultaneous runs of a worker; two models in one process would share memory or GPU."""
_STOP_SECONDS = 3.0

Work = Callable[[Run, RunProgress], str]
"""Do a run, store its result, and return its final status ("done", "budget")."""
log = logging.getLogger("concord.jobs")


class Queue:
    """Claims queued runs and executes them in a worker process."""

    def __init__(
        self, store: Store, worker_id: str, work: Work, lane_of: Callable[[Run], Lane] = lambda run: "usual"
    ) -> None:
        self._store, self._worker_id, self._work, self._lane_of = store, worker_id, work, lane_of
        self._active: dict[str, Lane] = {}
        self._changed = threading.Condition()
        self._stopping = threading.Event()

    def requeue_own(self) -> None:
        """Requeue the unfinished runs of this worker when it starts or stops."""
        for run in self._store.runs.active():
            if run.worker_id == self._worker_id:
                self._store.runs.pass_on(run.run_id, run.attempt, "resuming")

    def stop(self) -> None:
        """Stop, and requeue running runs for the next worker."""
        self._stopping.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._active, timeout=_STOP_SECONDS)
        self.requeue_own()

    def tick(self) -> None:
        """Requeue the runs of lost workers, and claim queued runs, oldest first."""
        runs, active = self._store.runs, self._store.runs.active()
        for run in active:
            lost = run.status == "running" and run.worker_alive is False and run.worker_id != self._worker_id
            if lost and runs.pass_on(run.run_id, run.attempt):
                log.warning("run %s: requeued because worker %s was lost", run.run_id, run.worker_id)
        for run in reversed(active):
            lane = self._lane_of(run)
            with self._changed:  # the previous attempt, just cancelled, may still be ending
                room = run.run_id not in self._active
                room = room and list(self._active.values()).count(lane) < RUNS_AT_ONCE[lane]
            message = "resuming" if run.snapshots else "starting"
            if run.status == "queued" and room and runs.claim(run.run_id, run.attempt, self._worker_id, message):
                with self._changed:
                    self._active[run.run_id] = lane
                claimed, name = runs.get(run.run_id), f"run-{run.run_id}"
                threading.Thread(target=self._do, args=(claimed,), name=name, daemon=True).start()

    @property
    def idle(self) -> bool:
        """Return whether no run is queued or running in any project."""
        return not self._store.runs.active()

    def _do(self, run: Run) -> None:
        """Run it, and store its final status unless another worker has taken it over."""
        status = error = ""
        pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"work-{run.run_id}")
        try:
            with RunProgress(self._store, run, self._stopping) as progress:
                status = progress.wait_for(pool.submit(self._work, run, progress))
        except LostRunError:
            pass
        except CancelledRunError as stopped:
            status, error = "cancelled", str(stopped)
        except ConcordError as failure:
            log.warning("run %s failed: %s", run.run_id, failure, exc_info=True)
            status, error = "failed", str(failure)
        except Exception as fault:
            log.exception("run %s failed unexpectedly", run.run_id)
            name = type(fault).__name__
            status, error = "failed", f"An unexpected error occurred ({name}). For details, see the worker's log."
        pool.shutdown(wait=False)  # work that does not notice a cancellation ends by itself
        try:
            if status:
                message = "done" if status in WITH_RESULT else status
                self._store.runs.finish(run.run_id, run.attempt, status, message=message, error=error)
        except ConcordError as failure:
            log.warning("run %s: couldn't store the final status: %s", run.run_id, failure)
        finally:
            with self._changed:
                del self._active[run.run_id]
                self._changed.notify_all()


# ── start the worker process from the web process ──────────────────────────────────────────────────────────────

_STARTING_SECONDS = 20.0
_KEPT_LOG_BYTES = 2_000_000
_CODE = "import sys; sys.path.insert(0, sys.argv[1]); from core.jobs.worker import main; main()"


def lock_file(settings: Settings) -> Path:
    """Return the lock file that the worker of this `CONCORD_HOME` holds."""
    return settings.home.absolute() / "worker.lock"


def watch_file(settings: Settings) -> Path:
    """Return the file with the process id of the web process that last asked for a worker."""
    return settings.home.absolute() / "worker.watch"


_started: dict[Path, tuple[subprocess.Popen[bytes], float]] = {}
"""`CONCORD_HOME` → the worker process that this process last started for it, and the start time."""


def ensure_worker(settings: Settings) -> None:
    """Start a worker, unless one is alive or `settings.worker` is "external".

    If a worker is alive, the check takes well under a millisecond. Raises JobError if no worker can start.
    """
    if settings.worker != "auto":
        return
    home, watch, me = settings.home.absolute(), watch_file(settings), str(os.getpid())
    try:
        if not watch.exists() or watch.read_text() != me:
            make_private(home)
            watch.write_text(me)
    except OSError as error:
        raise JobError(
            f"Concord can't write to {home}: {error.strerror}. Set CONCORD_HOME to another folder."
        ) from error
    if home in _started:
        process, at = _started[home]
        if process.poll() is None and time.monotonic() - at < _STARTING_SECONDS:
            return  # it has not taken the lock yet
    try:
        with FileLock(lock_file(settings), timeout=0):
            pass
    except Timeout:  # a worker is alive
        return
    _start(replace(settings, home=home))


def _start(settings: Settings) -> None:
    """Start the worker process; settings go through a pipe, so that no key is in the process list or a file."""
    file = settings.home / "worker.log"  # includes tracebacks of failed runs
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
        raise JobError(f"Concord can't start the worker process: {error.strerror}.") from error
    _started[settings.home] = child, time.monotonic()


# ── log lines without keys, prompts, texts or replies ──────────────────────────────────────────────────────────


_ROOT = Path(__file__).parents[2]
_PLAIN = (StoreError, JobError)  # messages of other libraries can quote a file or an endpoint


def log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter())
    logging.basicConfig(handlers=[handler])
    for name in ("concord", "core"):
        logging.getLogger(name).setLevel(logging.INFO)


class LineFormatter(logging.Formatter):
    """Formats a log record with the class and location of an error, without its message."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        arguments = record.args if isinstance(record.args, tuple) else ()
        said = record.msg % tuple(map(_bare, arguments)) if arguments else str(_bare(record.msg))
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        where = []
        for frame in traceback.extract_tb(error.__traceback__) if error else ():  # outermost first
            file = Path(frame.filename)
            short = file.relative_to(_ROOT) if file.is_relative_to(_ROOT) else file.name
            where.append(f"{short}:{frame.lineno} in {frame.name}")
        ending = "" if error is None else f"\n  {type(error).__name__} at " + "\n    ".join(where)
        return hide(f"{at} {record.levelname} {record.name}: {said}{ending}")


def _bare(value: object) -> object:
    return type(value).__name__ if isinstance(value, BaseException) and not isinstance(value, _PLAIN) else value
