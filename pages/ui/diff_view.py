"""Word-by-word difference of two texts."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.word_diff import Piece
from pages.ui.screens import plain

APART = "⋯"


def draw(pieces: Sequence[Piece], *, large: bool = False, changed_only: bool = False) -> None:
    """Draw a difference between two texts: removed words struck out on red, added words bold on green.

    Args:
        pieces: Parts of the texts, each with "same", "removed" or "added".
        large: Use large text, where changes have a colour and a sign instead of a background.
        changed_only: Leave out unchanged lines.
    """
    marks = {"same": "{}", "removed": ":red-background[~~{}~~]", "added": ":green-background[**{}**]"}
    if large:
        marks |= {"removed": ":red[− ~~{}~~]", "added": ":green[\\+ **{}**]"}
    lines, touched = [""], [False]
    for piece in pieces:
        for place, part in enumerate(piece.text.split("\n")):
            if place:
                lines.append("")
                touched.append(False)
            body = part.strip()
            lead, tail = (" " if part[:1].isspace() else ""), (" " if part[-1:].isspace() else "")
            lines[-1] += f"{lead}{marks[piece.change].format(plain(body))}{tail}" if body else part
            touched[-1] |= bool(body) and piece.change != "same"
    if changed_only:
        shown: list[str] = []
        for line, changed in zip(lines, touched, strict=True):
            if changed or shown[-1:] != [APART]:
                shown.append(line if changed else APART)
        lines = shown
    with st.container(border=True):
        if large:
            st.markdown("\n\n".join(f"### {line.strip()}" for line in lines if line.strip()), anchors=False)
        else:
            st.markdown("  \n".join(lines))
