"""How often Python looks for objects that hold each other in a circle."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_NEW_OBJECTS, _TIMES = 100_000, 10


def collect_seldom() -> None:
    """Look once in 100,000 new objects, not in 700, and never again at those that are there by now (imports).

    A table of 100,000 items is millions of small objects that live on: to look through them all each time that they
    have grown by a quarter took a third of the time of reading them, and found nothing.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _TIMES, _TIMES)


class _Pauses:
    """How many there are now, and whether it was on before the first."""

    lock, n, enabled = Lock(), 0, False


@contextmanager
def uncollected() -> Iterator[None]:
    """Do not look meanwhile, in any thread: what makes a great many objects that live on gives it nothing to find."""
    with _Pauses.lock:
        if not _Pauses.n:
            _Pauses.enabled = gc.isenabled()
            gc.disable()
        _Pauses.n += 1
    try:
        yield
    finally:
        with _Pauses.lock:
            _Pauses.n -= 1
            if not _Pauses.n and _Pauses.enabled:
                gc.enable()
