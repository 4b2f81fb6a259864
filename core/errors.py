"""Every error Concord raises on purpose, in one tree.

A message tells what happened, where, what was allowed, what came, and what to do.  `JobError` and `StoreError`
messages never hold SQL or connection URLs; `ProviderError` messages never hold keys or prompt texts.
"""

from __future__ import annotations

from typing import ClassVar

from core.secret_values import hide


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
