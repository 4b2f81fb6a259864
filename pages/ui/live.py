"""The only polling fragment: redraws a part of a screen while something runs, and stops when it is over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from pages.ui import state

POLL_SECONDS = 0.7
_TURN = threading.RLock()
"""Whoever looks again without having pressed anything waits their turn: fifty open tabs never draw all at once, in the
way of somebody who saves a label (95th percentile of a save with 14 such tabs: 550 → 240 ms, bench_labelling)."""

T = TypeVar("T")


def follow(
    read: Callable[[], T], over: Callable[[T], bool], draw: Callable[[T], None], *, every: float = POLL_SECONDS
) -> None:
    """Draws `draw(read())`, again and again until `over` says so; then the whole screen is drawn once more.

    `every` seconds it looks again; a list that many keep open can look less often than a run that one watches.
    Once over, no timer is left: the next drawing registers the fragment without one.
    """
    waiting = not over(read())

    @st.fragment(run_every=every if waiting else None)
    def part() -> None:
        with _TURN:
            now = read()
            if waiting == over(now):  # it ended, or it was set going again
                state.keep_notice()
                st.rerun()
            draw(now)

    part()
