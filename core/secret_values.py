"""Hide keys and passwords in whatever is printed, logged or stored."""

from __future__ import annotations

import re
import traceback

REMOVED = "[removed]"
SHORTEST = 6
"""Characters; shorter values would be found in ordinary words."""

_USER_INFO = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^/\s?#]*@", re.IGNORECASE)
_QUERY = re.compile(
    r"(?P<name>[?&](?:api[-_]?key|key|access[-_]?token|token|secret|password|sig(?:nature)?)=)[^&\s#'\"]+",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|hf|xai|key)[-_][A-Za-z0-9_-]{16,}\b|\bAIza[A-Za-z0-9_-]{30,}|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bAKIA[A-Z0-9]{16}\b|(?i:\bbearer\s+)[A-Za-z0-9._~+/-]{16,}=*"
)
_sent: set[str] = set()  # keys and header values of this process


def remember(value: str | None) -> None:
    """Note a key or header value that this process sends, so that `hide` and `hide_sent` find it."""
    for part in (value or "", (value or "").rpartition(" ")[2]):  # "Bearer KEY" is also echoed as KEY
        if len(part) >= SHORTEST:
            _sent.add(part)


def hide_sent(text: str) -> str:
    """Replace the remembered values in `text`, and leave all else as it is."""
    for value in sorted(_sent.copy(), key=len, reverse=True):
        text = text.replace(value, REMOVED)
    return text


def hide_patterns(text: str) -> str:
    """Replace whatever looks like a key, or like a password in a URL."""
    text = _USER_INFO.sub(r"\g<scheme>", text)
    text = _QUERY.sub(rf"\g<name>{REMOVED}", text)
    return _KEY.sub(REMOVED, text)


def hide(text: str) -> str:
    """Replace the remembered values in `text`, and whatever looks like a key.

    A remembered value may be the beginning of a longer key, or hold more than looks like one: what either finds goes.
    """
    found = [match.span() for match in _KEY.finditer(text)]
    found += [match.span() for value in _sent.copy() for match in re.finditer(re.escape(value), text)]
    parts, end = list[str](), 0
    for start, stop in sorted(found):
        if start >= end:
            parts += [text[end:start], REMOVED]
        end = max(end, stop)
    return hide_patterns("".join([*parts, text[end:]]))


def trace_of(error: BaseException) -> str:
    """The class and the frames of `error` and of its causes, without their messages, which may quote headers."""
    lines, seen = [], set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        lines += [f"{type(cause).__module__}.{type(cause).__name__}"]
        for frame in traceback.extract_tb(cause.__traceback__):
            lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}"]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return hide("\n".join(lines) + "\n")
