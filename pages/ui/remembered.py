"""Cookies: the user's name, a choice on the Label screen, and for some minutes the screen requested before sign-in.

The script `remember.js` writes the cookies. Their values can be forged, so they are validated. `st.context.cookies` has
the cookies from the start of the session; later changes are only in the session state.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode

import streamlit as st

from core.settings import Settings
from pages.ui import state

LONGEST = 2_000
"""Characters of a cookie that are looked at; a name needs at most 720 as it is sent, an address a few hundred."""
_LONGEST_ID = 200
_NAME_SECONDS = 400 * 24 * 3600  # the longest time that browsers allow
_WANTED_SECONDS = 600
_DRAWN_SECONDS = 5.0
_WANTED, _AUTO = "concord-wanted", "concord-label-auto"

_write = st.components.v2.component(
    "concord_remember", js=Path(__file__).with_name("remember.js").read_text("utf-8"), isolate_styles=False
)


# ── the user's name ──────────────────────────────────────────────────────────────────────────────────────────


def name(settings: Settings) -> str:
    """Return the name in this session's cookie, or "". The name is raw: clean it before use."""
    return _read(_name_cookie(settings))


def keep_name(picked: str) -> None:
    """Store the name `picked` in the browser at the next `draw`; "" removes the stored name."""
    _leave(picked, of_name=True)


def _name_cookie(settings: Settings) -> str:
    """Return a cookie name per installation, because installations on 127.0.0.1 share cookies across ports."""
    return f"concord-name-{hashlib.sha256(str(settings.home).encode()).hexdigest()[:12]}"


# ── auto-advance on Label ────────────────────────────────────────────────────────────────────────────────────


def auto_advance() -> bool:
    """Return whether the user chose auto-advance in this browser; True by default."""
    return _read(_AUTO) != "off"


def store_auto_advance(on: bool) -> None:
    """Store in the browser whether the user chose auto-advance."""
    _draw(_AUTO, "on" if on else "off", _NAME_SECONDS)


# ── the screen before sign-in ────────────────────────────────────────────────────────────────────────────────


def store_wanted_screen(screen: str, usual: str) -> None:
    """Store the requested screen, because the sign-in provider returns the user to the start page.

    The start page (`usual`) itself is stored only if the URL has ids.
    """
    ids = {name: value for name in state.URL_IDS if len(value := state.url_id(name) or "") <= _LONGEST_ID and value}
    address = f"{screen}?{urlencode(ids)}" if ids else screen
    if address == usual or len(quote(address)) > LONGEST:
        address = ""
    _draw(_WANTED, address, _WANTED_SECONDS, leaving=True)


def take_wanted_screen(screens: Collection[str]) -> tuple[str, dict[str, str]] | None:
    """Return the screen that the user requested before sign-in, with its URL ids, and delete its cookie.

    Returns None if there is no valid cookie, if the screen is not among `screens`, or on the second call in a session.
    """
    if state.ARRIVED in st.session_state:
        return None
    st.session_state[state.ARRIVED] = True
    text = _read(_WANTED)
    if not text:
        return None
    _leave("", of_name=False)
    screen, _, query = text.partition("?")
    try:
        query_ids = dict(parse_qsl(query, max_num_fields=len(state.URL_IDS), errors="strict"))
    except ValueError:
        return None
    ids = {name: value for name, value in query_ids.items() if name in state.URL_IDS and len(value) <= _LONGEST_ID}
    return (screen, ids) if screen in screens and all(map(str.isprintable, ids.values())) else None


# ── read and write ───────────────────────────────────────────────────────────────────────────────────────────


def draw(settings: Settings) -> None:
    """Write pending cookies. Call this last on a screen, because its element is temporary."""
    left: tuple[str, bool, float] | None = st.session_state.get(state.COOKIE)
    if left is None:
        return
    value, of_name, until = left
    # A rerun within a few seconds must not remove the element before its script has run. A later rerun must not write
    # the cookie again, because another tab may have changed the name.
    if time.monotonic() > until:
        del st.session_state[state.COOKIE]
    elif of_name:
        _draw(_name_cookie(settings), value, _NAME_SECONDS)
    else:
        _draw(_WANTED, value, _WANTED_SECONDS)


def _leave(value: str, *, of_name: bool) -> None:
    """Store a name, or the address before sign-in, at the next calls of `draw`."""
    st.session_state[state.COOKIE] = (value, of_name, time.monotonic() + _DRAWN_SECONDS)


def _draw(name: str, value: str, seconds: int, *, leaving: bool = False) -> None:
    """Store `value` in the browser for `seconds` ("" removes it); `leaving` stores it again when the page closes."""
    data = {"name": name, "value": value, "seconds": seconds, "leaving": leaving}
    _write(key=state.widget(f"remember_{name}"), data=data)


def _read(cookie: str) -> str:
    raw = st.context.cookies.get(cookie)
    if not isinstance(raw, str) or len(raw) > LONGEST:
        return ""
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        return ""
