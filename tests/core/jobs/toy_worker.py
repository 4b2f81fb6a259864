"""A worker whose runs know nothing of judges.

    python toy_worker.py URL QUEUE_URL WORKER_ID FOLDER CAPABILITY PATIENCE

A run has `steps` steps that take `seconds` each and add up numbers.  Each finished piece of work is a line
"run step" in FOLDER/done.txt, so a test sees what was done twice.  It runs until it is killed.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

from core.errors import JobError, StoreError
from core.jobs.engine import Engine
from core.jobs.journal import Journal
from core.records import Usage
from core.store.codec import Packed
from core.store.rows import Progress, RunRow
from core.store.store import Store


class Toy:
    def __init__(self, store: Store, run: RunRow, folder: Path) -> None:
        self.store, self.run, self.folder = store, run, folder
        self.request = json.loads(run.request)

    def steps(self) -> Generator[Any, Any, int]:
        total = 0
        for k in range(self.request["steps"]):
            yield {"snapshot": k, "total": total}
            total += yield {"step": k, "after": total}
        return total

    def question(self, step: Any) -> str:
        return "" if "snapshot" in step else f"step:{step['step']}:{step['after']}"

    def work(self, step: Any, on_progress: Callable[[int, int], None]) -> Packed:
        if step["step"] == self.request.get("fails_at") and not (self.folder / "mended").exists():
            raise JobError("The toy broke.") if self.request["how"] == "ours" else ZeroDivisionError("secret")
        parts = 10
        for part in range(parts):
            time.sleep(self.request["seconds"] / parts)
            if self.request.get("reports", True):
                on_progress(part + 1, parts)
        with (self.folder / "done.txt").open("a") as file:
            file.write(f"{self.run.run_id} {step['step']}\n")
        return Packed(json.dumps(step["step"] ** 2 + 1))

    def read(self, step: Any, stored: Packed) -> int:
        return int(json.loads(stored.body))

    def keep(self, step: Any, answer: int) -> None:
        self.store.results.put_document(self.run.run_id, f"kept {step['step']}", Packed(str(answer)))

    def note(self, snapshot: Any, journal: Journal) -> None:
        progress = Progress(
            "toy", f"step {snapshot['snapshot']}", 10 * snapshot["snapshot"], 10 * self.request["steps"], Usage()
        )
        journal.note(progress, lambda: Packed(json.dumps(snapshot)))

    def finish(self, result: int) -> str:
        self.store.results.put_document(self.run.run_id, "result", Packed(str(result)))
        return "done"

    def close(self) -> None:
        with (self.folder / "closed.txt").open("a") as file:
            file.write(f"{self.run.run_id}\n")


def main() -> None:
    url, queue_url, worker_id, folder, capability, patience = sys.argv[1:]
    store = Store(url)
    store.workers.enter(worker_id, folder, 0, capability)
    engine = Engine(
        store,
        worker_id,
        queue_url,
        lambda run: Toy(store, run, Path(folder)),
        capability=capability,
        wants=lambda run: json.loads(run.request).get("wants", "any"),
        patience=float(patience),
    )
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    engine.launch()
    while not stop.wait(0.1):
        with suppress(StoreError):  # as the worker does: a connection that a long sleep cost is made anew
            store.workers.beat(worker_id)
            engine.tick()
    engine.stop()
    store.workers.leave(worker_id)


main()
