"""Plan and criteria of an LLM fusion: proposed, calibrated, written by the model; edited in versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.fusion.fusion_request import FusionRequest
from core.fusion.plan import TO_BE_MENDED
from core.projects.fusion_by_model import FusionPlanSaved
from core.wording import counted
from pages.ui import people, state
from pages.ui.page import Opened
from pages.ui.screens import plain

CRITERIA_HELP = (
    "A line with the aspect's name, and its criteria beneath it. The model writes those of every aspect that is not "
    "named here; 'none' beneath an aspect rates it without criteria."
)


def draw(page: Opened, request: FusionRequest, versions: Sequence[FusionPlanSaved], key: str) -> FusionRequest:
    """The texts as they stand in the boxes, as part of the request; `versions` are those kept, newest first."""
    _load_newest(versions, key)
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Propose a plan from measured agreement",
            icon=":material/insights:",
            on_click=_propose,
            args=(page, request, key),
        )
        st.button(
            "Take the calibrated criteria", icon=":material/tune:", on_click=_take_calibrated, args=(page, request, key)
        )
        if versions:
            with st.popover(f"{counted(len(versions), 'version')} kept", icon=":material/history:"):
                for version in versions:
                    _draw_version(version)
    height = min(140 + 60 * (len(request.aspects) - 1), 360)
    first = "\n".join(f"{aspect}:\n- What earns a high number." for aspect in request.aspects[:2])
    criteria, plan = st.columns(2)
    criteria.text_area(
        "Criteria",
        key=f"{key}_criteria",
        height=height,
        max_chars=20_000,
        placeholder=f"{first}\nLeft empty, the model writes the criteria.",
        help=CRITERIA_HELP,
    )
    first = "\n".join(f"{aspect}: part, part\nHow to read their numbers." for aspect in request.aspects[:2])
    plan.text_area(
        "Plan",
        key=key,
        height=height,
        max_chars=8_000,
        placeholder=f"{first}\nLeft empty, the model writes the plan.",
    )
    written = _with_texts(request, versions, key)
    said = written.settings
    unchanged = bool(versions) and (versions[0].text, versions[0].criteria) == (said.plan, said.criteria)
    people.button(
        page,
        "reviewer",
        "Keep this version",
        icon=":material/save:",
        on_click=_keep,
        args=(page, written, versions[0].number if versions else 0),
        disabled=not (said.plan or said.criteria) or unchanged,
    )
    return written


def _load_newest(versions: Sequence[FusionPlanSaved], key: str) -> None:
    """The newest version into empty boxes: at first, and what a run has added since (a plan to be mended, say)."""
    boxes = (key, f"{key}_criteria")
    bare = not any(str(st.session_state.get(box, "")).strip() for box in boxes)
    if not versions or not bare or st.session_state.get(f"{key}_offered") == versions[0].number:
        return
    newest = versions[0]
    st.session_state[key], st.session_state[f"{key}_criteria"] = newest.text, newest.criteria
    st.session_state[f"{key}_offered"] = newest.number
    for box in boxes:
        st.session_state[f"{box}_seen"] = newest.seen


def _draw_version(version: FusionPlanSaved) -> None:
    st.markdown(plain(f"Version {version.number}, by {version.actor or 'somebody'} ({version.origin})"))
    st.text(version.text or "(no plan: the model writes it)")
    if version.criteria:
        whose = ", ".join(f"{aspect}: {origin}" for aspect, origin in version.criteria_origins.items())
        st.caption(plain(f"Criteria ({whose or TO_BE_MENDED})"))
        st.text(version.criteria)


def _with_texts(request: FusionRequest, versions: Sequence[FusionPlanSaved], key: str) -> FusionRequest:
    """The request with plan and criteria, who wrote those, and the items whose labels they were made from."""
    plan, criteria = (str(st.session_state.get(box, "")).strip() for box in (key, f"{key}_criteria"))
    offered: FusionPlanSaved | None = st.session_state.get(f"{key}_calibrated")
    known = [*([offered] if offered is not None else []), *versions]
    seen = {*st.session_state.get(f"{key}_seen", ())} if plan else set[int]()
    seen |= {*st.session_state.get(f"{key}_criteria_seen", ())} if criteria else set()
    for version in known:
        if (plan and version.text == plan) or (criteria and version.criteria == criteria):
            seen |= {*version.seen}
    return replace(
        request,
        settings=replace(request.settings, plan=plan, criteria=criteria),
        criteria_origins=projects.criteria_origins(criteria, request.aspects, known),
        plan_seen=tuple(sorted(seen)),
    )


def _propose(page: Opened, request: FusionRequest, key: str) -> None:
    try:
        plan = projects.propose_plan(page.store, request)
    except ConcordError as error:
        state.leave_notice(f"No plan can be proposed: {error}", good=False)
        return
    st.session_state[key], st.session_state[f"{key}_seen"] = plan.text, plan.seen


def _take_calibrated(page: Opened, request: FusionRequest, key: str) -> None:
    try:
        offered = projects.calibrated_criteria(page.store, request)
    except ConcordError as error:
        state.leave_notice(f"There are none to take: {error}", good=False)
        return
    st.session_state[f"{key}_criteria"], st.session_state[f"{key}_criteria_seen"] = offered.criteria, offered.seen
    st.session_state[f"{key}_calibrated"] = offered


def _keep(page: Opened, request: FusionRequest, head: int) -> None:
    try:
        projects.save_plan(page.store, request, expected=None if head == 0 else head)
        state.leave_notice("Plan and criteria are kept as a new version.", good=True)
    except ConcordError as error:
        state.leave_notice(f"They were not kept: {error}", good=False)
