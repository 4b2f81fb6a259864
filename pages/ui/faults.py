"""Messages about an unavailable database and unexpected errors."""

from __future__ import annotations

import logging
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from core.errors import ConcordError, trace_of
from core.store.database import PATIENCE, say_in_log
from pages.ui.screens import plain

_log = logging.getLogger("concord")


def say_waiting() -> None:
    """Report on the screen and in the log that a thread is waiting for the store."""
    say_in_log()
    if get_script_run_ctx(suppress_warning=True) is not None:
        words = f"The database isn't responding. Waiting for up to {PATIENCE:.0f} s …"
        st.toast(words, icon=":material/hourglass_top:", duration="long")


def say_error(error: Exception) -> bool:
    """Show an unexpected error: the message of a ConcordError, but only the class of any other error.

    Other messages may quote headers, keys or texts. Returns True, so that Streamlit shows nothing itself.
    """
    if isinstance(error, ConcordError):
        _log.error("%s", error)
        st.error(plain(str(error)), icon=":material/error:")
    else:  # already logged by Streamlit, see `log_no_messages`
        st.error(
            f"Something went wrong on this screen ({plain(type(error).__name__)}). Reload the page. If it happens "
            "again, report it together with the stack trace from the app's log.",
            icon=":material/error:",
        )
    return True


def log_no_messages() -> None:
    """Log errors of this process with class and stack frames only, without messages.

    Streamlit and its server would log every message before our handlers run.
    """
    make = logging.getLogRecordFactory()

    def record_without_message(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        record.msg = _without_message(record.msg)
        if isinstance(record.args, tuple):
            record.args = tuple(_without_message(argument) for argument in record.args)
        if isinstance(record.exc_info, tuple) and (error := record.exc_info[1]):
            trace = trace_of(error).rstrip()
            record.msg = f"{record.msg}\n{trace.replace('%', '%%') if record.args else trace}"
            record.exc_info = record.exc_text = None
        return record

    logging.setLogRecordFactory(record_without_message)


def _without_message(value: Any) -> Any:
    foreign = isinstance(value, BaseException) and not isinstance(value, ConcordError)
    return type(value).__name__ if foreign else value
