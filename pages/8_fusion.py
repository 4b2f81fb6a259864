"""Fusion screen: several judges and metrics combined, evaluated on items that none of them has seen."""

import streamlit as st

from core.errors import ConcordError
from pages.fusion import by_model, parts, result
from pages.ui import chosen, state
from pages.ui.page import Opened, finding, open_page
from pages.ui.screens import plain

RESULT, SET_UP = SECTIONS = ("Result", "Set up")


def show(page: Opened) -> None:
    golden = chosen.choose_golden(page)
    aspect = chosen.choose_aspect(page, golden)
    judges = page.store.judges.all(page.project.project_id, golden.golden_id, aspect)
    if len(judges) < 2:
        parts.draw_empty(page, golden, aspect, len(judges))
        return
    choice = parts.choice_of(page, golden, aspect, judges)
    try:
        fused = result.fuse(page, golden, aspect, choice)
    except ConcordError as error:
        finding("Concord can't fuse these judges.")
        st.warning(plain(str(error)), icon=":material/block:")
        parts.draw_choice(choice)
        parts.draw_sources(page, golden, aspect)
        return
    finding(result.headline(fused), step=lambda: result.draw_keep(page, fused))
    section = st.segmented_control(
        "More",
        SECTIONS,
        default=RESULT,
        required=True,
        key=state.widget("fusion_section"),
        label_visibility="collapsed",
    )
    if section == RESULT:
        result.draw(page, fused)
        return
    parts.draw_choice(choice)
    parts.draw_kinds(choice)
    parts.draw_sources(page, golden, aspect)
    with st.expander("Fuse with a language model", icon=":material/neurology:"):
        by_model.draw(page, fused)


show(open_page("fusion", intro="Combine several judges and metrics into one judge."))
