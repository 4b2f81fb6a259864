"""Verdicts on more items that somebody brought in on Compare, as a file of their own or together with the judge.

The report has them too, as long as the tab is open.
"""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.projects.reports import SentVerdicts
from pages.ui import state


class Place(NamedTuple):
    """The judge that they are of: by the run that measured it, or by its own id where it came in a file."""

    golden_id: str
    aspect: str
    judge: str


class Kept(NamedTuple):
    """The file; `file_id` tells one upload from another."""

    file_id: str
    sent: SentVerdicts

    @classmethod
    def of(cls, upload: UploadedFile) -> Kept:
        return cls(upload.file_id, SentVerdicts(upload.name, upload.getvalue()))


def keep(place: Place, file: Kept) -> None:
    """The newest file only."""
    st.session_state[state.MORE_VERDICTS] = (place, file)


def kept(place: Place) -> Kept | None:
    """What was brought in for that judge."""
    where, file = st.session_state.get(state.MORE_VERDICTS, (None, None))
    return file if where == place else None


def forget() -> None:
    st.session_state.pop(state.MORE_VERDICTS, None)
