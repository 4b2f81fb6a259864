"""Keys of the labelling desk, words marked in the text, and the look of both: what takes a script in the browser.

The script of a few lines (`label_keys.js`) presses the buttons that are on the screen; it does nothing of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import streamlit as st

from core.projects.anchors import Span
from pages.ui import state

TEXT, DESK, PRESS, SHEET = (state.widget(f"label_{name}") for name in ("text", "desk", "press", "sheet"))
"""Keys of the parts of the screen that script and style sheet know by name."""
_HERE = Path(__file__)
_KEYS = st.components.v2.component(
    "concord_label_keys",
    html='<button class="concord-mark" type="button">Mark selected words<kbd>H</kbd></button>',
    css=_HERE.with_suffix(".css").read_text("utf-8"),
    js=_HERE.with_suffix(".js").read_text("utf-8"),
    isolate_styles=False,
)


def draw(key: str, presses: dict[str, str], spans: Sequence[Span], on_selected: Callable[[], None]) -> None:
    """The button that marks words, and all keys; `presses` are the keys of the buttons next, left and right."""
    _KEYS(
        key=key,
        data={**presses, "sheet": SHEET, "spans": [{"start": span.start, "words": span.words} for span in spans]},
        on_selected_change=on_selected,
    )


def draw_sheet(rates: str) -> None:
    """All keys, behind a press or "?"; `rates` says which of them rate."""
    rows = (
        (rates, "rate on the aspect that has the keys"),
        ("X", "cannot tell"),
        ("Enter, or Ctrl + Enter from a comment", "save and go to the next"),
        ("← →", "the item before, the item after; also out of an empty comment, or from its end"),
        ("U", "the first unfinished item"),
        ("Z", "undo the last label"),
        ("Backspace", "rate all aspects of the item again"),
        ("H", "mark the words selected in the text; where none are, choose them: ← → a word, Shift + ← → more, H"),
        ("Esc", "leave the comment"),
        ("?", "this list"),
    )
    with st.popover("Keys", icon=":material/keyboard:", key=SHEET):
        st.markdown("\n".join(["| Key | Does |", "|:--|:--|", *(f"| **{key}** | {does} |" for key, does in rows)]))
