"""A project as one file, and back: exported from one moment of the store, checked whole before it is imported.

An import never changes what is there.  It makes a project with a new id and, where the name is taken, the next free
one; golden sets are the same under their hash everywhere and are shared; replies that came along serve this project's
runs alone.  Entries of its log keep who did what and when, and are marked as imported by their role.
"""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from core.errors import ArchiveError, UsageError
from core.export.archive.checking import Contents, Shapes, check_archive
from core.export.archive.container import Archive, Limits, Manifest, Writer
from core.files import saving
from core.project_records import ProjectSummary, moment
from core.projects.consent import NamedEndpoint
from core.projects.kinds import KINDS
from core.projects.project_list import LONGEST_NAME
from core.projects.roles import requires
from core.projects.runs import JudgeState
from core.review.log import Action
from core.sandbox import Allowance, Job, Reader, RefusedError
from core.settings import Settings
from core.store.codec import Packed, pack, unpack
from core.store.results import JUDGE, RESULT
from core.store.schema import HEAD
from core.store.store import Store
from core.store.transfer import UNFINISHED, Arrival
from core.texts import visible_name
from core.version import VERSION
from core.wording import counted

_FILE = "recorded:"
_SMALL = 10_000_000
"""Bytes of rows that are checked where they are."""

_READER = Reader("core.projects.transfer")


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much of each kind a project's file holds; `replies` None where they were left out."""

    goldens: int
    items: int
    runs: int
    criteria: int
    judges: int
    labels: int
    log: int
    replies: int | None

    @classmethod
    def of(cls, manifest: Manifest) -> Holdings:
        rows = {file.table: file.rows for file in manifest.files}
        same = {table: rows[table] for table in ("runs", "criteria", "judges", "labels")}
        replies = rows["replies"] if manifest.replies else None
        return cls(
            goldens=rows["project_goldens"], items=rows["golden_items"], log=rows["events"], replies=replies, **same
        )

    @property
    def words(self) -> str:
        """In one line, for people."""
        parts = [
            counted(self.goldens, "golden set") + f" with {counted(self.items, 'item')}",
            counted(self.runs, "run"),
            f"{self.criteria:,} criteria",
            counted(self.judges, "judge"),
            counted(self.labels, "label"),
            counted(self.log, "entry", "entries") + " in the log",
            "no replies" if self.replies is None else counted(self.replies, "reply", "replies"),
        ]
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written: its size in bytes, the digest of its content, and what could not come along.

    `unfinished` runs were queued or running and leave as cancelled; `replies_without_run` counts replies of this
    installation that no run is noted for (asked on the command line, or before runs were noted), which stay here.
    """

    project: str
    size: int
    digest: str
    holds: Holdings
    unfinished: int
    replies_without_run: int


@dataclass(frozen=True, slots=True)
class Arriving:
    """What a project's file says and holds, all of it checked, before anything is made of it.

    `endpoints` are all endpoints that occur in it, with the models asked there ("" is this installation's usual one):
    nothing is sent to any of them before a person here allows it.  `files` are files of this machine that its judges
    name, which are not read, `models` what its RepEval runs and metrics load.
    """

    project: str
    exported: str
    concord: str
    size: int
    digest: str
    holds: Holdings
    golden_names: tuple[str, ...]
    endpoints: tuple[NamedEndpoint, ...]
    files: tuple[str, ...]
    models: tuple[str, ...]
    people: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """A project that came in; `renamed` says that its name was taken, `runs_renamed` how many runs have a new id."""

    project: ProjectSummary
    holds: Holdings
    renamed: bool
    runs_renamed: int
    digest: str
    endpoints: tuple[NamedEndpoint, ...]

    @property
    def project_id(self) -> str:
        return self.project.project_id


@requires("admin", "exported the project")
def export_project(store: Store, settings: Settings, project_id: str, path: Path, *, replies: bool = True) -> Exported:
    """Write a project to `path`, whole or not at all; without `replies` those of endpoints stay here.

    Keys and settings are no part of a project.  NotFoundError for an unknown project; ArchiveError where the file
    cannot be written or the project is too large for one.
    """
    project = store.projects.get(project_id)
    unfinished = sum(row.status in UNFINISHED for row in store.runs.all(project_id))
    exported = datetime.now(UTC).isoformat(timespec="seconds")
    limits = Limits.of(settings.max_upload_mb)
    with saving(path, ArchiveError) as part, part.open("wb") as file, Writer(file, limits) as writer:
        with closing(store.transfers.dump(project_id, replies=replies)) as tables:
            for table, rows in tables:
                writer.add(table, rows)
        manifest = Manifest(
            project.name, project.created_at.timestamp(), exported, VERSION, HEAD, replies, tuple(writer.files)
        )
        writer.finish(manifest)
        size = file.tell()
    without = store.transfers.without_run() if replies else 0
    return Exported(project.name, size, manifest.digest, Holdings.of(manifest), unfinished, without)


@requires("admin", reads=True)
def preview_project(store: Store, settings: Settings, file: Path | IO[bytes]) -> Arriving:
    """What a project's file holds, after every row of it was checked; nothing is kept.

    ArchiveError for a file that is damaged, too large, of a newer Concord, or built to do harm.
    """
    return _arriving(file, settings.max_upload_mb)


@requires("admin", reads=True)
def preview_upload(store: Store, settings: Settings, data: bytes) -> Arriving:
    """As `preview_project`, for a file that somebody sent: unless it is small it is checked in a confined process."""
    with _opened(io.BytesIO(data), settings.max_upload_mb) as archive:
        small = sum(entry.bytes for entry in archive.manifest.files) <= _SMALL
    if small:
        return _arriving(io.BytesIO(data), settings.max_upload_mb)
    options = {"max_mb": settings.max_upload_mb}
    try:
        with closing(_READER.ask("project", data, options, Allowance.of(len(data)))) as answers:
            return unpack(Arriving, Packed(next(answers)))
    except RefusedError as refused:
        raise ArchiveError(refused.message) from refused


def _preview_job(file: IO[bytes], options: Mapping[str, Any]) -> Iterator[str]:
    """What runs in the confined process."""
    yield pack(_arriving(file, options["max_mb"])).body


def _arriving(file: Path | IO[bytes], max_mb: int) -> Arriving:
    with _opened(file, max_mb) as archive:
        return _checked(archive)[0]


def _checked(archive: Archive) -> tuple[Arriving, Contents]:
    """What an archive says and holds, every row of it checked."""
    from core.judging.registry import specs_in

    contents, manifest = check_archive(archive, _shapes(), specs_in), archive.manifest
    arriving = Arriving(
        project=manifest.project,
        exported=manifest.exported,
        concord=manifest.concord,
        size=archive.size,
        digest=manifest.digest,
        holds=Holdings.of(manifest),
        golden_names=tuple(contents.goldens.values()),
        endpoints=_endpoints(contents.judges_asked),
        files=tuple(sorted(spec.removeprefix(_FILE) for spec in contents.judges_asked if spec.startswith(_FILE))),
        models=tuple(sorted(contents.models)),
        people=tuple(sorted(contents.people - {""})),
    )
    return arriving, contents


@requires("admin")
def import_project(
    store: Store, settings: Settings, file: Path | IO[bytes], *, name: str = "", project_id: str = ""
) -> Imported:
    """Make a new project of a file, under `name` or the name it had; all of it or nothing.

    `project_id` is for what ships with Concord and is known by its id; else the project gets a new one.  Errors as
    `preview_project`; UsageError for an overlong name; StoreError where the store cannot keep it.
    """
    wanted = " ".join(visible_name(name).split())
    if len(wanted) > LONGEST_NAME:
        raise UsageError(f"A project's name has 1 to {LONGEST_NAME} characters, not {len(wanted)}.")
    with _opened(file, settings.max_upload_mb) as archive:
        arriving, contents = _checked(archive)
        manifest = archive.manifest
        wanted = wanted or " ".join(manifest.project.split())[:LONGEST_NAME] or "Imported project"
        chosen = _free_name(wanted, {row.name for row in store.projects.all()})
        taken = sorted(store.transfers.taken(contents.run_ids))
        runs = {run_id: f"r{uuid.uuid4().hex[:12]}" for run_id in taken}
        about = {
            "made": moment(manifest.created_at).isoformat(timespec="seconds"),
            "exported": manifest.exported,
            "digest": manifest.digest,
            "rows": {file.table: file.rows for file in manifest.files},
        }
        log = Action(f"imported the project {manifest.project}", about)
        arrival = Arrival(chosen, store.actor, log, runs, project_id)
        tables = ((file.table, (row for _, row in archive.rows(file.table))) for file in manifest.files)
        project_id = store.transfers.restore(arrival, tables)
    view = store.projects.get(project_id)
    return Imported(view, arriving.holds, chosen != wanted, len(runs), arriving.digest, arriving.endpoints)


@contextmanager
def _opened(file: Path | IO[bytes], max_mb: int) -> Iterator[Archive]:
    limits = Limits.of(max_mb)
    if not isinstance(file, str | os.PathLike):
        with Archive(file, limits) as archive:
            yield archive
        return
    try:
        opened = Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        raise ArchiveError(f"{file}: cannot be read ({error.strerror}).") from error
    with opened, Archive(opened, limits) as archive:
        yield archive


def _shapes() -> Shapes:
    """Requests, results and other documents of the kinds of runs that this version knows."""
    shapes: dict[tuple[str, str], Any] = {}
    for name, kind in KINDS.items():
        kept = {"request": kind.request, RESULT: kind.result, JUDGE: JudgeState, **kind.documents}
        shapes |= {(name, document): record for document, record in kept.items()}
    return shapes


def _endpoints(specs: Iterable[str]) -> tuple[NamedEndpoint, ...]:
    """Endpoints by the URL as it stands in the file ("" where none does), with the models asked there.

    A spec that cannot be read stands there whole, as if it were an endpoint: nothing in the file is left unsaid.
    """
    from core.judging.registry import parse_spec

    models: dict[str, set[str]] = {}
    for spec in specs:
        if spec.startswith(_FILE):
            continue
        try:
            parsed = parse_spec(spec)
            models.setdefault(parsed.base_url, set()).add(parsed.model)
        except UsageError:
            models.setdefault(spec, set())
    return tuple(NamedEndpoint(endpoint, tuple(sorted(names))) for endpoint, names in sorted(models.items()))


def _free_name(wanted: str, taken: set[str]) -> str:
    """`wanted`, or the first of "wanted (2)", "wanted (3)", … that no project has."""
    names = (wanted, *(f"{wanted} ({k})" for k in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


JOBS = {"project": Job(_preview_job)}
"""For `core.sandbox.Reader`."""
