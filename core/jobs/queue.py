"""The queue of runs, one worker's part in it, and the progress of a running run.  Knows no domain and holds no SQL.

The queue is the table of runs itself: a worker takes a queued run by an update that only one can win, calls the
function of its kind, and stores the result or why there is none.  A resumed run is called again: it finds what it was
answered, and what it stored (`core.projects.run_kinds`).

::

    web process  ── row in `runs` (queued) ──▶  any worker's tick takes it: attempt n is this worker's
    worker dies  ── same worker starts     ──▶  what it had begun is queued again, as attempt n + 1
                 ── heartbeat goes stale   ──▶  another worker's tick queues it again

Whatever still runs of an older attempt cannot write any more, and stops when it next says how far it is.

Runs that want a GPU wait for a worker with one, as long as there is hope::

    run wants  workers with a GPU                          is taken by
    "any"      —                                           every worker
    "now"      —                                           every worker, however many others it runs
    "gpu"      one gave a sign of life within PATIENCE     such workers only
    "gpu"      none did, or it signed off                  every worker, so that nobody waits for ever
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from types import TracebackType
from typing import Literal, Self, TypeVar

from core.errors import CancelledRunError, ConcordError, LostRunError
from core.progress import Snapshot, Stage
from core.project_records import WITH_RESULT, Run, Worker
from core.records import VERSION
from core.store.runs import SNAPSHOT, WAITING
from core.store.store import Store

Wants = Literal["any", "now", "gpu"]
GPU_CAPABILITIES = ("cuda", "mps", "gpu")
PATIENCE = 60.0
"""Seconds a run waiting for a GPU worker that was lost without a word: it may be on its way up again."""


def takes(capability: str, wants: Wants, workers: Sequence[Worker]) -> bool:
    """Whether a worker of this capability takes such a run now; `workers` is everybody who ever signed on."""
    return wants != "gpu" or capability in GPU_CAPABILITIES or not _with_gpu(workers)


def _with_gpu(workers: Sequence[Worker]) -> list[str]:
    """The workers with a GPU that gave a sign of life within `PATIENCE`."""
    return [w.worker_id for w in workers if w.capability in GPU_CAPABILITIES and w.heard_within(PATIENCE)]


def in_turn(active: Sequence[Run]) -> list[Run]:
    """The queued runs of `active` (newest first), in the order in which workers take them.

    The project with the fewest running runs comes first, then the next of each; within a project the oldest run.
    """
    ahead = Counter(run.project_id for run in active if run.status == "running")
    turns: list[tuple[int, Run]] = []
    for run in reversed(active):
        if run.status == "queued":
            turns.append((ahead[run.project_id], run))
            ahead[run.project_id] += 1
    return [run for _, run in sorted(turns, key=lambda turn: turn[0])]


def placement(run: Run, wants: Wants, workers: Sequence[Worker]) -> str:
    """Why a queued run waits, or what is to be said of the worker that has it; "" for nothing."""
    if run.status != "queued":
        without = wants == "gpu" and run.capability and run.capability not in GPU_CAPABILITIES
        return "on a worker without a GPU, because none with a GPU was there" if without else ""
    names = _with_gpu(workers) if wants == "gpu" else []
    return f"waiting for a GPU worker: {', '.join(names)}" if names else WAITING


# ── a running run: what it writes about itself, and how it learns that it must stop ──────────────────────────────

T = TypeVar("T")
_INTERVAL = 0.4
_GRACE = 1.0  # seconds that work gets to notice the stop by itself


class RunProgress:
    """The `Progress` of a running run; use it as a context manager around the work.

    A thread per run wakes twice a second: it writes where the run is and its latest snapshot if they changed, and looks
    whether a person cancelled the run or another worker has it.  The work itself only sets numbers in memory.  A run
    that resumes after a kill publishes the same snapshots again, from the first; they are held back until the last one
    that was shown is passed, so that nothing on a screen runs backwards.  `remarks` is added to each message.
    """

    def __init__(self, store: Store, run: Run, worker_stops: threading.Event) -> None:
        self._store, self._run_id, self._attempt = store, run.run_id, run.attempt
        self._worker_stops = worker_stops
        self._shown_before, self._published = run.snapshots, 0
        self._stage = Stage(run.phase, run.message, run.calls, run.calls_expected, run.usage)
        self._snapshot: Snapshot | None = None
        self._base_calls = run.calls
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

    # ── what the work says ───────────────────────────────────────────────────────────────────────────────────

    def publish(self, snapshot: Snapshot) -> None:
        """As `core.progress.Progress`."""
        self.check()
        with self._lock:
            self._published += 1
            if self._published >= self._shown_before:
                message = ". ".join((snapshot.message, *self.remarks()))
                self._stage = Stage(snapshot.phase, message, snapshot.calls, snapshot.calls_expected, snapshot.usage)
                self._base_calls = snapshot.calls
                if not isinstance(snapshot, Stage):
                    self._snapshot = snapshot

    def advance(self, done: int, of: int) -> None:
        """As `core.progress.Progress`."""
        with self._lock:
            if self._published >= self._shown_before:
                self._stage = replace(self._stage, calls=max(self._stage.calls, self._base_calls + done))
        self.check()

    def check(self) -> None:
        """Raise CancelledRunError, LostRunError or the store's error when the run must stop."""
        if self._stop is not None:
            raise self._stop

    def wait_for(self, work: Future[T]) -> T:
        """The result of `work`; when the run must stop, raises soon after even if `work` does not end."""
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

    # ── the thread ───────────────────────────────────────────────────────────────────────────────────────────

    def _keep_writing(self) -> None:
        while not self._done.wait(_INTERVAL) and self._stop is None:
            try:
                self._write()
                reason = self._store.runs.must_stop(self._run_id, self._attempt)
            except ConcordError as error:
                self._stop = error
                return
            if self._worker_stops.is_set():
                self._stop = LostRunError("This worker stops; the next one resumes the run.")
            elif reason == "cancelled":
                self._stop = CancelledRunError("Somebody cancelled the run. Replies that were paid for stay cached.")
            elif reason == "lost":
                self._stop = LostRunError("Another worker has the run.")

    def _write(self) -> None:
        with self._lock:
            stage, snapshot, self._snapshot = self._stage, self._snapshot, None
            shown = max(self._published, self._shown_before)
        if snapshot is not None:
            self._store.results.put_document(self._run_id, SNAPSHOT, snapshot, attempt=self._attempt)
        if stage != self._written or snapshot is not None:
            self._store.runs.progress(self._run_id, self._attempt, stage, shown)
            self._written = stage


# ── the queue ────────────────────────────────────────────────────────────────────────────────────────────────────


RUNS_AT_ONCE: dict[Wants, int] = {"any": 4, "now": 4, "gpu": 1}
"""Of one worker, by what they want: two models at once would have to share the memory of one GPU, and what somebody
waits for has room of its own."""
_STOP_SECONDS = 3.0

Work = Callable[[Run, RunProgress], str]
"""Does a run, stores its result, and returns its final status ("done", "budget")."""
WantsOf = Callable[[Run], Wants]
log = logging.getLogger("concord.jobs")


class Queue:
    """One per worker process."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        work: Work,
        *,
        capability: str = "cpu",
        wants: WantsOf = lambda run: "any",
    ) -> None:
        """`capability` is what this worker computes on, `wants` what a run wants."""
        self._store, self._worker_id, self._work = store, worker_id, work
        self._capability, self._wants = capability, wants
        self._active: dict[str, Wants] = {}
        self._changed = threading.Condition()
        self._stopping = threading.Event()

    def launch(self) -> None:
        """Queue again what this worker left unfinished when it was killed."""
        for run in self._store.runs.active():
            if run.worker_id == self._worker_id:
                self._store.runs.pass_on(run.run_id, run.attempt, "resuming")

    def stop(self) -> None:
        """Stop: runs in progress are queued again for the next worker."""
        self._stopping.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._active, timeout=_STOP_SECONDS)
        self.launch()

    def tick(self) -> None:
        """Queue again what lost workers left, and take queued runs in fair order between projects."""
        runs, active = self._store.runs, self._store.runs.active()
        workers = self._store.workers.all() if active else []
        for run in active:
            lost = run.status == "running" and run.worker_alive is False and run.worker_id != self._worker_id
            if lost and runs.pass_on(run.run_id, run.attempt):
                log.warning("run %s: passed on from worker %s", run.run_id, run.worker_id)
        for run in in_turn(active):
            wants = self._wants(run)
            with self._changed:  # the attempt before, just cancelled, may still be ending
                room = run.run_id not in self._active
                room = room and list(self._active.values()).count(wants) < RUNS_AT_ONCE[wants]
            if not room or not takes(self._capability, wants, workers):
                continue
            message = "resuming" if run.snapshots else "starting"
            if run.begun_by not in ("", VERSION):
                message = f"begun by Concord {run.begun_by}, resuming with {VERSION}: it may take another way"
            if runs.claim(run.run_id, run.attempt, self._worker_id, message):
                with self._changed:
                    self._active[run.run_id] = wants
                claimed, name = runs.get(run.run_id), f"run-{run.run_id}"
                threading.Thread(target=self._do, args=(claimed,), name=name, daemon=True).start()

    @property
    def idle(self) -> bool:
        """Whether no run is queued or running anywhere."""
        return not self._store.runs.active()

    def _do(self, run: Run) -> None:
        """Do a run to its end and store how it ended, unless it is another worker's by now."""
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
            status, error = "failed", f"Something unexpected went wrong ({name}); the worker's log has the details."
        pool.shutdown(wait=False)  # work that does not notice a cancellation ends by itself
        try:
            if status:
                message = "done" if status in WITH_RESULT else status
                self._store.runs.finish(run.run_id, run.attempt, status, message=message, error=error)
        except ConcordError as failure:
            log.warning("run %s: its ending could not be stored: %s", run.run_id, failure)
        finally:
            with self._changed:
                del self._active[run.run_id]
                self._changed.notify_all()
