"""The `Progress` of a run at work: what it writes about itself, and how it hears that it must stop.

A thread per run wakes twice a second: it writes where the run is and its latest snapshot if they changed, and looks
whether a person cancelled the run or another worker took it over.  The work itself only sets numbers in memory.

A run that goes on after a kill publishes the same snapshots again, from the first; they are held back until the last
one that was shown is passed, so that nothing on a screen runs backwards.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from core.errors import CancelledRunError, ConcordError, LostRunError
from core.kept import Run
from core.progress import Snapshot, Stage
from core.store.results import SNAPSHOT
from core.store.store import Store

T = TypeVar("T")
_INTERVAL = 0.4
_GRACE = 1.0  # seconds that work gets to notice the stop by itself


class RunProgress:
    """Use as a context manager around the work of one run."""

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
                self._stage = Stage(
                    snapshot.phase, snapshot.message, snapshot.calls, snapshot.calls_expected, snapshot.usage
                )
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
        """The result of `work`; when the run must stop, raises soon after even if `work` goes on."""
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
                self._listen()
            except ConcordError as error:
                self._stop = error

    def _listen(self) -> None:
        if self._worker_stops.is_set():
            self._stop = LostRunError("This worker stops; the next one goes on.")
            return
        reason = self._store.runs.must_stop(self._run_id, self._attempt)
        if reason == "cancelled":
            self._stop = CancelledRunError("A person cancelled the run. What was paid for is kept.")
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
