"""How often Python looks for objects that hold each other in a circle."""

from __future__ import annotations

import gc

_NEW_OBJECTS, _TIMES = 100_000, 10


def collect_seldom() -> None:
    """Look once in 100,000 new objects, not in 700, and never again at those that are there by now (imports).

    A table of 100,000 items is millions of small objects that live on: to look through them all each time that they
    have grown by a quarter took a third of the time of reading them, and found nothing.
    """
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _TIMES, _TIMES)
