"""The file of a calibrated judge: what it holds, its text to look at, and the file itself."""

from __future__ import annotations

from collections.abc import Hashable

import streamlit as st

from core import projects
from core.project_records import GoldenSummary
from pages.components.page import Opened
from pages.components.report_view import choose_run

_MOST = 60_000
_CONTENTS = (
    "**All that scoring needs**: the criteria, how their scores are joined, the judge with its model, prompts and "
    "sampling, and the map to the human scale.",
    "**All that trust needs**: agreement on both sides of the split with statistic, level, n, interval, the ceiling, "
    "who approved what on which evidence, how often held-out was opened, the hash of the golden set, and warnings.",
    "**Never a key**: whoever scores with it brings their own.",
)


def draw(page: Opened, golden: GoldenSummary, aspect: str) -> bool:
    """What `judge.yaml` holds, the file, and its text; without a calibration False, and what to do first."""
    run = choose_run(page, golden, aspect)
    if run is None:
        return False
    text = _kept(_stamp(page, run.run_id), page, run.run_id)
    st.subheader("judge.yaml", anchor=False)
    st.markdown("\n".join(f"- {sentence}" for sentence in _CONTENTS))
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        st.download_button(
            "Download judge.yaml",
            data=text,
            file_name="judge.yaml",
            mime="application/yaml",
            icon=":material/download:",
            type="primary",
            on_click="ignore",
        )
        st.code("python -m core score ITEMS --judge-file judge.yaml --out verdicts.jsonl", language="bash")
    with st.expander(f"Its text ({len(text.splitlines()):,} lines)"):
        st.code(text[:_MOST], language="yaml", wrap_lines=True, height=480)
        if len(text) > _MOST:
            st.caption(f"The first {_MOST:,} of {len(text):,} characters; the file has all.")
    return True


def _stamp(page: Opened, run_id: str) -> Hashable:
    """Changes with everything that people do, and so with what the file says of approvals."""
    return run_id, projects.log_page(page.store, page.project.project_id, limit=1).n


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept(stamp: Hashable, _page: Opened, run_id: str) -> str:
    return projects.judge_file(_page.store, run_id)
