"""The file of a version of the judge, and the same judge for other tools with what each keeps and loses."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.exports import JudgeAdapters
from core.projects.reports import MeasuredJudge
from pages.ui import state
from pages.ui.page import Opened, finding
from pages.ui.screens import plain

_MOST = 60_000
_LANGUAGES = {"text/x-python": "python", "application/yaml": "yaml", "application/x-ipynb+json": "json"}
_CONTENTS = """
- **All that scoring needs**: the criteria, how their scores are joined, the judge with its model, prompts and
  sampling, and the map to the human scale.
- **All that trust needs**: agreement on both sides of the split with statistic, level, n, interval, the ceiling,
  which version it is and who approved it on which evidence, how often held-out was opened, and warnings.
- **Never a key**: whoever scores with it brings their own.
"""


def draw_finding(page: Opened, judge: MeasuredJudge) -> None:
    """Which version the file holds, with its approval, and the file."""
    version = judge.version
    approval = None if version is None else version.approval
    signed = f"approved by {approval.actor or 'somebody'}" if approval else "which nobody here has approved"
    name = "the judge of a calibration" if version is None else version.name
    finding(f"judge.yaml holds {name}, {signed}", step=lambda: draw_download(page, judge.run.run_id, first=True))


def draw_download(page: Opened, run_id: str, *, first: bool = False) -> None:
    """The button that hands out `judge.yaml`."""
    st.download_button(
        "Download judge.yaml",
        data=partial(_file, _stamp(page, run_id), page, run_id),  # made when it is asked for: large sets take seconds
        file_name="judge.yaml",
        mime="application/yaml",
        icon=":material/download:",
        type="primary" if first else "secondary",
        on_click="ignore",
    )


def draw(page: Opened, golden_id: str, aspect: str, judge: MeasuredJudge) -> None:
    """What `judge.yaml` holds, how it is used, and its text; then every adapter."""
    run_id = judge.run.run_id
    text = _file(_stamp(page, run_id), page, run_id)
    st.markdown(_CONTENTS)
    st.code("python -m core score ITEMS --judge-file judge.yaml --out verdicts.jsonl", language="bash")
    with st.expander(plain(f"Its text ({len(text.splitlines()):,} lines)")):
        st.code(text[:_MOST], language="yaml", wrap_lines=True, height=480)
        if len(text) > _MOST:
            st.caption(f"The first {_MOST:,} of {len(text):,} characters; the file has all.")
    st.subheader("For other tools", anchor=False)
    try:
        adapters = _adapters(_stamp(page, run_id), page, golden_id, aspect, run_id)
    except ConcordError as error:
        st.warning(f"The judge cannot be handed on: {plain(str(error))}")
        return
    if adapters is None:
        return
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
    adapter = by_name[chosen]
    for column, title, lines in zip(
        st.columns(2, gap="large"), ("What it keeps", "What is lost"), (adapter.kept, adapter.lost), strict=True
    ):
        column.markdown(f"**{title}**")
        column.markdown("\n".join(f"- {plain(line)}" for line in lines) or "Nothing.")
    st.download_button(
        f"Download {adapter.file_name}",
        data=adapter.text,
        file_name=adapter.file_name,
        mime=adapter.media_type,
        icon=":material/download:",
        on_click="ignore",
        key=state.widget(f"adapters_file_{adapter.name}"),
        help="The top of the file says the alignment, the approval and what is lost.",
    )
    with st.expander(f"Its text ({len(adapter.text.splitlines()):,} lines)"):
        st.code(adapter.text, language=_LANGUAGES.get(adapter.media_type), height=420)


def _stamp(page: Opened, run_id: str) -> Hashable:
    """Changes with everything that people do, and so with what the files say of approvals."""
    return run_id, page.store.events.page(page.project.project_id, limit=1).n


@st.cache_resource(max_entries=8, show_spinner=False)
def _file(stamp: Hashable, _page: Opened, run_id: str) -> str:
    return projects.judge_file(_page.store, run_id)


@st.cache_resource(max_entries=8, show_spinner=False)
def _adapters(stamp: Hashable, _page: Opened, golden_id: str, aspect: str, run_id: str) -> JudgeAdapters | None:
    return projects.judge_adapters(_page.store, _page.project.project_id, golden_id, aspect, run_id)
