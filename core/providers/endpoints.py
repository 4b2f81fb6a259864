"""Base URLs of endpoints: what one must look like, and which of them are the same place.

A URL is read once and strictly: what two readers could take for two hosts (user names, backslashes, blanks, letters
outside ASCII, ``%`` in the host) is refused, so that the place that was judged is the place that is asked.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from core.errors import UsageError

OPENAI_URL = "https://api.openai.com/v1"
_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
_PRINTED = re.compile(r"[!-~]+")  # ASCII without blanks and control characters


@dataclass(frozen=True, slots=True)
class Host:
    """Who answers at a URL: scheme, host (lower case, no dot at its end) and port (the usual one where none stands)."""

    scheme: str
    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether it is this machine."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def checked_base_url(url: str) -> str:
    """`url` in its one spelling: scheme and host in lower case, no usual port, no slash at the end.

    UsageError when it holds a secret or is no http(s) URL; it is never repeated in the message, since it may hold one.
    """
    place = place_of(url)
    path = urlsplit(url).path.rstrip("/")
    host = f"[{place.host}]" if ":" in place.host else place.host
    port = "" if place.port == _PORTS[place.scheme] else f":{place.port}"
    return f"{place.scheme}://{host}{port}{path}"


def endpoint_name(base_url: str, extra_body: Mapping[str, Any]) -> str:
    """The name under which replies of an endpoint are cached: its URL, and what every request says in addition."""
    name = base_url.rstrip("/")
    return f"{name} with {json.dumps(extra_body, sort_keys=True)}" if extra_body else name


def place_of(url: str) -> Host:
    """The place that a request to `url` reaches.  UsageError as `checked_base_url`."""
    try:
        parts = urlsplit(url)
        scheme, host, port = parts.scheme, (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        raise _unusable() from None
    if "@" in parts.netloc:
        raise UsageError("The base URL holds a user name or password. Leave it out; the key goes into OPENAI_API_KEY.")
    if parts.query or parts.fragment:
        raise UsageError("The base URL must end with its path: no '?' or '#'. A key goes into OPENAI_API_KEY.")
    plain = _PRINTED.fullmatch(url) is not None and "\\" not in url
    if not plain or scheme not in _PORTS or port == 0 or not _is_host(host):
        raise _unusable()
    return Host(scheme, host, port or _PORTS[scheme])


def trusted_with_the_key(base_url: str, usual: str | None) -> bool:
    """Whether the key of this machine may go to an endpoint that nobody here has named.

    It may go to the endpoint `usual` (that of `OPENAI_BASE_URL`, if set), to OpenAI's own over TLS, and to this machine
    on any port.  UsageError for a URL that cannot be read.
    """
    place = place_of(base_url)
    return place in (place_of(usual or OPENAI_URL), place_of(OPENAI_URL)) or place.loopback


def _is_host(host: str) -> bool:
    if ":" not in host:
        return _NAME.fullmatch(host) is not None
    try:
        return "%" not in host and ipaddress.ip_address(host).version == 6
    except ValueError:
        return False


def _unusable() -> UsageError:
    return UsageError(
        "The base URL of an endpoint must look like http://127.0.0.1:8000/v1 or https://HOST/v1: no blanks, no "
        "backslash, and a host in plain letters, digits, dots and hyphens."
    )
