"""Trying criteria on one item: the text and the item side by side, what the judge is asked, and what it replies."""

from __future__ import annotations

import math

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import CriteriaEntry
from core.projects.criteria import LONGEST_TEXT
from core.projects.edit_scoring import TrialRequest, TrialResult
from core.projects.run_kinds import RunDetail
from core.wording import number
from pages.criteria import criteria_effect
from pages.label import label_item
from pages.ui import people, run_panel, state
from pages.ui.page import Opened, link_to
from pages.ui.screens import plain

PROBLEM = state.widget("trial_problem")
ITEM = state.widget("trial_item")


def criteria_tried(page: Opened, trial_id: str) -> str | None:
    """The criteria that a trial in the link began from."""
    try:
        request = run_panel.read_run(page, trial_id).request
    except ConcordError:
        return None
    return request.criteria_id or None if isinstance(request, TrialRequest) else None


def draw(page: Opened, view: CriteriaEntry, name: str, run_id: str | None) -> None:
    """The form on the left, what came of it on the right."""
    judge_run = _judge_of(page, view, run_id)
    if judge_run is None:
        st.info("No judge has scored these criteria's aspect yet: a calibration makes one.", icon=":material/tune:")
        link_to("calibrate", "Start a calibration", icon=":material/tune:")
        return
    left, right = st.columns(2, gap="large")
    with left:
        item_id = _choose_item(page, judge_run)
        text = st.text_area(
            f"Criteria to try, from “{plain(name)}” (nothing is saved)",
            value=view.text,
            height=220,
            max_chars=LONGEST_TEXT,
            key=state.widget(f"trial_text_{view.criteria_id}"),
        )
        if problem := st.session_state.pop(PROBLEM, ""):
            st.warning(plain(problem), icon=":material/error:")
        people.button(
            page,
            "reviewer",
            "Try",
            type="primary",
            icon=":material/science:",
            key=state.widget("trial"),
            on_click=_start,
            args=(page, view, judge_run, item_id, text or ""),
            help="One question to the judge; it may cost what one reply costs.",
        )
        _draw_item(page, view, item_id)
    with right:
        _draw_trial(page, view)


def _judge_of(page: Opened, view: CriteriaEntry, run_id: str | None) -> str | None:
    """The calibration whose judge is asked: that of the list, else one that scored the criteria, else the newest."""
    runs = projects.calibrations_of(page.store, page.project.project_id, view.golden_id, view.aspect)
    ids = [run.run_id for run in runs if run.status in ("done", "budget") and not page.project.came_with(run)]
    return next((wanted for wanted in (run_id, *view.runs) if wanted in ids), next(iter(ids), None))


@st.cache_data(max_entries=32, show_spinner=False)
def _items(run_id: str, _page: Opened) -> tuple[str, ...]:
    return projects.trial_items(_page.store, run_id)


def _choose_item(page: Opened, run_id: str) -> str:
    ids = _items(run_id, page)
    wanted = state.url_id("item")
    if st.session_state.get(ITEM) not in ids:
        st.session_state[ITEM] = wanted if wanted in ids else ids[0]
    if wanted and wanted not in ids:
        st.caption("The linked item is held out, or of another golden set: criteria are tried on calibration items.")
    item_id = str(st.selectbox("Item", ids, key=ITEM, on_change=_other_item))
    state.put_in_url(item=item_id)
    return item_id


def _other_item() -> None:
    state.put_in_url(item=st.session_state[ITEM], trial=None)


def _draw_item(page: Opened, view: CriteriaEntry, item_id: str) -> None:
    with st.container(border=True):
        item = label_item.item_of(view.golden_id, page.store, item_id)
        label_item.draw_parts(item, label_item.kind_of(view.golden_id, page.store))


def _start(page: Opened, view: CriteriaEntry, run_id: str, item_id: str, text: str) -> None:
    request = TrialRequest(
        page.project.project_id, view.golden_id, view.aspect, run_id, item_id, text, criteria_id=view.criteria_id
    )
    try:
        trial_id = projects.start_trial(page.store, page.settings, request)
        run_panel.give_a_moment(page, trial_id)
        state.put_in_url(trial=trial_id)
    except ConcordError as error:
        st.session_state[PROBLEM] = str(error)


# ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────


def _draw_trial(page: Opened, view: CriteriaEntry) -> None:
    trial_id = state.url_id("trial")
    if trial_id is None:
        st.markdown("**Press Try** to see what the judge is asked, what it replies, and the score.")
        return
    try:
        run_panel.read_run(page, trial_id)
    except ConcordError as error:
        st.error(plain(str(error)), title="This trial cannot be shown", icon=":material/error:")
        return

    def show(now: RunDetail) -> None:
        if now.trial is None:
            st.markdown("**Asking the judge** …" if not now.finished else "**The judge was not asked**")
            run_panel.draw_status(page, now)
        elif isinstance(now.request, TrialRequest):
            _draw_result(page, now.request, now.trial)

    run_panel.follow_run(page, trial_id, show, every=criteria_effect.SOON)


def _draw_result(page: Opened, request: TrialRequest, result: TrialResult) -> None:
    label = _label(page, request)
    people_said = number(label)
    score = number(result.score)
    st.markdown(f"**The judge gives {score}; raters gave {people_said}.**")
    if result.score is None:
        st.warning(plain(f"No score: {result.reason}"), icon=":material/help:")
    st.caption(plain(f"Item {request.item_id}. {result.notice}"))
    if result.explanation and result.explanation.strip() not in {reply.strip() for reply in result.replies}:
        st.markdown("**What moved the score**" if not result.prompts else "**Its reasons**")
        st.text(result.explanation)
    for reply in result.replies:
        st.markdown("**The raw reply**")
        st.text(reply)
    for place, prompt in enumerate(result.prompts, 1):
        many = f" {place} of {len(result.prompts)}" if len(result.prompts) > 1 else ""
        with st.expander(f"The prompt as sent{many}", icon=":material/send:", expanded=place == 1):
            for message in prompt:
                st.caption(plain(message.role))
                st.text(message.content)


def _label(page: Opened, request: TrialRequest) -> float | None:
    golden = page.store.goldens.load(request.golden_id)
    labels = golden.aspects.get(request.aspect)
    if labels is None or request.item_id not in golden.item_ids:
        return None
    value = labels.values[golden.item_ids.index(request.item_id)]
    return None if math.isnan(value) else float(value)
