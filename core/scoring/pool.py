"""Scoring on several cores: processes that each open the judge file and take batches in turn.

Only for judges that compute (the offline judge): one that waits for an endpoint needs no second core.  The processes
are copies of a server process that imported what they need and nothing else (each is started afresh where the system
has no such copies); they talk through pipes, and end when the pipe does, so that none is left behind a killed parent.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

from core.errors import ConcordError, JudgeError
from core.records import Item
from core.scoring.output import Batch

Scorer = Callable[[Sequence[Item]], Batch]
_START = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def get_ready(make: Callable[..., Scorer], *late: str) -> None:
    """Start the server of a pool that will call `make`, so that it imports while this process does something else.

    `late` are modules that `make` imports only when it is called: imported once here, and not in every process.
    """
    if _START == "forkserver":
        from multiprocessing import forkserver

        forkserver.set_forkserver_preload([make.__module__, *late])
        forkserver.ensure_running()


class ProcessPool:
    """`n` processes, each with a scorer of its own, which ``make(*arguments)`` gives."""

    def __init__(self, n: int, make: Callable[..., Scorer], *arguments: Any) -> None:
        context: Any = multiprocessing.get_context(_START)  # each kind has a Process of its own
        self._workers: list[tuple[Any, Connection]] = []
        for _ in range(n):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, make, arguments), daemon=True)
            process.start()
            theirs.close()
            self._workers.append((process, ours))

    def map(self, batches: Iterable[Sequence[Item]]) -> Iterator[Batch]:
        """The scored batches, in their order.  ConcordError as the scorer raised it, or when a process ended.

        Each process holds the batch it works on and the next one, and is sent one only when it is about to take it:
        pipes are short, and two ends that both send would wait for each other for ever.
        """
        source, waiting = iter(batches), deque[int]()
        for worker in [*range(len(self._workers))] * 2:
            self._send(worker, next(source, None), waiting)
        while waiting:
            worker = waiting.popleft()
            answer = self._receive(worker)
            self._send(worker, next(source, None), waiting)
            yield answer

    def close(self) -> None:
        """End the processes.  Safe to call twice."""
        for process, pipe in self._workers:
            pipe.close()
            process.join(timeout=1.0)
            if process.is_alive():
                process.terminate()
                process.join()
        self._workers = []

    def _send(self, worker: int, batch: Sequence[Item] | None, waiting: deque[int]) -> None:
        try:
            self._workers[worker][1].send(batch)
        except OSError as error:
            raise self._lost(worker) from error
        if batch is not None:
            waiting.append(worker)

    def _receive(self, worker: int) -> Batch:
        try:
            answer = self._workers[worker][1].recv()
        except (EOFError, OSError) as error:
            raise self._lost(worker) from error
        if isinstance(answer, Batch):
            return answer
        raise JudgeError(str(answer))

    def _lost(self, worker: int) -> ConcordError:
        process = self._workers[worker][0]
        process.join(timeout=1.0)
        return ConcordError(
            f"A scoring process ended by itself (exit code {process.exitcode}; out of memory, perhaps). What is scored "
            "is kept: run the same command again, with --workers 1 where it happens again."
        )


def _work(pipe: Connection, make: Callable[..., Scorer], arguments: Sequence[Any]) -> None:
    """Score what comes through `pipe` until there is no more (None) or the other end is gone."""
    try:
        score = make(*arguments)
        batch, after = pipe.recv(), pipe.recv()
        while batch is not None:
            pipe.send(score(batch))
            batch, after = after, pipe.recv()
    except ConcordError as error:
        pipe.send(str(error))
    except (EOFError, OSError, KeyboardInterrupt):
        pipe.close()
