"""Errors of Concord in one tree, and removal of keys from everything printed, logged or stored.

A message says what happened and where, what was expected, and how to fix it.  Messages of `JobError` and `StoreError`
never contain SQL or connection URLs; those of `ProviderError` never contain keys or prompts.
"""

from __future__ import annotations

import re
import traceback
from typing import ClassVar

REMOVED = "[removed]"
SHORTEST = 6
"""Characters of a key; shorter values would be found in ordinary words."""

_USER_INFO = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^/\s?#]*@", re.IGNORECASE)
_QUERY = re.compile(
    r"(?P<name>[?&](?:api[-_]?key|key|access[-_]?token|token|secret|password|sig(?:nature)?)=)[^&\s#'\"]+",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk|hf|xai|key)[-_][A-Za-z0-9_-]{16,}\b|\bAIza[A-Za-z0-9_-]{30,}|\bgh[pousr]_[A-Za-z0-9]{20,}"
    r"|\bAKIA[A-Z0-9]{16}\b|(?i:\bbearer\s+)[A-Za-z0-9._~+/-]{16,}=*"
)
_sent: set[str] = set()  # keys and header values that this process has sent


def remember(value: str | None) -> None:
    """Remember a key or header value that this process sends, so that `hide` and `hide_sent` find it."""
    for part in (value or "", (value or "").rpartition(" ")[2]):  # "Bearer KEY" is also echoed as KEY
        if len(part) >= SHORTEST:
            _sent.add(part)


def hide_sent(text: str) -> str:
    """Replace only the remembered values in `text`."""
    for value in sorted(_sent.copy(), key=len, reverse=True):
        text = text.replace(value, REMOVED)
    return text


def hide_patterns(text: str) -> str:
    """Replace everything that looks like a key, or like a password in a URL."""
    text = _USER_INFO.sub(r"\g<scheme>", text)
    text = _QUERY.sub(rf"\g<name>{REMOVED}", text)
    return _KEY.sub(REMOVED, text)


def hide(text: str) -> str:
    """Replace the remembered values in `text`, and everything that looks like a key.

    A remembered value may overlap with what looks like a key: both are removed.
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
    """Return the classes and frames of `error` and its causes, without messages, which may quote headers."""
    lines, seen = [], set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        lines += [f"{type(cause).__module__}.{type(cause).__name__}"]
        for frame in traceback.extract_tb(cause.__traceback__):
            lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}"]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return hide("\n".join(lines) + "\n")


# ── errors ────────────────────────────────────────────────────────────────────────────────────────────────────────


class ConcordError(Exception):
    """Base of every deliberate error; `str(error)` can be shown to users."""

    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        """Return the message without keys and passwords, which a server or file may have put into it."""
        return hide(super().__str__())

    @property
    def kind(self) -> str:
        """Stable name for JSON output, e.g. ``"GoldenError"``."""
        return type(self).__name__


class UsageError(ConcordError):
    """The request itself is wrong, such as an unknown option value."""

    exit_code = 2


class AccessError(ConcordError):
    """The role of the user does not allow the action."""


class GoldenError(ConcordError):
    """A golden set cannot be read or used.

    `row` is the number that a spreadsheet shows (the header is row 1), or the line of JSON lines.  `message` has no
    place.
    """

    def __init__(
        self, message: str, *, file: str | None = None, row: int | None = None, column: str | None = None
    ) -> None:
        where = ", ".join(
            part
            for part in (file, f"row {row}" if row is not None else None, f"column {column!r}" if column else None)
            if part
        )
        super().__init__(f"{where}: {message}" if where else message)
        self.message, self.file, self.row, self.column = message, file, row, column


class AspectError(GoldenError):
    """The aspect asked for is not in the golden set, or its labels cannot be used."""


class DownloadError(ConcordError):
    """A file cannot be downloaded; the message names the address."""


class ArchiveError(ConcordError):
    """A project's file cannot be read, trusted or written; nothing was changed."""


class CriteriaError(ConcordError):
    """Criteria are empty, too long, or belong to another aspect."""


class JudgeError(ConcordError):
    """A judge or judge file cannot do what was requested."""


class UnreadableError(JudgeError):
    """None of a judge's first replies could be read, so no more requests were sent."""


class ConsentError(JudgeError):
    """Nothing was sent, because nobody allowed an imported project to use `endpoint` (a base URL)."""

    def __init__(self, message: str, endpoint: str) -> None:
        super().__init__(message)
        self.endpoint = endpoint


class ProviderError(JudgeError):
    """The endpoint of a judge failed; `hint` says how to fix it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.hint = hint


class AuthError(ProviderError):
    """The endpoint refused the key (401 or 403)."""


class ModelNotFoundError(ProviderError):
    """The endpoint does not know the model or path (404)."""


class EndpointDownError(ProviderError):
    """No connection, a timeout, or a server error after all retries."""


class RateLimitError(ProviderError):
    """Too many requests (429) after all retries."""


class BadReplyError(ProviderError):
    """The body of a reply is not the JSON of a completion, such as the HTML of a proxy."""


class StoreError(ConcordError):
    """The store cannot be read or written."""


class NotFoundError(StoreError):
    """No such project, golden set, run or criteria."""


class ConflictError(StoreError):
    """Another user saved first; the error has both texts, so that nothing is lost."""

    def __init__(self, message: str, *, theirs: str, yours: str) -> None:
        super().__init__(message)
        self.theirs, self.yours = theirs, yours


class LostConnectionError(StoreError):
    """The connection to the database was lost before the commit, so the transaction can run again.

    `patience_ended`: retries have ended.
    """

    patience_ended = False


class StoreFullError(StoreError):
    """The disk is full.  What was stored before is intact."""


class JobError(ConcordError):
    """A run cannot be started, cancelled or resumed."""


class CancelledRunError(JobError):
    """A user cancelled the run."""


class LostRunError(JobError):
    """Another worker has taken over the run; this one stops and stores nothing."""
