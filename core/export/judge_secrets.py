"""What must not leave in a file: keys and passwords.

Concord never writes them on purpose: keys come from the environment and stay there.  This is the second lock, for one
that somebody put into a URL, a definition or a name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

REMOVED = "[removed]"
NUMBERS = "direction"
"""Key of numbers in base64, which may look like anything."""

_USER_INFO = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^/\s?#]*@", re.IGNORECASE)
_QUERY = re.compile(
    r"(?P<name>[?&](?:api[-_]?key|key|access[-_]?token|token|secret|password|sig(?:nature)?)=)[^&\s#'\"]+",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|hf|xai|key)[-_][A-Za-z0-9_-]{16,}\b|\bAIza[A-Za-z0-9_-]{30,}|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bAKIA[A-Z0-9]{16}\b|(?i:\bbearer\s+)[A-Za-z0-9._~+/-]{16,}=*"
)


def without_secrets(value: Any, path: str = "") -> tuple[Any, list[str]]:
    """`value` with whatever looks like a password in a URL or like a key cut out, and the paths where it stood.

    Plain JSON values only; texts in which nothing was found stay the same objects.
    """
    match value:
        case str():
            clean = _clean(value)
            return clean, [path or "the file"] if clean != value else []
        case Mapping():
            pairs = [
                (key, *((one, []) if key == NUMBERS else without_secrets(one, f"{path}.{key}" if path else str(key))))
                for key, one in value.items()
            ]
            return {key: inner for key, inner, _ in pairs}, [one for _, _, found in pairs for one in found]
        case list() | tuple():
            entries = [without_secrets(inner, f"{path}[{place}]") for place, inner in enumerate(value)]
            return [inner for inner, _ in entries], [one for _, found in entries for one in found]
        case _:
            return value, []


def _clean(text: str) -> str:
    text = _USER_INFO.sub(r"\g<scheme>", text)
    text = _QUERY.sub(rf"\g<name>{REMOVED}", text)
    return _KEY.sub(REMOVED, text)
