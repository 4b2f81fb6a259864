from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from core.errors import JobError, LostRunError
from core.records import GoldenSet, ScoreMatrix, Unscored
from core.store.store import Store


def reply(text: str, finish: str = "stop") -> str:
    return json.dumps({"text": text, "finish": finish})


def scores(**rows: list[float]) -> ScoreMatrix:
    """Criteria → scores of some items; the store goes by positions, not by their ids."""
    n_items = len(next(iter(rows.values())))
    return ScoreMatrix(tuple(rows), ("?",) * n_items, np.array(list(rows.values())), {})


@pytest.fixture
def run_id(store: Store, project: str, golden: GoldenSet) -> str:
    golden_id = store.goldens.add(project, golden)
    return store.runs.add(project, golden_id, "calibration", "title", "coherence", "offline", '{"x":1}')


def test_of_workers_that_claim_a_run_at_once_one_gets_it(store: Store, run_id: str) -> None:
    start = threading.Barrier(8)

    def claim(k: int) -> bool:
        start.wait()
        return store.runs.claim(run_id, 1, f"w{k}")

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(claim, range(8))) == 1


def test_a_working_run_is_told_to_stop_and_others_are_cancelled_at_once(store: Store, run_id: str) -> None:
    store.workers.register("w", "here", 1)
    store.runs.claim(run_id, 1, "w")
    assert store.runs.must_stop(run_id, 1) == ""
    store.runs.request_cancel(run_id)
    assert (store.runs.get(run_id).status, store.runs.must_stop(run_id, 1)) == ("running", "cancelled")
    store.workers.unregister("w")  # lost
    store.runs.request_cancel(run_id)
    assert store.runs.get(run_id).status == "cancelled"
    store.runs.requeue(run_id)
    store.runs.request_cancel(run_id)  # queued
    assert store.runs.get(run_id).status == "cancelled"
    assert not store.runs.claim(run_id, 2, "w")


def test_resuming_makes_a_new_attempt(store: Store, run_id: str) -> None:
    store.runs.claim(run_id, 1, "w")
    with pytest.raises(JobError, match="You can resume only failed or cancelled runs"):
        store.runs.requeue(run_id)
    store.runs.finish(run_id, 1, "failed", error="endpoint down")
    store.runs.requeue(run_id)
    run = store.runs.get(run_id)
    assert (run.status, run.attempt, run.error, run.finished_at) == ("queued", 2, "", None)
    assert not store.runs.claim(run_id, 1, "old")  # what is left of the first attempt does not get it
    assert store.runs.claim(run_id, 2, "w")


def test_what_an_older_attempt_writes_is_refused(store: Store, run_id: str) -> None:
    store.runs.claim(run_id, 1, "dead")
    store.results.put_document(run_id, "standing", 1, attempt=1)
    store.runs.pass_on(run_id, 1)
    store.runs.claim(run_id, 2, "new")
    for write in (
        lambda: store.results.put_document(run_id, "standing", 2, attempt=1),
        lambda: store.results.add_scores(run_id, (0,), scores(c=[1.0]), attempt=1),
    ):
        with pytest.raises(LostRunError):
            write()
    assert store.results.read(run_id, "standing", int) == 1
    assert store.results.scores(run_id, ["a"] * 4).criteria_ids == ()


def test_scores_are_gathered_exactly(store: Store, run_id: str, golden: GoldenSet) -> None:
    third = 1 / 3
    refused = Unscored("b", "refused", raw=("no\x00",))
    unread = replace(scores(c2=[third, np.nan]), unscored={"c2": (refused,)})
    store.results.add_scores(run_id, (0, 1), unread)
    store.results.add_scores(run_id, (2, 3), scores(c2=[np.nan, 0.1 + 0.2], c1=[5.0, np.nan]))
    store.results.add_scores(run_id, (3,), scores(c2=[0.1 + 0.2]))  # a repetition
    result = store.results.scores(run_id, golden.item_ids)
    nan = float("nan")
    assert result.criteria_ids == ("c1", "c2")
    np.testing.assert_array_equal(result.values, [[nan, nan, 5.0, nan], [third, nan, nan, 0.1 + 0.2]])
    assert result.unscored == {"c2": (refused,)}
    assert store.results.scores(run_id, golden.item_ids, ["c2", "c9"]).criteria_ids == ("c2",)


def test_what_a_run_was_answered_is_its_own(store: Store, project: str, run_id: str) -> None:
    """Paid, found and failed answers, each as it counted; what no other run may have serves this one."""
    store.replies.put_replies([("found", reply("before"))])
    own = store.replies.of_run(run_id)
    assert set(own.get_replies(["found", "none"])) == {"found"}
    cut, failed = reply("cut o", "length"), json.dumps({"failure": "filtered"})
    own.put_replies([("paid", reply("good")), ("cut", cut), ("found", reply("later"))])
    own.put_failures([("failed", failed)])
    again = store.replies.of_run(run_id).answered(["paid", "cut", "failed", "found", "none"])
    assert again == {
        "paid": (reply("good"), True),
        "cut": (cut, True),
        "failed": (failed, True),
        "found": (reply("before"), False),
    }
    assert set(store.replies.get_replies(["paid", "cut", "failed"])) == {"paid"}
    own.put_replies([("beside the point", beside := json.dumps({"text": "Well.", "finish": "stop", "unread": True}))])
    assert set(own.unread()) == {"cut", "failed", "beside the point"}
    assert store.replies.of_run("r-another").get_replies(["beside the point", "cut"]) == {}
    assert own.answered(["beside the point"]) == {"beside the point": (beside, True)}
    own.forget_unread()
    assert set(own.answered(["paid", "cut", "failed", "found", "beside the point"])) == {"paid", "found"}
