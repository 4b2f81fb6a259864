"""Load the screens' imports, the store and the demo before the server accepts requests.

Otherwise the first visitor waits on an empty page. Screens also work without it, for example in tests or on another
server.
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
    """Prepare `st.App` before it listens, then print the address and open the browser.

    `streamlit run` would print the address before the server answers (disabled in config.toml), and doesn't open a
    browser for an imported app.
    """
    faults.log_no_messages()
    _say("Concord is starting …")
    secure_home(home_of())
    with owner_only():
        preload()
        asyncio.get_running_loop().call_later(_LISTENS_AFTER, _tell_address)
        yield


def preload() -> None:
    """Import the screens' modules, open the store, load the demo, and freeze all of it for the garbage collector.

    If the store can't be opened, the first screen reports it. Imports are local, because Streamlit's caches need its
    runtime.
    """
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401

    from pages.ui import page

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
