"""``manifest.json``: what the zip says about itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, ClassVar

from pydantic_core import core_schema as schemas

from core.errors import ArchiveError
from core.export.archive.shapes import Checked, Moment, mismatch
from core.export.documents import version_problem
from core.store.codec import Packed, unpack
from core.store.layout import LAYOUT
from core.store.schema import HEAD

FORMAT, VERSION = "concord-project", 1
"""2 and 3 were used in development, so the next version is 4."""
NAME = "manifest.json"
LONGEST = 1_000_000
"""Bytes of a manifest; ours have about 4,000."""
Count = Annotated[int, Checked(schemas.int_schema(ge=0, strict=True))]
Hash = Annotated[str, Checked(schemas.str_schema(pattern="^[0-9a-f]{64}$"))]
Short = Annotated[str, Checked(schemas.str_schema(max_length=40))]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file of the zip: the table whose rows it holds, how many, its size in bytes and the SHA-256 of its content."""

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    name: str
    table: str
    rows: Count
    bytes: Count
    sha256: Hash


@dataclass(frozen=True, slots=True)
class Manifest:
    """The fields of ``manifest.json``.

    `created_at` of the project is in seconds since 1970, `exported` an ISO moment (UTC).  `concord` and `schema` say
    what wrote the file, `version` in which format; `replies` whether replies of endpoints are in it.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    project: Annotated[str, Checked(schemas.str_schema(min_length=1, max_length=400))]
    created_at: Moment
    exported: Short
    concord: Short
    schema: Short
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
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{NAME} is no JSON: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise ArchiveError(f"{NAME} does not say format {FORMAT!r}: this is no file of a Concord project.")
    _check_versions(found)
    problem = mismatch(Manifest, found, whole="The file")
    if not problem:
        manifest = unpack(Manifest, Packed(json.dumps(found)))
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
    """What of a manifest whose fields are all as they must be does not go together; "" for nothing."""
    if [one.table for one in manifest.files] != list(LAYOUT):
        return "files do not name every table once and in order."
    strays = (one for one in manifest.files if one.name != file_name(one.table))
    return next((f"files name {one.name[:60]!r} for the table {one.table!r}." for one in strays), "")
