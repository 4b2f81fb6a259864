"""What a running run writes about itself while it works, and how it hears that it must stop.

A thread per run wakes twice a second: it writes progress and the latest snapshot if they changed, and looks whether
a person cancelled the run or another worker took it over.  The work itself only sets numbers in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeVar

from core.errors import CancelledRunError, ConcordError, JobError
from core.jobs.documents import STANDING
from core.store.codec import Packed
from core.store.rows import Progress, RunRow
from core.store.store import Store

T = TypeVar("T")
_INTERVAL = 0.4
_GRACE = 1.0  # seconds that work gets to notice the stop by itself


class LostRunError(JobError):
    """The run is another worker's now; this one stops without a word in the store."""


class Journal:
    """Use as a context manager around the work of one run."""

    def __init__(self, store: Store, run: RunRow, worker_id: str, worker_stops: threading.Event) -> None:
        self._store, self._run_id, self._worker_id = store, run.run_id, worker_id
        self._worker_stops = worker_stops
        self._progress = Progress(run.phase, run.message, run.calls, run.calls_expected, run.usage)
        self._snapshot: Callable[[], Packed] | None = None
        self._written = self._progress
        self._base_calls = run.calls
        self._stop: ConcordError | None = None
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._keep_writing, name=f"journal-{run.run_id}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._done.set()
        self._thread.join()
        if kind is None or (issubclass(kind, ConcordError) and not issubclass(kind, LostRunError)):
            self._write()

    def note(self, progress: Progress, snapshot: Callable[[], Packed]) -> None:
        """Say where the run stands; `snapshot` makes the document that goes with it, if it is written at all."""
        with self._lock:
            self._progress, self._snapshot, self._base_calls = progress, snapshot, progress.calls

    def on_progress(self, done: int, _: int) -> None:
        """The judge's `OnProgress`: calls done within the present step.  Raises when the run must stop."""
        with self._lock:
            self._progress = replace(self._progress, calls=self._base_calls + done)
        self.check()

    def step_done(self) -> None:
        """The calls counted so far belong to finished steps."""
        with self._lock:
            self._base_calls = self._progress.calls

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
        told = self._store.runs.must_stop(self._run_id, self._worker_id)
        if told == "cancelled":
            self._stop = CancelledRunError("A person cancelled the run. What was paid for is kept.")
        elif told == "lost":
            self._stop = LostRunError("Another worker has the run.")

    def _write(self) -> None:
        with self._lock:
            progress, snapshot, self._snapshot = self._progress, self._snapshot, None
        if snapshot is not None:
            self._store.results.put_document(self._run_id, STANDING, snapshot())
        if progress != self._written:
            self._store.runs.progress(self._run_id, self._worker_id, progress)
            self._written = progress
