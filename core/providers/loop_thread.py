"""One event loop in a thread of its own, so that synchronous callers share long-lived connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Starts its thread on first use; `submit` may be called from any thread."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def started(self) -> bool:
        return self._loop is not None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `coroutine` in the loop; cancelling the future cancels the coroutine."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._running())

    def stop(self) -> None:
        """End the loop and its thread; what still runs there is cancelled.  A later `submit` starts a fresh one."""
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                ready = threading.Event()
                self._thread = threading.Thread(target=self._run, args=(ready,), name=self.name, daemon=True)
                self._thread.start()
                ready.wait()
            assert self._loop is not None
            return self._loop

    def _run(self, ready: threading.Event) -> None:
        with asyncio.Runner() as runner:
            loop = self._loop = runner.get_loop()
            loop.call_soon(ready.set)
            loop.run_forever()
