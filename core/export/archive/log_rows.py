"""An entry of the log in a project's file: of a kind that there is, with the fields of that kind and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.errors import ArchiveError, UsageError
from core.export.archive.shapes import mismatch
from core.review.kinds import KINDS
from core.review.log import Entry
from core.store.codec import Packed, unpack


def checked_entry(kind: str, body: Mapping[str, Any], stored: str, where: object) -> Entry:
    """The entry whose body is `body`, and `stored` as text.  ArchiveError for what the program would not write."""
    record = KINDS.get(kind)
    if record is None:
        raise ArchiveError(f"{where}: {kind!r} is no kind of entry; it is one of {', '.join(KINDS)}.")
    if strange := sorted(set(body) - set(record.body_fields())):
        raise ArchiveError(f"{where}: an entry of kind {kind!r} has {strange[0][:40]}, which such an entry has not.")
    if problem := mismatch(record, body, whole=f"an entry of kind {kind!r}"):
        raise ArchiveError(f"{where}: {problem}")
    try:
        return unpack(record, Packed(stored))
    except UsageError as error:  # a plan that makes no sense
        raise ArchiveError(f"{where}: {error}") from error
