"""Where criteria become the judge: beside chosen criteria, an accepted proposal, what a merge made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.errors import StreamlitPageNotFoundError

from core import projects
from core.errors import ConcordError, ConflictError
from core.project_records import CriteriaEntry
from core.projects.calibration import VersionRequest
from core.projects.judge_line import JudgeLine, JudgeVersion, VersionOrigin
from core.projects.judge_versions import VersionOptions
from core.store.log import IMPORTED
from core.wording import counted, price_words
from pages.overview import judge_view
from pages.ui import people, state
from pages.ui.page import Opened, link_to, opens
from pages.ui.screens import SCREENS, plain

FORM_WIDTH = 360
"""Pixels of the form beside the finding: wide enough for its price, narrow enough to leave the finding its line."""


def draw_make_judge(page: Opened, view: CriteriaEntry, origin: VersionOrigin | None = None) -> None:
    """The way from these criteria to the next version of the judge; without `origin` their own tells what made them."""
    if view.text:
        primary = view.origin == "edit"
        origin = origin or origin_of(view)
        draw_make(page, view.aspect, [view.criteria_id], origin=origin, primary=primary)


def origin_of(view: CriteriaEntry) -> VersionOrigin:
    """What a version made of these criteria is said to come from."""
    if view.origin != "edit":
        return "criteria"
    return "merge" if len(view.parents) > 1 else "edit"


def draw_make(
    page: Opened,
    aspect: str,
    criteria_ids: Sequence[str],
    *,
    origin: VersionOrigin,
    primary: bool = False,
    key: str = "",
) -> None:
    """The way from criteria to the judge: what measuring them takes, then the start; or which version they are."""
    if (made := st.session_state.pop(state.MADE_VERSION, None)) is not None:
        try:
            st.switch_page(SCREENS["overview"].file, query_params=made)
        except StreamlitPageNotFoundError:  # this screen's file was opened on its own, as a test does
            state.put_in_url(**made)
    line, name = judge_view.line_of(page, aspect), state.widget(f"make_{key or '_'.join(criteria_ids)}")
    ways = _ways(page, aspect, criteria_ids)
    own = [version for version in line.versions if not (page.project.imported and version.made.role.endswith(IMPORTED))]
    known = next((version for version in reversed(own) if _is_made_of(line, version, criteria_ids)), None)
    if known is not None:
        _link_to_version(known, f"Version {known.number} of the judge")
        return
    if st.session_state.pop(f"{name}_clash", False) and line.versions:
        first = line.versions[-1]
        _link_to_version(first, f"Version {first.number}, made by {first.made.actor or 'somebody'}")
    look = {"icon": ":material/gavel:", "type": "primary" if primary else "secondary"}
    if opens("Make this the judge", key=name, **look, **people.gate(page, "reviewer")):
        with st.container(border=True, width=FORM_WIDTH):
            _draw_make_form(page, line, ways, origin, name)


def _link_to_version(version: JudgeVersion, label: str) -> None:
    link_to("overview", label, icon=":material/verified:", **judge_view.place_of(version.aspect, version))


def _is_made_of(line: JudgeLine, version: JudgeVersion, criteria_ids: Sequence[str]) -> bool:
    """Whether these criteria are a version, or what a person put into one."""
    if version.criteria_ids == tuple(criteria_ids):
        return True
    parent = line.get(version.made.parent).criteria_ids if version.made.parent else ()
    new = set(version.criteria_ids) - set(parent)
    return version.made.origin != "calibration" and new == set(criteria_ids)


def _ways(page: Opened, aspect: str, criteria_ids: Sequence[str]) -> dict[tuple[str, ...], str]:
    """Criteria of the next version → what that is in words, the usual way first: an edit of one of several keeps the
    others."""
    alone = tuple(criteria_ids)
    if len(alone) != 1:
        return {alone: ""}
    beside = projects.in_place_of_parent(page.store, page.project.project_id, aspect, alone[0])
    if not beside:
        return {alone: ""}
    others = counted(len(beside) - 1, "other set of criteria", "other sets of criteria")
    swapped = f"in place of its parent, next to {others}" if len(beside) > 1 else "in place of its parents"
    return {beside: swapped, alone: "alone"}


def _draw_make_form(
    page: Opened, line: JudgeLine, ways: Mapping[tuple[str, ...], str], origin: VersionOrigin, name: str
) -> None:
    criteria_ids = next(iter(ways))
    if len(ways) > 1:
        criteria_ids = st.radio("The judge follows it", list(ways), format_func=ways.__getitem__, key=f"{name}_way")
    held_out = st.checkbox(
        "Also on held-out items",
        value=True,
        key=f"{name}_held_out",
        help="Each look makes their figure a little less honest; the first comparison of two versions is a test.",
    )
    try:
        estimate = projects.estimate_version(
            *(page.store, page.settings, page.project.project_id, line.aspect, criteria_ids),
            options=VersionOptions(held_out=held_out),
        )
    except ConcordError as error:
        st.warning(plain(str(error)), icon=":material/error:")
        return
    cost = plain(price_words(estimate.cost))
    st.caption(
        f"At most {estimate.calls:,} scores{cost}; what was asked before is not paid again. "
        f"It is measured next to the current judge. Then you decide."
    )
    st.text_input("What changed (optional)", max_chars=300, key=f"{name}_note")
    people.button(
        page,
        "reviewer",
        "Measure it",
        type="primary",
        icon=":material/play_arrow:",
        key=f"{name}_start",
        on_click=_make,
        args=(page, line, criteria_ids),
        kwargs={"origin": origin, "name": name},
    )


def _make(page: Opened, line: JudgeLine, criteria_ids: Sequence[str], *, origin: VersionOrigin, name: str) -> None:
    try:
        run_id = projects.make_version(
            *(page.store, page.settings, page.project.project_id, line.aspect, criteria_ids),
            options=VersionOptions(
                origin,
                st.session_state.get(f"{name}_note") or "",  # as it stands at the press, which it may have come with
                held_out=bool(st.session_state.get(f"{name}_held_out", True)),
            ),
            seen=line.seen,
        )
        run = projects.run_view(page.store, run_id)
    except ConcordError as error:
        state.leave_notice(f"No version was made: {error}", good=False)
        st.session_state[f"{name}_clash"] = isinstance(error, ConflictError)
        return
    assert isinstance(run.request, VersionRequest)  # what `make_version` starts
    st.session_state[name] = False
    where = {"project": page.project.project_id, "golden": run.golden_id, "aspect": line.aspect}
    st.session_state[state.MADE_VERSION] = where | {"version": str(run.request.version)}
