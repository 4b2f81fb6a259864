"""Prepare the server before it accepts requests: import the screens, open the store and load the demo.

Without this preparation, the first visitor would see an empty page for a while. Screens also work without the
preparation, for example in tests.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import streamlit as st
from streamlit import cli_util
from streamlit.web.server import server_util

from core.errors import ConcordError, UsageError
from core.files import owner_only, secure_home
from core.settings import Settings, home_of, tune_garbage_collector
from pages.ui import faults
from pages.ui.accounts import check_accounts

_LISTENS_AFTER = 0.1
_log = logging.getLogger("concord")


def check_settings() -> None:
    """Exit with a message if the environment is invalid, or would make every user an admin."""
    try:
        check_accounts(Settings.from_environment())
    except UsageError as error:
        raise SystemExit(f"Concord can't start. {error}") from None


@asynccontextmanager
async def lifespan(_: Any) -> AsyncIterator[None]:
    """Prepare the app before the server starts, then print its address and open the browser."""
    faults.log_no_messages()
    _say("Concord is starting …")
    secure_home(home_of())
    with owner_only():
        preload()
        # `streamlit run` would print the address too early, and doesn't open a browser for an imported app
        asyncio.get_running_loop().call_later(_LISTENS_AFTER, _tell_address)
        yield


def preload() -> None:
    """Import the screens, open the store and load the demo. An error is logged, and the first screen shows it."""
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401

    from pages.ui import page  # not at the top, because Streamlit's caches need its runtime

    try:
        page.open_store(Settings.from_environment())
    except ConcordError as error:
        _log.error("%s", error)
    gc.collect()
    tune_garbage_collector()


def _tell_address() -> None:
    url = server_util.get_url(server_util.get_display_address(st.get_option("server.address") or "localhost"))
    _say(f"Concord is ready: {url}")
    if not st.get_option("server.headless"):
        cli_util.open_browser(url)


def _say(words: str) -> None:
    sys.stdout.write(f"\n  {words}\n")
    sys.stdout.flush()
