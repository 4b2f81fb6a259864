"""Two texts word by word: what went, what came."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.word_diff import Piece
from pages.ui.screens import plain

APART = "⋯"


def draw(pieces: Sequence[Piece], *, mark: str = "", changed_only: bool = False) -> None:
    """Removed words struck out on red, added ones bold on green; every word is escaped.

    With `changed_only` lines without a change are left out: what is the same is read elsewhere on the screen.
    `mark` is Markdown's mark of a heading where every line is to be set in large type: its lines stand so close that
    a background would cover the letters of the line above, so there colour and a sign say it.
    """
    marks = {"same": "{}", "removed": ":red-background[~~{}~~]", "added": ":green-background[**{}**]"}
    if mark:
        marks |= {"removed": ":red[− ~~{}~~]", "added": ":green[\\+ **{}**]"}
    lines: list[str] = []
    for piece in pieces:
        shown = []
        for line in piece.text.split("\n"):
            body = line.strip()
            lead, tail = (" " if line[:1].isspace() else ""), (" " if line[-1:].isspace() else "")
            shown.append(f"{lead}{marks[piece.change].format(plain(body))}{tail}" if body else line)
        lines.append("\n".join(shown))
    marked_lines = "".join(lines).split("\n")
    if changed_only:
        marked_lines = _changed(pieces, marked_lines)
    with st.container(border=True):
        if mark:
            st.markdown("\n\n".join(f"{mark}{line.strip()}" for line in marked_lines if line.strip()), anchors=False)
        else:
            st.markdown("  \n".join(marked_lines))


def _changed(pieces: Sequence[Piece], marked_lines: Sequence[str]) -> list[str]:
    """Of the lines those in which something came or went, with a sign where others lie between."""
    touched: set[int] = set()
    at = 0
    for piece in pieces:
        end = at + piece.text.count("\n")
        if piece.change != "same":
            touched.update(at + k for k, line in enumerate(piece.text.split("\n")) if line.strip())
        at = end
    shown: list[str] = []
    for k, line in enumerate(marked_lines):
        if k in touched:
            shown.append(line)
        elif shown[-1:] != [APART]:
            shown.append(APART)
    return shown
