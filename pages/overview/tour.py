"""The tour of the demo project, and the buttons to reset or leave the demo.

Only the demo project has a tour. The current stop is in the URL. It is also kept in the session, for users who open
another screen from the menu.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import Run, is_demo
from core.settings import Settings
from core.store.store import Store
from pages.ui import people, state
from pages.ui.screens import SCREENS, Screen, go, plain

PLACE = "tour_place"
WHAT = "Demo: made-up texts, simulated labels."


@dataclass(frozen=True)
class Finished:
    """Targets of the links in the tour: the demo's golden set, and its finished runs, oldest first."""

    golden_id: str
    aspect: str
    runs: tuple[Run, ...]

    def run(self, kind: str, spec: str = "") -> str:
        """Return the id of the oldest finished run of this kind; "" if there is none.

        The spec of the run's judge must begin with `spec`.
        """
        return next((run.run_id for run in self.runs if run.kind == kind and run.judge_spec.startswith(spec)), "")

    @property
    def both(self) -> dict[str, str]:
        return {"golden": self.golden_id, "aspect": self.aspect}


Ids = Callable[[Finished], dict[str, str]]


@dataclass(frozen=True)
class Step:
    """A stop on the tour: its screen, its text and the ids in its link."""

    screen: Screen
    words: str
    ids: Ids = lambda demo: demo.both


STEPS = (
    Step(
        "overview",
        "This judge rates whether texts follow a newsroom's house style. Version 2 came from an edit that was "
        "accepted in a review. It is better than version 1 on items it has never seen, so a reviewer approved it.",
    ),
    Step(
        "golden_set",
        "Three simulated raters rated 240 push notifications for house style. Concord measures every judge against "
        "these labels. You can label your own texts on the Label screen.",
        lambda demo: {"golden": demo.golden_id},
    ),
    Step(
        "calibrate",
        "Concord drafted criteria from labelled examples. It kept the criteria that agree best with the raters. "
        "Without criteria, the same judge agrees far less.",
        lambda demo: {"run": demo.run("calibration", "scripted")},
    ),
    Step(
        "criteria",
        "You can edit criteria and see immediately which items improved. This edit adds a rule that no draft "
        "contained: a text must state the result first. The edit became version 2.",
        lambda demo: {"rescore": demo.run("rescore")},
    ),
    Step(
        "report",
        "This page is for your stakeholders. Under “Export” you can download the judge for your own pipeline. Next, "
        "go to Overview and start with your own data.",
    ),
)


def draw(settings: Settings, store: Store, project_id: str) -> None:
    """Draw the current stop of the tour, or the button that starts it. In other projects, draw nothing."""
    if not is_demo(project_id):
        return
    place = _place()
    if place is not None:
        _draw_step(store, place)
    elif _is_first():
        with st.container(horizontal=True):
            _offer_tour(store, primary=True)
            draw_new_project(store, "Start with your own data", icon=":material/upload_file:")


def draw_demo(settings: Settings, store: Store, project_id: str) -> None:
    """Draw the description of the demo, and buttons for tour, replay and reset. In other projects, draw nothing."""
    if not is_demo(project_id):
        return
    st.caption(WHAT)
    with st.container(horizontal=True, gap="small"):
        if _place() is None and not _is_first():
            _offer_tour(store, primary=False)
        popover = st.popover("Demo", icon=":material/science:", key=state.closing("demo"))
    with popover:
        st.caption("The demo shows how Concord works, not how good a judge is.")
        st.caption(
            "Watch a complete calibration. It uses recorded replies, needs no key or network connection, and takes "
            "less than a minute."
        )
        key = state.widget("demo_replay")
        replay = people.button(store, "reviewer", "Replay this calibration", icon=":material/replay:", key=key)
        st.caption("If you reset the demo, you lose your changes to it. Other projects don't change.")
        key = state.widget("demo_reset")
        again = people.button(store, "admin", "Reset the demo", icon=":material/restart_alt:", key=key)
        try:
            if replay:
                go("calibrate", run=projects.start_replay(store, settings))
            if again:
                projects.reset_demo(store, settings)
                state.leave_project()
                state.set_notice("The demo was reset.", good=True)
                go("overview")
        except ConcordError as error:
            st.warning(plain(str(error)), icon=":material/warning:")


def _is_first() -> bool:
    return bool(st.session_state.get(state.SCREEN) == next(iter(SCREENS)))


def _offer_tour(store: Store, *, primary: bool) -> None:
    kind: Literal["primary", "secondary"] = "primary" if primary else "secondary"
    if st.button("Take the tour", icon=":material/signpost:", type=kind, key=state.widget("tour_start")):
        _walk(store, 0)


def _place() -> int | None:
    """Return the current stop of the tour, from 0; None outside the tour."""
    said = state.url_id("tour")
    if said is not None and said.isdecimal() and 1 <= int(said) <= len(STEPS):
        st.session_state[PLACE] = int(said) - 1
    place = st.session_state.get(PLACE)
    return min(place, len(STEPS) - 1) if isinstance(place, int) else None


def _draw_step(store: Store, place: int) -> None:
    step, last = STEPS[place], place == len(STEPS) - 1
    here = step.screen == st.session_state.get(state.SCREEN)
    with st.container(border=True):
        words = step.words if here else "You left the tour. You can continue at any time."
        st.markdown(f":blue-badge[Tour {place + 1} of {len(STEPS)}] {words}")
        with st.container(horizontal=True):
            if place and st.button("Back", icon=":material/arrow_back:", key=state.widget("tour_back")):
                _walk(store, place - 1)
            if not here and st.button("Continue the tour", type="primary", key=state.widget("tour_again")):
                _walk(store, place)
            key = state.widget("tour_next")
            if here and not last and st.button("Next", icon=":material/arrow_forward:", type="primary", key=key):
                _walk(store, place + 1)

            def leave() -> None:
                st.session_state.pop(PLACE, None)
                state.put_in_url(tour=None)

            st.button("Leave the tour", key=state.widget("tour_leave"), on_click=leave)


def _walk(store: Store, place: int) -> None:
    step = STEPS[place]
    st.session_state[PLACE] = place
    ids = {name: value for name, value in step.ids(_finished(store)).items() if value}
    go(step.screen, **ids, tour=str(place + 1))


def _finished(store: Store) -> Finished:
    project_id = state.project() or ""
    runs = [run for run in reversed(store.runs.all(project_id)) if run.status == "done"]
    first = next((run for run in runs if run.kind == "calibration"), None)
    return Finished(first.golden_id if first else "", first.aspect if first else "", tuple(runs))


def draw_new_project(store: Store, label: str, **look: Any) -> None:
    """Draw a button that asks for a project name, creates the project, and opens its upload screen."""
    gate = people.gate(store, "admin", help="Create a project for your own texts.")
    if st.button(label, key=state.widget(f"create_{label}"), **look, **gate):
        people.ask(store, project=True)
