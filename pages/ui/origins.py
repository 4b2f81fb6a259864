"""Reject requests that were meant for another host, or that come from a page of another site.

A web page could otherwise read this server's data by pointing its own host name at 127.0.0.1 (DNS rebinding). The
headers `Host` and `Origin` reveal the page's host name. Streamlit alone does not check them sufficiently.

=====================  ===================================================================================
allowed `Host`         localhost and this machine's loopback addresses, the host of `redirect_uri` in [auth],
                       and the names in Streamlit's option `server.allowedHosts` ("*.example.org" with subdomains)
allowed `Origin`       the requested address itself, that of `redirect_uri`, and `server.corsAllowedOrigins`
=====================  ===================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

from pages.ui.accounts import auth_section, is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NO_HOST = (
    "Concord doesn't accept this host name. On the machine that runs Concord, open localhost. If Concord runs "
    "behind a proxy, add the proxy's name to server.allowedHosts in .streamlit/config.toml.\n"
)
_NO_ORIGIN = (
    "Concord doesn't accept requests from pages at another address. If Concord runs behind a proxy, add the "
    "proxy's address to server.corsAllowedOrigins in .streamlit/config.toml.\n"
)
SAFE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; media-src 'self' blob:; "
        "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""On every answer.  Streamlit's page needs inline styles, its charts build functions of text and workers of blobs."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """Host names (lower case, without port) and origins that are allowed in addition to this machine's own."""

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    def takes_host(self, host: str) -> bool:
        """Return whether the Host header names this server."""
        try:
            parts = urlsplit(f"//{host}")
            _ = parts.port  # ValueError if it is not a number
        except ValueError:
            return False
        name = (parts.hostname or "").rstrip(".")
        if not name or parts.netloc != host or "@" in host:
            return False
        if name == "localhost" or is_loopback(name):
            return True
        return any(
            pattern in ("*", name) or (pattern[:2] == "*." and name.endswith(pattern[1:])) for pattern in self.hosts
        )

    def takes_origin(self, origin: str, host: str) -> bool:
        """Return whether a page with this Origin header may send requests to this server. `host` is the Host header."""
        scheme, _, netloc = origin.lower().partition("://")
        return origin.lower() in self.origins or (scheme in ("http", "https") and netloc == host.lower())


def allowed_now() -> Allowed:
    """Return the hosts and origins that Streamlit's options and secrets allow."""
    hosts, origins = (
        {value.strip().lower().rstrip("./") for value in st.get_option(name) or ()}
        for name in ("server.allowedHosts", "server.corsAllowedOrigins")
    )
    section = auth_section()
    if isinstance(section, Mapping) and (own := urlsplit(str(section.get("redirect_uri", "")))).hostname:
        hosts.add(own.hostname.lower())
        origins.add(f"{own.scheme}://{own.netloc}".lower())
    return Allowed(frozenset(hosts), frozenset(origins))


class OwnRequestsOnly:
    """ASGI middleware that rejects requests and WebSockets meant for another server (see the module docstring)."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._allowed: Allowed | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        async def safely(message: Message) -> None:
            if message["type"].endswith("http.response.start"):
                MutableHeaders(scope=message).update(SAFE_HEADERS)
            await send(message)

        if self._allowed is None:  # read late, because Streamlit knows its options only once it serves
            self._allowed = allowed_now()
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._allowed.takes_host(hosts[0]):
            await PlainTextResponse(_NO_HOST, 421)(scope, receive, safely)
        elif not all(self._allowed.takes_origin(origin, hosts[0]) for origin in origins):
            await PlainTextResponse(_NO_ORIGIN, 403)(scope, receive, safely)
        else:
            await self._app(scope, receive, safely)
