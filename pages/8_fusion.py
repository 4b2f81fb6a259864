"""Fusion: several judges and metrics joined into one, evaluated on items that none of them has seen."""

import streamlit as st

from core.errors import ConcordError
from pages.fusion import fusion_choice, fusion_keep, fusion_llm, fusion_sections, fusion_view
from pages.fusion.fusion_choice import Choice
from pages.fusion.fusion_view import Fused
from pages.ui import chosen, state
from pages.ui.page import Opened, finding, open_page
from pages.ui.screens import plain

CHART, BRINGS, TABLE, ALIKE, CONTRADICT, LLM, MORE = SECTIONS = (
    "Fusion",
    "Without each part",
    "All figures",
    "How alike",
    "Contradictions",
    "Let a model fuse",
    "More parts",
)


def show(page: Opened) -> None:
    golden = chosen.choose_golden(page)
    aspect = chosen.choose_aspect(page, golden)
    judges = page.store.judges.all(page.project.project_id, golden.golden_id, aspect)
    if len(judges) < 2:
        fusion_view.draw_empty(page, golden, aspect, len(judges))
        return
    choice = fusion_choice.choice_of(page, golden, aspect, judges)
    if len(choice.parts) < 2:
        finding("A fusion joins at least two judges: choose its parts.")
        fusion_choice.draw_choice(choice)
        fusion_view.draw_ways(page, golden, aspect)
        return
    try:
        fused = fusion_view.fuse(page, golden, aspect, judges=judges, choice=choice)
    except ConcordError as error:
        finding("These judges cannot be fused.")
        st.warning(plain(str(error)), icon=":material/block:")
        fusion_choice.draw_choice(choice)
        fusion_view.draw_ways(page, golden, aspect)
        return
    show_fusion(page, fused, choice)


def show_fusion(page: Opened, fused: Fused, choice: Choice) -> None:
    finding(fusion_view.headline(fused), step=lambda: fusion_keep.draw_keep(page, fused))
    fusion_view.draw_notes(fused)
    section = st.segmented_control(
        "More",
        SECTIONS,
        default=CHART,
        required=True,
        key=state.widget("fusion_section"),
        label_visibility="collapsed",
    )
    if section == CHART:
        fusion_view.draw_whiskers(fused)
    elif section == BRINGS:
        fusion_sections.draw_parts(fused)
    elif section == TABLE:
        fusion_view.draw_table(fused)
    elif section == ALIKE:
        fusion_sections.draw_between(fused)
    elif section == CONTRADICT:
        fusion_sections.draw_contradictions(fused)
    elif section == LLM:
        fusion_llm.draw(page, fused)
    else:
        fusion_choice.draw_kinds(choice)
        fusion_view.draw_ways(page, fused.view, fused.aspect)
    fusion_choice.draw_choice(choice)
    fusion_keep.draw_files(page, choice.judges)


show(
    open_page(
        "fusion",
        intro="Several judges and metrics joined into one.",
    )
)
