"""Export the judge file of a version, adapters for other tools, and the whole project."""

from __future__ import annotations

import re
from functools import partial

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.projects.reports import MeasuredJudge
from pages.ui import people, state
from pages.ui.cached import cached
from pages.ui.page import Opened, finding, stop_with
from pages.ui.screens import plain

_MOST = 60_000
_LANGUAGES = {"text/x-python": "python", "application/yaml": "yaml", "application/x-ipynb+json": "json"}
_CONTENTS = """
- **Everything needed to score**: the criteria, how their scores are combined, the model with its prompts and sampling
  settings, and the mapping to the human scale.
- **Everything needed to trust it**: agreement with its interval, who approved the judge and on what evidence, and
  any warnings.
- **Never an API key**: each user scores with their own key.
"""


def draw_finding(page: Opened, judge: MeasuredJudge) -> None:
    """Show which version `judge.yaml` contains and who approved it, and draw the download button."""
    version = judge.version
    approval = None if version is None else version.approval
    signed = f"approved by {approval.actor or 'somebody'}" if approval else "which no one in this project has approved"
    name = "the calibrated judge" if version is None else version.name
    finding(f"judge.yaml contains {name}, {signed}", step=lambda: draw_download(page, judge.run.run_id, first=True))


def draw_download(page: Opened, run_id: str, *, first: bool = False) -> None:
    """Draw the button that downloads `judge.yaml`."""
    st.download_button(
        "Download judge.yaml",
        data=partial(_judge_file, page, run_id),  # on demand, because large sets take seconds
        file_name="judge.yaml",
        mime="application/yaml",
        icon=":material/download:",
        type="primary" if first else "secondary",
        on_click="ignore",
    )


def _stamp(page: Opened, run_id: str) -> tuple[str, int]:
    """Return a cache key that changes with every log entry, because files contain approvals."""
    return run_id, page.store.events.count(page.project.project_id)


def _judge_file(page: Opened, run_id: str) -> str:
    return cached(("judge.yaml", *_stamp(page, run_id)), lambda: projects.judge_file(page.store, run_id))


def draw(page: Opened, golden_id: str, aspect: str, judge: MeasuredJudge) -> None:
    """Explain what `judge.yaml` contains and how to use it, and show its text and the adapters for other tools."""
    run_id = judge.run.run_id
    st.markdown(_CONTENTS)
    st.code("python -m core score ITEMS --judge-file judge.yaml --out verdicts.jsonl", language="bash")
    _draw_text(_judge_file(page, run_id), "yaml")
    st.subheader("For other tools", anchor=False)
    try:
        adapters = cached(
            ("adapters", golden_id, aspect, *_stamp(page, run_id)),
            lambda: projects.judge_adapters(page.store, run_id),
        )
    except ConcordError as error:
        st.warning(f"The judge can't be exported to other tools: {plain(str(error))}")
        return
    by_name = {adapter.name: adapter for adapter in adapters}
    chosen = st.segmented_control(
        "Tool",
        list(by_name),
        default=next(iter(by_name)),
        required=True,
        format_func=lambda name: by_name[name].title,
        key=state.widget("adapters_tool"),
    )
    adapter = by_name[chosen]
    st.markdown("**What this file leaves out**")
    st.markdown("\n".join(f"- {plain(line)}" for line in adapter.lost) or "Nothing.")
    st.download_button(
        f"Download {adapter.file_name}",
        data=adapter.text,
        file_name=adapter.file_name,
        mime=adapter.media_type,
        icon=":material/download:",
        on_click="ignore",
        key=state.widget(f"adapters_file_{adapter.name}"),
    )
    _draw_text(adapter.text, _LANGUAGES.get(adapter.media_type))


def _draw_text(text: str, language: str | None) -> None:
    with st.expander(f"Show the file ({len(text.splitlines()):,} lines)"):
        st.code(text[:_MOST], language=language, wrap_lines=True, height=480)


def draw_project(page: Opened) -> None:
    """Draw the button that prepares the zip of the whole project, and then the download button."""
    st.subheader("The whole project", anchor=False)
    st.markdown(
        "A zip file with all golden sets, runs, criteria, judges, labels and decisions, and the log. You can import "
        "the file into another installation. It contains the texts and people's names, but no API keys."
    )
    key, project_id = state.widget("transfer_prepared"), page.project.project_id
    why = "Only an admin can export a project, because the file includes the log."
    if people.button(page, "admin", "Prepare the file", help=why, icon=":material/package_2:"):
        path = page.settings.home / "exports" / f"{project_id}.zip"
        try:
            with st.spinner("Writing the file …"):
                made = projects.export_project(page.store, page.settings, project_id, path)
        except ConcordError as error:
            stop_with("The project wasn't exported.", str(error))
        st.session_state[key] = (project_id, path, made)
    prepared = st.session_state.get(key)
    if prepared is None or prepared[0] != project_id or not prepared[1].is_file():
        return
    path, exported = prepared[1:]
    st.success(f"Ready: {exported.size / 1e3:,.0f} kB.", icon=":material/check:")
    st.text(exported.words)
    st.download_button(
        "Download the project",
        data=path.read_bytes,
        file_name=f"{re.sub(r'[^A-Za-z0-9]+', '-', exported.project).strip('-') or 'project'}.zip",
        mime="application/zip",
        icon=":material/download:",
        type="primary",
        on_click="ignore",
        **people.gate(page, "admin"),
    )
