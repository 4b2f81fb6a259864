"""Compare: every judge compared with the raters and with each other, on items whose labels none of them has seen."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.project_judges import JudgesShown
from pages.compare import choices, import_view, judges, leaderboard, one_judge, raters, systems
from pages.compare.choices import Compared
from pages.ui import chosen
from pages.ui.page import Opened, finding, link_to, open_page, stop_with
from pages.ui.screens import plain

SECTIONS = {"table": "Judges", "raters": "Raters", "systems": "Systems", "judge": "One judge"}
CHANGE = "judges"


def show(page: Opened) -> None:
    golden = chosen.choose_golden(page)
    aspect = chosen.choose_aspect(page, golden)
    shown = projects.judges_shown(page.store, page.project.project_id, golden.golden_id, aspect)
    if not shown.entries:
        judges.draw_empty(page, golden, aspect)
        return
    try:
        show_compared(page, golden, aspect, shown)
    except ConcordError as error:
        stop_with("These judges cannot be compared.", str(error))


def show_compared(page: Opened, golden: GoldenSummary, aspect: str, shown: JudgesShown) -> None:
    above = st.container()
    held = choices.hold("section", [*SECTIONS, CHANGE], CHANGE if import_view.waiting() else "table")
    changing = held.value == CHANGE
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        compared = choices.choose(page, golden, aspect, shown)
        leaderboard.draw_downloads(compared)
        words = "Back to the comparison" if changing else "Add, rename"
        icon = ":material/arrow_back:" if changing else ":material/add:"
        st.button(words, icon=icon, on_click=held.set, args=("table" if changing else CHANGE,))
    with above:
        said = compared.finding
        finding(said.headline, step=lambda: draw_next(compared))
        if said.detail:
            st.caption(plain(said.detail))
        for sentence in said.cautions:
            st.markdown(f":material/warning: {plain(sentence)}")
    if compared.hidden:
        names = "; ".join(compared.hidden)
        st.caption(plain(f"Hidden, because over a third of the items would be lost: {names}. Put them back in above."))
    if changing:
        judges.draw(page, compared)
        return
    held.draw("More", SECTIONS, label_visibility="collapsed")
    match held.value:
        case "table":
            leaderboard.draw(compared)
        case "raters":
            raters.draw(compared)
        case "systems":
            systems.draw(page, compared)
        case _:
            one_judge.draw(page, compared)


def draw_next(compared: Compared) -> None:
    """The one next thing: sign the version off, measure it here, or read the report."""
    golden_id, version = compared.view.golden_id, compared.shown.line.default
    where = {"golden": golden_id, "aspect": compared.aspect}
    if version is None:
        link_to("calibrate", "Calibrate a judge", icon=":material/tune:", golden=golden_id)
    elif version.in_force and version.on(golden_id) is not None:
        link_to("report", "Read the report", icon=":material/summarize:", **where)
    else:
        measured = version.on(golden_id) is not None
        words = f"Sign off version {version.number}" if measured else f"Measure version {version.number} here"
        icon = ":material/verified:" if measured else ":material/play_arrow:"
        link_to("overview", words, icon=icon, version=str(version.number), **where)


show(open_page("compare", intro="Every judge next to the raters, on the same unseen items."))
