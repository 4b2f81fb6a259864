"""What the store holds, and which old replies are deleted."""

from __future__ import annotations

import json
import time

import pytest

from core.records import GoldenSet
from core.store.store import Store


def reply(text: str, tokens: int = 10) -> str:
    return json.dumps({"text": text, "finish": "stop", "usage": {"prompt_tokens": tokens, "completion_tokens": 1}})


@pytest.fixture
def runs(store: Store, golden: GoldenSet) -> dict[str, str]:
    """Name → run: two of one project, the second unfinished, and one of another; first and last share a reply."""
    made = {}
    for name, project in (("mine", "p-one"), ("open", "p-one"), ("theirs", "p-two")):
        if project not in [known.project_id for known in store.projects.all()]:
            store.projects.add(project, project)
        golden_id = store.goldens.add(project, golden)
        made[name] = store.runs.add(project, golden_id, "calibration", name, "coherence", "offline", '{"x":1}')
    store.workers.register("w", "here", 1)
    answers = {
        "mine": [("k-mine", reply("m" * 100, 40)), ("k-shared", reply("s"))],
        "open": [("k-open", reply("o"))],
        "theirs": [("k-theirs", reply("t"))],
    }
    for name, run_id in made.items():
        replies = store.replies.of_run(run_id)
        replies.put_replies(answers[name])
        if name == "theirs":
            replies.get_replies(["k-shared"])
        if name != "open":
            assert store.runs.claim(run_id, 1, "w")
            assert store.runs.finish(run_id, 1, "done")
    return made


def keys(store: Store) -> set[str]:
    return set(store.replies.get_replies(["k-mine", "k-shared", "k-open", "k-theirs"]))


def test_old_replies_go_but_for_those_of_unfinished_runs(store: Store, runs: dict[str, str]) -> None:
    assert store.upkeep.prune_replies(time.time() - 86_400, delete=True).n == 0
    looked = store.upkeep.prune_replies(time.time() + 86_400)
    assert looked.n == 3 and looked.n_bytes > 3 * 60
    assert keys(store) == {"k-mine", "k-shared", "k-open", "k-theirs"}  # only looked
    assert store.upkeep.prune_replies(time.time() + 86_400, delete=True) == looked
    assert keys(store) == {"k-open"}
    store.upkeep.shrink()
    assert keys(store) == {"k-open"}


@pytest.mark.parametrize("status", ["failed", "done"])
def test_replies_stay_with_a_run_that_can_be_resumed(store: Store, runs: dict[str, str], status: str) -> None:
    assert store.runs.claim(runs["open"], 1, "w")
    assert store.runs.finish(runs["open"], 1, status)
    store.upkeep.prune_replies(time.time() + 86_400, delete=True)
    resumable = status == "failed"
    assert store.runs.get(runs["open"]).resumable is resumable
    assert ("k-open" in keys(store)) is resumable
    assert "k-mine" not in keys(store)
    if resumable:
        store.runs.requeue(runs["open"])
        assert set(store.replies.of_run(runs["open"]).answered(["k-open"])) == {"k-open"}
