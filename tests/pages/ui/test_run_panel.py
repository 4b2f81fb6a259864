"""The polling fragment: one looks at a time, whatever happens in it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
import streamlit as st

from pages.ui import run_panel


@pytest.fixture(autouse=True)
def drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fragment is what it wraps: no session is needed."""

    def fragment(**_: Any) -> Callable[[Callable[[], None]], Callable[[], None]]:
        return lambda part: part

    monkeypatch.setattr(st, "fragment", fragment)


def test_one_tab_draws_at_a_time() -> None:
    inside, go_on, most = threading.Semaphore(0), threading.Event(), []
    drawing: list[int] = []

    def draw(place: int) -> None:
        drawing.append(place)
        most.append(len(drawing))
        inside.release()
        go_on.wait(60)
        drawing.remove(place)

    tabs = [threading.Thread(target=run_panel.follow, args=(lambda k=k: k, lambda _: False, draw)) for k in range(4)]
    for tab in tabs:
        tab.start()
    assert inside.acquire(timeout=60)
    assert not inside.acquire(timeout=0.2), "a second tab draws while the first one does"
    go_on.set()
    for tab in tabs:
        tab.join(60)
    assert most == [1, 1, 1, 1]


def test_a_look_that_fails_lets_the_next_one_in_and_one_may_stand_in_another() -> None:
    def fails(_: int) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        run_panel.follow(lambda: 1, lambda _: True, fails)
    drawn: list[int] = []
    run_panel.follow(lambda: 1, lambda _: True, lambda k: run_panel.follow(lambda: k + 1, lambda _: True, drawn.append))
    assert drawn == [2]
