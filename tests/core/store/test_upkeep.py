"""What the store holds, what may go, and a backup that fills another store, of the same kind or the other."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path

import pytest
import sqlalchemy as sa

from core.errors import NotFoundError, StoreError
from core.people import Actor
from core.records import GoldenSet
from core.review.criteria import Comment
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
    store.workers.enter("w", "here", 1)
    answers = {
        "mine": [("k-mine", reply("m" * 100, 40)), ("k-shared", reply("s"))],
        "open": [("k-open", reply("o"))],
        "theirs": [("k-theirs", reply("t"))],
    }
    for name, run_id in made.items():
        replies = store.replies.of_run(run_id, store.runs.get(run_id).project_id)
        replies.put_replies(answers[name])
        if name == "theirs":
            replies.get_replies(["k-shared"])
        if name != "open":
            assert store.runs.claim(run_id, 1, "w")
            assert store.runs.finish(run_id, 1, "done")
    return made


def keys(store: Store) -> set[str]:
    return set(store.replies.get_replies(["k-mine", "k-shared", "k-open", "k-theirs"]))


def test_what_is_held_is_counted(store: Store, runs: dict[str, str]) -> None:
    held = {each.what: each for each in store.upkeep.held()}
    assert held["replies"].n == 4  # as `prune` counts them; that a run was answered with one is no reply more
    assert held["replies"].n_bytes > 400
    oldest = held["replies"].oldest_at
    assert oldest is not None
    assert abs(oldest - time.time()) < 3600
    assert held["metric values"].n == 0
    assert held["metric values"].oldest_at is None


def test_replies_of_one_project_go_but_for_what_others_use(store: Store, runs: dict[str, str]) -> None:
    looked = store.upkeep.prune_replies(project_id="p-one")
    assert keys(store) == {"k-mine", "k-shared", "k-open", "k-theirs"}  # only looked
    assert store.upkeep.prune_replies(project_id="p-one", really=True) == looked
    assert (looked.n, looked.prompt_tokens, looked.completion_tokens) == (1, 40, 1)
    assert keys(store) == {"k-shared", "k-open", "k-theirs"}
    assert store.replies.of_run(runs["mine"], "p-one").answered(["k-mine"]) == {}


def test_old_replies_go_but_for_those_of_unfinished_runs(store: Store, runs: dict[str, str]) -> None:
    assert store.upkeep.prune_replies(before=time.time() - 86_400, really=True).n == 0
    assert store.upkeep.prune_replies(before=time.time() + 86_400, really=True).n == 3
    assert keys(store) == {"k-open"}
    store.upkeep.shrink()
    assert keys(store) == {"k-open"}


@pytest.mark.parametrize("status", ["cancelled", "failed", "budget", "done"])
@pytest.mark.parametrize(("project_id", "days"), [("p-one", None), ("p-one", -1.0), ("", -1.0)])
def test_replies_stay_with_a_run_that_can_be_resumed(
    store: Store, runs: dict[str, str], status: str, project_id: str, days: float | None
) -> None:
    if status == "cancelled":
        store.runs.request_cancel(runs["open"])
    else:
        assert store.runs.claim(runs["open"], 1, "w")
        assert store.runs.finish(runs["open"], 1, status)
    before = None if days is None else time.time() - days * 86_400
    store.upkeep.prune_replies(before=before, project_id=project_id, really=True)
    resumable = status in ("cancelled", "failed")
    assert store.runs.get(runs["open"]).resumable is resumable
    assert ("k-open" in keys(store)) is resumable
    assert "k-mine" not in keys(store)
    if resumable:
        store.runs.requeue(runs["open"])
        assert set(store.replies.of_run(runs["open"], "p-one").answered(["k-open"])) == {"k-open"}


def test_a_backup_fills_an_empty_store_of_either_kind(
    store: Store, runs: dict[str, str], url: str, tmp_path: Path
) -> None:
    store.events.add("p-one", Comment("said", subject="c1"), Actor("Ada", "reviewer"))
    backup = tmp_path / "there" / "backup.sqlite"
    assert store.upkeep.copy_to(backup) == backup.stat().st_size
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert [path.name for path in backup.parent.iterdir()] == ["backup.sqlite"]
    with Store(f"sqlite:///{tmp_path / 'other' / 'concord.sqlite'}") as other:
        assert other.upkeep.take_from(backup) == 2
        came, own = other.runs.get(runs["mine"]), store.runs.get(runs["mine"])
        assert (came.title, came.status, came.created_at) == (own.title, own.status, own.created_at)
        assert keys(other) == keys(store)
        assert other.events.all("p-one", Comment) == store.events.all("p-one", Comment)
        other.events.add("p-one", Comment("more", subject="c1"), Actor("Ben", "reviewer"))
        assert [entry.number for entry in other.events.all("p-one", Comment)] == [1, 2]
        again = tmp_path / "again.sqlite"
        other.upkeep.copy_to(again)
    with pytest.raises(StoreError, match="not empty"):
        store.upkeep.take_from(again)
    empty(store)
    assert store.upkeep.take_from(again) == 2
    numbers = [entry.number for entry in store.events.all("p-one", Comment)]
    store.events.add("p-one", Comment("last", subject="c1"), Actor("Ada", "reviewer"))
    assert store.events.all("p-one", Comment)[-1].number > max(numbers)


def empty(store: Store) -> None:
    from core.store.schema import metadata

    with store._database.write() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(sa.delete(table))


def test_what_is_no_backup_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no file"):
        store.upkeep.take_from(tmp_path / "missing.sqlite")
    text = tmp_path / "notes.txt"
    text.write_text("hello " * 500)
    with pytest.raises(StoreError, match="no database"):
        store.upkeep.take_from(text)
    assert store.projects.all() == []
