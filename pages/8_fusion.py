"""Fusion: several judges and metrics joined into one, evaluated on items that none of them has seen."""

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import JudgeEntry
from pages.components import chosen, fusion_keep, fusion_llm, fusion_sections, fusion_view, state
from pages.components.fusion_view import Fused
from pages.components.page import Opened, link_to, open_page
from pages.components.screens import plain

BRINGS, ALIKE, CONTRADICT, LLM, PAPER, MORE = (
    "Without each part",
    "How alike the parts are",
    "Where they contradict",
    "Let a model fuse",
    "The paper's numbers",
    "More parts",
)
SECTIONS = (BRINGS, ALIKE, CONTRADICT, LLM, PAPER, MORE)


def show(page: Opened) -> None:
    left, right = st.columns([4, 3], gap="medium")
    with left:
        golden = chosen.choose_golden(page)
    with right:
        aspect = chosen.choose_aspect(page, golden)
    judges = projects.list_judges(page.store, page.project.project_id, golden.golden_id, aspect)
    if len(judges) < 2:
        fusion_view.draw_empty(page, golden, aspect, len(judges))
        return
    parts = fusion_view.choose_parts(golden, aspect, judges)
    if len(parts) < 2:
        st.info("Tick at least two judges: a fusion joins several.", icon=":material/merge:")
        fusion_view.draw_ways(page, golden, aspect)
        return
    settings = fusion_view.choose_settings(page, golden, aspect)
    try:
        fused = fusion_view.fuse(page, golden, aspect, judges=judges, chosen=parts, settings=settings)
    except ConcordError as error:
        st.warning(f"These judges cannot be fused.  \n{plain(str(error))}", icon=":material/block:")
        fusion_view.draw_ways(page, golden, aspect)
        return
    show_fusion(page, fused, judges)


def show_fusion(page: Opened, fused: Fused, judges: list[JudgeEntry]) -> None:
    fusion_view.draw_finding(fused)
    fusion_view.draw_table(fused)
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        fusion_keep.draw_keep(page, fused)
        fusion_keep.draw_files(page, judges)
        link_to("compare", "Every judge on Compare", icon=":material/leaderboard:", golden=fused.view.golden_id,
                aspect=fused.aspect)  # fmt: skip
    section = st.segmented_control(
        "More",
        SECTIONS,
        default=BRINGS,
        required=True,
        key=state.widget("fusion_section"),
        label_visibility="hidden",
    )
    if section == BRINGS:
        fusion_sections.draw_parts(fused)
    elif section == ALIKE:
        fusion_sections.draw_between(fused)
    elif section == CONTRADICT:
        fusion_sections.draw_contradictions(fused)
    elif section == LLM:
        fusion_llm.draw(page, fused)
    elif section == PAPER:
        fusion_sections.draw_published(fused)
    else:
        fusion_view.draw_ways(page, fused.view, fused.aspect, opened=True)


show(
    open_page(
        "fusion",
        intro="Several judges and metrics joined into one. No calls.",
    )
)
