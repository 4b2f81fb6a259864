"""The file of a version of the judge: which version, whose approval, what it holds, its text, and the file."""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial

import streamlit as st

from core import projects
from core.projects.reports import MeasuredJudge
from pages.ui.page import Opened, finding
from pages.ui.screens import plain

_MOST = 60_000
_CONTENTS = (
    "**All that scoring needs**: the criteria, how their scores are joined, the judge with its model, prompts and "
    "sampling, and the map to the human scale.",
    "**All that trust needs**: agreement on both sides of the split with statistic, level, n, interval, the ceiling, "
    "which version it is and who approved it on which evidence, how often held-out was opened, and warnings.",
    "**Never a key**: whoever scores with it brings their own.",
)


def draw_finding(page: Opened, judge: MeasuredJudge) -> None:
    """Which version the file holds, with its approval, and the file."""
    version = judge.version
    approval = None if version is None else version.approval
    signed = f"approved by {approval.actor or 'somebody'}" if approval else "which nobody here has approved"
    name = "a calibration" if version is None else version.name
    finding(
        f"judge.yaml holds the judge of {name}, {signed}" if version is None else f"judge.yaml holds {name}, {signed}",
        step=lambda: draw_download(page, judge.run.run_id, first=True),
    )


def draw_download(page: Opened, run_id: str, *, first: bool = False) -> None:
    """The button that hands out `judge.yaml`."""
    st.download_button(
        "Download judge.yaml",
        data=partial(_kept, _stamp(page, run_id), page, run_id),  # made when it is asked for: large sets take seconds
        file_name="judge.yaml",
        mime="application/yaml",
        icon=":material/download:",
        type="primary" if first else "secondary",
        on_click="ignore",
    )


def draw(page: Opened, judge: MeasuredJudge) -> None:
    """What `judge.yaml` holds, how it is used, and its text."""
    text = _kept(_stamp(page, judge.run.run_id), page, judge.run.run_id)
    st.markdown("\n".join(f"- {sentence}" for sentence in _CONTENTS))
    st.code("python -m core score ITEMS --judge-file judge.yaml --out verdicts.jsonl", language="bash")
    with st.expander(plain(f"Its text ({len(text.splitlines()):,} lines)")):
        st.code(text[:_MOST], language="yaml", wrap_lines=True, height=480)
        if len(text) > _MOST:
            st.caption(f"The first {_MOST:,} of {len(text):,} characters; the file has all.")


def _stamp(page: Opened, run_id: str) -> Hashable:
    """Changes with everything that people do, and so with what the file says of approvals."""
    return run_id, projects.log_page(page.store, page.project.project_id, limit=1).n


@st.cache_resource(max_entries=8, show_spinner=False)
def _kept(stamp: Hashable, _page: Opened, run_id: str) -> str:
    return projects.judge_file(_page.store, run_id)
