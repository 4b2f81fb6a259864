"""Golden set: bring in a file, see how it is read and what is wrong with it, freeze it; look at the frozen ones."""

import streamlit as st

from core import projects
from pages.components import golden_view, state, tables
from pages.components.page import Opened, link_to, open_page

LOOK, BRING = "Golden sets", "Bring in a file"


def look(page: Opened) -> None:
    goldens = projects.list_goldens(page.store, page.project.project_id)
    if not goldens:
        st.info(
            "This project has no golden set yet: items with human labels, from which criteria are drafted and against "
            "which judges are measured. Choose “Bring in a file”.",
            icon=":material/dataset:",
        )
        return
    ids = [golden.golden_id for golden in goldens]
    marked = state.picked_row(state.GOLDENS, state.GOLDENS_IDS)
    picked = marked or state.url_id("golden")
    if picked not in ids:
        picked = ids[0]
    state.put_in_url(golden=picked)
    state.hold_row(state.GOLDENS, state.GOLDENS_IDS, ids, picked)
    st.dataframe(
        tables.goldens_frame(goldens),
        key=state.GOLDENS,
        on_select="rerun",
        selection_mode="single-row",
        selection_default={"selection": {"rows": [ids.index(picked)]}},
        hide_index=True,
        height=tables.height_for(len(goldens), 8),
        placeholder=tables.DASH,
        column_config={"aspects": st.column_config.TextColumn(width="large")},
        alt="Golden sets of this project",
    )
    golden_view.draw_frozen(page, goldens[ids.index(picked)])


page = open_page("golden_set", intro="Items with human labels: a judge is calibrated and measured on them.")
view = st.segmented_control(
    "View", [LOOK, BRING], default=LOOK, required=True, key=state.VIEW, label_visibility="collapsed"
)
if view == BRING:
    golden_view.bring_in(page)
else:
    look(page)
    link_to("runs", "What has been run so far", icon=":material/list_alt:")
