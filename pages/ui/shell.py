"""HTML page of the app: Streamlit's index.html with Concord's name, icon, style and script.

The page names the server's address. Streamlit's own page instead guesses a wrong address on a deep link, and logs two
errors in the browser's console. The page contains no user text.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st
from starlette.responses import HTMLResponse, RedirectResponse
from streamlit import file_util

from pages.ui.screens import SCREENS

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

HERE = Path(__file__).parent
FIRST = next(iter(SCREENS))
"""The first screen. It is served at the root, and its own address redirects there."""
COMMON = "BidiComponent Button ButtonGroup DownloadButton ImageList Metric PageLink Selectbox TextInput".split()
"""Streamlit scripts of widgets that many screens use.  They are preloaded with the page.  Otherwise placeholders of
another size would appear until the first widget is drawn."""
_SERVER = 'window.__streamlit = { BACKEND_BASE_URL: new URL(".", location.href).href };'
"""Tells Streamlit that its server is in the same folder as the page, whatever screen is opened."""


class OwnShell:
    """ASGI middleware that serves the root and all screens, and passes on all other requests."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        if asked and _below_root(scope["path"]) == FIRST:
            query = scope["query_string"].decode("latin-1")
            await RedirectResponse(f"{_base()}/?{query}")(scope, receive, send)
        elif asked and _below_root(scope["path"]) in ("", *SCREENS):
            await HTMLResponse(shell(), headers={"Cache-Control": "no-cache"})(scope, receive, send)
        else:
            await self._app(scope, receive, send)


@cache
def shell() -> str:
    """Return Streamlit's index.html with Concord's additions to its head."""
    static = Path(file_util.get_static_dir())
    page = (static / "index.html").read_text("utf-8")
    icon = b64encode((HERE / "icon.svg").read_bytes()).decode()
    page = page.replace("<title>Streamlit</title>", "<title>Concord</title>")
    page = page.replace('href="./favicon.png"', f'href="data:image/svg+xml;base64,{icon}"')
    css, js = ((HERE / name).read_text("utf-8") for name in ("frame.css", "frame.js"))
    scripts = [file.name for name in COMMON for file in (static / "static" / "js").glob(f"{name}.*.js")]
    ahead = "".join(f'<link rel="modulepreload" crossorigin href="./static/js/{name}">\n' for name in scripts)
    head = f"{ahead}<style>\n{css}</style>\n<script>\n{_SERVER}\n{js}</script>\n</head>"
    return page.replace("</head>", head, 1)


def _below_root(path: str) -> str:
    return path.removeprefix(_base()).removeprefix("/")


def _base() -> str:
    """Return the path below which the app is served, for example `/concord`; "" for the root."""
    base = str(st.get_option("server.baseUrlPath") or "").strip("/")
    return f"/{base}" if base else ""
