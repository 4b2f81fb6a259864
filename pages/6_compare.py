"""Compare: every judge beside the people and beside each other, on items whose labels none of them has seen."""

from collections.abc import Sequence

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.judges_shown import JudgesShown
from pages.ui import (
    analyses_view,
    chosen,
    compare_fails,
    compare_items,
    compare_judges,
    compare_leaderboard,
    compare_people,
    compare_sections,
    compare_systems,
    compare_view,
    import_view,
)
from pages.ui.compare_view import Choice, Compared
from pages.ui.page import Opened, finding, open_page, stop_with
from pages.ui.screens import plain

SECTIONS = {
    "table": "All judges",
    "differences": "Differences",
    "people": "Beside people",
    "systems": "Systems",
    "fails": "Where it fails",
    "items": "Item by item",
    "curve": "Human scale",
    "brought": "Parts",
    "judges": "Add, rename",
}


def show(page: Opened) -> None:
    golden = chosen.choose_golden(page)
    aspect = chosen.choose_aspect(page, golden)
    shown = projects.judges_shown(page.store, page.project.project_id, golden.golden_id, aspect)
    if not shown.entries:
        compare_judges.draw_empty(golden, aspect)
        compare_judges.draw_adding(page, golden, aspect)
        return
    try:
        show_compared(page, golden, aspect, shown)
    except ConcordError as error:
        stop_with("These judges cannot be compared.", str(error))


def show_compared(page: Opened, golden: GoldenSummary, aspect: str, shown: JudgesShown) -> None:
    above, measured = st.container(), compare_view.choose_measure(page, golden, aspect, shown)
    held = compare_view.hold("section", list(SECTIONS), "judges" if import_view.waiting() else "table")
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        compare_view.draw_measure(measured)
        offered = compare_view.choose_versions(shown)
        judges = compare_view.choose_judges(golden, aspect, offered, shown.own)
        choice = Choice(judges, measured.statistic.value, measured.level.value)
        compared = compare_view.compare(page, golden, aspect, choice, shown)
        columns: tuple[str, ...] = ()
        if held.value == "table":
            columns = compare_leaderboard.choose_columns(compared)
            compare_leaderboard.draw_downloads(compared)
    with above:
        draw_finding(compared)
    if aside := compare_view.aside_words(offered, choice, shown.own):
        st.caption(plain(aside))
    st.segmented_control(
        "More",
        list(SECTIONS),
        required=True,
        format_func=lambda section: SECTIONS[section],
        key=held.key,
        on_change=compare_view.keep,
        args=(held,),
        label_visibility="collapsed",
    )
    show_section(page, compared, held.value, columns)


def draw_finding(compared: Compared) -> None:
    """The sentence, what it rests on, and what makes it weaker than it looks."""
    said = compare_view.finding_of(compared)
    finding(said.headline, step=lambda: compare_view.draw_next(compared))
    if words := " ".join((said.basis, *said.details)):
        st.caption(plain(words.strip()))
    for sentence in said.cautions:
        st.markdown(f":material/warning: {plain(sentence)}")


def show_section(page: Opened, compared: Compared, section: str, columns: Sequence[str]) -> None:
    match section:
        case "table":
            compare_leaderboard.draw_table(compared, columns=columns)
            compare_leaderboard.draw_whiskers(compared)
        case "differences":
            compare_sections.draw_differences(compared)
        case "people":
            compare_people.draw(compared)
        case "systems":
            compare_systems.draw(page, compared)
        case "fails":
            compare_fails.draw(compared)
        case "items":
            compare_items.draw(page, compared)
        case "curve":
            compare_sections.draw_curve(page, compared)
        case "brought":
            analyses_view.draw(page, compared.view, compared.aspect)
        case _:
            compare_judges.draw_judges(page, compared)


show(
    open_page(
        "compare",
        intro="Every judge beside the people, on the same unseen items.",
    )
)
