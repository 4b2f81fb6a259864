"""A version of the judge for other tools: each adapter with what it keeps and what is lost, to read and to download."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.project_records import GoldenSummary
from core.projects.calibration import JudgeAdapters
from core.projects.reports import MeasuredJudge
from pages.ui import state
from pages.ui.page import Opened
from pages.ui.screens import plain

_LANGUAGES = {"text/x-python": "python", "application/yaml": "yaml", "application/x-ipynb+json": "json"}


def draw(page: Opened, golden: GoldenSummary, aspect: str, judge: MeasuredJudge) -> None:
    """Every adapter of a version of the judge."""
    st.subheader("For other tools", anchor=False)
    try:
        adapters = _kept(_stamp(page, golden, aspect), page, judge.run.run_id)
    except ConcordError as error:
        st.warning(f"The judge cannot be handed on: {plain(str(error))}")
        return
    if adapters is not None:
        _draw_adapters(adapters, judge)


def _draw_adapters(adapters: JudgeAdapters, judge: MeasuredJudge) -> None:
    st.caption(plain(f"They hold {judge.words}."))
    by_name = {adapter.name: adapter for adapter in adapters.adapters}
    chosen = st.segmented_control(
        "Tool",
        list(by_name),
        default=next(iter(by_name)),
        required=True,
        format_func=lambda name: by_name[name].title,
        key=state.widget("adapters_tool"),
    )
    adapter = by_name[chosen or next(iter(by_name))]
    kept, lost = st.columns(2, gap="large")
    with kept:
        st.markdown("**What it keeps**")
        st.markdown("\n".join(f"- {plain(line)}" for line in adapter.kept))
    with lost:
        st.markdown("**What is lost**")
        st.markdown("\n".join(f"- {plain(line)}" for line in adapter.lost) or "Nothing.")
    st.download_button(
        f"Download {adapter.file_name}",
        data=adapter.text,
        file_name=adapter.file_name,
        mime=adapter.media_type,
        icon=":material/download:",
        on_click="ignore",
        key=state.widget(f"adapters_file_{adapter.name}"),
        help=plain("The alignment, the approval and what is lost stand at the top of the file."),
    )
    with st.expander(f"Its text ({len(adapter.text.splitlines()):,} lines)"):
        st.code(adapter.text, language=_LANGUAGES.get(adapter.media_type), height=420)


def _stamp(page: Opened, golden: GoldenSummary, aspect: str) -> tuple[Any, ...]:
    """Changes with everything that people do, and so with what the files say of approvals."""
    project_id = page.project.project_id
    return project_id, golden.golden_id, aspect, projects.log_page(page.store, project_id, limit=1).n


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept(stamp: tuple[Any, ...], _page: Opened, run_id: str) -> JudgeAdapters | None:
    project_id, golden_id, aspect = stamp[:3]
    return projects.judge_adapters(_page.store, project_id, golden_id, aspect, run_id)
