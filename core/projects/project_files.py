"""Export and import projects as zip files, and manage the demo project.

A ``concord-project`` file (version 1) is a zip of ``manifest.json`` and one ``tables/NAME.jsonl`` per table of
`core.store.transfer.LAYOUT`. A release that changes a column increases `VERSION` and converts older rows.

An import creates a new project and changes no existing data; after an error, nothing is stored. A hostile file does no
harm: nothing is unpacked to disk, and sizes are checked first. Imported runs are read-only
(`start_and_resume.require_made_here`).
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import uuid
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from pydantic_core import ValidationError

from core.calibration.calibration_records import CalibrationSettings
from core.errors import (
    ArchiveError,
    ConcordError,
    JobError,
    LostConnectionError,
    NotFoundError,
    StoreFullError,
    UsageError,
)
from core.files import saving
from core.project_records import DEMO_PROJECT, FINISHED, ROLES, ProjectSummary
from core.projects.calibration import CalibrationRequest
from core.projects.project_list import LONGEST_NAME
from core.projects.start_and_resume import KINDS, JudgeState, start_run
from core.records import VERSION as CONCORD
from core.records import visible_name
from core.settings import Settings
from core.store.database import HEAD, metadata, unpack
from core.store.log import ENTRY_KINDS, IMPORTED, RETIRED, Action, Entry
from core.store.runs import JUDGE, RESULT
from core.store.store import Store, requires
from core.store.transfer import LAYOUT, Row, json_text
from core.wording import counted

FORMAT, VERSION = "concord-project", 1
"""The next version is 4, because 2 and 3 were used in development."""
MANIFEST = "manifest.json"
_MB = 1_000_000
_LONGEST_LINE = 64 * _MB
_MOST_FILES = 64
_DIRECTORY = 65_536
"""Maximum bytes of the zip's directory. Exported files need about 1,100."""
_RATIO, _RATIO_FROM = 300, 50 * _MB
_MOST_VALUES = 2_000_000
"""Maximum number of lists and objects in a line. Each takes about 50 times the memory of its two characters."""
_LAST_SECOND = 253_402_300_799  # end of the year 9999, the last year that datetime supports
_HELD = {
    "goldens": ("project_goldens", "golden set", "golden sets"),
    "items": ("golden_items", "item", "items"),
    "runs": ("runs", "run", "runs"),
    "criteria": ("criteria", "set of criteria", "sets of criteria"),
    "judges": ("judges", "judge", "judges"),
    "labels": ("labels", "label", "labels"),
    "log": ("events", "log entry", "log entries"),
    "replies": ("run_replies", "reply", "replies"),
}
"""Kind of content → table, singular and plural."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """A project file: name of the project, size in bytes, and digest of the content.

    `holds` maps each kind of content to its number of rows.
    """

    project: str
    size: int
    digest: str
    holds: Mapping[str, int]

    @classmethod
    def of(cls, manifest: Mapping[str, Any], size: int) -> ProjectFile:
        rows = {file["table"]: file["rows"] for file in manifest["files"]}
        holds = {name: rows[table] for name, (table, *_) in _HELD.items()}
        return cls(manifest["project"], size, _digest(manifest), holds)

    @property
    def words(self) -> str:
        """The content of the file in one line."""
        return ", ".join(counted(self.holds[name], one, several) for name, (_, one, several) in _HELD.items())


@dataclass(frozen=True, slots=True)
class Imported:
    """An imported project and its file. `renamed` is true if the project's name was taken."""

    project: ProjectSummary
    file: ProjectFile
    renamed: bool

    @property
    def project_id(self) -> str:
        return self.project.project_id


@requires("admin", "exported the project")
def export_project(store: Store, settings: Settings, project_id: str, path: Path) -> ProjectFile:
    """Export a project to the file `path`, without keys or settings.

    Raises NotFoundError if the project is unknown, and ArchiveError if the file cannot be written or the project is too
    large.
    """
    project = store.projects.get(project_id)
    files: list[dict[str, Any]] = []
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "project": project.name,
        "created_at": project.created_at.timestamp(),
        "exported": datetime.now(UTC).isoformat(timespec="seconds"),
        "concord": CONCORD,
        "schema": HEAD,
        "replies": True,
        "files": files,
    }
    with (
        saving(path, ArchiveError) as part,
        zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as zipped,
    ):
        with closing(store.transfers.dump(project_id)) as tables:
            files += [_write(zipped, table, rows) for table, rows in tables]
        zipped.writestr(MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=1))
    return ProjectFile.of(manifest, path.stat().st_size)


def _write(zipped: zipfile.ZipFile, table: str, rows: Iterable[Row]) -> dict[str, Any]:
    """Write the rows of a table and return its manifest entry. Raises ArchiveError if a row is too long to import."""
    name, n, size, digest = _file_name(table), 0, 0, hashlib.sha256()
    with zipped.open(name, "w", force_zip64=True) as file:
        for row in rows:
            line = (json_text(row) + "\n").encode()
            n, size = n + 1, size + len(line)
            if len(line) > _LONGEST_LINE:
                raise ArchiveError(
                    f"Concord can't export this project, because row {n} of {table} is too long "
                    f"({len(line):,} bytes; the limit is {_LONGEST_LINE:,})."
                )
            file.write(line)
            digest.update(line)
    return {"name": name, "table": table, "rows": n, "bytes": size, "sha256": digest.hexdigest()}


def _file_name(table: str) -> str:
    return f"tables/{table}.jsonl"


def _digest(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the names and hashes of all files, which does not depend on compression."""
    lines = "".join(f"{file['sha256']}  {file['name']}\n" for file in manifest["files"])
    return hashlib.sha256(lines.encode()).hexdigest()


@requires("admin")
def import_project(
    store: Store, settings: Settings, file: Path | IO[bytes], *, name: str = "", project_id: str = ""
) -> Imported:
    """Import a project from a file. If the import fails, nothing is stored.

    Args:
        name: Replaces the project's name in the file.
        project_id: Only for projects that ship with Concord; others get a new id.

    Raises:
        ArchiveError: The file is damaged, too large, hostile, or from a newer version.
        UsageError: The name is too long.
        StoreError: The store cannot save the project.
    """
    wanted = " ".join(visible_name(name).split())
    if len(wanted) > LONGEST_NAME:
        raise UsageError(
            f"A project's name can have at most {LONGEST_NAME} characters, but this name has {len(wanted)}. Choose a "
            "shorter name."
        )
    with ExitStack() as opened:
        if isinstance(file, str | os.PathLike):
            try:
                file = opened.enter_context(Path(file).open("rb"))
            except OSError as error:
                raise ArchiveError(
                    f"Concord can't read {file} ({error.strerror}). Check the path and the file's permissions."
                ) from error
        archive = opened.enter_context(closing(Archive(file, settings.max_upload_mb)))
        return store.together(lambda: _bring_in(store, archive, wanted, project_id))


def _bring_in(store: Store, archive: Archive, name: str, project_id: str) -> Imported:
    """Store the rows of a file, and read them back within the same transaction."""
    manifest = archive.manifest
    wanted = name or " ".join(manifest["project"].split())[:LONGEST_NAME] or "Imported project"
    others = {row.name for row in store.projects.all()}
    free = (wanted, *(f"{wanted} ({k})" for k in range(2, len(others) + 3)))
    chosen = next(name for name in free if name not in others)
    run_ids = {str(row.get("run_id")) for _, row in archive.rows("runs") if isinstance(row, dict)}
    runs = {run_id: f"r{uuid.uuid4().hex[:12]}" for run_id in sorted(store.transfers.taken(run_ids))}
    about = {"exported": manifest["exported"], "digest": _digest(manifest)}
    log = Action(f"imported the project {manifest['project']}", about)
    goldens: dict[str, str] = {}
    tables = _checked_tables(archive, goldens)
    try:
        new = store.transfers.restore(chosen, tables, runs=runs, project_id=project_id)
        store.events.add(new, replace(log, subject=new), store.actor)
        _read_back(store, new, goldens)
    except (StoreFullError, LostConnectionError, ArchiveError):
        raise
    except (ConcordError, ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        words = str(error).rstrip(".")
        if isinstance(error, ValidationError):
            first = error.errors(include_url=False)[0]
            words = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise ArchiveError(
            f"Concord can't read the content of this file: {words[:200]}. Nothing was imported. Export the project "
            "again."
        ) from error
    described = ProjectFile.of(manifest, archive.size)
    return Imported(store.projects.get(new), described, chosen != wanted)


# ── the zip ────────────────────────────────────────────────────────────────────────────────────────────────────


class Archive:
    """An open zip file with a validated directory and manifest."""

    def __init__(self, file: IO[bytes], max_mb: int = 200) -> None:
        """Open a zip file of at most `max_mb` MB, which may unpack to 20 times that size.

        Raises ArchiveError if the file is not a project file, too large or hostile.
        """
        self.size = _checked_end(file, max_mb)
        try:
            self._zip = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OverflowError, EOFError) as error:
            raise ArchiveError(f"Concord can't read this zip file: {error}. Export the project again.") from error
        self.close = self._zip.close
        members = self._zip.infolist()
        for info in members:
            if info.flag_bits & 0x41 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                name = info.orig_filename[:80]
                raise ArchiveError(
                    f"{name!r} is encrypted or compressed in a way that project files don't allow. "
                    "Export the project again."
                )
        unpacked, most = sum(info.file_size for info in members), max_mb * 20 * _MB
        if unpacked > most or (unpacked > _RATIO_FROM and unpacked > _RATIO * self.size):
            raise ArchiveError(
                f"The zip file is {self.size / _MB:,.1f} MB but unpacks to {unpacked / _MB:,.0f} MB. It may "
                f"unpack to at most {most / _MB:,.0f} MB and at most {_RATIO} times its own size."
            )
        if MANIFEST not in self._zip.namelist():
            raise ArchiveError(
                f"{MANIFEST} is missing from this zip file, so it isn't a Concord project file. "
                "Choose a file that Concord exported."
            )
        with _as_refusal(MANIFEST), self._zip.open(MANIFEST) as file_said:
            self.manifest = _read_manifest(file_said.read(_MB))
        if sorted(self._zip.namelist()) != sorted((MANIFEST, *map(_file_name, LAYOUT))):
            raise ArchiveError("The files in this zip file don't match its manifest. Export the project again.")

    def rows(self, table: str) -> Iterator[tuple[str, Any]]:
        """Yield (position, parsed JSON) for each row of a table. Raises ArchiveError if the count or hash is wrong."""
        entry = next(file for file in self.manifest["files"] if file["table"] == table)
        name, digest, n = entry["name"], hashlib.sha256(), 0
        with _as_refusal(name), self._zip.open(name) as member:
            file = io.BufferedReader(member)  # type: ignore[type-var]
            while line := file.readline(_LONGEST_LINE):
                if len(line) == _LONGEST_LINE:
                    raise ArchiveError(
                        f"A line of {name} is too long (at least {_LONGEST_LINE:,} bytes). Export the project again."
                    )
                digest.update(line)
                n += 1
                where = f"{name}, line {n}"
                try:
                    if line.count(b"[") + line.count(b"{") > _MOST_VALUES:
                        raise ValueError(f"it contains over {_MOST_VALUES:,} values")
                    row = json.loads(line, parse_constant=_finite, parse_float=_finite)
                except (ValueError, RecursionError) as error:
                    raise ArchiveError(
                        f"{where} isn't valid JSON ({str(error)[:120]}). Export the project again."
                    ) from error
                yield where, row
        if (n, digest.hexdigest()) != (entry["rows"], entry["sha256"]):
            raise ArchiveError(
                f"{name} doesn't match the manifest: its number of rows ({n:,}) or SHA-256 hash differs. The file was "
                "damaged or changed after the export. Export the project again."
            )


@contextmanager
def _as_refusal(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError) as error:
        raise ArchiveError(f"Concord can't unpack {name}: {error}. Export the project again.") from error


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:40]} isn't a finite number")
    return value


def _checked_end(file: IO[bytes], max_mb: int) -> int:
    """Validate the end of the zip before a library reads its directory; return the size in bytes."""
    size = file.seek(0, io.SEEK_END)
    if size > max_mb * _MB:
        raise ArchiveError(
            f"The file is {size / _MB:,.1f} MB, but the limit is {max_mb:,} MB. To import this file, raise "
            "CONCORD_MAX_UPLOAD_MB."
        )
    file.seek(max(0, size - 42))
    tail = file.read(42)
    end = tail[-22:]
    if not end.startswith(b"PK\x05\x06") or end[20:] != b"\0\0":
        raise ArchiveError("This zip file is truncated or has extra data at its end. Export the project again.")
    directory, n = int.from_bytes(end[12:16], "little"), int.from_bytes(end[10:12], "little")
    zip64 = len(tail) == 42 and tail.startswith(b"PK\x06\x07")
    if directory > _DIRECTORY or n > _MOST_FILES or zip64:
        raise ArchiveError(
            f"The zip file contains at least {n:,} files, but a project can have at most {_MOST_FILES}. "
            "Choose a file that Concord exported."
        )
    file.seek(0)
    return size


def _read_manifest(data: bytes) -> dict[str, Any]:
    """Parse the manifest. Raises ArchiveError for another format or version."""
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"{MANIFEST} isn't valid JSON: {error}. Export the project again.") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise ArchiveError(
            f"{MANIFEST} doesn't specify the format {FORMAT!r}, so this isn't a Concord project file. "
            "Choose a file that Concord exported."
        )
    version, schema = manifest.get("version"), manifest.get("schema")
    newer_schema = isinstance(schema, str) and schema.isdigit() and int(schema) > int(HEAD)
    if newer_schema or (isinstance(version, int) and version > VERSION):
        raise ArchiveError(
            f"A newer version of Concord wrote this file ({str(manifest.get('concord'))[:40]}). Update Concord, then "
            "import the file again."
        )
    kinds = {"project": str, "created_at": float, "exported": str, "concord": str, "replies": bool, "files": list}
    wrong = [name for name, kind in kinds.items() if not isinstance(manifest.get(name), kind)]
    if wrong or len(manifest["project"]) > 400 or not 0 <= manifest["created_at"] <= _LAST_SECOND:
        raise ArchiveError(
            f"Concord can't read {MANIFEST}: {', '.join(wrong) or 'project or created_at'} is missing or has an "
            "invalid value. Export the project again."
        )
    files = [isinstance(file, dict) and (file.get("table"), file.get("name")) for file in manifest["files"]]
    if version != VERSION or files != [(table, _file_name(table)) for table in LAYOUT]:
        raise ArchiveError(f"{MANIFEST} doesn't list every table exactly once and in order. Export the project again.")
    return manifest


# ── check and read back rows ───────────────────────────────────────────────────────────────────────────────────

_NAMED = re.compile(r'(?<!\\)"(r[0-9a-f]{12}|golden:[0-9a-f]{64})(?::[^"\\]*)?"')


def _checked_tables(archive: Archive, goldens: dict[str, str]) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield (table, rows) with columns and references validated.

    A reference must point to a row in the file, because ids are looked up in the whole store. `goldens` collects golden
    set ids and names. Raises ArchiveError at the first invalid row.
    """
    runs, items = set[str](), set[str]()
    named: dict[str, str] = {}

    def rows(table: str) -> Iterator[Row]:
        for where, row in archive.rows(table):
            fault = _fault(table, row)
            if not fault and table == "goldens":
                goldens[row["golden_id"]] = ""
            elif not fault and table == "runs":
                runs.add(row["run_id"])
            if not fault and row.get("golden_id", "") not in ("", *goldens):
                fault = "golden_id refers to a golden set that the file doesn't contain"
            if not fault and table == "labels" and row["item_id"] not in items:
                fault = f"item_id refers to {row['item_id'][:40]!r}, an item that the file doesn't contain"
            if not fault and row.get("run_id", "") not in ("", *runs):
                fault = "run_id refers to a run that the file doesn't contain"
            if fault:
                raise ArchiveError(f"{where}: {fault}.")
            if table == "golden_items":
                items.update(map(str, row["body"][:1]))
            if table == "project_goldens":
                goldens[row["golden_id"]] = row["name"]
            if table in ("runs", "run_documents", "events", "judges") and row.get("kind") != Action.kind:
                named.update(dict.fromkeys(_NAMED.findall(json_text(row)), where))
            yield row

    for table in LAYOUT:
        yield table, rows(table)
    for name, where in named.items():
        if name not in runs | items | goldens.keys():
            raise ArchiveError(f"{where} refers to {name}, which the file doesn't contain. Export the project again.")


def _fault(table: str, row: Any) -> str:
    """Describe what is wrong with the columns of a row; "" if they are valid."""
    kinds, columns = LAYOUT[table], metadata.tables[table].c
    if not isinstance(row, dict):
        return "the row isn't a JSON object"
    if odd := set(row) ^ set(kinds):
        return f"the column {min(odd)} is missing or unexpected"
    for name, value in row.items():
        if not _fits(kinds[name], columns[name], value) and not (value is None and columns[name].nullable):
            return f"{name} has a value of the wrong type, {str(value)[:60]!r}"
    if table == "runs" and row["status"] not in FINISHED:  # only finished runs are exported
        return f"status {row['status']!r} isn't final"
    if table == "events" and (
        row["kind"] not in {*ENTRY_KINDS, *RETIRED} or row["role"].removesuffix(IMPORTED) not in ROLES
    ):
        return f"unknown entry kind {row['kind']!r} or role {row['role']!r}"
    if table == "run_replies" and isinstance(reply := row["body"], dict):
        return "" if isinstance(reply.get("text", reply.get("failure")), str) else "body isn't a reply"
    return ""


def _fits(kind: str, column: Any, value: Any) -> bool:
    """Whether a value is valid in a column of a given kind (see `LAYOUT`)."""
    match kind:
        case "key":
            return isinstance(value, str) and len(value) <= column.type.length and value.isprintable()
        case "int":  # the range of a Postgres integer column
            return type(value) is int and 0 <= value < 2**31
        case "real":
            return type(value) in (int, float) and (column.name == "value" or 0 <= value <= _LAST_SECOND)
        case "bool":
            return isinstance(value, bool)
        case "json":  # a string would be stored unparsed (and might hold NaN, which JSON does not allow)
            try:
                value = json.loads(value) if isinstance(value, str) else value
            except (ValueError, RecursionError):
                return False
            return isinstance(value, dict | list)
        case "replies":
            return isinstance(value, dict)
    return isinstance(value, str)


def _read_back(store: Store, project_id: str, goldens: Iterable[str]) -> None:
    """Read an imported project as the screens do. Any error means that the file is invalid."""
    items = {golden_id: store.goldens.verified(golden_id).item_ids for golden_id in goldens}
    for run in store.runs.all(project_id):
        store.results.scores(run.run_id, items[run.golden_id])
        if kind := KINDS.get(run.kind):  # runs of an unknown kind can't be opened
            unpack(kind.request, run.request_json)
            for name, record in {RESULT: kind.result, JUDGE: JudgeState, **kind.documents}.items():
                store.results.read(run.run_id, name, record)
    for criteria in store.criteria.all(project_id):
        store.criteria.get(project_id, criteria.criteria_id)  # checks that the id is the hash of the text
    for entry in store.judges.all(project_id):
        store.judges.replies(project_id, entry.judge_id)
        n_items = len(items[entry.golden_id])
        sizes = {scores.shape for scores in (entry.judge.values, entry.judge.turned) if scores is not None}
        if sizes != {(n_items,)} or any(not 0 <= k < n_items for k in entry.judge.seen):
            raise ValueError("a judge's scores, or the items whose labels it has seen, don't match its golden set")
    store.events.all(project_id, Entry)


# ── the demo project: import, replay of a calibration, reset ───────────────────────────────────────────────────


DEMO_NAME = "Demo project (simulated labels)"
_SAMPLES = Path(__file__).parents[2] / "sample_data"
DEMO_FILE = _SAMPLES / "demo_project.zip"
REPLAY_SPEC = "recorded:sample_data/recorded/newsroom_session.jsonl"
REPLAYED_ON = "notifications"
"""Name of the golden set of the recorded calibration."""
ASPECT = "house_style"
DEFINITION = "The notification keeps to the house style of the newsroom."
CHOSEN = CalibrationSettings(preset="quick", rounds=1, keep=2, ensemble=1, reasons=False)
"""Settings of the recorded calibration. Others would need replies that are not in the recording."""


def ensure_demo(store: Store, settings: Settings, file: Path = DEMO_FILE) -> ProjectSummary:
    """Import the demo project if it does not exist. Raises ArchiveError if the file is missing or damaged."""
    if any(row.project_id == DEMO_PROJECT for row in store.projects.all()):
        return store.projects.get(DEMO_PROJECT)
    return import_project(store, settings, file, name=DEMO_NAME, project_id=DEMO_PROJECT).project


def welcome(store: Store, settings: Settings) -> None:
    """Import the demo project into an empty store, unless `CONCORD_DEMO` is off."""
    if settings.demo and not store.projects.all():
        ensure_demo(store, settings)


@requires("admin", "reset the demo project")
def reset_demo(store: Store, settings: Settings, file: Path = DEMO_FILE) -> ProjectSummary:
    """Reset the demo project to the content of its file.

    Unfinished runs are cancelled. Raises JobError while one of them is still running, and ArchiveError if the file is
    missing or damaged.
    """
    unfinished = [run.run_id for run in store.runs.all(DEMO_PROJECT) if not run.finished]
    for run_id in unfinished:
        store.runs.request_cancel(run_id)
    if any(not store.runs.get(run_id).finished for run_id in unfinished):
        raise JobError("Concord is cancelling the demo's runs. Try again in a moment.")

    def swap() -> ProjectSummary:
        store.projects.remove(DEMO_PROJECT)
        return ensure_demo(store, settings, file)

    return store.together(swap)


@requires("reviewer")
def start_replay(store: Store, settings: Settings) -> str:
    """Start a replay of the recorded calibration in the demo project; return the run id.

    Raises NotFoundError if there is no demo project.
    """
    golden_id = next((each.golden_id for each in store.goldens.all(DEMO_PROJECT) if each.name == REPLAYED_ON), None)
    if golden_id is None:
        raise NotFoundError("The demo project is missing. To add it, run `python -m core demo`.")
    request = CalibrationRequest(DEMO_PROJECT, golden_id, ASPECT, REPLAY_SPEC, CHOSEN, DEFINITION)
    return start_run(store, settings, request)
