"""``manifest.json``: what the zip says about itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from core.errors import ArchiveError
from core.export.documents import fault_words, version_problem
from core.store.layout import LAYOUT
from core.store.schema import HEAD

FORMAT, VERSION = "concord-project", 1
"""2 and 3 were used in development, so the next version is 4."""
NAME = "manifest.json"
LONGEST = 1_000_000
"""Bytes of a manifest; ours have about 4,000."""
_LAST_SECOND = 253_402_300_800  # the year 10000, where dates end


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of the zip: the table whose rows it holds, how many, its size in bytes and the SHA-256 of its content."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    table: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The fields of ``manifest.json``.

    `created_at` of the project is in seconds since 1970, `exported` an ISO moment (UTC).  `concord` and `schema` say
    what wrote the file, `version` in which format; `replies` whether replies of endpoints are in it.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    project: str
    created_at: float
    exported: str
    concord: str
    schema: str
    replies: bool
    files: tuple[FileEntry, ...]
    version: int = VERSION
    format: str = FORMAT

    @property
    def digest(self) -> str:
        """SHA-256 over the names and hashes of all files: says which content it is, whatever compressed it."""
        lines = "".join(f"{one.sha256}  {one.name}\n" for one in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The content of ``manifest.json``, what it is first."""
        body = asdict(self)
        return {name: body.pop(name) for name in ("format", "version")} | body


def file_name(table: str) -> str:
    """Where the rows of a table lie in the zip."""
    return f"tables/{table}.jsonl"


def read_manifest(data: bytes) -> Manifest:
    """ArchiveError in words for anything that is no manifest of a version that can be read."""
    from pydantic import TypeAdapter, ValidationError

    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{NAME} is no JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ArchiveError(f"{NAME} does not say format {FORMAT!r}: this is no file of a Concord project.")
    _check_versions(found)
    try:
        manifest = TypeAdapter(Manifest).validate_json(data, strict=True)
    except ValidationError as error:
        problem = " ".join(fault_words(Manifest, error)[:3])
    else:
        problem = _problem(manifest)
    if problem:
        raise ArchiveError(f"{NAME} is damaged: {problem} Export the project again.")
    return manifest


def _check_versions(found: Mapping[str, Any]) -> None:
    schema = found.get("schema")
    if problem := version_problem(found.get("version"), VERSION, "export the project again"):
        raise ArchiveError(f"{NAME}: {problem}")
    if isinstance(schema, str) and schema.isdigit() and int(schema) > int(HEAD):
        raise ArchiveError(
            f"The file was written by a newer Concord ({str(found.get('concord'))[:40]}, schema {schema[:20]}); this "
            f"one reads up to schema {HEAD}. Update this Concord."
        )


def _problem(manifest: Manifest) -> str:
    """What is wrong with the values of a manifest whose fields are all there and of their types; "" for nothing."""
    if [one.table for one in manifest.files] != list(LAYOUT):
        return "files do not name every table once and in order."
    if not 1 <= len(manifest.project) <= 400:
        return "the project's name has 1 to 400 characters."
    if not 0 <= manifest.created_at < _LAST_SECOND:
        return "created_at is no moment."
    if max(map(len, (manifest.exported, manifest.concord, manifest.schema))) > 40:
        return "exported, concord and schema have at most 40 characters."
    for one in manifest.files:
        if one.name != file_name(one.table):
            return f"files name {one.name[:60]!r} for the table {one.table!r}."
        if one.rows < 0 or one.bytes < 0:
            return f"rows and bytes of {one.name} are no counts."
        if len(one.sha256) != 64 or set(one.sha256) - set("0123456789abcdef"):
            return f"sha256 of {one.name} is none."
    return ""
