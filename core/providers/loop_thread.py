"""One event loop in a thread of its own, so that synchronous callers share long-lived connections."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """The thread starts with the first `submit`, which may come from any thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._running: tuple[asyncio.AbstractEventLoop, threading.Thread] | None = None

    @property
    def started(self) -> bool:
        return self._running is not None

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `coroutine` in the loop; cancelling the future cancels the coroutine."""
        with self._lock:
            if self._running is None:
                loop = asyncio.new_event_loop()
                self._running = loop, threading.Thread(target=_run_forever, args=(loop,), name=self._name, daemon=True)
                self._running[1].start()
            return asyncio.run_coroutine_threadsafe(coroutine, self._running[0])

    def stop(self) -> None:
        """End the loop and its thread; what still runs there is cancelled.  A later `submit` starts a fresh one."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running[0].call_soon_threadsafe(running[0].stop)
            running[1].join()


def _run_forever(loop: asyncio.AbstractEventLoop) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.get_loop().run_forever()
