"""Concord's errors, and functions that remove keys from text before it is printed, logged or stored.

A message says what happened and where, what was expected, and how to fix it. Messages of `JobError` and `StoreError`
have no SQL or connection URLs. Messages of `ProviderError` have no keys or prompts.
"""

from __future__ import annotations

import re
import traceback
from typing import ClassVar

REMOVED = "[removed]"
SHORTEST = 6
"""Fewest characters of a key; shorter values would occur in ordinary words."""

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


def register_secret(value: str | None) -> None:
    """Register a key or header value that this process sends, so that `hide` and `hide_sent` remove it."""
    for part in (value or "", (value or "").rpartition(" ")[2]):  # for "Bearer KEY", servers also echo KEY
        if len(part) >= SHORTEST:
            _sent.add(part)


def hide_sent(text: str) -> str:
    """Redact the registered values in `text`, but not other text that looks like a key."""
    for value in sorted(_sent.copy(), key=len, reverse=True):
        text = text.replace(value, REMOVED)
    return text


def hide_patterns(text: str) -> str:
    """Redact everything that looks like a key, and the user name and password of each URL."""
    text = _USER_INFO.sub(r"\g<scheme>", text)
    text = _QUERY.sub(rf"\g<name>{REMOVED}", text)
    return _KEY.sub(REMOVED, text)


def hide(text: str) -> str:
    """Redact the registered values in `text`, and everything that looks like a key."""
    found = [match.span() for match in _KEY.finditer(text)]
    found += [match.span() for value in _sent.copy() for match in re.finditer(re.escape(value), text)]
    parts, end = list[str](), 0
    for start, stop in sorted(found):
        if start >= end:
            parts += [text[end:start], REMOVED]
        end = max(end, stop)
    return hide_patterns("".join([*parts, text[end:]]))


def trace_of(error: BaseException) -> str:
    """Return the types of `error` and its causes, with their stack frames.

    Messages are left out, because they can quote headers.
    """
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
    """Base class of Concord's errors. `str(error)` can be shown to users."""

    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        """Return the message, without keys and passwords that a server or file may have put into it."""
        return hide(super().__str__())

    @property
    def kind(self) -> str:
        """The name of the error in JSON output, such as ``"GoldenError"``."""
        return type(self).__name__


class UsageError(ConcordError):
    """The request itself is wrong, for example because an option value is unknown."""

    exit_code = 2


class AccessError(ConcordError):
    """The user's role does not allow the action."""


class GoldenError(ConcordError):
    """A golden set cannot be read or used.

    Attributes:
        message: The message without file, row and column.
        row: Row number in a spreadsheet (the header is row 1), or line number in a JSON Lines file.
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
    """The golden set does not have the requested aspect, or the labels of the aspect cannot be used."""


class DownloadError(ConcordError):
    """A file cannot be downloaded. The message contains the address of the file."""


class ArchiveError(ConcordError):
    """A project file cannot be read, trusted or written. Nothing was changed."""


class CriteriaError(ConcordError):
    """The criteria are empty, too long, or for another aspect."""


class JudgeError(ConcordError):
    """A judge or judge file cannot do what was requested."""


class UnreadableError(JudgeError):
    """None of a judge's first replies could be read, so no more requests were sent."""


class ConsentError(JudgeError):
    """This imported project may not send anything to `endpoint` (a base URL) without approval, so nothing was sent."""

    def __init__(self, message: str, endpoint: str) -> None:
        super().__init__(message)
        self.endpoint = endpoint


class ProviderError(JudgeError):
    """The endpoint of a judge failed. `hint` says how to fix the problem."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.hint = hint


class AuthError(ProviderError):
    """The endpoint refused the key (401 or 403)."""


class ModelNotFoundError(ProviderError):
    """The endpoint does not know the model or path (404)."""


class EndpointDownError(ProviderError):
    """After all retries, the endpoint still times out, reports a server error or cannot be reached."""


class RateLimitError(ProviderError):
    """After all retries, the endpoint still reports too many requests (429)."""


class BadReplyError(ProviderError):
    """The endpoint replied with something other than a completion, for example an HTML page from a proxy."""


class StoreError(ConcordError):
    """The store cannot be read or written."""


class NotFoundError(StoreError):
    """A project, golden set, run, judge or set of criteria does not exist."""


class ConflictError(StoreError):
    """Another user saved first. `theirs` is the text that they saved, or "" if they saved no text."""

    def __init__(self, message: str, *, theirs: str = "") -> None:
        super().__init__(message)
        self.theirs = theirs


class LostConnectionError(StoreError):
    """The connection to the database was lost before the commit, so the transaction can run again.

    `patience_ended` is true if there are no more retries.
    """

    patience_ended = False


class StoreFullError(StoreError):
    """The disk is full. Everything stored earlier is intact."""


class JobError(ConcordError):
    """A run cannot be started, cancelled or resumed."""


class CancelledRunError(JobError):
    """A user cancelled the run."""


class LostRunError(JobError):
    """Another worker has taken over the run, so this worker stops and stores nothing."""
