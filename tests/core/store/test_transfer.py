"""Replies of runs and the rows of a project, on both kinds of stores; the rest is in tests/core/projects/archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import StoreError
from core.people import LOCAL
from core.records import GoldenSet
from core.store.layout import decode, encode
from core.store.log import Action
from core.store.store import Store
from core.store.transfer import Arrival


@pytest.fixture
def run_id(store: Store, project: str, golden: GoldenSet) -> str:
    golden_id = store.goldens.add(project, golden)
    return store.runs.add(project, golden_id, "calibration", "t", "coherence", "offline", "{}")


def _rows(store: Store, project: str) -> dict[str, list[dict[str, Any]]]:
    return {table: list(rows) for table, rows in store.transfers.dump(project)}


def test_a_run_notes_the_replies_it_asked_for(store: Store, project: str, run_id: str) -> None:
    own = store.replies.of_run(run_id)
    store.replies.put_replies([("k1", '{"a": 1}'), ("k2", "{}"), ("k3", "{}")])
    assert own.get_replies(["k1", "k1", "k9"]) == {"k1": '{"a": 1}'}
    own.put_replies([("k2", "{}"), ("k4", "{}")])
    own.put_replies([])
    rows = _rows(store, project)
    assert {row["reply_key"]: row["body"] for row in rows["run_replies"]} == {"k1": {"a": 1}, "k2": {}, "k4": {}}


def test_rows_that_fail_half_way_leave_nothing(store: Store, project: str, golden: GoldenSet) -> None:
    before = [row.project_id for row in store.projects.all()]
    row = {"golden_id": store.goldens.add(project, golden), "name": "n", "created_at": 1.0}

    def rows() -> Iterator[dict[str, Any]]:
        yield row
        raise RuntimeError("the file ends here")

    with pytest.raises(RuntimeError, match="ends here"):
        store.transfers.restore(Arrival("n", LOCAL, Action("imported"), {}), [("project_goldens", rows())])
    with pytest.raises(StoreError, match="same key"):
        store.transfers.restore(Arrival("n", LOCAL, Action("imported"), {}), [("project_goldens", [row, row])])
    assert [row.project_id for row in store.projects.all()] == before


def test_a_dump_sees_one_moment(store: Store, project: str, run_id: str) -> None:
    """A reply that comes while the project is read is not in it."""
    own = store.replies.of_run(run_id)
    own.put_replies([("k1", "{}")])
    for table, rows in store.transfers.dump(project):
        if table == "runs":
            own.put_replies([("k2", "{}")])
        n = len(list(rows))
        assert table != "run_replies" or n == 1


@pytest.mark.parametrize("text", ['{"a":[1,2.5,null,"ä\\u0000"]}', "[]", '{"a":NaN}', '"plain"', '{"a":-0.0}'])
def test_stored_json_comes_back(text: str) -> None:
    row = {"run_id": "r", "reply_key": "k", "paid": True, "body": text}
    assert decode("run_replies", encode("run_replies", row)) == row
