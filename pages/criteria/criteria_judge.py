"""Make a new version of the judge from criteria: after an edit, an accepted proposal or a review decision."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.calibration import VersionRequest
from core.projects.judge_line import VersionOrigin
from core.store.log import IMPORTED
from core.wording import counted, price_words
from pages.overview import judge_view
from pages.ui import people, state
from pages.ui.page import Opened, link_to
from pages.ui.screens import go, plain


def draw(page: Opened, entry: CriteriaEntry, origin: VersionOrigin | None = None, *, raises: bool = False) -> None:
    """Draw a link to the judge version that uses these criteria.

    If there is no such version, draw the button that makes and measures one. The button is primary only for an edit
    that raises agreement (`raises`).
    """
    if not entry.text:
        return
    line, alone = judge_view.line_of(page, entry.aspect), (entry.criteria_id,)
    for version in reversed(line.versions):
        if page.project.imported and version.made.role.endswith(IMPORTED):
            continue
        parent = line.get(version.made.parent).criteria_ids if version.made.parent else ()
        added = set(version.criteria_ids) - set(parent)  # criteria that a user added to an ensemble
        if version.criteria_ids == alone or (version.made.origin != "calibration" and added == set(alone)):
            where = judge_view.place_of(version.aspect, version)
            link_to("overview", version.name.capitalize(), icon=":material/verified:", **where)
            return
    key = state.widget(f"make_{entry.criteria_id}")
    people.button(
        page,
        "reviewer",
        "Make this the judge",
        key=f"{key}_opens",
        icon=":material/gavel:",
        type="primary" if raises else "secondary",
        on_click=st.session_state.update,
        args=({key: True},),
    )
    if st.session_state.get(key):
        close = partial(st.session_state.pop, key, None)
        st.dialog("Make this the judge", on_dismiss=close)(_draw_form)(page, entry, key, origin)


def _draw_form(page: Opened, entry: CriteriaEntry, key: str, origin: VersionOrigin | None) -> None:
    """Draw what the judge will use, what measuring it costs, and the button that makes the version."""
    criteria_ids: tuple[str, ...] = (entry.criteria_id,)
    together = projects.in_place_of_parent(page.store, page.project.project_id, entry.aspect, entry.criteria_id)
    if together:
        others = counted(len(together) - 1, "other set of criteria", "other sets of criteria")
        ways = {tuple(together): f"in place of their previous text, with {others}", criteria_ids: "alone"}
        chosen = st.radio("Use these criteria", list(ways), format_func=ways.__getitem__, key=f"{key}_way")
        criteria_ids = chosen or criteria_ids
    held_out = st.checkbox(
        "Also measure on held-out items",
        value=True,
        key=f"{key}_held_out",
        help=(
            "Each time you look at the held-out figure, it becomes slightly more optimistic. Only the first "
            "comparison of two versions counts as a test."
        ),
    )
    request = VersionRequest(page.project.project_id, entry.aspect, criteria_ids, held_out=held_out)
    try:
        estimate = projects.estimate_version(page.store, page.settings, request)
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/error:")
        return
    price = plain(price_words(estimate.cost))
    st.caption(
        f"Concord requests at most {estimate.calls:,} scores{price}. Cached replies cost nothing. Once you see the "
        "result, you decide whether to use the version."
    )
    note = st.text_input("What changed (optional)", max_chars=300, key=f"{key}_note") or ""
    if not st.button("Measure it", type="primary", icon=":material/play_arrow:", key=f"{key}_start"):
        return
    made: VersionOrigin = "edit" if entry.origin == "edit" else "criteria"
    said = {"origin": origin or made, "note": note}
    try:
        run_id = projects.make_version(page.store, page.settings, request, **said)
    except ConcordError as error:
        st.warning(plain(f"No version was created: {error}"), icon=":material/error:")
        return
    del st.session_state[key]
    number = str(judge_view.line_of(page, entry.aspect).versions[-1].number)
    go("overview", golden=page.store.runs.get(run_id).golden_id, aspect=entry.aspect, version=number)
