"""The list of screens, and texts set so that nothing in them counts as markup: what the frame and its parts share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from pages.components import state

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
class Entry:
    """A screen in the menu; `file` from the root of the checkout."""

    file: str
    title: str
    icon: str


SCREENS: dict[Screen, Entry] = {
    "overview": Entry("pages/0_overview.py", "Overview", ":material/home:"),
    "golden_set": Entry("pages/1_golden_set.py", "Golden set", ":material/dataset:"),
    "label": Entry("pages/2_label.py", "Label", ":material/edit_note:"),
    "calibrate": Entry("pages/3_calibrate.py", "Calibrate", ":material/tune:"),
    "criteria": Entry("pages/4_criteria.py", "Criteria", ":material/rule:"),
    "misaligned": Entry("pages/5_misaligned.py", "Misaligned", ":material/difference:"),
    "compare": Entry("pages/6_compare.py", "Compare", ":material/leaderboard:"),
    "repeval": Entry("pages/7_repeval.py", "RepEval", ":material/grid_on:"),
    "fusion": Entry("pages/8_fusion.py", "Fusion", ":material/merge:"),
    "report": Entry("pages/9_report.py", "Report", ":material/summarize:"),
    "runs": Entry("pages/10_runs.py", "Runs", ":material/list_alt:"),
}
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~$:&=^\"'])")
_LINKS = re.compile(r"(?<=:)(?=//)|(?<=\bwww)(?=\.)|(?=@)", re.IGNORECASE)


def draw_notice() -> None:
    """What a person just did, or why it was not done."""
    if notice := state.take_notice():
        (st.success if notice.good else st.warning)(plain(notice.text))


def plain(text: str) -> str:
    """`text` as Streamlit's Markdown shows it letter by letter: no markup, no HTML, no images, no links.

    For labels and messages only; whole texts go through `st.text`, `st.code` or a table.
    """
    lines = (_MARKUP.sub(r"\\\1", _LINKS.sub("\u2060", line)) for line in text.splitlines())
    return "  \n".join(lines)
