"""Replies of runs and the rows of a project, on both kinds of stores; the rest is in tests/core/projects/archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import StoreError
from core.records import GoldenSet
from core.store.store import Store


@pytest.fixture
def run_id(store: Store, project: str, golden: GoldenSet) -> str:
    golden_id = store.goldens.add(project, golden)
    return store.runs.add(project, golden_id, "calibration", "t", "coherence", "offline", "{}")


def test_rows_that_fail_half_way_leave_nothing(store: Store, project: str, golden: GoldenSet) -> None:
    before = [row.project_id for row in store.projects.all()]
    row = {"golden_id": store.goldens.add(project, golden), "name": "n", "created_at": 1.0}

    def rows() -> Iterator[dict[str, Any]]:
        yield row
        raise RuntimeError("the file ends here")

    with pytest.raises(RuntimeError, match="ends here"):
        store.transfers.restore("n", [("project_goldens", rows())], runs={})
    with pytest.raises(StoreError, match="same key"):
        store.transfers.restore("n", [("project_goldens", [row, row])], runs={})
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
