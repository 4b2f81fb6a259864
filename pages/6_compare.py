"""Compare: every judge beside the people and beside each other, on items whose labels none of them has seen."""

import streamlit as st

from core import projects
from core.comparison import Published
from core.errors import ConcordError
from core.project_records import GoldenSummary, JudgeEntry
from pages.components import (
    analyses_view,
    chosen,
    compare_items,
    compare_judges,
    compare_leaderboard,
    compare_people,
    compare_sections,
    compare_view,
    import_view,
)
from pages.components.compare_view import Choice, Compared
from pages.components.page import Opened, open_page, stop_with
from pages.components.screens import plain

SECTIONS = {
    "differences": "Which differences are real",
    "people": "Beside people",
    "items": "Item by item",
    "curve": "On the human scale",
    "brought": "With and without calibrating",
    "papers": "Papers",
    "judges": "Judges: add, rename",
}


def show(page: Opened) -> None:
    left, middle, right = st.columns([4, 3, 2], gap="medium", vertical_alignment="bottom")
    with left:
        golden = chosen.choose_golden(page)
    with middle:
        aspect = chosen.choose_aspect(page, golden)
    judges = projects.list_judges(page.store, page.project.project_id, golden.golden_id, aspect)
    if not judges:
        compare_judges.draw_empty(golden, aspect)
        compare_judges.draw_adding(page, golden, aspect)
        return
    try:
        with right:
            compared_judges = compare_view.choose_judges(golden, aspect, judges)
        choice = compare_view.choose_measure(page, golden, aspect, compared_judges)
        show_table(page, golden, aspect, judges, choice)
    except ConcordError as error:
        stop_with("These judges cannot be compared.", str(error))


def show_table(page: Opened, golden: GoldenSummary, aspect: str, judges: list[JudgeEntry], choice: Choice) -> None:
    compared = compare_view.compare(page, golden, aspect, choice)
    compare_view.draw_finding(compared)
    if aside := compare_view.narrow_words(judges, choice):
        st.caption(plain(aside))
    above = st.container()
    held = compare_view.hold("section", list(SECTIONS), "judges" if import_view.waiting() else "differences")
    if held.value != "papers":
        draw_leaderboard(compared, ())
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
    match held.value:
        case "differences":
            compare_sections.draw_differences(compared)
        case "people":
            compare_people.draw(compared)
        case "items":
            compare_items.draw(page, compared)
        case "curve":
            compare_sections.draw_curve(compared)
        case "brought":
            analyses_view.draw(page, golden, aspect)
        case "papers":
            published_figures = compare_sections.draw_published(compared)
            with above:  # drawn after the choice of the printed numbers, which stand there too
                draw_leaderboard(compared, published_figures)
        case _:
            compare_judges.draw_judges(page, golden, aspect, judges)


def draw_leaderboard(compared: Compared, published_figures: tuple[Published, ...]) -> None:
    compare_leaderboard.draw_table(compared, published_figures)
    compare_leaderboard.draw_whiskers(compared, published_figures)


show(
    open_page(
        "compare",
        intro="Every judge beside the people, on the same unseen items.",
    )
)
