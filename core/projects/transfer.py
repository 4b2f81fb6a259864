"""A project as one file, and back: exported from one moment of the store, checked whole before it is imported.

An import never changes what is there.  It makes a project with a new id and, where the name is taken, the next free
one; golden sets are the same under their hash everywhere and are shared; replies that came along serve this project's
runs alone.  Entries of its log keep who did what and when, and are marked as imported by their role.
"""

from __future__ import annotations

import io
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from core.confined.asking import Allowance, Reader, RefusedError
from core.confined.serving import Job
from core.errors import ArchiveError, UsageError
from core.export.archive.checking import Contents, Shapes, check_rows
from core.export.archive.container import Archive, Limits, Writer, whole_file
from core.export.archive.manifest import Manifest
from core.kept import moment
from core.projects.access import requires
from core.projects.kinds import KINDS
from core.projects.runs import JudgeState
from core.projects.views.transfer import Arriving, Exported, Holdings, Imported, NamedEndpoint
from core.review.log import Action
from core.settings import Settings
from core.store.codec import Packed, pack, unpack
from core.store.results import JUDGE, RESULT
from core.store.schema import HEAD
from core.store.store import Store
from core.store.transfer import UNFINISHED, Arrival
from core.version import VERSION

_LONGEST_NAME = 200
_SMALL = 10_000_000
"""Bytes of rows that are checked where they are."""

_READER = Reader("core.projects.transfer")


@requires("admin", "exported the project")
def export_project(store: Store, settings: Settings, project_id: str, path: Path, *, replies: bool = True) -> Exported:
    """Write a project to `path`, whole or not at all; without `replies` those of endpoints stay here.

    Keys and settings are no part of a project.  NotFoundError for an unknown project; ArchiveError where the file
    cannot be written or the project is too large for one.
    """
    project = store.projects.get(project_id)
    unfinished = sum(row.status in UNFINISHED for row in store.runs.all(project_id))
    exported = datetime.now(UTC).isoformat(timespec="seconds")
    with whole_file(path) as file, Writer(file, Limits.of(settings.max_upload_mb)) as writer:
        with closing(store.transfers.dump(project_id, replies=replies)) as tables:
            for table, rows in tables:
                writer.add(table, rows)
        manifest = Manifest(
            project.name, project.created_at.timestamp(), exported, VERSION, HEAD, replies, tuple(writer.files)
        )
        writer.finish(manifest)
        size = file.tell()
    without = store.transfers.without_run() if replies else 0
    return Exported(project.name, size, manifest.digest, _holdings(manifest), unfinished, without)


@requires("admin")
def preview_project(store: Store, settings: Settings, file: Path | IO[bytes]) -> Arriving:
    """What a project's file holds, after every row of it was checked; nothing is kept.

    ArchiveError for a file that is damaged, too large, of a newer Concord, or built to do harm.
    """
    return _arriving(file, settings.max_upload_mb)


@requires("admin")
def preview_upload(store: Store, settings: Settings, data: bytes) -> Arriving:
    """As `preview_project`, for a file that somebody sent: unless it is small it is checked in a confined process."""
    with _opened(io.BytesIO(data), settings.max_upload_mb) as archive:
        small = sum(entry.bytes for entry in archive.manifest.files) <= _SMALL
    if small:
        return _arriving(io.BytesIO(data), settings.max_upload_mb)
    options = {"max_mb": settings.max_upload_mb}
    try:
        with closing(_READER.ask("project", data, options, Allowance.of(len(data)))) as found:
            return unpack(Arriving, Packed(next(found)))
    except RefusedError as refused:
        raise ArchiveError(refused.message) from refused


def _preview_job(file: IO[bytes], options: Mapping[str, Any]) -> Iterator[str]:
    """What runs in the confined process."""
    yield pack(_arriving(file, options["max_mb"])).body


def _arriving(file: Path | IO[bytes], max_mb: int) -> Arriving:
    from core.judging.spec import specs_in

    with _opened(file, max_mb) as archive:
        contents = check_rows(archive, _shapes(), specs_in)
        manifest = archive.manifest
        return Arriving(
            project=manifest.project,
            exported=manifest.exported,
            concord=manifest.concord,
            size=archive.size,
            digest=manifest.digest,
            holds=_holdings(manifest),
            golden_names=tuple(contents.goldens.values()),
            endpoints=_endpoints(contents),
            files=tuple(sorted(one.removeprefix("recorded:") for one in contents.judges_asked if _is_file(one))),
            models=tuple(sorted(contents.models)),
            people=tuple(sorted(contents.people - {""})),
        )


@requires("admin")
def import_project(
    store: Store, settings: Settings, file: Path | IO[bytes], *, name: str = "", project_id: str = ""
) -> Imported:
    """Make a new project of a file, under `name` or the name it had; all of it or nothing.

    `project_id` is for what ships with Concord and is known by its id; else the project gets a new one.  Errors as
    `preview_project`; UsageError for an overlong name; StoreError where the store cannot keep it.
    """
    from core.judging.spec import specs_in

    wanted = " ".join(name.split())
    if len(wanted) > _LONGEST_NAME:
        raise UsageError(f"A project's name has 1 to {_LONGEST_NAME} characters, not {len(wanted)}.")
    with _opened(file, settings.max_upload_mb) as archive:
        contents = check_rows(archive, _shapes(), specs_in)
        manifest = archive.manifest
        wanted = wanted or " ".join(manifest.project.split())[:_LONGEST_NAME] or "Imported project"
        chosen = _free_name(wanted, {row.name for row in store.projects.all()})
        runs = _new_ids(store, contents)
        about = {
            "made": moment(manifest.created_at).isoformat(timespec="seconds"),
            "exported": manifest.exported,
            "digest": manifest.digest,
            "rows": {one.table: one.rows for one in manifest.files},
        }
        log = Action(f"imported the project {manifest.project}", about)
        arrival = Arrival(chosen, store.actor, log, runs, project_id)
        tables = ((one.table, (row for _, row in archive.rows(one.table))) for one in manifest.files)
        project_id = store.transfers.restore(arrival, tables)
    view = store.projects.get(project_id)
    return Imported(view, _holdings(manifest), chosen != wanted, len(runs), manifest.digest, _endpoints(contents))


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


def _endpoints(contents: Contents) -> tuple[NamedEndpoint, ...]:
    """Endpoints by the URL as it stands in the file ("" where none does), with the models asked there.

    A spec that cannot be read stands there whole, as if it were an endpoint: nothing in the file is left unsaid.
    """
    from core.judging.spec import parse_spec

    models: dict[str, set[str]] = {}
    for spec in contents.judges_asked:
        if _is_file(spec):
            continue
        try:
            parsed = parse_spec(spec)
            models.setdefault(parsed.base_url, set()).add(parsed.model)
        except UsageError:
            models.setdefault(spec, set())
    return tuple(NamedEndpoint(endpoint, tuple(sorted(names))) for endpoint, names in sorted(models.items()))


def _is_file(spec: str) -> bool:
    return spec.startswith("recorded:")


def _new_ids(store: Store, contents: Contents) -> dict[str, str]:
    """New ids for the runs whose ids runs of this store have."""
    return {run_id: f"r{uuid.uuid4().hex[:12]}" for run_id in sorted(store.transfers.taken(contents.run_ids))}


def _free_name(wanted: str, taken: set[str]) -> str:
    """`wanted`, or the first of "wanted (2)", "wanted (3)", … that no project has."""
    names = (wanted, *(f"{wanted} ({k})" for k in range(2, len(taken) + 3)))
    return next(name for name in names if name not in taken)


def _holdings(manifest: Manifest) -> Holdings:
    rows = {one.table: one.rows for one in manifest.files}
    return Holdings(
        goldens=rows["project_goldens"],
        items=rows["golden_items"],
        runs=rows["runs"],
        criteria=rows["criteria"],
        judges=rows["judges"],
        labels=rows["labels"],
        log=rows["events"],
        replies=rows["replies"] if manifest.replies else None,
    )


JOBS = {"project": Job(_preview_job)}
"""For `core.confined.serving`."""
