"""The rows of a project, on both kinds of stores; the rest is in tests/core/projects/archive."""

from __future__ import annotations

from core.records import GoldenSet
from core.store.store import Store


def test_a_dump_sees_one_moment(store: Store, project: str, golden: GoldenSet) -> None:
    """A reply that comes while the project is read is not in it."""
    golden_id = store.goldens.add(project, golden)
    run_id = store.runs.add(project, golden_id, "calibration", "t", "coherence", "offline", "{}")
    own = store.replies.of_run(run_id)
    own.put_replies([("k1", "{}")])
    for table, rows in store.transfers.dump(project):
        if table == "runs":
            own.put_replies([("k2", "{}")])
        n = len(list(rows))
        assert table != "run_replies" or n == 1
