"""The demo's bar on top of every screen: what the demo is, its replay, the way back, and a tour that can be left.

Where no demo project is open nothing is drawn.  The tour's place stands in the URL and, for whoever walks off by the
menu, in the session.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import streamlit as st
from streamlit.errors import StreamlitAPIException

from core import projects
from core.errors import ConcordError
from core.project_records import Run, is_demo
from core.settings import Settings
from core.store.store import Store
from pages.components import people, state
from pages.components.screens import SCREENS, plain

PLACE = "tour_place"
WHAT = "Demo: made-up texts, labels simulated. It shows how Concord works, not how good a judge is."


@dataclass(frozen=True)
class Finished:
    """What the demo holds, for links: its golden set, and its finished runs, oldest first."""

    golden_id: str
    aspect: str
    runs: tuple[Run, ...]

    def run(self, kind: str, spec: str = "") -> str:
        """The oldest finished run of a kind (by a judge), "" for none: the one that came with the demo."""
        return next((run.run_id for run in self.runs if run.kind == kind and run.judge_spec.startswith(spec)), "")

    @property
    def both(self) -> dict[str, str]:
        return {"golden": self.golden_id, "aspect": self.aspect}


Ids = Callable[[Finished], dict[str, str]]


@dataclass(frozen=True)
class Step:
    """A stop of the tour: its screen, what to look at there, and the ids of the link to it."""

    screen: str
    words: str
    ids: Ids = lambda demo: demo.both


STEPS = (
    Step(
        "overview",
        "Where the judge of a newsroom's house style stands: version 2 came of an edit that a meeting took, gains over "
        "version 1 on items it never saw, was approved, and is in use. The next stops show how it came about.",
    ),
    Step(
        "golden_set",
        "240 push notifications, rated for house style by three simulated raters. Everything is measured against these "
        "labels; how well the raters agree with each other is the most that a judge can be expected to reach.",
        lambda demo: {"golden": demo.golden_id},
    ),
    Step(
        "label",
        "Here people rate by the number keys, blind to judges and to each other: say a name to try.",
        lambda demo: {},
    ),
    Step(
        "calibrate",
        "The judge drafted criteria from labelled examples and ranked them by how well it then agrees with people. No "
        "outsider knows a house style: without criteria it goes by taste and agrees far less.",
        lambda demo: {"run": demo.run("calibration", "scripted")},
    ),
    Step(
        "criteria",
        "The edit: somebody added what no draft had found, that the result comes first, and saw at once what it mended "
        "and broke. “Make this the judge” turns any text here into the next version.",
        lambda demo: {"rescore": demo.run("rescore")},
    ),
    Step(
        "misaligned",
        "The items on which judge and people part most. Was the judge wrong, or the label? What is picked here teaches "
        "the next round of refining.",
        lambda demo: {"run": demo.run("calibration", "scripted")},
    ),
    Step(
        "compare",
        "The two versions and the others on the same unseen items, beside the people themselves: what the edit "
        "brought, and what is still missing.",
    ),
    Step(
        "repeval",
        "House style read out of a small model's hidden states, without a single call: which layer and token know it?",
        lambda demo: {"run": demo.run("repeval")},
    ),
    Step(
        "fusion",
        "What costs nothing (the offline judge, metrics, RepEval) joined into one judge, beside each of its parts.",
    ),
    Step(
        "report",
        "One page on the judge in use, to hand on. Under “Judge file” it leaves as judge.yaml, which names its version "
        "and who approved it; “Drift” tells whether it still agrees with people later.",
    ),
    Step(
        "runs",
        "What ran, and the log of who changed what. Now go back to Overview: “Start with your own data”, or replay the "
        "calibration under “Demo” in the menu.",
        lambda demo: {},
    ),
)


def draw(settings: Settings, store: Store, project_id: str) -> None:
    """In the demo project: the stop of who is on the tour; on the first screen, how to begin.  Elsewhere nothing."""
    if not is_demo(project_id):
        return
    steps = [step for step in STEPS if step.screen in SCREENS]
    place = _place(len(steps))
    if place is not None:
        _draw_step(store, steps, place)
    elif _is_first():
        with st.container(horizontal=True):
            _offer_tour(store, steps, primary=True)
            _draw_own(store)


def draw_demo(settings: Settings, store: Store, project_id: str) -> None:
    """In the menu, of the demo project: what it is, the tour, and what can be done with it."""
    if not is_demo(project_id):
        return
    st.caption(WHAT)
    steps = [step for step in STEPS if step.screen in SCREENS]
    with st.container(horizontal=True, gap="small"):
        if _place(len(steps)) is None and not _is_first():
            _offer_tour(store, steps, primary=False)
        _draw_more(settings, store)


def _is_first() -> bool:
    return bool(st.session_state.get(state.SCREEN) == next(iter(SCREENS)))


def _offer_tour(store: Store, steps: list[Step], *, primary: bool) -> None:
    kind: Literal["primary", "secondary"] = "primary" if primary else "secondary"
    if st.button("Take the tour", icon=":material/signpost:", type=kind, key=state.widget("tour_start")):
        _walk(store, steps, 0)


def _place(n_steps: int) -> int | None:
    """Where the tour is, from 0; None while nobody is on it."""
    said = state.url_id("tour")
    if said is not None and said.isdecimal() and 1 <= int(said) <= n_steps:
        st.session_state[PLACE] = int(said) - 1
    place = st.session_state.get(PLACE)
    return min(place, n_steps - 1) if isinstance(place, int) else None


def _draw_step(store: Store, steps: list[Step], place: int) -> None:
    step, last = steps[place], place == len(steps) - 1
    here = step.screen == st.session_state.get(state.SCREEN)
    with st.container(border=True):
        words = step.words if here else "The tour waits while you look around."
        st.markdown(f":blue-badge[Tour {place + 1} of {len(steps)}] {words}")
        with st.container(horizontal=True):
            if place and st.button("Back", icon=":material/arrow_back:", key=state.widget("tour_back")):
                _walk(store, steps, place - 1)
            if not here and st.button("Go on with the tour", type="primary", key=state.widget("tour_again")):
                _walk(store, steps, place)
            key = state.widget("tour_next")
            if here and not last and st.button("Next", icon=":material/arrow_forward:", type="primary", key=key):
                _walk(store, steps, place + 1)
            st.button("Leave the tour", key=state.widget("tour_leave"), on_click=_leave)


def _leave() -> None:
    st.session_state.pop(PLACE, None)
    state.put_in_url(tour=None)


def _walk(store: Store, steps: list[Step], place: int) -> None:
    step = steps[place]
    st.session_state[PLACE] = place
    ids = {name: value for name, value in step.ids(_finished(store)).items() if value}
    _go(step.screen, **ids, tour=str(place + 1))


def _finished(store: Store) -> Finished:
    project_id = state.project() or ""
    runs = [run for run in reversed(projects.list_runs(store, project_id)) if run.status == "done"]
    first = next((run for run in runs if run.kind == "calibration"), None)
    return Finished(first.golden_id if first else "", first.aspect if first else "", tuple(runs))


def _go(screen: str, **ids: str) -> None:
    """To a screen, within the session; where this screen's file was opened on its own, the URL alone changes."""
    wanted = {"project": state.project() or "", **ids}
    try:
        st.switch_page(SCREENS[screen].file, query_params=wanted)  # type: ignore[index]
    except StreamlitAPIException:
        st.link_button("Go there", f"/{screen}?" + "&".join(f"{name}={value}" for name, value in wanted.items()))


# ── what can be done with the demo ───────────────────────────────────────────────────────────────────────────


def _draw_more(settings: Settings, store: Store) -> None:
    with st.popover("Demo", icon=":material/science:", key=state.closing("demo")):
        _draw_actions(settings, store)


def _draw_actions(settings: Settings, store: Store) -> None:
    st.caption("Watch a whole calibration, answered from recorded replies: no key, no network, under a minute.")
    gate = people.gate(store, "reviewer")
    replay = st.button("Replay this calibration", icon=":material/replay:", key=state.widget("demo_replay"), **gate)
    st.caption("Put the demo back as it came. What was done in it is lost; other projects are left alone.")
    gate = people.gate(store, "admin")
    again = st.button("Reset the demo", icon=":material/restart_alt:", key=state.widget("demo_reset"), **gate)
    try:
        if replay:
            _go("calibrate", run=projects.start_replay(store, settings))
        if again:
            projects.reset_demo(store, settings)
            state.leave_project()
            state.leave_notice("The demo is as it came.", good=True)
            _go("overview")
    except ConcordError as error:
        _refused(error)


def _draw_own(store: Store) -> None:
    gate = people.gate(store, "admin", help="Makes a new project, for a file of items with human labels.")
    key = state.widget("demo_own")
    if not st.button("Start with your own data", icon=":material/upload_file:", key=key, **gate):
        return
    try:
        created = projects.create_project(store, "My project")
    except ConcordError as error:
        _refused(error)
        return
    state.leave_project()
    state.remember_project(created.project_id)
    state.leave_notice("“My project” is new, and open.", good=True)
    _go("golden_set", section=state.UPLOAD_SECTION)


def _refused(error: ConcordError) -> None:
    st.warning(plain(str(error)), icon=":material/warning:")
