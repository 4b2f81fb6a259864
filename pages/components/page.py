"""What every screen does first: set the page up, open the store, choose the project, say what is missing.

`open_page` makes a screen complete alone: opened by the menu, by a deep link or under test it does the same.
"""

from __future__ import annotations

import gc
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlencode

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from core import projects
from core.errors import ConcordError
from core.people import Actor
from core.project_records import ProjectSummary, is_demo
from core.settings import Settings
from core.store.store import Store
from pages.components import faults, people, state, tour
from pages.components.accounts import check_accounts
from pages.components.screens import SCREENS, Screen, draw_notice, plain

ICON = Path(__file__).with_name("icon.svg")
"""Of every page; a Material icon here would have each browser ask fonts.gstatic.com for it."""

WORKER_AFTER = 3.0
"""Seconds that a worker leaves the machine to the first page of this process; a run that is started waits for none."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The process-wide handles: settings and the store."""

    settings: Settings
    store: Store


@dataclass(frozen=True, slots=True)
class Opened:
    """What a screen works with; `store` is in the hands of whoever acts."""

    settings: Settings
    store: Store
    project: ProjectSummary

    @property
    def actor(self) -> Actor:
        return self.store.actor


@st.cache_resource(show_spinner="Opening the store …")
def start_up() -> Kept:
    """Once per process: open the store, load the sample project, freeze the imports.

    Streamlit collects garbage after every rerun; frozen imports are not walked again (295 → 45 ms where heavy).
    """
    settings = Settings.from_environment()
    check_accounts(settings)
    store = open_store(settings)
    gc.collect()
    gc.freeze()
    return Kept(settings, store)


def open_store(settings: Settings) -> Store:
    """The store of this process with what it comes with; a second call finds it done.  StoreError, ArchiveError."""
    store = projects.open_store(settings)
    store.say_waiting_by(faults.say_waiting)
    _welcome(settings, store)
    projects.ensure_sample_project(store)
    return store


def _welcome(settings: Settings, store: Store) -> None:
    """A new store gets the demo; without it Concord works as well, so that a damaged file stops nobody."""
    if not settings.demo:
        return
    try:
        projects.welcome(store, settings)
    except ConcordError as error:
        logging.getLogger("concord").error("the demo project was not brought in: %s", error)


def open_page(screen: Screen, *, intro: str = "") -> Opened:
    """Draws menu, project selector, who acts, title and pending notice.

    Stops in words where somebody has to sign in first or the store cannot be opened.
    """
    st.session_state[state.SCREEN] = screen
    title = SCREENS[screen].title
    st.set_page_config(page_title=f"{title} · Concord", page_icon=ICON, layout="wide")
    account = people.let_in()
    try:
        kept = start_up()
        projects.ensure_worker(kept.settings, after=WORKER_AFTER)  # cheap where one lives
        store = kept.store.acting(people.actor_of(account, kept.settings))
        _draw_menu()
        project = _choose_project(store)
        people.draw_who(kept.settings, store, project.project_id)
    except ConcordError as error:
        st.title(title)
        stop_with("Concord cannot start as it is set up.", str(error))
    st.title(title, anchor=False)
    if intro:
        st.markdown(intro)
    draw_notice()
    tour.draw(kept.settings, store, project.project_id)
    people.draw_role(store.actor)
    if store.actor.is_unnamed and screen != "label":  # which asks where somebody is to label
        people.draw_ask()
    return Opened(kept.settings, store, project)


def _draw_menu() -> None:
    """The menu, the same with the router and without it; Streamlit's own is switched off in config.toml."""
    with st.sidebar:
        st.markdown("### Concord")
        for screen, entry in SCREENS.items():
            _page_link(screen, entry.title, entry.icon, _with_project({}))


def _choose_project(store: Store) -> ProjectSummary:
    offered = {project.project_id: project for project in projects.list_projects(store)}
    wanted = state.project() or _project_of_run(store)
    if wanted is None or wanted not in offered:
        wanted = next(filter(is_demo, offered), next(iter(offered)))
    st.session_state[state.PROJECT_PICKER] = wanted  # always: another screen's widget may have left its value there
    with st.sidebar:
        st.selectbox(
            "Project",
            list(offered),
            key=state.PROJECT_PICKER,
            format_func=lambda project_id: offered[project_id].name,
            on_change=_switch_project,
        )
        with (
            st.popover("New project", icon=":material/add:", width="stretch"),
            st.form("new_project_form", border=False),
        ):
            st.text_input("Name", key=state.NEW_PROJECT, max_chars=80)
            st.form_submit_button("Create", on_click=_create_project, args=(store,), **people.gate(store, "admin"))
    state.remember_project(wanted)
    return offered[wanted]


def _project_of_run(store: Store) -> str | None:
    run_id = state.url_id("run")
    if run_id is None:
        return None
    return next((run.project_id for run in projects.list_runs(store) if run.run_id == run_id), None)


def _switch_project() -> None:
    """Another project: the ids of the old one leave the URL."""
    state.leave_project()
    state.remember_project(st.session_state[state.PROJECT_PICKER])


def _create_project(store: Store) -> None:
    try:
        created = projects.create_project(store, st.session_state[state.NEW_PROJECT])
    except ConcordError as error:
        state.leave_notice(f"No project was made: {error}", good=False)
        return
    state.leave_project()
    state.remember_project(created.project_id)


def stop_with(what: str, message: str) -> NoReturn:
    """An error that leaves nothing to draw: what happened, then the message as plain text."""
    st.error(f"{what}  \n{plain(message)}", icon=":material/error:")
    st.stop()


def link_to(screen: Screen, label: str, *, icon: str | None = None, **ids: str) -> None:
    """A link to a screen with ids in its URL.

    A link of Streamlit's to the screen it stands on keeps the old ids, so there a button sets them.
    """
    if screen == st.session_state.get(state.SCREEN):
        if st.button(label, icon=icon, type="tertiary", key=f"link_{screen}_{label}_{sorted(ids.items())}"):
            state.put_in_url(**{**dict.fromkeys(state.URL_IDS[1:]), **ids})
            st.rerun()
        return
    _page_link(screen, label, icon, _with_project(ids))


def _with_project(ids: dict[str, str]) -> dict[str, str]:
    project = state.project()
    return ids if project is None else {"project": project, **ids}


def _page_link(screen: Screen, label: str, icon: str | None, ids: dict[str, str]) -> None:
    try:
        st.page_link(SCREENS[screen].file, label=label, icon=icon, query_params=ids)
    except StreamlitPageNotFoundError:  # this screen's file was opened on its own, as a test does
        st.link_button(label, f"/{screen}?{urlencode(ids)}", icon=icon)
