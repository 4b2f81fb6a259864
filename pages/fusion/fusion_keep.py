"""Keeping a fusion: as a judge among the others, and as a file that scores other items."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core import projects
from core.errors import ConcordError
from core.fusion.fusion_settings import FusionSettings
from core.project_records import JudgeEntry
from pages.fusion.fusion_view import Fused
from pages.ui import people, state
from pages.ui.page import Opened
from pages.ui.screens import plain


def draw_keep(page: Opened, fused: Fused) -> None:
    """Keep the shown fusion as a judge."""
    shown = fused.shown
    with st.popover("Keep as a judge", icon=":material/bookmark_add:", key=state.closing("fusion_keep")):
        st.markdown("The fused score joins the judges: on Compare next to the others, and as a file for other items.")
        name = st.text_input(
            "Name", value=shown.judge.name, max_chars=120, key=state.widget(f"fusion_name_{shown.method}")
        )
        if people.button(page, "reviewer", "Keep", disabled=not name.strip(), type="primary", icon=":material/save:"):
            settings = FusionSettings(
                method=shown.method, statistic=fused.settings.statistic, level=fused.settings.level
            )
            ids = [part.judge_id for part in fused.parts]
            try:
                kept_id = projects.keep_fusion(
                    page.store,
                    page.project.project_id,
                    fused.view.golden_id,
                    fused.aspect,
                    judge_ids=ids,
                    settings=settings,
                    name=name,
                )
                kept = page.store.judges.get(page.project.project_id, kept_id).judge.name
                new = kept == name.strip()
                said = f"{kept} is among the judges now" if new else f"This fusion was kept before, as {kept}"
                state.leave_notice(f"{said}: on Compare, and below as a file.", good=True)
            except ConcordError as error:
                state.leave_notice(f"The fusion was not kept: {error}", good=False)
            st.rerun()


def draw_files(page: Opened, judges: Sequence[JudgeEntry]) -> None:
    """A file for each fusion among the judges: applied to other items with `python -m core score`."""
    kept = [entry for entry in judges if entry.judge.kind == "fused"]
    for judge in kept:
        try:
            text = projects.fused_file(page.store, page.project.project_id, judge.judge_id)
        except ConcordError:
            continue  # brought in from elsewhere, a score all in all, or a part is gone: there is no file
        st.download_button(
            plain(f"File of {judge.name}"),
            data=text,
            file_name="fused.yaml",
            mime="application/yaml",
            icon=":material/download:",
            on_click="ignore",
            key=state.widget(f"fusion_file_{judge.judge_id}"),
            help="Scores other items: python -m core score ITEMS --judge-file fused.yaml --out verdicts.jsonl",
        )
