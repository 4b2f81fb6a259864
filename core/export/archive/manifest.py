"""``manifest.json``: what the zip says about itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from core.errors import ArchiveError
from core.store.layout import LAYOUT
from core.store.schema import HEAD

FORMAT, VERSION = "concord-project", 2
NAME = "manifest.json"
LONGEST = 1_000_000
"""Bytes of a manifest; ours have about 4,000."""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of the zip: the table whose rows it holds, how many, its size in bytes and the SHA-256 of its content."""

    name: str
    table: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """`created_at` of the project is in seconds since 1970, `exported` an ISO moment (UTC).

    `concord` and `schema` say what wrote the file, `version` in which format; `replies` whether replies of endpoints
    are in it.
    """

    project: str
    created_at: float
    exported: str
    concord: str
    schema: str
    replies: bool
    files: tuple[FileEntry, ...]
    version: int = VERSION

    @property
    def digest(self) -> str:
        """SHA-256 over the names and hashes of all files: says which content it is, whatever compressed it."""
        lines = "".join(f"{one.sha256}  {one.name}\n" for one in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The content of ``manifest.json``."""
        return {
            "format": FORMAT,
            "version": self.version,
            "concord": self.concord,
            "schema": self.schema,
            "exported": self.exported,
            "project": {"name": self.project, "created_at": self.created_at},
            "replies": self.replies,
            "files": [asdict(one) for one in self.files],
        }


def file_name(table: str) -> str:
    """Where the rows of a table lie in the zip."""
    return f"tables/{table}.jsonl"


def read_manifest(data: bytes) -> Manifest:
    """ArchiveError in words for anything that is no manifest of a version that can be read."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{NAME} is no JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ArchiveError(f"{NAME} does not say format {FORMAT!r}: this is no file of a Concord project.")
    _check_versions(found)
    try:
        return _manifest(found)
    except (KeyError, TypeError, ValueError) as error:
        raise ArchiveError(f"{NAME} is damaged ({error!s}). Export the project again.") from error


def _check_versions(found: Mapping[str, Any]) -> None:
    version, schema = found.get("version"), found.get("schema")
    newer = isinstance(version, int) and version > VERSION
    if newer or (isinstance(schema, str) and schema.isdigit() and schema > HEAD):
        raise ArchiveError(
            f"The file was written by a newer Concord ({str(found.get('concord'))[:40]}, format {version}, schema "
            f"{str(schema)[:20]}); this one reads format {VERSION} up to schema {HEAD}. Update this Concord."
        )
    if type(version) is not int or version != VERSION:
        raise ArchiveError(f"{NAME} has version {str(version)[:40]!r}; this Concord reads version {VERSION}.")


def _manifest(found: Mapping[str, Any]) -> Manifest:
    project = _of(dict, found["project"], "project")
    files = tuple(_entry(_of(dict, one, "files")) for one in _of(list, found["files"], "files"))
    if [one.table for one in files] != list(LAYOUT):
        raise ValueError("files do not name every table once and in order")
    name = _of(str, project["name"], "the project's name")
    if not 1 <= len(name) <= 400:
        raise ValueError("the project's name has 1 to 400 characters")
    created_at = project["created_at"]
    if type(created_at) not in (int, float) or not 0 <= created_at < 253_402_300_800:
        raise ValueError("the project's created_at is no moment")
    return Manifest(
        name,
        float(created_at),
        _of(str, found["exported"], "exported")[:40],
        _of(str, found["concord"], "concord")[:40],
        _of(str, found["schema"], "schema")[:20],
        _of(bool, found["replies"], "replies"),
        files,
        found["version"],
    )


def _entry(one: Mapping[str, Any]) -> FileEntry:
    table = _of(str, one["table"], "table")
    name = _of(str, one["name"], "name")
    if table not in LAYOUT or name != file_name(table):
        raise ValueError(f"files name {name[:60]!r} for the table {table[:40]!r}")
    rows, size, digest = one["rows"], one["bytes"], _of(str, one["sha256"], "sha256")
    if type(rows) is not int or type(size) is not int or rows < 0 or size < 0:
        raise ValueError(f"rows and bytes of {name} are no counts")
    if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        raise ValueError(f"sha256 of {name} is none")
    return FileEntry(name, table, rows, size, digest)


def _of(kind: type, value: Any, what: str) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{what} is no {kind.__name__}")
    return value
