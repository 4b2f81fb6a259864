"""The frame of every screen: page setup, store, project and errors.

`open_page` works however a screen is opened: from the menu, by a link, or in a test.
"""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitPageNotFoundError

from core import projects
from core.errors import ConcordError
from core.project_records import Actor, ProjectSummary, is_demo
from core.settings import Settings, tune_garbage_collector
from core.store.store import Store
from pages.overview import tour
from pages.ui import faults, grid, people, remembered, state, theme
from pages.ui.accounts import check_accounts
from pages.ui.screens import SCREENS, Screen, draw_notice, plain

ICON = Path(__file__).with_name("icon.svg")
"""Of every page; a Material icon here would have each browser ask fonts.gstatic.com for it."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The context of a screen.

    Attributes:
        store: The store, with the user who is signed in.
        head: Container next to the title for the subject of the screen. None if only a part of a screen is drawn.
    """

    settings: Settings
    store: Store
    project: ProjectSummary
    head: DeltaGenerator | None = None

    @property
    def actor(self) -> Actor:
        return self.store.actor


@st.cache_resource(show_spinner="Opening the store …")
def start_up() -> tuple[Settings, Store]:
    """Open the store and load the demo project, once per process."""
    settings = Settings.from_environment()
    check_accounts(settings)
    store = open_store(settings)
    # Streamlit collects garbage after every rerun, which takes 45 instead of 295 ms if the imports are frozen
    gc.collect()
    tune_garbage_collector()
    return settings, store


def open_store(settings: Settings) -> Store:
    """Return the store of this process, with the demo project. Raises StoreError or ArchiveError."""
    store = projects.open_store(settings)
    store.call_when_waiting(faults.say_waiting)
    try:
        if settings.demo:
            projects.welcome(store, settings)
    except ConcordError as error:  # Concord works without the demo, so a damaged file is no reason to stop
        logging.getLogger("concord").error("the demo project was not imported: %s", error)
    projects.ensure_sample_project(store)
    return store


def open_page(screen: Screen, *, intro: str = "") -> Opened:
    """Draw menu, project selector, user, title and pending notice. Return the open project and its context.

    If sign-in is required, or if the store can't be opened, the screen shows an error and stops. With `?view=bare` in
    the URL, there is no menu. `intro` is a line under the title.
    """
    if st.session_state.get(state.SCREEN, screen) != screen:
        grid.clear_selections()
    st.session_state[state.SCREEN] = screen
    title = SCREENS[screen].title
    st.set_page_config(page_title=f"{title} · Concord", page_icon=ICON, layout="wide")
    account = people.require_account()
    try:
        settings, shared = start_up()
        projects.ensure_worker(settings)  # cheap if one is running
        store = shared.acting(people.actor_of(account, settings))
        offered = store.projects.all()
    except ConcordError as error:
        st.title(title, anchor=False)
        stop_with("Concord can't start with these settings.", str(error))
    head = _draw_head(title, intro, store)  # the title first, because users look for it first
    project = _choose_project(store, offered)
    if not state.is_bare():
        _draw_side(settings, store, offered, project)
    draw_notice()
    if not state.is_task():
        tour.draw(settings, store, project.project_id)
    people.draw_role(store.actor)
    people.draw_dialog()
    if state.is_bare():
        with st.container():  # a container, so that the rest doesn't move when the notice disappears
            remembered.draw(settings)
    return Opened(settings, store, project, head)


def finding(sentence: str, *, step: Callable[[], object] | None = None) -> object:
    """Draw the headline of a screen.

    If `step` is given, it draws the next action to the right of the headline, and the result of `step` is returned.
    """
    whole = re.sub(r"\bp ([<=]) ", "p\u00a0\\1\u00a0", sentence)  # no line break in "p < 0.001"
    with st.container(key="finding", horizontal=True, vertical_alignment="top", gap="medium"):
        st.header(plain(whole), anchor=False, width="stretch")
        if step is None:
            return None
        with st.container(key="next_step", width="content"):
            return step()


def _draw_head(title: str, intro: str, store: Store) -> DeltaGenerator:
    """Draw title and intro, and next to them the place for the subject of the screen."""
    with st.container(key="head", horizontal=True, gap="medium"):
        with st.container(gap=None, width="stretch"):
            st.title(title, anchor=False)
            if intro:
                st.caption(intro)
        head = st.container(horizontal=True, vertical_alignment="bottom", gap="small", width="content")
        if state.is_bare():
            if not (state.is_task() and store.actor.is_unnamed):  # asked when the task begins
                people.draw_who(store)
            if people.may(store, "reviewer"):
                leave = {"view": None, "task": None}
                st.button("Menu", icon=":material/menu:", type="tertiary", on_click=state.put_in_url, kwargs=leave)
    return head


def _draw_side(settings: Settings, store: Store, offered: list[ProjectSummary], project: ProjectSummary) -> None:
    names = {each.project_id: each.name for each in offered}

    def switch() -> None:
        state.leave_project()  # removes the ids of the old one from the URL
        state.remember_project(st.session_state[state.PROJECT_PICKER])

    with st.sidebar:
        # our own menu works with and without the router; config.toml disables Streamlit's
        ids, group = _with_project({}), ""
        with st.container(key="menu", gap=None):
            st.markdown("**Concord**")
            for screen, entry in SCREENS.items():
                if entry.group != group:
                    group = entry.group
                    st.caption(group)
                _page_link(screen, entry.title, entry.icon, ids)
        with st.container(gap="xsmall"):
            # a widget of another screen may have left a value
            st.session_state[state.PROJECT_PICKER] = project.project_id
            st.selectbox(
                "Project", list(names), key=state.PROJECT_PICKER, format_func=lambda known: names[known],
                on_change=state.when_changed(state.PROJECT_PICKER, switch),
            )  # fmt: skip
            tour.draw_new_project(store, "New project", icon=":material/add:", type="tertiary")
            tour.draw_demo(settings, store, project.project_id)
            people.draw_who(store)
            theme.draw()
        remembered.draw(settings)  # last, so that nothing moves when it disappears


def _choose_project(store: Store, offered: list[ProjectSummary]) -> ProjectSummary:
    """Return the project in the URL, else of the run in the URL, else the last one picked, else the demo."""
    known = {project.project_id: project for project in offered}
    named, wanted = state.url_id("project"), state.project()
    if wanted is None and (run_id := state.url_id("run")) is not None:
        wanted = next((run.project_id for run in store.runs.all() if run.run_id == run_id), None)
    if wanted is None or wanted not in known:
        wanted = next(filter(is_demo, known), next(iter(known)))
    if named is not None and named not in known:
        state.leave_project()  # other ids in the link belong to that project
        words = f"This link points to a project that isn't here. Concord shows “{known[wanted].name}” instead."
        state.set_notice(words, good=False)
    state.remember_project(wanted)
    return known[wanted]


def stop_with(what: str, message: str) -> NoReturn:
    """Show an error and stop the screen. `what` says what failed and `message` says why, both as plain text."""
    st.error(f"{what}  \n{plain(message)}", icon=":material/error:")
    st.stop()


def link_to(screen: Screen, label: str, *, icon: str | None = None, key: str = "", **ids: str) -> None:
    """Draw a link to a screen, with ids in its URL. `key` distinguishes links with the same label and target."""
    if screen == st.session_state.get(state.SCREEN):  # Streamlit's links to the current screen keep the old ids
        if st.button(label, icon=icon, type="tertiary", key=f"link_{screen}_{label}_{sorted(ids.items())}{key}"):
            state.leave_project()
            state.put_in_url(**ids)
            st.rerun()
        return
    _page_link(screen, label, icon, _with_project(ids))


def _with_project(ids: dict[str, str]) -> dict[str, str]:
    kept = {"project": state.project(), "view": state.BARE if state.is_bare() else None}
    return {name: value for name, value in kept.items() if value is not None} | ids


def _page_link(screen: Screen, label: str, icon: str | None, ids: dict[str, str]) -> None:
    try:
        st.page_link(SCREENS[screen].file, label=label, icon=icon, query_params=ids)
    except StreamlitPageNotFoundError:  # the screen runs without the router, as in a test
        st.link_button(label, f"/{screen}?{urlencode(ids)}", icon=icon)
