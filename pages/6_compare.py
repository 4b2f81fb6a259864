"""Compare screen: every judge compared with the raters and other judges, on items whose labels no judge has seen."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from pages.compare import choices, judge_errors, judges, leaderboard, raters, systems
from pages.ui import chosen, state
from pages.ui.page import Opened, open_page, stop_with

SECTIONS = {"ranking": "Ranking", "raters": "Against raters", "errors": "Errors", "systems": "Systems"}
CHANGE = "judges"


def show(page: Opened) -> None:
    golden = chosen.choose_golden(page)
    aspect = chosen.choose_aspect(page, golden)
    shown = projects.judges_shown(page.store, page.project.project_id, golden.golden_id, aspect)
    if not shown.entries:
        judges.draw_empty(page, golden, aspect)
        return
    if state.url_id("section") == CHANGE:
        icon = ":material/arrow_back:"
        st.button("Back to the comparison", icon=icon, on_click=state.put_in_url, kwargs={"section": None})
        judges.draw(page, golden, shown)
        return
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        section = chosen.choose_part("Section", "section", SECTIONS, "ranking", label_visibility="collapsed")
        st.space("stretch")
        compared = choices.choose(page, golden, aspect, shown)
        st.button("Add or remove judges", on_click=state.put_in_url, kwargs={"section": CHANGE})
    match section:
        case "ranking":
            leaderboard.draw(compared)
        case "raters":
            raters.draw(compared)
        case "errors":
            judge_errors.draw(page, compared)
        case _:
            systems.draw(page, compared)


opened = open_page("compare", intro="Compare every judge with the raters on the same unseen items.")
try:
    show(opened)
except ConcordError as error:
    stop_with("Concord can't compare these judges.", str(error))
