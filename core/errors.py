"""Every error Concord raises on purpose, in one tree; and keys hidden in whatever is printed, logged or stored.

A message tells what happened, where, what was allowed, what came, and what to do.  `JobError` and `StoreError`
messages never hold SQL or connection URLs; `ProviderError` messages never hold keys or prompt texts.
"""

from __future__ import annotations

import re
import traceback
from typing import ClassVar

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


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────────────────────


class ConcordError(Exception):
    """Base of every deliberate error; `str(error)` is fit to show to a person."""

    exit_code: ClassVar[int] = 1

    def __str__(self) -> str:
        """The message, without keys and passwords that a server or a file may have put into it."""
        return hide(super().__str__())

    @property
    def kind(self) -> str:
        """Stable name for JSON output, e.g. ``"GoldenError"``."""
        return type(self).__name__


class UsageError(ConcordError):
    """The request itself is wrong: an unknown option value, a malformed judge spec."""

    exit_code = 2


class AccessError(ConcordError):
    """Somebody asked for what their role does not allow."""


class GoldenError(ConcordError):
    """A golden set cannot be read or used.

    `row` is the number that a spreadsheet shows (the header is row 1), or the line of JSON lines.  `message` is
    the words without the place.
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
    """A file cannot be fetched; the message names the address."""


class ArchiveError(ConcordError):
    """A project's file cannot be read, trusted or written; nothing was changed."""


class CriteriaError(ConcordError):
    """Criteria are empty, too long, or belong to another aspect."""


class JudgeError(ConcordError):
    """A judge, or a judge file, cannot do what was asked of it."""


class ConsentError(JudgeError):
    """Nothing was sent: nobody has allowed what came with a project to ask `endpoint` (a base URL)."""

    def __init__(self, message: str, endpoint: str) -> None:
        super().__init__(message)
        self.endpoint = endpoint


class ProviderError(JudgeError):
    """The endpoint behind a judge failed; `hint` says what a person can do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(f"{message} {hint}".strip())
        self.hint = hint


class AuthError(ProviderError):
    """401 or 403: the key."""


class ModelNotFoundError(ProviderError):
    """404: the model name or the path of the endpoint."""


class EndpointDownError(ProviderError):
    """No connection, a time-out, or a server error that outlasted the retries."""


class RateLimitError(ProviderError):
    """429 that outlasted the retries."""


class BadReplyError(ProviderError):
    """Status 200, but the body is not the JSON of a completion (a proxy's HTML, say)."""


class StoreError(ConcordError):
    """The store cannot be read or written."""


class NotFoundError(StoreError):
    """No such project, golden set, run or criteria."""


class ConflictError(StoreError):
    """Somebody else saved first.  Both texts are carried, so that nothing is lost."""

    def __init__(self, message: str, *, theirs: str, yours: str) -> None:
        super().__init__(message)
        self.theirs, self.yours = theirs, yours


class LostConnectionError(StoreError):
    """The database went away before what was being done was committed, so that it can be done again.

    `patience_ended`: that was tried for as long as it may take.
    """

    patience_ended = False


class StoreFullError(StoreError):
    """The disk is full.  What was stored before is intact."""


class JobError(ConcordError):
    """A run cannot be started, cancelled or resumed."""


class CancelledRunError(JobError):
    """A person cancelled the run."""


class LostRunError(JobError):
    """The run is another worker's now; this one stops without a word in the store."""
