"""Who may do what: every task against every role, and what the log keeps of it."""

from __future__ import annotations

import csv
import inspect
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.errors import AccessError, ConcordError
from core.jobs import tasks
from core.jobs.views import CalibrationRequest
from core.people import ROLES, Actor, Role
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Scale
from core.settings import Settings
from core.store.store import Store

OPEN = {"open_store", "ensure_worker", "ensure_sample_project", "worker_alive"}  # start-up; nobody acts yet
LEAST: dict[str, Role] = {
    **dict.fromkeys(
        "estimate explain_item get_criteria get_golden get_judge get_project golden_page item_scores judge_file "
        "judge_replies list_criteria list_events list_goldens list_judges list_projects list_runs load_calibration "
        "load_golden_set load_scores run_version run_view".split(),
        "viewer",
    ),
    **dict.fromkeys(
        "add_golden add_judge cancel_run remove_judge rename_judge resume_run save_edit start_calibration "
        "start_rescore".split(),
        "reviewer",
    ),
    **dict.fromkeys(["create_project", "log_csv"], "admin"),
}


class TouchedError(Exception):
    """The guard let somebody through to the task itself."""


class Untouchable:
    """A store that only knows who acts; anything else asked of it means that the guard was passed."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def __getattr__(self, name: str) -> Any:
        raise TouchedError(name)


def test_every_task_says_whom_it_lets_in() -> None:
    assert set(LEAST) | OPEN == set(tasks.__all__)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", sorted(LEAST))
def test_task_by_role(name: str, role: Role) -> None:
    task = getattr(tasks, name)
    needed = list(inspect.signature(task).parameters.values())[1:]
    arguments = {p.name: _anything(p) for p in needed if p.default is p.empty}
    store: Any = Untouchable(Actor("Ann", role))
    if ROLES.index(role) < ROLES.index(LEAST[name]):
        with pytest.raises(AccessError, match=rf"Ann may not .* role {LEAST[name]}.* is {role}"):
            task(store, **arguments)
    else:
        with pytest.raises((TouchedError, ConcordError, AttributeError)) as raised:
            task(store, **arguments)
        assert not isinstance(raised.value, AccessError)


def _anything(parameter: inspect.Parameter) -> Any:
    if parameter.name == "judge":
        return JudgeScores("j", "imported", "a", np.zeros(1))
    if parameter.name == "request":
        return CalibrationRequest("p", "g", "a")
    return 0 if parameter.annotation == "int" else "x"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = tasks.open_store(Settings(home=tmp_path / "home", worker="external", worker_id="w"))
    yield opened
    opened.close()


def test_changes_are_logged_with_their_author(store: Store) -> None:
    project = tasks.create_project(store.acting(Actor("Ada", "admin")), "p")
    golden = GoldenSet("g", "single", (Item("i", "t", "s"),), {"a": AspectLabels("a", Scale(1, 5), (3.0,))})
    bo = store.acting(Actor("=Bo", "reviewer"))
    golden_id = tasks.add_golden(bo, project.project_id, golden)
    tasks.add_judge(bo, project.project_id, golden_id, JudgeScores("j", "imported", "a", np.array([2.0])))
    tasks.list_goldens(bo, project.project_id)  # looking is not logged
    logged = [(one.actor, one.role, one.sentence) for one in tasks.list_events(store, project.project_id)]
    assert logged == [
        ("Ada", "admin", "made the project"),
        ("=Bo", "reviewer", "added a golden set"),
        ("=Bo", "reviewer", "added a judge"),
    ]
    rows = list(csv.DictReader(io.StringIO(tasks.log_csv(store, project.project_id))))
    assert [row["actor"] for row in rows] == ["Ada", "'=Bo", "'=Bo"]
    with pytest.raises(AccessError):
        tasks.log_csv(bo, project.project_id)


def test_what_was_refused_changes_nothing(store: Store) -> None:
    project = tasks.create_project(store, "p")
    viewer = store.acting(Actor("Vi", "viewer"))
    with pytest.raises(AccessError, match="Vi may not"):
        tasks.create_project(viewer, "q")
    assert [one.project_id for one in tasks.list_projects(viewer)] == [project.project_id]
    assert len(tasks.list_events(viewer, project.project_id)) == 1
