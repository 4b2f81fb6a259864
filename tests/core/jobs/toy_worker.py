"""Workers whose runs know nothing of judges.

    python toy_worker.py

starts none yet: it imports what a worker takes, once, and forks one for each line ["start", LOG, URL, WORKER_ID,
FOLDER, CAPABILITY, PATIENCE] on standard input, answering with its process id; ["poll", PID] is answered with its exit
code, null while it works.

A run has `steps` steps that take `seconds` each and add up numbers; what a step gave is kept with the run. Each
finished piece of work is a line "run step" in FOLDER/done.txt, so a test sees what was done twice. With `until`, no
step from number `held` on ends before FOLDER has a file of that name; with `paced`, no part k of a step begins before
FOLDER has the file "part k".
It runs until it is killed.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import JobError, StoreError
from core.jobs import queue as queues
from core.jobs.log_lines import log_to_stderr
from core.jobs.queue import Queue, RunProgress
from core.progress import Stage
from core.project_records import Run
from core.records import Usage
from core.store.codec import Packed
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
            kept = self.store.results.document(run.run_id, f"kept {k}")
            total += self.step(run, request, k, progress) if kept is None else int(kept.body)
        progress.publish(Stage("toy", "done", 10 * request["steps"], 10 * request["steps"]))
        self.store.results.put_document(run.run_id, "result", Packed(str(total)), attempt=run.attempt)
        return "done"

    def step(self, run: Run, request: dict[str, Any], k: int, progress: RunProgress) -> int:
        if k == request.get("fails_at") and not (self.folder / "mended").exists():
            raise JobError(f"The toy broke. {SECRET}") if request["how"] == "ours" else ZeroDivisionError(SECRET)
        parts = 10
        reports = request.get("reports", True)
        for part in range(parts):
            while request.get("paced") and not (self.folder / f"part {part}").exists():
                time.sleep(0.02)
            time.sleep(request["seconds"] / parts)
            if reports:
                progress.advance(part + 1, parts)
        while k >= request.get("held", 0) and not (self.folder / request.get("until", "")).exists():
            if reports:
                progress.advance(parts, parts)
            time.sleep(0.02)
        with (self.folder / "done.txt").open("a") as file:
            file.write(f"{run.run_id} {k}\n")
        self.store.results.put_document(run.run_id, f"kept {k}", Packed(str(k**2 + 1)), attempt=run.attempt)
        return k**2 + 1


def work(url: str, worker_id: str, folder: str, capability: str, patience: str) -> None:
    store = Store(url)
    store.workers.enter(worker_id, folder, 0, capability)
    queues.PATIENCE = float(patience)
    queue = Queue(
        store,
        worker_id,
        Toy(store, Path(folder)).do,
        capability=capability,
        wants=lambda run: json.loads(run.request_json).get("wants", "any"),
    )
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    log_to_stderr("text")
    queue.launch()
    while not stop.wait(0.1):
        with suppress(StoreError):  # as the worker does: a connection that a long sleep cost is made anew
            store.workers.beat(worker_id)
            queue.tick()
    queue.stop()
    store.workers.leave(worker_id)


def start(log: str, *about: str) -> int:
    """Fork a worker that writes to the file `log`; its process id."""
    pid = os.fork()
    if pid:
        return pid
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(file, stream)
    code = 1
    try:
        work(*about)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def poll(pid: int) -> int | None:
    done, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


if __name__ == "__main__":
    gc.freeze()
    for line in sys.stdin:
        what, *about = json.loads(line)
        print(json.dumps(start(*about) if what == "start" else poll(*about)), flush=True)
