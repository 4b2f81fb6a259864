"""The file of a project: a zip of JSON lines with a manifest, written whole, and read as if an enemy had made it.

``concord-project`` version 1 holds ``manifest.json`` and one ``tables/NAME.jsonl`` for each table of
`core.store.layout`, in that order.  JSON lines rather than Parquet: a person and any language read them without a
library, a line at a time in bounded memory, and no native decoder sees bytes of unknown origin.  Arrays of scores are
base64 of little-endian float64: exact to the bit, NaN (unscored) among them.

Nothing is ever unpacked to disk, and every name has to be one of the manifest.  What the zip's directory declares is
held against limits before a byte is read, and what comes out is counted and hashed while it is read.  Every row is read
as the record of its table (`check_rows`).  Where a later version changes a column, it raises `VERSION` and brings the
rows of earlier ones up to it on reading.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import stat
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, make_dataclass
from functools import cache
from itertools import groupby
from typing import IO, Annotated, Any, ClassVar, Literal

from pydantic_core import ValidationError
from pydantic_core import core_schema as schemas

from core.errors import ArchiveError, UsageError
from core.people import ROLES
from core.projects.criteria import Comment, CommentSettled
from core.records import Alignment, Criteria, GoldenSet, ItemKind, JudgeScores, Usage
from core.store.codec import NUMBER, Checked, read
from core.store.judge_store import CriteriaBody
from core.store.layout import LAYOUT, Row, TableColumn, decode, json_text
from core.store.log import IMPORTED, KINDS, Action
from core.store.projects import GoldenBody, RatingColumns, golden_row, item_rows, rebuilt
from core.store.results import Reasons
from core.store.schema import HEAD

FORMAT, VERSION = "concord-project", 1
"""2 and 3 were used in development, so the next version is 4."""
MANIFEST = "manifest.json"

_MB = 1_000_000
_LONGEST_LINE = 64 * _MB
_MOST_FILES = 64
_DIRECTORY = 65_536
"""Bytes of the zip's directory; ours have about 1,100."""
_RATIO, _RATIO_FROM = 300, 50 * _MB
_MOST_VALUES = 2_000_000
"""Lists and objects in one line: each takes some fifty times the memory of its two letters."""

Shapes = Mapping[tuple[str, str], Any]
"""(kind of run, "request" or name of a document) → the record that it is."""
Count = Annotated[int, Checked(schemas.int_schema(ge=0, strict=True))]
Hash = Annotated[str, Checked(schemas.str_schema(pattern="^[0-9a-f]{64}$"))]
Short = Annotated[str, Checked(schemas.str_schema(max_length=40))]
_LAST_SECOND = 253_402_300_799  # dates end with the year 9999
Moment = Annotated[float, Checked(schemas.float_schema(ge=0, le=_LAST_SECOND, strict=True))]


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


def read_manifest(data: bytes) -> Manifest:
    """ArchiveError for anything that is not a manifest of a version that can be read."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{MANIFEST} is not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ArchiveError(f"{MANIFEST} does not say format {FORMAT!r}: this is not the file of a Concord project.")
    version, schema = content.get("version"), content.get("schema")
    newer_schema = isinstance(schema, str) and schema.isdigit() and int(schema) > int(HEAD)
    if newer_schema or (isinstance(version, int) and version > VERSION):
        raise ArchiveError(
            f"The file was written by a newer Concord ({str(content.get('concord'))[:40]}). Update this Concord."
        )
    manifest: Manifest = _read_as(Manifest, content, MANIFEST)
    if manifest.version != VERSION or [file.table for file in manifest.files] != list(LAYOUT):
        raise ArchiveError(f"{MANIFEST} does not name every table once and in order. Export the project again.")
    if any(file.name != _file_name(file.table) for file in manifest.files):
        raise ArchiveError(f"{MANIFEST} names a file that is not that of its table. Export the project again.")
    return manifest


def _file_name(table: str) -> str:
    return f"tables/{table}.jsonl"


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────


class Writer:
    """Tables into a zip on `file`, one after another; `finish` puts the manifest behind them.  A context manager."""

    def __init__(self, file: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=6)
        self.files: list[FileEntry] = []

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.fp = None  # let go without another write: after `finish` all is written, after an error all is lost

    def add(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Write the rows of a table.  ArchiveError for a row that no import would take for its length."""
        name, n, size, digest = _file_name(table), 0, 0, hashlib.sha256()
        with self._zip.open(_info(name), "w", force_zip64=True) as file:
            for row in rows:
                line = (json_text(row) + "\n").encode()
                if len(line) > _LONGEST_LINE:
                    raise ArchiveError(
                        f"Row {n + 1} of {table} has {len(line):,} bytes and a line at most {_LONGEST_LINE:,}: this "
                        "project is too large for a file."
                    )
                file.write(line)
                digest.update(line)
                n, size = n + 1, size + len(line)
        self.files.append(FileEntry(name, table, n, size, digest.hexdigest()))

    def finish(self, manifest: Manifest) -> None:
        """Write the manifest and the zip's directory."""
        body = asdict(manifest)
        body = {name: body.pop(name) for name in ("format", "version")} | body
        self._zip.writestr(_info(MANIFEST), json.dumps(body, ensure_ascii=False, indent=1).encode())
        self._zip.close()


def _info(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (stat.S_IFREG | 0o644) << 16
    return info


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────


class Archive:
    """An opened zip whose directory and manifest have been checked; use as a context manager."""

    def __init__(self, file: IO[bytes], max_mb: int = 200) -> None:
        """`max_mb` bounds the zip (CONCORD_MAX_UPLOAD_MB); it may unpack to twenty times as much.

        ArchiveError for what is not a zip of ours, too large, or built to do harm.
        """
        self.size = _checked_end(file, max_mb)
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, EOFError) as error:
            raise ArchiveError(f"This is not a zip that can be read: {error}") from error
        _check_members(self._zip.infolist(), self.size, max_mb)
        names = set(self._zip.namelist())
        if MANIFEST not in names:
            raise ArchiveError(f"This zip has no {MANIFEST}: it is not the file of a Concord project.")
        with _as_refusal(MANIFEST), self._zip.open(MANIFEST) as manifest:
            self.manifest = read_manifest(manifest.read(_MB))
        if strays := {file.name for file in self.manifest.files} ^ (names - {MANIFEST}):
            raise ArchiveError(f"The files of the zip are not those of its manifest: {min(strays)[:80]!r}.")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def rows(self, table: str) -> Iterator[tuple[str, Any]]:
        """(file and line, parsed JSON) of each row of a table; ArchiveError when size, count or hash do not hold."""
        entry = next(file for file in self.manifest.files if file.table == table)
        digest, size, n = hashlib.sha256(), 0, 0
        with _as_refusal(entry.name), self._zip.open(entry.name) as member:
            file = io.BufferedReader(member)  # type: ignore[type-var]
            while line := file.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE:
                    raise ArchiveError(f"{entry.name} has a line of {_LONGEST_LINE:,} bytes or more.")
                digest.update(line)
                n, size = n + 1, size + len(line)
                yield (where := f"{entry.name}, line {n}"), _parsed_line(line, where)
        if (n, size, digest.hexdigest()) != (entry.rows, entry.bytes, entry.sha256):
            raise ArchiveError(
                f"{entry.name} is not what the manifest says: {n:,} rows, {size:,} bytes or its SHA-256 differ. The "
                "file was damaged or changed after it was exported; export it again."
            )


@contextmanager
def _as_refusal(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise ArchiveError(f"{name} cannot be unpacked: {error}. Export the project again.") from error


def _parsed_line(line: bytes, where: str) -> Any:
    try:
        if line.count(b"[") + line.count(b"{") > _MOST_VALUES:
            raise ValueError(f"it holds over {_MOST_VALUES:,} values")
        return json.loads(line, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{where}: is not JSON ({str(error)[:120]}).") from error


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} is not a finite number")
    return value


def _checked_end(file: IO[bytes], max_mb: int) -> int:
    """The size of the zip; its end is looked at before any library reads a directory of unknown length."""
    size = file.seek(0, io.SEEK_END)
    if size > max_mb * _MB:
        raise ArchiveError(f"The file has {size / _MB:,.1f} MB and {max_mb:,} MB are allowed (CONCORD_MAX_UPLOAD_MB).")
    file.seek(max(0, size - 42))
    tail = file.read(42)
    end = tail[-22:]
    if not end.startswith(b"PK\x05\x06") or end[20:] != b"\0\0":
        raise ArchiveError("This is not a zip, or it was cut short, or something was put behind its end.")
    directory, n = int.from_bytes(end[12:16], "little"), int.from_bytes(end[10:12], "little")
    zip64 = len(tail) == 42 and tail.startswith(b"PK\x06\x07")
    if directory > _DIRECTORY or n > _MOST_FILES or zip64:
        raise ArchiveError(f"The zip holds {n:,} files or more; a project has at most {_MOST_FILES}.")
    file.seek(0)
    return size


def _check_members(members: list[zipfile.ZipInfo], size: int, max_mb: int) -> None:
    """ArchiveError for links, encryption, and for what unpacks to too much; names are held against the manifest."""
    for info in members:
        name = info.orig_filename
        if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG) or name.endswith("/"):
            raise ArchiveError(f"{name[:80]!r} is a link, a folder or a device; a project's zip holds plain files.")
        if info.flag_bits & 0x41 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ArchiveError(f"{name[:80]!r} is encrypted, or compressed by a method that a project's zip has not.")
    if len({info.filename for info in members}) < len(members) or len(members) > _MOST_FILES:
        raise ArchiveError(f"The zip holds a file twice, or more than {_MOST_FILES} files.")
    unpacked, most = sum(info.file_size for info in members), max_mb * 20 * _MB
    if unpacked > most or (unpacked > _RATIO_FROM and unpacked > _RATIO * size):
        raise ArchiveError(
            f"The zip of {size / _MB:,.1f} MB unpacks to {unpacked / _MB:,.0f} MB; {most / _MB:,.0f} MB and {_RATIO} "
            "times its own size are allowed."
        )


# ── rows as records ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class KeptReply:
    """What an endpoint answered."""

    text: str
    finish: str
    usage: Usage


@dataclass(frozen=True)
class FailedReply:
    """Why an endpoint gave no answer."""

    failure: str


_HOLDS: Mapping[tuple[str, str], Any] = {
    ("goldens", "kind"): ItemKind,
    ("goldens", "body"): GoldenBody,
    ("goldens", "ratings"): RatingColumns,
    ("golden_items", "body"): tuple[str, str, str, str, str, str, tuple[str, ...]],
    ("runs", "status"): Literal["done", "budget", "failed", "cancelled"],  # a run that leaves is over
    ("runs", "usage"): Usage,
    ("run_scores", "body"): Reasons,
    ("criteria", "body"): CriteriaBody,
    ("criteria_alignments", "body"): Alignment,
    ("judges", "replies"): dict[str, tuple[str, ...]],
    ("events", "body"): dict[str, Any],
    ("run_replies", "body"): KeptReply | FailedReply,
}
"""(table, column) → what stands in it, where that is always the same; any other column goes by its kind."""


@cache
def _row_type(table: str) -> type:
    """The record that a row of `table` is: exactly its columns in `core.store.layout`."""
    columns = [(column.name, _column_type(table, column)) for column in LAYOUT[table]]
    return make_dataclass(table, columns, namespace={"__pydantic_config__": {"extra": "forbid"}})


def _column_type(table: str, column: TableColumn) -> Any:
    kind = _HOLDS.get((table, column.name)) or _by_kind(column)
    return kind | None if column.nullable else kind


def _by_kind(column: TableColumn) -> Any:
    match column.kind:
        case "key":
            text = schemas.str_schema(max_length=column.longest)
            return Annotated[str, Checked(schemas.no_info_after_validator_function(_printable, text))]
        case "int":  # an integer column of Postgres holds no more
            return Annotated[int, Checked(schemas.int_schema(ge=0, le=2**31 - 1, strict=True))]
        case "real" if column.name == "value":
            return Annotated[float, Checked(NUMBER)]
        case "real":
            return Moment
        case "json":
            return Annotated[dict[str, Any], Checked(schemas.no_info_plain_validator_function(_json))]
        case "bool":
            return bool
    return str


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("a name or an id has characters that can be seen")
    return text


def _json(value: Any) -> Any:
    """Text in place of an object is stored as it comes, so it has to be JSON (with NaN, which JSON has no word for)."""
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if not isinstance(value, dict | list):
        raise ValueError("an object or a list is expected")
    return value


def _read_as(kind: Any, value: Any, where: str, blob: bytes = b"") -> Any:
    """`value` (parsed JSON) as a `kind`; its arrays lie in `blob`.  ArchiveError names the first wrong field."""
    try:
        return read(kind, value, blob)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        place = ".".join(map(str, fault["loc"]))
        raise ArchiveError(f"{where}: {place}: {fault['msg']}; {str(fault['input'])[:60]!r} came.") from error


# ── all rows of a project ────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Contents:
    """What a project's file brings: golden sets with their names and item ids, and runs with their kind and set.

    Only what the file itself brings may be referred to: golden sets and runs are found by id in the whole store, so an
    id that is not in the file could be that of somebody else's there.
    """

    names: dict[str, str] = field(default_factory=dict)
    items: dict[str, frozenset[str]] = field(default_factory=dict)
    runs: dict[str, tuple[str, str]] = field(default_factory=dict)


def check_rows(archive: Archive, shapes: Shapes) -> Contents:
    """Read every row of an archive as the record of its table.  ArchiveError for the first that is wrong."""
    found = Contents()
    heads = {row["golden_id"]: (row, where) for row, _, where in _rows(archive, "goldens")}
    for golden_id, lines in groupby(_rows(archive, "golden_items"), lambda line: str(line[0]["golden_id"])):
        if golden_id not in heads:
            raise ArchiveError(f"The items of golden set {golden_id[:24]} do not stand together, or it has no row.")
        found.items[golden_id] = _checked_golden(*heads.pop(golden_id), [row for row, _, _ in lines])
    if heads:
        raise ArchiveError(f"Golden set {min(heads)[:24]} has no items.")
    named: dict[str, str] = {}
    for table in [table for table in LAYOUT if table not in ("goldens", "golden_items")]:
        where, comments = table, set[int]()
        try:
            for row, stored, where in _rows(archive, table):
                if "golden_id" in row and row["golden_id"] not in found.items:
                    raise ValueError("it refers to a golden set that is not in the file")
                if table != "runs" and row.get("run_id", "") not in ("", *found.runs):
                    raise ValueError("it refers to a run that is not in the file")
                _check_row(table, (row, stored, where), found, shapes)
                if table == "events":
                    comments |= _check_event(row, where, comments)
                if table in ("runs", "run_documents", "events") and row.get("kind") != Action.kind:
                    named |= dict.fromkeys(_NAMED.findall(json_text(row)), where)
        except (ValueError, RecursionError, KeyError, TypeError, IndexError, OverflowError, UsageError) as error:
            raise ArchiveError(f"{where}: {str(error)[:200]}.") from error
    brought = set(found.runs).union(found.items, *found.items.values())
    for name, where in named.items():
        if name not in brought:
            raise ArchiveError(f"{where}: it refers to {name}, which is not in the file.")
    return found


_NAMED = re.compile(r'(?<!\\)"(r[0-9a-f]{12}|golden:[0-9a-f]{64})(?::[^"\\]*)?"')


def _rows(archive: Archive, table: str) -> Iterator[tuple[Row, Row, str]]:
    """(the row as it stands in the file, what would be stored of it, where it stands) of each row of a table."""
    kind = _row_type(table)
    for where, row in archive.rows(table):
        _read_as(kind, row, where)
        try:
            yield row, decode(table, row), where
        except ValueError as error:
            raise ArchiveError(f"{where}: {error}.") from error


def _check_row(table: str, line: tuple[Row, Row, str], found: Contents, shapes: Shapes) -> None:
    """What no type of a column can say.  ArchiveError or ValueError for a row that is wrong."""
    row, stored, where = line
    match table:
        case "project_goldens":
            found.names[row["golden_id"]] = row["name"]
        case "runs":
            if not re.fullmatch("r[0-9a-f]{12}", row["run_id"]):
                raise ValueError("run_id is not the id of a run")
            found.runs[row["run_id"]] = (row["kind"], row["golden_id"])
            _read_as(shapes.get((row["kind"], "request"), dict[str, Any]), row["request"], where)
        case "run_documents":
            kind, _ = found.runs[row["run_id"]]
            _read_as(shapes.get((kind, row["name"]), Any), json.loads(stored["body"]), where, stored["blob"])
        case "run_scores":
            n_items = len(found.items[found.runs[row["run_id"]][1]])
            if len(stored["blob"]) not in (8 * n_items, 16 * n_items):  # of pairs: both ways round
                raise ValueError(f"it has {len(stored['blob']) / 8:g} scores for {n_items} items")
        case "criteria":
            if Criteria(row["body"]["text"], row["aspect"]).criteria_id != row["criteria_id"]:
                raise ValueError("criteria_id is not the hash of the text")
        case "judges":
            judge: JudgeScores = _read_as(JudgeScores, row["body"], where, stored["blob"])
            _check_judge(judge, len(found.items[row["golden_id"]]))
            if judge.run_id not in ("", *found.runs):
                raise ValueError("it refers to a run that is not in the file")
        case "labels":
            if row["item_id"] not in found.items[row["golden_id"]]:
                raise ValueError("it refers to an item that is not in the file")


def _check_judge(judge: JudgeScores, n_items: int) -> None:
    given = [scores for scores in (judge.values, judge.turned) if scores is not None]
    if any(scores.shape != (n_items,) for scores in given) or any(not 0 <= k < n_items for k in judge.seen):
        raise ValueError("the scores, or the items seen, are not those of the golden set")


_RETIRED = {"taken_over", "taken_from"}
"""Fields that entries of earlier versions have."""


def _check_event(row: Row, where: str, comments: set[int]) -> set[int]:
    """The number of a comment; ArchiveError or ValueError for an entry that the program would not write."""
    if row["role"].removesuffix(IMPORTED) not in ROLES:
        raise ValueError(f"{row['role']!r} is not a role")
    kind = KINDS.get(row["kind"])
    if kind is None or set(row["body"]) - set(kind.body_fields()) - _RETIRED:
        raise ValueError(f"an entry of kind {row['kind']!r} does not have these fields")
    entry = _read_as(kind, row["body"], where)
    if isinstance(entry, CommentSettled) and entry.comment not in comments:
        raise ValueError("it settles a comment that is not in the file")
    return {row["number"]} if isinstance(entry, Comment) else set()


def _checked_golden(head: Row, where: str, items: list[Row]) -> frozenset[str]:
    """The item ids of a golden set.  ArchiveError where the rows are not the golden set whose hash they carry.

    A golden set is shared by everybody who has the same content, so nobody may bring one under another hash.
    """
    try:
        stored, bodies = decode("goldens", head), [decode("golden_items", item)["body"] for item in items]
        golden = rebuilt(stored, bodies)
        _check_labels(golden)
        if golden.digest != stored["golden_id"]:
            raise ValueError("the content has another hash")
        written = golden_row(golden, stored["created_at"])
        same = all(written[name] == stored[name] for name in written if name not in ("aspects", "ratings", "body"))
        same &= all(json.loads(written[name]) == json.loads(stored[name]) for name in ("aspects", "ratings"))
        # the demo's golden sets name no columns
        same &= json.loads(written["body"]) == {"columns": {}} | json.loads(stored["body"])
        same &= [json.loads(row["body"]) for row in item_rows(golden)] == [json.loads(body) for body in bodies]
        if not same or [item["position"] for item in items] != list(range(len(items))):
            raise ValueError("its columns are not those of its content")
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ArchiveError(f"{where}: this golden set cannot be read ({str(error)[:120]}).") from error
    return frozenset(golden.item_ids)


def _check_labels(golden: GoldenSet) -> None:
    """ValueError where labels or metrics are not one for each item, on no scale, or of other items."""
    ids = set(golden.item_ids)
    if len(ids) != len(golden.items) or any(len(values) != len(ids) for values in golden.metrics.values()):
        raise ValueError("two items have the same id, or a metric has not one value for each item")
    given: dict[str, list[float]] = {name: [] for name in golden.aspects}
    for rating in golden.ratings:
        if rating.item_id not in ids:
            raise ValueError("a rating is of another item")
        given[rating.aspect].append(rating.value)
    for name, labels in golden.aspects.items():
        if labels.aspect != name or len(labels.values) != len(ids) or not labels.scale.low < labels.scale.high:
            raise ValueError(f"the labels of {name[:40]!r} are not one for each item, on a scale")
        values = given[name] + [value for value in labels.values if value is not None]
        if not all(map(labels.scale.holds, values)):
            raise ValueError(f"a label of {name[:40]!r} is not on its scale")
