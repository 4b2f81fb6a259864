"""A `repeval.yaml` as a judge: what it says, the model that it needs, a person's leave for that model, and the run."""

from __future__ import annotations

import streamlit as st

from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.project_judges import FileFacts, MetricsRequest, RepEvalFile, judge_file_facts
from pages.ui import metrics_view
from pages.ui.page import Opened
from pages.ui.screens import plain
from pages.ui.state import widget

LARGEST_MB = 16


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> None:
    """Upload → what was fitted on what → the place of its model → "Score with it", which the worker does."""
    metrics_view.draw_run(page, golden)
    upload = st.file_uploader(
        "A repeval.yaml", type=["yaml", "yml", "json"], key=widget("judge_file"), max_upload_size=LARGEST_MB
    )
    if upload is None:
        st.caption(
            "The RepEval screen and `python -m core repeval --out` write one: a score fitted on one golden set, to be "
            "compared on another. The file brings no model: any but the embedded one is loaded only if you name it."
        )
        return
    try:
        text = upload.getvalue().decode("utf-8")
        facts = judge_file_facts(text, upload.name)
    except (ConcordError, UnicodeDecodeError) as error:
        st.error(f"This file cannot be used.  \n{plain(str(error))}", icon=":material/error:")
        return
    fitted = f"Fitted on {facts.aspect} of {facts.golden_name} by {facts.method}. "
    st.markdown(plain(f"{fitted}On items of it that were not seen: {facts.alignment}."))
    if apart := facts.differences(golden, aspect):
        st.warning(plain(" ".join(apart)), icon=":material/compare_arrows:")
    place = _place(facts)
    with st.container(border=True, horizontal=True, vertical_alignment="bottom"):
        name = st.text_input(
            "Name of the judge", value=f"RepEval of {facts.golden_name}"[:120], max_chars=120,
            key=widget("judge_file_name"),
        )  # fmt: skip
        ready = bool(name.strip()) and (facts.embedded or bool(place.strip()))
        file = RepEvalFile(name.strip(), text, place.strip())
        request = MetricsRequest(page.project.project_id, golden.golden_id, aspect, files=(file,))
        metrics_view.draw_start(page, "Score with it", request, disabled=not ready)


def _place(facts: FileFacts) -> str:
    """Where the worker finds the model, as a person says; "" for the embedded one."""
    if facts.embedded:
        return ""
    return st.text_input(
        "Its model, on the worker",
        key=widget("judge_file_model"),
        placeholder=plain(facts.model),
        help="A Hugging Face id or a folder on the worker's machine. It must have the weights that the score was "
        "fitted on; typing it here lets the worker load it.",
    )
