"""Beginning a review meeting: what waits, what goes on the agenda, who is there; and the meetings that were."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.review.meetings import AgendaItem
from pages.components import label_item, people, review_view, state, tables
from pages.components.page import Opened, link_to
from pages.components.screens import plain

NEW = "new"
MOST_POINTS = 60
PROBLEM = state.widget("meeting_start_problem")
NAME, PEOPLE, QUESTION = (state.widget(f"meeting_{field}") for field in ("name", "people", "question"))


def draw(page: Opened) -> None:
    """What a meeting could talk about, and the earlier ones."""
    st.subheader("Begin a review meeting", anchor=False)
    goldens = [golden for golden in projects.list_goldens(page.store, page.project.project_id) if golden.aspects]
    if goldens:
        golden, aspect = _choose(page, goldens)
        _draw_form(page, golden, aspect)
    else:
        st.info(
            "A meeting talks about criteria for a golden set; this project has none yet.", icon=":material/dataset:"
        )
        link_to("golden_set", "Bring in a golden set", icon=":material/upload_file:")
    _draw_earlier(page)


def _choose(page: Opened, goldens: Sequence[GoldenSummary]) -> tuple[GoldenSummary, str]:
    """Golden set and aspect: of the URL, of the open criteria, or the first."""
    by_id = {golden.golden_id: golden for golden in goldens}
    golden_id, aspect = state.url_id("golden"), state.url_id("aspect")
    if golden_id is None and (criteria_id := state.url_id("criteria")):
        try:
            view = projects.get_criteria(page.store, page.project.project_id, criteria_id)
            golden_id, aspect = view.golden_id, view.criteria.aspect
        except ConcordError:
            pass
    left, right = st.columns([3, 2])
    chosen = left.selectbox(
        "Golden set",
        list(by_id),
        index=list(by_id).index(golden_id) if golden_id in by_id else 0,
        format_func=lambda golden_id: by_id[golden_id].name,
        key=state.widget("meeting_golden"),
    )
    names = [aspect.aspect for aspect in by_id[chosen].aspects]
    picked = right.selectbox(
        "Aspect", names, index=names.index(aspect) if aspect in names else 0, key=state.widget("meeting_aspect")
    )
    return by_id[chosen], str(picked)


def _draw_form(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    waiting = projects.suggest_agenda(page.store, page.project.project_id, golden.golden_id, aspect)
    if problem := st.session_state.pop(PROBLEM, ""):
        st.warning(plain(problem), icon=":material/error:")
    if not waiting:
        st.info(
            "Nothing waits for this aspect: no round has open proposals, and no misaligned item was picked, called "
            "ambiguous or called wrongly labelled. A question of your own can still go on the agenda.",
            icon=":material/event_available:",
        )
        with st.container(horizontal=True, gap="medium"):
            link_to("misaligned", "Triage misaligned items", icon=":material/difference:")
    with st.form(state.widget("meeting_form")):
        left, right = st.columns(2, gap="large")
        left.text_input("Name of the meeting", value=f"Review of {aspect}", key=NAME, max_chars=120)
        left.text_input("A question of your own (optional)", key=QUESTION, max_chars=300)
        right.text_area("Who votes: a name a line", key=PEOPLE, height=120)
        if waiting:
            st.markdown("**Agenda**: all that waits; take out what can wait longer")
        ticked = [_draw_point(page, golden, point, k) for k, point in enumerate(waiting[:MOST_POINTS])]
        if len(waiting) > MOST_POINTS:
            st.caption(f"{len(waiting) - MOST_POINTS} more wait for another meeting.")
        st.form_submit_button(
            "Begin the meeting",
            type="primary",
            icon=":material/groups:",
            on_click=_begin,
            args=(page, golden, aspect, waiting[:MOST_POINTS], ticked),
            **people.gate(page, "reviewer"),
        )


def _draw_point(page: Opened, golden: GoldenSummary, point: AgendaItem, k: int) -> str:
    """A box to tick, with enough words to know the point by; returns the box's key."""
    key = state.widget(
        f"agenda_{golden.golden_id[-8:]}_{point.kind}_{point.run_id}_{point.subject_id}_{point.item_id}_{k}"
    )
    st.checkbox(f"**{plain(point.title)}**", value=True, key=key)
    st.caption(plain(_in_short(golden, point, page)))
    return key


def _in_short(golden: GoldenSummary, point: AgendaItem, page: Opened) -> str:
    if point.kind != "disagreement":
        return tables.one_line(point.text)
    known = point.item_id in label_item.kept_golden(golden.golden_id, page.store).item_ids
    text = label_item.item_of(golden.golden_id, page.store, point.item_id).target if known else point.item_id
    return f"{point.text[:160]} · “{tables.one_line(text)[:110]} …”"


def _begin(
    page: Opened, golden: GoldenSummary, aspect: str, waiting: Sequence[AgendaItem], ticked: Sequence[str]
) -> None:
    agenda = [point for point, key in zip(waiting, ticked, strict=True) if st.session_state.get(key)]
    if question := " ".join(str(st.session_state.get(QUESTION) or "").split()):
        agenda.append(AgendaItem("question", question))
    names = re.split(r"[\n,;]", str(st.session_state.get(PEOPLE) or ""))
    title = str(st.session_state.get(NAME) or "")
    made: list[str] = []

    def act() -> None:
        store, project_id = page.store, page.project.project_id
        where = {"golden_id": golden.golden_id, "aspect": aspect}
        made.append(projects.start_meeting(store, project_id, title, **where, agenda=agenda))
        projects.set_participants(store, project_id, made[0], names)
        projects.set_current_point(store, project_id, made[0], 0)

    review_view.attempt(act, PROBLEM)
    if made:
        state.put_in_url(meeting=made[0])


def _draw_earlier(page: Opened) -> None:
    earlier = projects.list_meetings(page.store, page.project.project_id)
    if not earlier:
        return
    st.subheader("Meetings", anchor=False)
    for meeting in earlier[:20]:
        decided = sum(point.decision is not None for point in meeting.points)
        with st.container(border=True, horizontal=True, vertical_alignment="center", gap="medium"):
            st.badge("closed" if meeting.closed_at else "going on", color="gray" if meeting.closed_at else "green")
            st.markdown(f"**{plain(meeting.name)}** · {plain(meeting.aspect)}", width="content")
            n = tables.count_words(len(meeting.points), "point")
            st.caption(plain(f"{review_view.when(meeting.began_at)}, {decided} of {n} decided"))
            st.space("stretch")
            st.button(
                "Minutes" if meeting.closed_at else "Go on",
                icon=":material/description:" if meeting.closed_at else ":material/play_arrow:",
                key=state.widget(f"meeting_open_{meeting.meeting_id}"),
                on_click=state.put_in_url,
                kwargs={"meeting": meeting.meeting_id},
            )
