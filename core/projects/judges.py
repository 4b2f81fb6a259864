"""Judges of a project, to be compared: what calibrations, metrics and other runs left, and what came in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from core.errors import UsageError
from core.kept import JudgeEntry
from core.projects.access import requires
from core.records import JudgeScores
from core.store.store import Store

if TYPE_CHECKING:
    from core.data.verdict_files import ImportChoices, ImportPreview, Recording

_LONGEST_NAME = 120


@requires("viewer")
def list_judges(
    store: Store, project_id: str, golden_id: str | None = None, aspect: str | None = None
) -> list[JudgeEntry]:
    """The project's judges (of one golden set, of one aspect), oldest first."""
    return store.judges.all(project_id, golden_id, aspect)


@requires("viewer")
def get_judge(store: Store, project_id: str, judge_id: str) -> JudgeEntry:
    """NotFoundError for an unknown id."""
    return store.judges.get(project_id, judge_id)


@requires("reviewer", "added a judge")
def add_judge(
    store: Store,
    project_id: str,
    golden_id: str,
    judge: JudgeScores,
    replies: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Enter a judge with its scores, and its replies by item id where there are any; returns its id.

    The same judge a second time changes nothing.  NotFoundError for an unknown project or golden set, UsageError for
    an empty name or an aspect that the golden set does not have.
    """
    store.projects.get(project_id)
    golden = store.goldens.get(golden_id)
    if judge.aspect not in {labelled.aspect for labelled in golden.aspects}:
        raise UsageError(f"{golden.name} has no aspect {judge.aspect!r}.")
    _check_name(judge.name)
    return store.judges.add(project_id, golden_id, judge, replies)


@requires("viewer")
def judge_replies(store: Store, project_id: str, judge_id: str) -> dict[str, tuple[str, ...]]:
    """Item id → replies as they came; empty for a judge without.  NotFoundError for an unknown id."""
    return store.judges.replies(project_id, judge_id)


@requires("reviewer", "renamed a judge")
def rename_judge(store: Store, project_id: str, judge_id: str, name: str) -> None:
    """NotFoundError for an unknown id, UsageError for an empty or endless name."""
    _check_name(name)
    store.judges.rename(project_id, judge_id, name.strip())


@requires("reviewer", "removed a judge")
def remove_judge(store: Store, project_id: str, judge_id: str) -> None:
    """Remove a judge; a run that made it stays."""
    store.judges.remove(project_id, judge_id)


# ── files of replies or scores ───────────────────────────────────────────────────────────────────────────────


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
    from core.judging.parse import read_rating

    golden = store.goldens.load(golden_id)
    recording = read_recording(store, file, name, max_mb=max_mb) if isinstance(file, bytes) else file
    return match(recording, golden, aspect, choices, read_reply=read_rating)


@requires("reviewer")
def import_judge(store: Store, project_id: str, preview: ImportPreview, name: str) -> str:
    """Enter what a person was shown as a judge called `name`, with its replies; returns the judge's id.

    The same file with the same choices makes one judge, whatever the name.  UsageError for a preview with problems
    or an empty name, NotFoundError for an unknown project.
    """
    store.projects.get(project_id)
    judge, replies = preview.as_judge(name)
    return add_judge(store, project_id, preview.golden_id, judge, replies)


def _check_name(name: str) -> None:
    if not name.strip():
        raise UsageError("A judge needs a name, so that people can tell it from others.")
    if len(name) > _LONGEST_NAME:
        raise UsageError(f"The judge's name has {len(name)} characters; at most {_LONGEST_NAME} are shown.")
