"""Choosing a labelling pass, and what stands above the desk."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

import streamlit as st

from core.errors import ConcordError
from core.jobs import tasks
from core.jobs.views.labelling import PassView
from core.store.store import Store
from pages.components import label_desk, label_item, label_who, people, state
from pages.components.page import Opened
from pages.components.screens import plain

LABEL, PROGRESS, DECIDE, FREEZE, NEW = "Label", "Progress", "Decide", "Freeze", "New pass"
VIEWS = (LABEL, PROGRESS, DECIDE, FREEZE, NEW)


def choose_pass(page: Opened, passes: Sequence[PassView]) -> PassView:
    """The pass in the URL, else the newest (of the golden set in the URL); a link to one that is not there says so."""
    by_id = {one.pass_id: one for one in passes}
    wanted = state.url_id("labelling")
    if wanted is not None and wanted not in by_id:
        st.warning(
            plain(f"There is no labelling pass {wanted[:24]} in this project; the newest is shown."),
            icon=":material/link_off:",
        )
    golden_id = state.url_id("golden")
    usual = next((one.pass_id for one in passes if one.golden_id == golden_id), passes[0].pass_id)
    chosen = wanted if wanted in by_id else usual
    if len(passes) > 1:
        key = state.widget("label_pass")
        st.session_state[key] = chosen
        names = {one.golden_id: one.name for one in tasks.list_goldens(page.store, page.project.project_id)}
        st.selectbox(
            "Labelling pass",
            list(by_id),
            key=key,
            format_func=lambda one: f"{by_id[one].name} · {names.get(by_id[one].golden_id, '')}",
            on_change=lambda: state.put_in_url(labelling=st.session_state[key]),
        )
    state.put_in_url(labelling=chosen)
    return by_id[chosen]


def draw_address(passed: PassView) -> None:
    """The address to send to people: that of the desk, with nobody's name in it."""
    if st.context.url:
        ids = urlencode({"project": passed.project_id, "labelling": passed.pass_id})
        st.markdown("The address to send to those who label:")
        st.code(f"{st.context.url.split('?')[0]}?{ids}", language=None)


def sit(page: Opened, passed: PassView) -> None:
    """Asks who is there, then shows what is to be rated and the desk."""
    actor, store = page.actor, page.store
    if not actor.name:
        label_who.ask(passed.raters)
        return
    label_who.draw_line(actor)
    if actor.name not in passed.raters:
        _draw_empty_seat(store, passed)
        return
    if passed.plan.instructions:
        with st.expander("Instructions", key=state.widget("label_instructions")):
            label_item.draw_text(passed.plan.instructions)
    label_desk.draw(label_desk.Seat(store, passed))


def _draw_empty_seat(store: Store, passed: PassView) -> None:
    """What the work is, before somebody takes a seat: looking alone shares out no items."""
    plan = passed.plan
    aspects = ", ".join(one.aspect for one in plan.aspects)
    n = len(plan.assigned(len(passed.raters)))
    with st.container(border=True):
        st.markdown(f"**{plain(passed.name)}**: {n:,} items to label for {plain(aspects)}, one at a time.")
        if plan.instructions:
            label_item.draw_text(plan.instructions)
        st.caption(
            "Every press is saved at once; stop and come back whenever you like. You see neither judges nor what "
            "others said. Keys: a number labels, X cannot tell, Enter goes on, arrows move, U goes to the first "
            "unfinished."
        )
        st.button(
            "Begin labelling",
            type="primary",
            icon=":material/play_arrow:",
            on_click=_take_seat,
            args=(store, passed),
            **people.gate(store, "annotator"),
        )


def _take_seat(store: Store, passed: PassView) -> None:
    try:
        tasks.sit_down(store, passed.project_id, passed.pass_id)
    except ConcordError as error:
        state.leave_notice(f"You could not sit down: {error}", good=False)
