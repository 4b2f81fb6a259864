"""A project as one file, and back: exported from one moment of the store, checked whole before it is imported.

An import never changes what is there.  It makes a project with a new id and, where the name is taken, the next free
one; golden sets are the same under their hash everywhere and are shared.  Golden sets, labels and criteria can be used
like any other.  Runs that came along are read-only (`run_work.require_made_here`): no endpoint, file or model that they
name is used.  Entries of the log keep who did what and when, and are marked as imported by their role.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from core.errors import ArchiveError, UsageError
from core.files import saving
from core.project_records import ProjectSummary, moment
from core.projects.archive import Archive, Manifest, Shapes, Writer, check_rows
from core.projects.project_list import LONGEST_NAME
from core.projects.roles import requires
from core.projects.run_kinds import KINDS
from core.projects.run_work import JudgeState
from core.settings import Settings
from core.store.log import Action
from core.store.project_rows import UNFINISHED, Arrival
from core.store.results import JUDGE, RESULT
from core.store.schema import HEAD
from core.store.store import Store
from core.texts import visible_name
from core.version import VERSION
from core.wording import counted


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
        replies = rows["run_replies"] if manifest.replies else None
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
class ProjectFile:
    """A project's file: what it says and holds, its size in bytes, the digest of its content.

    `exported` is when (an ISO moment), `concord` by which version.  Of one that was just written, `unfinished` runs
    were queued or running and leave as cancelled.
    """

    project: str
    exported: str
    concord: str
    size: int
    digest: str
    holds: Holdings
    golden_names: tuple[str, ...] = ()
    unfinished: int = 0

    @classmethod
    def of(cls, manifest: Manifest, size: int, **more: Any) -> ProjectFile:
        holds = Holdings.of(manifest)
        return cls(manifest.project, manifest.exported, manifest.concord, size, manifest.digest, holds, **more)


@dataclass(frozen=True, slots=True)
class Imported:
    """A project that came in; `renamed` says that its name was taken, `runs_renamed` how many runs have a new id."""

    project: ProjectSummary
    holds: Holdings
    renamed: bool
    runs_renamed: int
    digest: str

    @property
    def project_id(self) -> str:
        return self.project.project_id


@requires("admin", "exported the project")
def export_project(
    store: Store, settings: Settings, project_id: str, path: Path, *, replies: bool = True
) -> ProjectFile:
    """Write a project to `path`, whole or not at all; without `replies` those of endpoints stay here.

    Keys and settings are no part of a project.  NotFoundError for an unknown project; ArchiveError where the file
    cannot be written or the project is too large for one.
    """
    project = store.projects.get(project_id)
    unfinished = sum(row.status in UNFINISHED for row in store.runs.all(project_id))
    exported = datetime.now(UTC).isoformat(timespec="seconds")
    with saving(path, ArchiveError) as part, part.open("wb") as file, Writer(file) as writer:
        with closing(store.transfers.dump(project_id, replies=replies)) as tables:
            for table, rows in tables:
                writer.add(table, rows)
        manifest = Manifest(
            project.name, project.created_at.timestamp(), exported, VERSION, HEAD, replies, tuple(writer.files)
        )
        writer.finish(manifest)
        size = file.tell()
    return ProjectFile.of(manifest, size, unfinished=unfinished)


@requires("admin", reads=True)
def preview_project(store: Store, settings: Settings, file: Path | IO[bytes]) -> ProjectFile:
    """What a project's file holds, after every row of it was checked; nothing is kept.

    ArchiveError for a file that is damaged, too large, of a newer Concord, or built to do harm.
    """
    with _opened(file, settings.max_upload_mb) as archive:
        names = check_rows(archive, _shapes()).names
        return ProjectFile.of(archive.manifest, archive.size, golden_names=tuple(names.values()))


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
        contents, manifest = check_rows(archive, _shapes()), archive.manifest
        wanted = wanted or " ".join(manifest.project.split())[:LONGEST_NAME] or "Imported project"
        others = {row.name for row in store.projects.all()}
        names = (wanted, *(f"{wanted} ({k})" for k in range(2, len(others) + 3)))
        chosen = next(name for name in names if name not in others)
        taken = sorted(store.transfers.taken(contents.runs))
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
    return Imported(view, Holdings.of(manifest), chosen != wanted, len(runs), manifest.digest)


@contextmanager
def _opened(file: Path | IO[bytes], max_mb: int) -> Iterator[Archive]:
    if not isinstance(file, str | os.PathLike):
        with Archive(file, max_mb) as archive:
            yield archive
        return
    try:
        opened = Path(file).open("rb")  # noqa: SIM115
    except OSError as error:
        raise ArchiveError(f"{file}: cannot be read ({error.strerror}).") from error
    with opened, Archive(opened, max_mb) as archive:
        yield archive


def _shapes() -> Shapes:
    """Requests, results and other documents of the kinds of runs that this version knows."""
    shapes: dict[tuple[str, str], Any] = {}
    for name, kind in KINDS.items():
        kept = {"request": kind.request, RESULT: kind.result, JUDGE: JudgeState, **kind.documents}
        shapes |= {(name, document): record for document, record in kept.items()}
    return shapes
