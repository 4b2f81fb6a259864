"""Durable runs on DBOS: progress, cancel, resume, takeover.  Knows no domain and holds no SQL.

A run is a `Program`: a generator that yields steps of work and snapshots.  Each step is done once and its answer
stored by (run, number); a killed worker's run is driven again from the start with the stored answers, so it goes
on where it stopped and ends as an undisturbed one would.  DBOS holds the queue, hands each run to one worker, and
remembers small values only.  A step is at-least-once: the first stored answer counts.

::

    web process  ── row in `runs` (queued) ──▶  any worker's tick hands it to a DBOS queue, once per attempt
    DBOS queues  ── one worker at a time   ──▶  `_run`: claim, drive, finish
    worker dies  ── same worker restarts   ──▶  DBOS recovers what that executor id left pending
                 ── heartbeat goes stale   ──▶  another worker's tick queues the run again as a new attempt

A new attempt is a new workflow that finds the stored steps; whatever still runs of the old one notices that the run
is no longer its own and stops.  The web process needs neither DBOS nor a connection to its tables.
`core.jobs.routing` says which of the two queues (any worker, workers with a GPU) a run goes to.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

from core.errors import CancelledRunError, ConcordError, JobError
from core.jobs.journal import Journal, LostRunError
from core.jobs.routing import (
    COMMON_QUEUE,
    GPU_QUEUE,
    PATIENCE,
    Wants,
    gpu_is_there,
    has_gpu,
    queue_for,
    queues_of,
)
from core.store.codec import Packed
from core.store.rows import RunRow, StepRow
from core.store.store import Store
from core.store.workers import ALIVE_SECONDS

APPLICATION = "concord"
VERSION = "concord-runs-1"
"""Pinned: runs of one version are only taken up by workers of the same.  Raise it when stored steps change form."""
RUNS_AT_ONCE = {COMMON_QUEUE: 4, GPU_QUEUE: 1}
"""Of one worker, by queue: two models at once would have to share the memory of one GPU."""
_STRANDED_SECONDS = 5.0  # so long a run must look stranded: DBOS needs a moment to start what it took from its queue
_STOP_SECONDS = 3.0

log = logging.getLogger("concord.jobs")


class Program(Protocol):
    """What one kind of run does.  Given the same answers, `steps` yields the same steps."""

    def steps(self) -> Generator[Any, Any, Any]:
        """Yield work (answered by what `read` makes of the stored answer) and snapshots (answered by None)."""
        ...

    def question(self, step: Any) -> str:
        """Content hash of a step of work; "" for a snapshot."""
        ...

    def work(self, step: Any, on_progress: Callable[[int, int], None]) -> Packed:
        """Do a step; may be repeated after a crash, with the same outcome or one as good."""
        ...

    def read(self, step: Any, stored: Packed) -> Any:
        """The answer to send into the generator."""
        ...

    def keep(self, step: Any, answer: Any) -> None:
        """Store what else follows from an answer (scores, criteria); repetitions must be harmless."""
        ...

    def note(self, snapshot: Any, journal: Journal) -> None:
        """Tell the journal where the run stands."""
        ...

    def finish(self, result: Any) -> str:
        """Store the generator's result; the run's final status ("done", "budget")."""
        ...

    def close(self) -> None:
        """Release what the program holds."""
        ...


OpenProgram = Callable[[RunRow], Program]
WantsOf = Callable[[RunRow], Wants]


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a run ended; `status` "" says that it is another worker's now."""

    status: str
    message: str = ""
    error: str = ""


class Engine:
    """One per worker process (DBOS keeps one instance per process)."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        system_url: str,
        open_program: OpenProgram,
        *,
        capability: str = "cpu",
        wants: WantsOf = lambda run: "any",
        patience: float = PATIENCE,
    ) -> None:
        """`system_url`: where DBOS keeps its tables (sqlite:///… or postgresql://…).

        `capability` is what this worker computes on, `wants` what a run wants; `patience` in seconds as in
        `core.jobs.routing`.
        """
        self._store, self._worker_id, self._system_url = store, worker_id, system_url
        self._open_program, self._wants = open_program, wants
        self._capability, self._patience = capability, patience
        self._workflow: Any = None
        self._active: set[str] = set()
        self._changed = threading.Condition()
        self._stranded_since: dict[str, float] = {}
        self._stopping = threading.Event()

    # ── DBOS ─────────────────────────────────────────────────────────────────────────────────────────────────

    def launch(self) -> None:
        """Start DBOS; it begins at once with what this worker left unfinished."""
        from dbos import DBOS

        DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": self._system_url,
                "application_version": VERSION,
                "executor_id": self._worker_id,
                "log_level": "WARNING",
                "console_log_level": "WARNING",
                "enable_otlp": False,
            }
        )

        def workflow(run_id: str, attempt: int) -> str:
            return self._run(run_id, attempt)

        self._workflow = DBOS.workflow(name="run")(workflow)
        DBOS.listen_queues(queues_of(self._capability))
        DBOS.launch()
        for queue, most in RUNS_AT_ONCE.items():  # both, because every worker hands runs to both
            DBOS.register_queue(queue, worker_concurrency=most, polling_interval_sec=0.25, on_conflict="always_update")

    def stop(self) -> None:
        """Let go of everything: runs in progress are queued again for the next worker, with all they have stored."""
        from dbos import DBOS

        self._stopping.set()
        with self._changed:
            self._changed.wait_for(lambda: not self._active, timeout=_STOP_SECONDS)
        for run in self._store.runs.active():
            if run.status == "running" and run.worker_id == self._worker_id:
                self._store.runs.pass_on(run.run_id, run.attempt)
        DBOS.destroy(destroy_registry=True)

    def tick(self) -> None:
        """Hand queued runs to DBOS, and pass on what lost workers left."""
        seen, active = set(), self._store.runs.active()
        workers = self._store.workers.all() if active else []
        for run in active:
            queue = queue_for(self._wants(run), workers, self._patience)
            if run.status == "queued" and run.handed_over < run.attempt:
                self._hand_over(run, queue)
            elif self._is_stranded(run, queue):
                seen.add(run.run_id)
                self._pass_on_if_it_stays_so(run)
        self._stranded_since = {run_id: since for run_id, since in self._stranded_since.items() if run_id in seen}

    @property
    def idle(self) -> bool:
        """Whether no run is queued or running anywhere."""
        return not self._store.runs.active()

    def _hand_over(self, run: RunRow, queue: str) -> None:
        from dbos import DBOS, SetWorkflowID

        with SetWorkflowID(_workflow_id(run)):
            DBOS.enqueue_workflow(queue, self._workflow, run.run_id, run.attempt)
        self._store.runs.mark_handed_over(run.run_id, run.attempt)

    def _is_stranded(self, run: RunRow, queue: str) -> bool:
        """Whether nobody works on a run that DBOS was given, or will: its worker is lost, DBOS has it no longer, or it
        waits for a GPU worker although `queue`, where it would be put now, is another.
        """
        if run.status == "running" and run.worker_id != self._worker_id:
            return run.beat_at is None or run.now - run.beat_at > ALIVE_SECONDS
        if run.run_id in self._active:
            return False
        from dbos import DBOS

        known = DBOS.get_workflow_status(_workflow_id(run))
        if known is None or known.status not in ("ENQUEUED", "DELAYED"):
            return True
        return known.queue_name == GPU_QUEUE != queue

    def _pass_on_if_it_stays_so(self, run: RunRow) -> None:
        since = self._stranded_since.setdefault(run.run_id, time.monotonic())
        if time.monotonic() - since >= _STRANDED_SECONDS and self._store.runs.pass_on(run.run_id, run.attempt):
            log.warning("run %s: passed on from worker %s", run.run_id, run.worker_id or "none")

    # ── one run ──────────────────────────────────────────────────────────────────────────────────────────────

    def _run(self, run_id: str, attempt: int) -> str:
        """The workflow: returns the final status, for DBOS's record only."""
        with self._changed:
            self._changed.wait_for(lambda: run_id not in self._active)  # the previous attempt, just cancelled
            self._active.add(run_id)
        try:
            if self._left_to_a_gpu(run_id, attempt):
                return "left to a worker with a GPU"
            if not self._store.runs.claim(run_id, attempt, self._worker_id):
                return "not to be run"
            ending = self._drive_to_an_end(self._store.runs.get(run_id))
            if ending.status:
                message, error = ending.message, ending.error
                self._store.runs.finish(run_id, self._worker_id, ending.status, message=message, error=error)
            return ending.status or "lost"
        finally:
            with self._changed:
                self._active.discard(run_id)
                self._changed.notify_all()

    def _left_to_a_gpu(self, run_id: str, attempt: int) -> bool:
        """Whether a GPU worker came up since this run was put in the common queue; it is queued again for that one."""
        if has_gpu(self._capability):
            return False
        run = self._store.runs.get(run_id)
        if run.status != "queued" or run.attempt != attempt or self._wants(run) != "gpu":
            return False
        return gpu_is_there(self._store.workers.all()) and self._store.runs.pass_on(
            run_id, attempt, "left to a worker with a GPU"
        )

    def _drive_to_an_end(self, run: RunRow) -> _Ending:
        """Every error becomes an ending; only its message is kept, its traceback goes to the log."""
        try:
            program = self._open_program(run)
            with Journal(self._store, run, self._worker_id, self._stopping) as journal:
                return _Drive(self._store, run, program, journal).to_the_end()
        except LostRunError:
            return _Ending("")
        except CancelledRunError as error:
            return _Ending("cancelled", "cancelled", str(error))
        except ConcordError as error:
            log.warning("run %s failed: %s", run.run_id, error, exc_info=True)
            return _Ending("failed", "failed", str(error))
        except Exception as error:
            log.exception("run %s failed unexpectedly", run.run_id)
            name = type(error).__name__
            return _Ending(
                "failed", "failed", f"Something unexpected went wrong ({name}); the worker's log has the details."
            )


def _workflow_id(run: RunRow) -> str:
    return f"{run.run_id}:{run.attempt}"


class _Drive:
    """Drives one program from its stored answers, and stores new ones."""

    def __init__(self, store: Store, run: RunRow, program: Program, journal: Journal) -> None:
        self._store, self._run, self._program, self._journal = store, run, program, journal
        self._stored = store.results.n_steps(run.run_id)
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"work-{run.run_id}")

    def to_the_end(self) -> _Ending:
        try:
            return self._loop()
        finally:
            # work that did not notice a cancellation ends by itself; what it uses is released after it
            self._pool.submit(self._program.close)
            self._pool.shutdown(wait=False)

    def _loop(self) -> _Ending:
        steps = self._program.steps()
        number, answer, replayed = 0, None, None
        while True:
            self._journal.check()
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return _Ending(self._program.finish(end.value), "done")
            question = self._program.question(step)
            if question:
                if number == self._stored and replayed is not None:
                    self._program.note(replayed, self._journal)
                answer = self._answer(number, question, step)
                number += 1
            elif number < self._stored:  # shown one by one, snapshots of what is replayed would run backwards
                answer, replayed = None, step
            else:
                answer = None
                self._program.note(step, self._journal)

    def _answer(self, number: int, question: str, step: Any) -> Any:
        from dbos import DBOS

        problem: list[Exception] = []

        def once() -> str:
            """Returns a small value, and no exception, for DBOS to remember: errors end the attempt anyway."""
            try:
                return self._store_answer(number, question, step)
            except Exception as error:
                problem.append(error)
                return f"failed: {type(error).__name__}"

        DBOS.run_step({"name": "work"}, once)
        if problem:
            raise problem[0]
        stored = self._stored_answer(number, question)
        if stored is None:
            raise JobError("A step of this run did not finish. Resume the run: what was paid for is kept.")
        answer = self._program.read(step, stored.answer)
        self._program.keep(step, answer)
        self._journal.step_done()
        return answer

    def _store_answer(self, number: int, question: str, step: Any) -> str:
        if self._stored_answer(number, question) is None:
            work = self._pool.submit(self._program.work, step, self._journal.on_progress)
            answer = self._journal.wait_for(work)
            self._store.results.put_step(self._run.run_id, StepRow(number, question, answer))
        return question

    def _stored_answer(self, number: int, question: str) -> StepRow | None:
        stored = self._store.results.step(self._run.run_id, number)
        if stored is not None and stored.digest != question:
            raise JobError(
                f"Step {number} of this run was stored by another version of the program and no longer fits. "
                "Start the run anew: replies that were paid for are found again."
            )
        return stored
