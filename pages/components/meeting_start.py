"""Beginning a review meeting: what waits, what goes on the agenda, who is there; and the meetings that were."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.review.meetings import AgendaItem, Meeting
from core.wording import counted
from pages.components import meeting_votes, people, review_view, state, tables
from pages.components.page import Opened, link_to
from pages.components.screens import plain

NEW = "new"
MOST_POINTS, SHORT = 60, 240
PROBLEM = state.widget("meeting_start_problem")
NAME, PEOPLE, QUESTION = (state.widget(f"meeting_{field}") for field in ("name", "people", "question"))


def draw(page: Opened) -> None:
    """The meetings that go on, what a new one could talk about, and those that were."""
    meetings = projects.list_meetings(page.store, page.project.project_id)
    _draw_meetings("Going on now", [meeting for meeting in meetings if meeting.closed_at is None])
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
    _draw_meetings("Earlier meetings", [meeting for meeting in meetings if meeting.closed_at is not None])


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
    where = (page.project.project_id, golden.golden_id, aspect)
    waiting = projects.suggest_agenda(page.store, *where)
    losing = projects.losing_changes(page.store, *where)
    first = [point for point in waiting if point.subject_id not in losing or point.kind != "change"][:MOST_POINTS]
    rest = [point for point in waiting if point not in first][:MOST_POINTS]
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
        with st.container(horizontal=True, vertical_alignment="center"):
            n = counted(len(first), "point")
            st.markdown(
                f"**{n} on the agenda**: take out what can wait" if first else "**What is to be talked about?**"
            )
            begins = st.container(width="content")
        ticked = _draw_agenda(golden, first, rest)
        left, right = st.columns(2, gap="large")
        left.text_input("A question of your own (optional)", key=QUESTION, max_chars=300)
        left.text_input("Name of the meeting", value=f"Review of {aspect}", key=NAME, max_chars=120)
        right.text_area("Who votes: a name a line", value=page.actor.name, key=PEOPLE, height=120)
        with begins:
            people.submit(
                page,
                "reviewer",
                "Begin the meeting",
                type="primary",
                icon=":material/groups:",
                on_click=_begin,
                args=(page, golden, aspect, [*first, *rest], ticked),
            )


def _draw_agenda(golden: GoldenSummary, first: Sequence[AgendaItem], rest: Sequence[AgendaItem]) -> list[str]:
    """A box for each point, those that the figures speak against folded away; returns the boxes' keys."""
    keys = [_draw_point(golden, point, k, ticked=True) for k, point in enumerate(first)]
    if rest:
        n = counted(len(rest), "more proposal")
        with st.expander(f"{n}, left out: alignment is lower with {'it' if len(rest) == 1 else 'them'}"):
            keys += [_draw_point(golden, point, len(first) + k, ticked=False) for k, point in enumerate(rest)]
    return keys


def _draw_point(golden: GoldenSummary, point: AgendaItem, k: int, *, ticked: bool) -> str:
    """A box to tick, with enough words to know the point by; returns the box's key."""
    key = state.widget(
        f"agenda_{golden.golden_id[-8:]}_{point.kind}_{point.run_id}_{point.subject_id}_{point.item_id}_{k}"
    )
    about = f"  \n{plain(tables.one_line(point.text)[:SHORT])}" if point.text else ""
    item = f" {plain(point.item_id[:60])}" if point.item_id else ""
    st.checkbox(f"**{plain(point.title)}**{item}{about}", value=ticked, key=key)
    return key


def _begin(
    page: Opened, golden: GoldenSummary, aspect: str, waiting: Sequence[AgendaItem], ticked: Sequence[str]
) -> None:
    agenda = [point for point, key in zip(waiting, ticked, strict=True) if st.session_state.get(key)]
    if question := " ".join(str(st.session_state.get(QUESTION) or "").split()):
        agenda.append(AgendaItem("question", question))
    names = meeting_votes.names_in(st.session_state.get(PEOPLE) or page.actor.name)
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
        state.put_in_url(meeting=made[0], view=state.BARE)


def _draw_meetings(title: str, meetings: Sequence[Meeting]) -> None:
    if not meetings:
        return
    st.subheader(title, anchor=False)
    for meeting in meetings[:20]:
        over, decided = meeting.closed_at is not None, sum(point.decision is not None for point in meeting.points)
        with st.container(border=True, horizontal=True, vertical_alignment="center", gap="medium"):
            st.markdown(f"**{plain(meeting.name)}** · {plain(meeting.aspect)}", width="content")
            n = counted(len(meeting.points), "point")
            st.caption(plain(f"{review_view.when(meeting.began_at)}, {decided} of {n} decided"))
            st.space("stretch")
            st.button(
                "What was decided" if over else "Go there",
                icon=":material/description:" if over else ":material/play_arrow:",
                type="secondary" if over else "primary",
                key=state.widget(f"meeting_open_{meeting.meeting_id}"),
                on_click=state.put_in_url,
                kwargs={"meeting": meeting.meeting_id, "view": state.BARE},
            )
