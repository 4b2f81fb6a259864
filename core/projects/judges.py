"""Judges of a project: what calibrations, imports, metrics and other runs left to be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.errors import UsageError
from core.projects.access import requires
from core.projects.convert import judge_view
from core.projects.views.judges import JudgeView
from core.records import JudgeScores
from core.store.store import Store

_LONGEST_NAME = 120


@requires("viewer")
def list_judges(
    store: Store, project_id: str, golden_id: str | None = None, aspect: str | None = None
) -> list[JudgeView]:
    """The project's judges (of one golden set, of one aspect), oldest first."""
    return [judge_view(row) for row in store.judges.all(project_id, golden_id, aspect)]


@requires("viewer")
def get_judge(store: Store, project_id: str, judge_id: str) -> JudgeView:
    """NotFoundError for an unknown id."""
    return judge_view(store.judges.get(project_id, judge_id))


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
    if judge.aspect not in {one.aspect for one in golden.aspects}:
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
    """Take a judge off the shelf; a run that made it stays."""
    store.judges.remove(project_id, judge_id)


def _check_name(name: str) -> None:
    if not name.strip():
        raise UsageError("A judge needs a name, so that people can tell it from others.")
    if len(name) > _LONGEST_NAME:
        raise UsageError(f"The judge's name has {len(name)} characters; at most {_LONGEST_NAME} are shown.")
