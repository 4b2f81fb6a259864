"""A worker whose runs know nothing of judges.

    python -m tests.core.jobs.toy_worker URL WORKER_ID FOLDER

A run has `steps` steps that take `seconds` each and add up numbers; what a step gave is kept with the run. Each
finished piece of work is a line "run step" in FOLDER/done.txt, so a test sees what was done twice. With `until`, no
step from number `held` on ends before FOLDER has a file of that name.
It runs until it is killed.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import JobError, StoreError
from core.jobs.queue import Queue, RunProgress, log_to_stderr
from core.progress import Stage
from core.project_records import Run
from core.records import Usage
from core.store.store import Store

SECRET = "Bearer canary-key-4f1d9a27c3"


@dataclass(frozen=True)
class Total:
    """A snapshot with something to show."""

    phase: str
    message: str
    calls: int
    calls_expected: int
    usage: Usage
    total: int


class Toy:
    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder

    def do(self, run: Run, progress: RunProgress) -> str:
        request = json.loads(run.request_json)
        total = 0
        for k in range(request["steps"]):
            progress.publish(Total("toy", f"step {k}", 10 * k, 10 * request["steps"], Usage(), total))
            kept = self.store.results.read(run.run_id, f"kept {k}", int)
            total += self.step(run, request, k, progress) if kept is None else kept
        progress.publish(Stage("toy", "done", 10 * request["steps"], 10 * request["steps"]))
        self.store.results.put_document(run.run_id, "result", total, attempt=run.attempt)
        return "done"

    def step(self, run: Run, request: dict[str, Any], k: int, progress: RunProgress) -> int:
        if k == request.get("fails_at") and not (self.folder / "mended").exists():
            raise JobError(f"The toy broke. {SECRET}") if request["how"] == "ours" else ZeroDivisionError(SECRET)
        parts = 10
        reports = request.get("reports", True)
        for part in range(parts):
            time.sleep(request["seconds"] / parts)
            if reports:
                progress.advance(part + 1, parts)
        while k >= request.get("held", 0) and not (self.folder / request.get("until", "")).exists():
            if reports:
                progress.advance(parts, parts)
            time.sleep(0.02)
        with (self.folder / "done.txt").open("a") as file:
            file.write(f"{run.run_id} {k}\n")
        self.store.results.put_document(run.run_id, f"kept {k}", k**2 + 1, attempt=run.attempt)
        return k**2 + 1


def work(url: str, worker_id: str, folder: str) -> None:
    store = Store(url)
    store.workers.register(worker_id, folder, 0)
    queue = Queue(store, worker_id, Toy(store, Path(folder)).do)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    log_to_stderr()
    queue.requeue_own()
    while not stop.wait(0.1):
        with suppress(StoreError):  # as the worker does: a connection that a long sleep cost is made anew
            store.workers.heartbeat(worker_id)
            queue.tick()
    queue.stop()
    store.workers.unregister(worker_id)


if __name__ == "__main__":
    work(*sys.argv[1:])
