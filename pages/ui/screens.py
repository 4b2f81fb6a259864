"""The list of screens, navigation between them, and escaping of text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import streamlit as st
from streamlit.errors import StreamlitAPIException

from pages.ui import state

Screen = Literal[
    "overview",
    "golden_set",
    "label",
    "calibrate",
    "criteria",
    "misaligned",
    "compare",
    "repeval",
    "fusion",
    "report",
    "runs",
]


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """A screen in a group of the menu. `file` is relative to the root of the repository."""

    file: str
    title: str
    icon: str
    group: Literal["Work", "Evidence", "Research", "System"]


SCREENS: dict[Screen, MenuEntry] = {
    "overview": MenuEntry("pages/0_overview.py", "Overview", ":material/home:", "Work"),
    "golden_set": MenuEntry("pages/1_golden_set.py", "Golden set", ":material/dataset:", "Work"),
    "label": MenuEntry("pages/2_label.py", "Label", ":material/edit_note:", "Work"),
    "calibrate": MenuEntry("pages/3_calibrate.py", "Calibrate", ":material/tune:", "Work"),
    "criteria": MenuEntry("pages/4_criteria.py", "Criteria", ":material/rule:", "Work"),
    "misaligned": MenuEntry("pages/5_misaligned.py", "Misaligned", ":material/difference:", "Work"),
    "compare": MenuEntry("pages/6_compare.py", "Compare", ":material/leaderboard:", "Evidence"),
    "report": MenuEntry("pages/9_report.py", "Report", ":material/summarize:", "Evidence"),
    "repeval": MenuEntry("pages/7_repeval.py", "RepEval", ":material/grid_on:", "Research"),
    "fusion": MenuEntry("pages/8_fusion.py", "Fusion", ":material/merge:", "Research"),
    "runs": MenuEntry("pages/10_runs.py", "Runs", ":material/list_alt:", "System"),
}
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&=^\"'])")
_LINKS = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?=@)", re.IGNORECASE)


def go(screen: Screen, **ids: str) -> None:
    """Open a screen in the same session. If this is not possible, draw a link."""
    wanted = {"project": state.project() or "", **ids}
    try:
        st.switch_page(SCREENS[screen].file, query_params=wanted)
    except StreamlitAPIException:
        st.link_button("Go there", f"/{screen}?" + "&".join(f"{name}={value}" for name, value in wanted.items()))


def draw_notice() -> None:
    """Show the result of the last action: success as a toast, failure as a warning."""
    if notice := state.take_notice():
        text, good = notice
        if good:
            st.toast(plain(text), icon=":material/check_circle:")
        else:
            st.warning(plain(text))


def plain(text: str) -> str:
    """Escape `text` for Streamlit's Markdown: no markup, HTML, images or links.

    Only for labels and messages. Longer texts use `st.text`, `st.code` or a table.
    """
    lines = (_MARKUP.sub(r"\\\1", _LINKS.sub("\u2060", line)) for line in text.splitlines())
    return "  \n".join(lines)
