"""Choosing a labelling pass, and what stands above the item."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import urlencode

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import is_demo
from core.projects.labelling import LabelPass
from core.store.store import Store
from core.wording import counted
from pages.label import label_item, label_session
from pages.label.label_shown import Assignment
from pages.ui import people, state
from pages.ui.page import Opened
from pages.ui.screens import plain

LABEL, PROGRESS, DECIDE, NEW = VIEWS = ("Label", "Progress", "Decide", "New pass")


def choose_pass(page: Opened, passes: Sequence[LabelPass]) -> LabelPass:
    """The pass in the URL, else the newest (of the golden set in the URL); a link to one that is not there says so."""
    by_id = {passed.pass_id: passed for passed in passes}
    wanted = state.url_id("labelling")
    if wanted is not None and wanted not in by_id:
        st.warning(
            plain(f"There is no labelling pass {wanted[:24]} in this project; the newest is shown."),
            icon=":material/link_off:",
        )
    golden_id = state.url_id("golden")
    usual = next((passed.pass_id for passed in passes if passed.golden_id == golden_id), passes[0].pass_id)
    chosen = wanted if wanted in by_id else usual
    if len(passes) > 1:
        key = state.widget("label_pass")
        st.session_state[key] = chosen
        names = {golden.golden_id: golden.name for golden in page.store.goldens.all(page.project.project_id)}
        st.selectbox(
            "Labelling pass",
            list(by_id),
            key=key,
            format_func=lambda pass_id: f"{by_id[pass_id].name} · {names.get(by_id[pass_id].golden_id, '')}",
            on_change=state.when_changed(key, lambda: state.put_in_url(labelling=st.session_state[key])),
            label_visibility="collapsed",
            width=340,
        )
    state.put_in_url(labelling=chosen)
    return by_id[chosen]


def draw_address(passed: LabelPass) -> None:
    """The address to send to people: that of the task alone, with nobody's name in it."""
    if st.context.url:
        ids = urlencode({"project": passed.project_id, "labelling": passed.pass_id, "task": "1"})
        st.markdown("The address to send to those who label; it shows the task and nothing else:")
        st.code(f"{st.context.url.split('?')[0]}?{ids}", language=None)


def draw_task(page: Opened, passes: Sequence[LabelPass]) -> None:
    """What somebody sees who follows that address: the pass it names, without menu and without views."""
    wanted = state.url_id("labelling")
    passed = next((passed for passed in passes if passed.pass_id == wanted), None)
    if passed is None:
        st.warning(
            "This link names no labelling pass of this project. Ask whoever sent it for a new one.",
            icon=":material/link_off:",
        )
        return
    st.subheader(plain(passed.name), anchor=False)
    draw_session(page, passed)


def draw_session(page: Opened, passed: LabelPass) -> None:
    """Invites to the pass, then shows what is to be rated and the session."""
    actor, store = page.actor, page.store
    if actor.name not in passed.raters:
        _draw_before(store, passed, lambda: _draw_invitation(store, passed))
        return
    if actor.name in passed.stopped:
        st.info("You have stopped rating in this pass. What you said counts.", icon=":material/task_alt:")
        return
    label_session.draw(Assignment(store, passed))


def _draw_before(store: Store, passed: LabelPass, draw_way_in: Callable[[], None]) -> None:
    """The way into a pass; in the demo beside its first item, so that whoever looks around sees what rating is."""
    if is_demo(passed.project_id):
        label_session.draw_preview(Assignment(store, passed), draw_way_in)
    else:
        draw_way_in()


def _draw_invitation(store: Store, passed: LabelPass) -> None:
    """What the work is, before somebody joins: looking alone shares out no items."""
    plan = passed.plan
    aspects = ", ".join(aspect.aspect for aspect in plan.aspects)
    n = len(plan.assigned(len(passed.raters)))
    with st.container(border=True):
        st.markdown(f"**{plain(passed.name)}**: {n:,} items to label for {plain(aspects)}, one at a time.")
        if plan.instructions:
            label_item.draw_text(plan.instructions)
        st.caption(
            "Every press is saved at once; stop and come back whenever you like. "
            + ("You see neither judges nor what others said. " if plan.blind else "")
            + f"Keys: {label_item.keys_words(plan.aspects[0])}; X cannot tell, Enter continues, arrows move, U goes to "
            "the first unfinished."
        )
        people.button(
            store,
            "annotator",
            "Begin labelling",
            type="primary",
            icon=":material/play_arrow:",
            on_click=_join,
            args=(store, passed),
        )


def held(page: Opened, passed: LabelPass) -> bool:
    """Says why golden labels and what others said are not shown to somebody who still rates them; False for others."""
    aspects = [aspect.aspect for aspect in passed.plan.aspects]
    rating = projects.still_rating(page.store, passed.project_id, passed.golden_id, aspects)
    if not rating:
        return False
    first, n_open = rating[0]
    st.info(
        plain(
            f"You still rate: {counted(n_open, 'item')} left in {first.name}. Golden labels and what "
            "others said stay hidden from you until then, so that your labels are your own."
        ),
        icon=":material/visibility_off:",
    )
    with st.container(horizontal=True):
        st.button(
            "Continue rating",
            type="primary",
            icon=":material/edit_note:",
            on_click=_go_on_rating,
            args=(first.pass_id,),
        )
        with st.popover("I am done with it", icon=":material/done_all:"):
            st.markdown(plain(f"Stop rating in {first.name}: the labels you gave count, and you rate no more in it."))
            st.button("Stop rating", on_click=_stop, args=(page.store, passed.project_id, first.pass_id))
    return True


def _go_on_rating(pass_id: str) -> None:
    state.put_in_url(labelling=pass_id)
    st.session_state[state.LABEL_VIEW] = LABEL


def _stop(store: Store, project_id: str, pass_id: str) -> None:
    try:
        projects.stop_rating(store, project_id, pass_id)
    except ConcordError as error:
        state.leave_notice(f"Nothing was changed: {error}", good=False)
        return
    state.leave_notice("You have stopped rating in this pass. What you said counts.", good=True)


def _join(store: Store, passed: LabelPass) -> None:
    try:
        projects.join_pass(store, passed.project_id, passed.pass_id)
    except ConcordError as error:
        state.leave_notice(f"You could not join: {error}", good=False)
