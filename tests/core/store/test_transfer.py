"""Replies of runs and the rows of a project, on both kinds of stores; the rest is in tests/core/projects/archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import StoreError
from core.people import LOCAL
from core.records import GoldenSet
from core.review.log import Action
from core.store.layout import as_json, decode, encode, json_text
from core.store.store import Store
from core.store.transfer import Arrival


@pytest.fixture
def run_id(store: Store, project: str, golden: GoldenSet) -> str:
    golden_id = store.goldens.add(project, golden)
    return store.runs.add(project, golden_id, "calibration", "t", "coherence", "offline", "{}")


def _rows(store: Store, project: str) -> dict[str, list[dict[str, Any]]]:
    return {table: list(rows) for table, rows in store.transfers.dump(project)}


def test_a_run_notes_the_replies_it_asked_for(store: Store, project: str, run_id: str) -> None:
    own = store.replies.of_run(run_id, project)
    store.replies.put_replies([("k1", '{"a": 1}'), ("k2", "{}"), ("k3", "{}")])
    assert own.get_replies(["k1", "k1", "k9"]) == {"k1": '{"a": 1}'}
    own.put_replies([("k2", "{}"), ("k4", "{}")])
    own.put_replies([])
    rows = _rows(store, project)
    assert {row["reply_key"] for row in rows["run_replies"]} == {"k1", "k2", "k4"}
    assert {row["reply_key"]: row["body"] for row in rows["replies"]} == {"k1": {"a": 1}, "k2": {}, "k4": {}}
    assert store.transfers.without_run() == 1


def test_the_installations_own_reply_goes_before_one_that_came(store: Store, project: str, golden: GoldenSet) -> None:
    rows = [("replies", [{"reply_key": "k", "body": {"from": "file"}, "created_at": 1.0}])]
    came = store.transfers.restore(Arrival("came", LOCAL, Action("imported"), {}), rows)
    golden_id = store.goldens.add(came, golden)
    run = store.runs.add(came, golden_id, "calibration", "t", "coherence", "offline", "{}")
    own = store.replies.of_run(run, came)
    assert own.get_replies(["k"]) == {"k": '{"from":"file"}'}
    assert store.replies.of_run(run, project).get_replies(["k"]) == {}
    store.replies.put_replies([("k", '{"from": "here"}')])
    assert own.get_replies(["k"]) == {"k": '{"from": "here"}'}
    assert [row["body"] for row in _rows(store, came)["replies"]] == [{"from": "here"}]


def test_rows_that_fail_half_way_leave_nothing(store: Store, project: str) -> None:
    before = [row.project_id for row in store.projects.all()]

    def rows() -> Iterator[dict[str, Any]]:
        yield {"reply_key": "k", "body": {}, "created_at": 1.0}
        raise RuntimeError("the file ends here")

    with pytest.raises(RuntimeError, match="ends here"):
        store.transfers.restore(Arrival("n", LOCAL, Action("imported"), {}), [("replies", rows())])
    twice = [{"reply_key": "k", "body": {}, "created_at": 1.0}] * 2
    with pytest.raises(StoreError, match="same key"):
        store.transfers.restore(Arrival("n", LOCAL, Action("imported"), {}), [("replies", twice)])
    assert [row.project_id for row in store.projects.all()] == before


def test_a_dump_sees_one_moment(store: Store, project: str, run_id: str) -> None:
    """A reply that comes while the project is read is in neither of its two tables."""
    tables = store.transfers.dump(project)
    own = store.replies.of_run(run_id, project)
    own.put_replies([("k1", "{}")])
    seen: dict[str, int] = {}
    for table, rows in tables:
        if table == "goldens":
            list(rows)
        if table == "runs":
            own.put_replies([("k2", "{}")])
        seen[table] = len(list(rows))
    assert (seen["run_replies"], seen["replies"]) == (1, 1)


def test_taken_ids(store: Store, run_id: str) -> None:
    assert store.transfers.taken([run_id, *(f"r{k:012x}" for k in range(1200))]) == {run_id}


@pytest.mark.parametrize("text", ['{"a":[1,2.5,null,"ä\\u0000"]}', "[]", '{"a":NaN}', '"plain"', '{"a":-0.0}'])
def test_stored_json_comes_back(text: str) -> None:
    row = {"reply_key": "k", "body": text, "created_at": 1.0}
    assert decode("replies", encode("replies", row)) == row


def test_json_text_of_half_a_pair() -> None:
    assert json_text("ä\ud800") == '"\\u00e4\\ud800"'
    assert as_json(json_text(["ä\ud800"])) == ["ä\ud800"]
