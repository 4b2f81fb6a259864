"""Compare: every judge beside the people and beside each other, on items whose labels none of them has seen."""

from collections.abc import Sequence

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.judges_shown import JudgesShown
from pages.compare import (
    analyses_view,
    choices,
    fails,
    import_view,
    items,
    judges,
    leaderboard,
    raters,
    sections,
    systems,
)
from pages.compare.choices import Choice, Compared
from pages.ui import chosen
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
        judges.draw_empty(golden, aspect)
        judges.draw_adding(page, golden, aspect)
        return
    try:
        show_compared(page, golden, aspect, shown)
    except ConcordError as error:
        stop_with("These judges cannot be compared.", str(error))


def show_compared(page: Opened, golden: GoldenSummary, aspect: str, shown: JudgesShown) -> None:
    above, measured = st.container(), choices.choose_measure(page, golden, aspect, shown)
    held = choices.hold("section", list(SECTIONS), "judges" if import_view.waiting() else "table")
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        choices.draw_measure(measured)
        offered = choices.choose_versions(shown)
        judges = choices.choose_judges(golden, aspect, offered, shown.own)
        choice = Choice(judges, measured.statistic.value, measured.level.value)
        compared = choices.compare(page, golden, aspect, choice, shown)
        columns: tuple[str, ...] = ()
        if held.value == "table":
            columns = leaderboard.choose_columns(compared)
            leaderboard.draw_downloads(compared)
    with above:
        draw_finding(compared)
    if aside := choices.aside_words(offered, choice, shown.own):
        st.caption(plain(aside))
    st.segmented_control(
        "More",
        list(SECTIONS),
        required=True,
        format_func=lambda section: SECTIONS[section],
        key=held.key,
        on_change=choices.keep,
        args=(held,),
        label_visibility="collapsed",
    )
    show_section(page, compared, held.value, columns)


def draw_finding(compared: Compared) -> None:
    """The sentence, what it rests on, and what makes it weaker than it looks."""
    said = choices.finding_of(compared)
    finding(said.headline, step=lambda: choices.draw_next(compared))
    if words := " ".join((said.basis, *said.details)):
        st.caption(plain(words.strip()))
    for sentence in said.cautions:
        st.markdown(f":material/warning: {plain(sentence)}")


def show_section(page: Opened, compared: Compared, section: str, columns: Sequence[str]) -> None:
    match section:
        case "table":
            leaderboard.draw_table(compared, columns=columns)
            leaderboard.draw_whiskers(compared)
        case "differences":
            sections.draw_differences(compared)
        case "people":
            raters.draw(compared)
        case "systems":
            systems.draw(page, compared)
        case "fails":
            fails.draw(compared)
        case "items":
            items.draw(page, compared)
        case "curve":
            sections.draw_curve(page, compared)
        case "brought":
            analyses_view.draw(page, compared.view, compared.aspect)
        case _:
            judges.draw_judges(page, compared)


show(
    open_page(
        "compare",
        intro="Every judge beside the people, on the same unseen items.",
    )
)
