"""What a screen says when the store is away: that it is waited for, and in words when it does not come back."""

from __future__ import annotations

import logging

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.errors import ConcordError
from core.store.reconnecting import PATIENCE, say_in_log
from pages.components.screens import plain

_log = logging.getLogger("concord")


def say_waiting() -> None:
    """In the thread that waits for the store: told on its screen, where it draws one, and in the log."""
    say_in_log()
    if get_script_run_ctx(suppress_warning=True) is not None:
        words = f"The database does not answer. Waiting for it, for up to {PATIENCE:.0f} s …"
        st.toast(words, icon=":material/hourglass_top:", duration="long")


def say_error(error: Exception) -> bool:
    """What an error that no screen expected says: our own in its words; any other is left to Streamlit."""
    if not isinstance(error, ConcordError):
        return False
    _log.error("%s", error)
    st.error(plain(str(error)), icon=":material/error:")
    return True
