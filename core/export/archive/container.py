"""The zip as a container: its manifest, written whole or not at all, read without trusting a byte of it.

Nothing is ever unpacked to disk, so a path in a name has nowhere to lead; such names are refused all the same, for
who wrote one meant harm.  What the directory declares is held against limits before a byte is read, and what comes
out is counted and hashed while it is read.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import IO, Annotated, Any, ClassVar

from pydantic_core import ValidationError
from pydantic_core import core_schema as schemas

from core.errors import ArchiveError
from core.export.archive.shapes import Moment
from core.export.faults import fault_words
from core.export.judge_reading import version_problem
from core.store.codec import Checked, read
from core.store.layout import LAYOUT, json_text
from core.store.schema import HEAD

FORMAT, VERSION = "concord-project", 1
"""2 and 3 were used in development, so the next version is 4."""
NAME = "manifest.json"
LONGEST = 1_000_000
"""Bytes of a manifest; ours have about 4,000."""
Count = Annotated[int, Checked(schemas.int_schema(ge=0, strict=True))]
Hash = Annotated[str, Checked(schemas.str_schema(pattern="^[0-9a-f]{64}$"))]
Short = Annotated[str, Checked(schemas.str_schema(max_length=40))]


# ── the manifest ─────────────────────────────────────────────────────────────────────────────────────────────


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
        lines = "".join(f"{file.sha256}  {file.name}\n" for file in self.files)
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
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{NAME} is no JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ArchiveError(f"{NAME} does not say format {FORMAT!r}: this is no file of a Concord project.")
    _check_versions(content)
    try:
        manifest: Manifest = read(Manifest, content)
        problem = _problem(manifest)
    except ValidationError as error:
        problem = fault_words(Manifest, error)[0]
    if problem:
        raise ArchiveError(f"{NAME} is damaged: {problem} Export the project again.")
    return manifest


def _check_versions(content: Mapping[str, Any]) -> None:
    schema = content.get("schema")
    if problem := version_problem(content.get("version"), VERSION, "export the project again"):
        raise ArchiveError(f"{NAME}: {problem}")
    if isinstance(schema, str) and schema.isdigit() and int(schema) > int(HEAD):
        raise ArchiveError(
            f"The file was written by a newer Concord ({str(content.get('concord'))[:40]}, schema {schema[:20]}); this "
            f"one reads up to schema {HEAD}. Update this Concord."
        )


def _problem(manifest: Manifest) -> str:
    """What of a manifest whose fields are all as they must be does not go together; "" for nothing."""
    if [file.table for file in manifest.files] != list(LAYOUT):
        return "files do not name every table once and in order."
    strays = (file for file in manifest.files if file.name != file_name(file.table))
    return next((f"files name {file.name[:60]!r} for the table {file.table!r}." for file in strays), "")


_MB = 1_000_000
_MOST_FILES = 64
_DIRECTORY = 65_536  # bytes of the zip's directory; ours have about 1,100
_END, _END64 = b"PK\x05\x06", b"PK\x06\x07"
_RATIO, _RATIO_FROM = 300, 50 * _MB
_CHUNK, _TOGETHER = 1 << 18, 4_000_000  # bytes read, and parsed, at a time
_MOST_VALUES = 2_000_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a zip may be, its content unpacked, and one line of it, in bytes."""

    packed: int = 200 * _MB
    unpacked: int = 4_000 * _MB
    line: int = 64 * _MB

    @classmethod
    def of(cls, max_upload_mb: int) -> Limits:
        """The limits that go with `CONCORD_MAX_UPLOAD_MB`: twenty times as much unpacked."""
        return cls(max_upload_mb * _MB, max_upload_mb * 20 * _MB)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────


class Writer:
    """Tables into a zip on `file`, one after another; `finish` puts the manifest behind them.  A context manager."""

    def __init__(self, file: IO[bytes], limits: Limits | None = None) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self._line = (limits or Limits()).line
        self.files: list[FileEntry] = []

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.fp = None  # let go without another write: after `finish` all is written, after an error all is lost

    def add(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Write the rows of a table.  ArchiveError for a row that no import would take for its length."""
        name, n, size, digest = file_name(table), 0, 0, hashlib.sha256()
        with self._zip.open(_info(name), "w", force_zip64=True) as file:
            for row in rows:
                line = (json_text(row) + "\n").encode()
                if len(line) > self._line:
                    raise ArchiveError(
                        f"Row {n + 1} of {table} has {len(line):,} bytes and a line at most {self._line:,}: this "
                        "project is too large for a file."
                    )
                file.write(line)
                digest.update(line)
                n, size = n + 1, size + len(line)
        self.files.append(FileEntry(name, table, n, size, digest.hexdigest()))

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest and the zip's directory."""
        text = json.dumps(manifest.as_json(), ensure_ascii=False, indent=1)
        self._zip.writestr(_info(NAME), text.encode())
        self._zip.close()


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


class Archive:
    """An opened zip whose directory and manifest have been checked; use as a context manager."""

    def __init__(self, file: IO[bytes], limits: Limits | None = None) -> None:
        """ArchiveError in words for what is no zip of ours, too large, or built to do harm."""
        self._limits = limits or Limits()
        self.size = _checked_end(file, self._limits.packed)
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, EOFError) as error:
            raise ArchiveError(f"This is no zip that can be read: {error}") from error
        members = {info.filename: info for info in _checked(self._zip.infolist(), self.size, self._limits)}
        self.manifest = self._read_manifest(members)
        _check_names(members, self.manifest)
        self._members = members

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def rows(self, table: str) -> Iterator[tuple[int, Any]]:
        """(line from 1, parsed JSON) of each row of a table; ArchiveError when size, count or hash do not hold."""
        for first, rows in self.batches(table):
            yield from enumerate(rows, start=first)

    def batches(self, table: str) -> Iterator[tuple[int, list[Any]]]:
        """(line of the first from 1, parsed JSON of some rows) until all of a table were read; errors as `rows`."""
        entry = next(file for file in self.manifest.files if file.table == table)
        digest, size, n = hashlib.sha256(), 0, 0
        for data, lines in self._chunks(self._members[entry.name], entry.name):
            digest.update(data)
            size += len(data)
            if lines:
                yield n + 1, _parsed_lines(lines, entry.name, n + 1)
            n += len(lines)
        if (n, size, digest.hexdigest()) != (entry.rows, entry.bytes, entry.sha256):
            raise ArchiveError(
                f"{entry.name} is not what the manifest says: {n:,} rows, {size:,} bytes or its SHA-256 differ. The "
                "file was damaged or changed after it was exported; export it again."
            )

    def _chunks(self, member: zipfile.ZipInfo, name: str) -> Iterator[tuple[bytes, list[bytes]]]:
        """The bytes of a member as they come, each with the lines that end in it; the last line may lack its end."""
        longest, begun = self._limits.line, [b""]
        with _as_refusal(name), self._zip.open(member) as file:
            while data := file.read(_CHUNK):
                end, *further = data.split(b"\n")
                lines = [b"".join((*begun, end)), *further[:-1]] if further else []
                begun = further[-1:] if further else [*begun, end]
                if max(sum(map(len, begun)), *map(len, lines), 0) >= longest:
                    raise ArchiveError(f"{name} has a line of more than {longest:,} bytes.")
                yield data, lines
        if rest := b"".join(begun):
            yield b"", [rest]

    def _read_manifest(self, members: dict[str, zipfile.ZipInfo]) -> Manifest:
        if NAME not in members:
            raise ArchiveError(f"There is no {NAME} in this zip: it is no file of a Concord project.")
        with _as_refusal(NAME), self._zip.open(members[NAME]) as file:
            data = file.read(LONGEST + 1)
        if len(data) > LONGEST:
            raise ArchiveError(f"{NAME} has more than {LONGEST:,} bytes.")
        return read_manifest(data)


@contextmanager
def _as_refusal(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise ArchiveError(f"{name} cannot be unpacked: {error}. Export the project again.") from error


def _parsed_lines(lines: list[bytes], name: str, first: int) -> list[Any]:
    """The JSON of each line; read together, for that is much faster, and one by one where a line is none."""
    if len(lines) > 1 and sum(map(len, lines)) < _TOGETHER and all(line.startswith(b"{") for line in lines):
        try:
            values = _json(b"[" + b",".join(lines) + b"]")
        except (ValueError, RecursionError):
            values = []
        if len(values) == len(lines):
            return list(values)
    return [_parsed(line, f"{name}, line {number}") for number, line in enumerate(lines, start=first)]


def _parsed(line: bytes, where: str) -> Any:
    try:
        if (n_values := _values(line)) > _MOST_VALUES:
            raise ValueError(f"it holds {n_values:,} values or more, and a row at most {_MOST_VALUES:,}")
        return _json(line)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{where}: is no JSON ({str(error)[:120]}).") from error


def _json(text: bytes) -> Any:
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite)


def _values(line: bytes) -> int:
    """How many lists and objects a line holds at most; each costs some fifty times the two letters it takes."""
    return line.count(b"[") + line.count(b"{")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:40]} is larger than any number here")
    return value


def _no_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _checked_end(file: IO[bytes], most: int) -> int:
    """The size of the zip; its end is looked at before any library reads a directory of unknown length."""
    size = file.seek(0, io.SEEK_END)
    if size > most:
        raise ArchiveError(
            f"The file has {size / _MB:,.1f} MB and {most / _MB:,.0f} MB are allowed (CONCORD_MAX_UPLOAD_MB)."
        )
    file.seek(max(0, size - 42))
    tail = file.read(42)
    end = tail[-22:]
    if not end.startswith(_END) or end[20:] != b"\0\0":
        raise ArchiveError("This is no zip, or it was cut short, or something was put behind its end.")
    directory, n = int.from_bytes(end[12:16], "little"), int.from_bytes(end[10:12], "little")
    if directory > _DIRECTORY or n > _MOST_FILES or (len(tail) == 42 and tail.startswith(_END64)):
        raise ArchiveError(f"The zip holds {n:,} files or more; a project has at most {_MOST_FILES}.")
    file.seek(0)
    return size


def _checked(members: list[zipfile.ZipInfo], size: int, limits: Limits) -> list[zipfile.ZipInfo]:
    if len(members) > _MOST_FILES:
        raise ArchiveError(f"The zip holds {len(members):,} files; a project has at most {_MOST_FILES}.")
    seen: set[str] = set()
    for info in members:
        name = info.orig_filename
        _check_member(info, name)
        if name in seen:
            raise ArchiveError(f"The zip holds {name[:80]!r} twice.")
        seen.add(name)
    unpacked = sum(info.file_size for info in members)
    if unpacked > limits.unpacked or (unpacked > _RATIO_FROM and unpacked > _RATIO * size):
        raise ArchiveError(
            f"The zip of {size / _MB:,.1f} MB unpacks to {unpacked / _MB:,.0f} MB; {limits.unpacked / _MB:,.0f} MB "
            f"and {_RATIO} times its own size are allowed."
        )
    return members


def _check_member(info: zipfile.ZipInfo, name: str) -> None:
    shown = repr(name[:80])
    drive = len(name) > 1 and name[1] == ":"
    if name.startswith("/") or "\\" in name or "\0" in name or drive or ".." in name.split("/"):
        raise ArchiveError(f"The zip names {shown}, a path that would lead out of a folder. It was built to do harm.")
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind not in (0, stat.S_IFREG) or name.endswith("/"):
        raise ArchiveError(f"{shown} is a link, a folder or a device; a project's zip holds plain files.")
    if info.flag_bits & 0x41:
        raise ArchiveError(f"{shown} is encrypted; a project's zip is not.")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ArchiveError(f"{shown} is compressed by a method that a project's zip does not use.")


def _check_names(members: dict[str, zipfile.ZipInfo], manifest: Manifest) -> None:
    listed = {file.name: file for file in manifest.files}
    for name in sorted(set(members) - set(listed) - {NAME}):
        raise ArchiveError(f"The zip holds {name[:80]!r}, which its manifest does not name.")
    for name, entry in listed.items():
        if name not in members:
            raise ArchiveError(f"The manifest names {name}, which is not in the zip. Export the project again.")
        if members[name].file_size != entry.bytes:
            raise ArchiveError(f"{name} has {members[name].file_size:,} bytes and the manifest says {entry.bytes:,}.")
