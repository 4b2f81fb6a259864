"""Writes that belong together stand whole or not at all, wherever the process is killed."""

from __future__ import annotations

import pytest

from core.errors import NotFoundError
from core.project_records import LOCAL
from core.records import GoldenSet
from core.store.log import Action
from core.store.store import Store


class Killed(BaseException):
    """No handler takes this for an error."""


def entered(store: Store, project_id: str, golden_id: str, *, then: BaseException | None = None) -> str:
    def enter() -> str:
        run_id = store.runs.add(project_id, golden_id, "calibration", "t", "a", "offline", "{}")
        store.events.add(project_id, Action("entered", subject=run_id), LOCAL)
        assert store.runs.get(run_id).title == "t"  # reads within it see what it wrote
        if then is not None:
            raise then
        return run_id

    return store.together(enter)


@pytest.mark.parametrize("why", [Killed(), NotFoundError("gone")])
def test_what_was_cut_off_left_nothing(store: Store, golden: GoldenSet, why: BaseException) -> None:
    project_id = store.projects.add("p")
    golden_id = store.goldens.add(project_id, golden)
    with pytest.raises(type(why)):
        entered(store, project_id, golden_id, then=why)
    assert not store.runs.all(project_id)
    assert not store.events.all(project_id, Action)
    run_id = entered(store, project_id, golden_id)  # and the next is a transaction of its own again
    assert [run.run_id for run in store.runs.all(project_id)] == [run_id]
    assert [entry.subject for entry in store.events.all(project_id, Action)] == [run_id]
