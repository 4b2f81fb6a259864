"""A worker's work in threads of this process."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from core.jobs.queue import Queue
from core.projects.kinds import do_run
from core.settings import Settings
from core.store.store import Store


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Poll until `condition`; fails the test after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"still not so after {seconds} s")
        time.sleep(0.02)


@pytest.fixture
def work_off() -> Callable[[Store, Settings], None]:
    """`work_off(store, settings)` does what is queued as a worker would, endings and all, in threads of this process.

    It returns when nothing is queued or running any more, or with `wait=False` as soon as the runs have begun.
    """

    def worked(store: Store, settings: Settings, *, wait: bool = True) -> None:
        queue = Queue(store, "here", lambda run, progress: do_run(store, settings, run, progress))
        queue.tick()
        if wait:
            wait_until(lambda: queue.idle, 120)

    return worked


@pytest.fixture
def until() -> Callable[..., None]:
    """`wait_until`, for tests (they do not import from each other)."""
    return wait_until
