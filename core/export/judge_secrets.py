"""What must not leave in a file: keys and passwords.

Concord never writes them on purpose: keys come from the environment and stay there.  This is the second lock, for one
that somebody put into a URL, a definition or a name.
"""

from __future__ import annotations

import re
from typing import Any

from core.export.judge_reading import with_leaves

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


def without_secrets(value: Any) -> tuple[Any, list[str]]:
    """`value` with whatever looks like a password in a URL or like a key cut out, and the paths where it stood.

    Plain JSON values only; texts in which nothing was found stay the same objects.
    """
    places: list[str] = []

    def clean(leaf: Any, path: str) -> Any:
        if not isinstance(leaf, str) or path.rpartition(".")[2] == NUMBERS:
            return leaf
        cleaned = _clean(leaf)
        places.extend([path or "the file"] if cleaned != leaf else [])
        return leaf if cleaned == leaf else cleaned

    return with_leaves(value, clean), places


def _clean(text: str) -> str:
    text = _USER_INFO.sub(r"\g<scheme>", text)
    text = _QUERY.sub(rf"\g<name>{REMOVED}", text)
    return _KEY.sub(REMOVED, text)
