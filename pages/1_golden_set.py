"""Golden set screen: upload, check and freeze a file, or view labels and items of a frozen set."""

import streamlit as st

from pages.golden import golden_upload, golden_view
from pages.ui import state
from pages.ui.page import open_page

LOOK, UPLOAD = "Golden sets", "Upload a file"


def follow_view() -> None:
    state.put_in_url(section=state.UPLOAD_SECTION if st.session_state[state.VIEW] == UPLOAD else None)


page = open_page("golden_set")
goldens = page.store.goldens.all(page.project.project_id)
if not goldens:
    golden_upload.draw_upload(page, empty=True)
else:
    asked = state.url_id("section") == state.UPLOAD_SECTION
    st.session_state[state.VIEW] = UPLOAD if asked else LOOK
    left, right = st.columns((2, 3), vertical_alignment="bottom")
    left.segmented_control(
        "View",
        [LOOK, UPLOAD],
        required=True,
        key=state.VIEW,
        on_change=state.when_changed(state.VIEW, follow_view),
        label_visibility="collapsed",
    )
    if asked:
        golden_upload.draw_upload(page)
    else:
        with right:
            golden = golden_view.choose(goldens)
        golden_view.draw(page, goldens, golden)
