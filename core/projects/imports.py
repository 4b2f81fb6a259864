"""Judges brought in as files of their replies or scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.projects.access import requires
from core.projects.judges import add_judge
from core.store.store import Store

if TYPE_CHECKING:
    from core.data.verdict_files import ImportChoices, ImportPreview, Recording


@requires("reviewer")
def read_recording(store: Store, data: bytes, name: str, *, max_mb: float) -> Recording:
    """A file of replies or scores that somebody sent; its table is read as `core.data.read_upload`.

    GoldenError for a file that cannot be read.
    """
    from core.data import read_upload
    from core.data.verdict_files import load_recording

    return load_recording(data, name, max_mb=max_mb, read=read_upload)


@requires("reviewer")
def preview_import(
    store: Store,
    golden_id: str,
    aspect: str,
    file: bytes | Recording,
    name: str = "",
    *,
    choices: ImportChoices | None = None,
    max_mb: float = 200,
) -> ImportPreview:
    """How a file would come in as a judge of `aspect`; nothing is stored.

    `file` is its content (then `name` gives its ending) or what `load_recording` made of it.  NotFoundError for an
    unknown golden set, GoldenError for a file that cannot be read, AspectError and UsageError as
    `core.data.verdict_files.match`.
    """
    from core.data.verdict_files import match

    golden = store.goldens.load(golden_id)
    recording = read_recording(store, file, name, max_mb=max_mb) if isinstance(file, bytes) else file
    return match(recording, golden, aspect, choices)


@requires("reviewer")
def import_judge(store: Store, project_id: str, preview: ImportPreview, name: str) -> str:
    """Enter what a person was shown as a judge called `name`, with its replies; returns the judge's id.

    The same file with the same choices makes one judge, whatever the name.  UsageError for a preview with problems
    or an empty name, NotFoundError for an unknown project.
    """
    store.projects.get(project_id)
    judge, replies = preview.as_judge(name)
    return add_judge(store, project_id, preview.golden_id, judge, replies)
