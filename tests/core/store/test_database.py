from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from core.errors import NotFoundError, StoreError, StoreFullError
from core.records import Criteria, GoldenSet, Usage
from core.store import database
from core.store.rows import NewRun, Progress
from core.store.schema import HEAD, metadata
from core.store.store import Store

MIGRATES = True
"""Stores of this module run the migrations (see `tables_copied` in tests/conftest.py)."""

OLDEST = {  # rows as the first schema held them, written out by hand; never changed when the schema moves on
    "projects": {"project_id": "p1", "name": '"old \\u0000 name"', "created_at": 1.5},
    "goldens": {
        "golden_id": "golden:1",
        "kind": "single",
        "n_items": 1,
        "n_sources": 1,
        "n_systems": 0,
        "n_ratings": 1,
        "aspects": '{"rows":[{"aspect":"a","scale":{"low":1,"high":5,"step":null,"given":false},"n_labelled":1}]}',
        "body": '{"aspects":{"a":{"aspect":"a","scale":{"low":1,"high":5,"step":null,"given":false},"values":[2.5]}},'
        '"metrics":{},"given_split":[]}',
        "ratings": '{"item_id":[0],"item_ids":["i"],"rater_id":[0],"rater_ids":["r"],"aspect":[0],"aspects":["a"],'
        '"value":[2.5],"comment":{"0":"why"}}',
        "created_at": 1.5,
    },
    "golden_items": {"golden_id": "golden:1", "position": 0, "body": '["i","text","s","","","",["ref"]]'},
    "project_goldens": {"project_id": "p1", "golden_id": "golden:1", "name": '"old set"', "created_at": 2.0},
    "criteria": {
        "project_id": "p1",
        "criteria_id": Criteria("be kind", "a").criteria_id,
        "golden_id": "golden:1",
        "aspect": '"a"',
        "body": json.dumps({"text": "be kind", "provenance": {"origin": "draft", "round": 0, "parents": []}}),
        "created_at": 3.0,
    },
    "runs": {
        "run_id": "r1",
        "project_id": "p1",
        "golden_id": "golden:1",
        "kind": "calibration",
        "title": '"t"',
        "aspect": '"a"',
        "judge_spec": '"offline"',
        "request": "{}",
        "status": "done",
        "phase": '"done"',
        "message": '""',
        "error": '""',
        "calls": 5,
        "calls_expected": 6,
        "usage": '{"requests":5}',
        "attempt": 1,
        "handed_over": 1,
        "cancel_requested": False,
        "worker_id": '"w"',
        "version": 9,
        "created_at": 4.0,
        "updated_at": 5.0,
        "started_at": 4.5,
        "finished_at": 5.0,
    },
    "run_scores": {
        "run_id": "r1",
        "criteria_id": "c1",
        "body": '{"unscored":[]}',
        "blob": bytes.fromhex("9a9999999999b93f"),  # 0.1 as little-endian float64
    },
    "replies": {"reply_key": "reply:1", "body": '"paid for"', "created_at": 6.0},
}


def test_data_of_the_oldest_schema_is_read(url: str) -> None:
    engine = sa.create_engine(database.sqlalchemy_url(url))
    if engine.dialect.name == "sqlite":
        Path(str(engine.url.database)).parent.mkdir()
    with engine.begin() as connection:
        database.upgrade(connection, "0001")
    old = sa.MetaData()
    old.reflect(engine)
    with engine.begin() as connection:
        for table, row in OLDEST.items():
            connection.execute(sa.insert(old.tables[table]), row)
    engine.dispose()
    with Store(url) as store:
        golden = store.goldens.load("golden:1")
        assert (golden.name, golden.items[0].references, golden.ratings[0].comment) == ("old set", ("ref",), "why")
        assert golden.labels("a").tolist() == [2.5]
        assert [row.name for row in store.projects.all()] == ["old \x00 name"]
        assert store.criteria.all("p1")[0].criteria.text == "be kind"
        assert (store.runs.get("r1").usage, store.runs.get("r1").version) == (Usage(5), 9)
        assert store.results.scores("r1", ["i"]).values.tolist() == [[0.1]]
        assert store.replies.get_replies(["reply:1"]) == {"reply:1": "paid for"}


def test_projects_that_were_imported_earlier_are_known(url: str) -> None:
    """By the entry that the import wrote here; entries that came in a file say in their role that they did."""
    engine = sa.create_engine(database.sqlalchemy_url(url))
    if engine.dialect.name == "sqlite":
        Path(str(engine.url.database)).parent.mkdir()
    with engine.begin() as connection:
        database.upgrade(connection, "0007")
    old = sa.MetaData()
    old.reflect(engine)
    said = json.dumps(json.dumps({"did": "imported the project p"}))
    with engine.begin() as connection:
        for name, role in {"p1": "admin", "p2": "admin (imported)", "demo": "admin"}.items():
            connection.execute(
                sa.insert(old.tables["projects"]), {"project_id": name, "name": f'"{name}"', "created_at": 1.0}
            )
            row = {"project_id": name, "kind": "audit", "subject": '""', "actor": '"Ada"', "role": role}
            connection.execute(sa.insert(old.tables["events"]), row | {"form": name, "body": said, "created_at": 7.0})
    engine.dispose()
    with Store(url) as store:
        assert {one.project_id: one.imported_at for one in store.projects.all()} == {
            **{"p1": 7.0, "p2": None, "demo": None}
        }


def test_labels_of_an_older_schema_go_to_the_pass_they_were_given_in(url: str) -> None:
    """Two passes over one golden set, of aspects a and a with b; who rated when and what says where a label belongs."""
    engine = sa.create_engine(database.sqlalchemy_url(url))
    if engine.dialect.name == "sqlite":
        Path(str(engine.url.database)).parent.mkdir()
    with engine.begin() as connection:
        database.upgrade(connection, "0001")
    old = sa.MetaData()
    old.reflect(engine)
    with engine.begin() as connection:
        for table, row in OLDEST.items():
            connection.execute(sa.insert(old.tables[table]), row)
        connection.execute(sa.insert(old.tables["golden_items"]), SECOND_ITEM)
        database.upgrade(connection, "0007")
    older = sa.MetaData()
    older.reflect(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(older.tables["events"]), _events())
        connection.execute(sa.insert(older.tables["labels"]), [_label(*one) for one in GIVEN])
    engine.dispose()
    with Store(url) as store:
        found = {
            row.comment: (row.pass_id, row.taken_from)
            for pass_id in ("l1", "l2")
            for item_id in ("i", "j \x00")
            for row in store.labels.history("p1", pass_id, item_id)
        }
        assert found == {one[-1]: (one[0], "") for one in GIVEN}


SECOND_ITEM = {"golden_id": "golden:1", "position": 1, "body": '["j \\u0000","text","s","","","",[]]'}
GIVEN = (  # the pass it belongs to, rater, item, aspect, when, why
    ("l1", "Ann", "i", "a", 15.0, "before the second pass began"),
    ("l1", "Ann", "j \x00", "a", 25.0, "she had joined the first alone by then"),
    ("l2", "Bo", "i", "a", 35.0, "he joined the second alone"),
    ("l2", "Ann", "i", "b", 45.0, "only the second asks for b"),
    ("l1", "Ann", "i", "a", 46.0, "she had joined both: the first of them"),
    ("l1", "Cy", "j \x00", "a", 47.0, "he joined none, and only the first has the item"),
    ("l1", "Cy", "i", "c", 48.0, "no pass asks for c: the first"),
    ("l2", "Bo", "i", "", 49.0, "a comment of his"),
)


def _events() -> list[dict[str, object]]:
    def event(kind: str, pass_id: str, actor: str, at: float, body: object) -> dict[str, object]:
        who = {"subject": json.dumps(pass_id), "actor": json.dumps(actor), "role": "admin"}
        row = {"project_id": "p1", "kind": kind, **who, "form": f"{kind}{pass_id}{actor}", "created_at": at}
        return {**row, "body": json.dumps(json.dumps(body))}

    def began(pass_id: str, at: float, aspects: tuple[str, ...], positions: list[int]) -> dict[str, object]:
        scale = {"low": 1, "high": 5, "step": 1, "given": True}
        asked = [{"aspect": one, "scale": scale, "definition": ""} for one in aspects]
        plan = json.dumps({"aspects": asked, "positions": positions, "n_raters": 2, "shared": 2, "overlap": 1})
        body = {"did": "began", "name": pass_id, "golden_id": "golden:1", "plan": plan}
        return event("labelling pass", pass_id, "Ann", at, body)

    return [
        began("l1", 10.0, ("a",), [0, 1]),
        event("joined", "l1", "Ann", 11.0, {}),
        began("l2", 20.0, ("a", "b"), [0]),
        event("joined", "l2", "Bo", 31.0, {}),
        event("joined", "l2", "Ann", 41.0, {}),
    ]


def _label(_: str, rater: str, item_id: str, aspect: str, at: float, why: str) -> dict[str, object]:
    texts = {"rater": rater, "item_id": item_id, "aspect": aspect, "comment": why}
    where = {"project_id": "p1", "golden_id": "golden:1", "form": why, "created_at": at, "value": 2.0}
    return where | {name: json.dumps(text) for name, text in texts.items()}


def test_migrations_lead_to_the_schema_in_the_code(url: str) -> None:
    Store(url).close()
    engine = sa.create_engine(database.sqlalchemy_url(url))
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == HEAD
    engine.dispose()


def test_processes_that_open_a_new_store_at_once(url: str, repository: Path) -> None:
    code = "import sys; from core.store.store import Store; s = Store(sys.argv[1]); s.projects.add('x'); s.close()"
    command = [sys.executable, "-c", code, url]
    started = [subprocess.Popen(command, cwd=repository, stderr=subprocess.PIPE) for _ in range(4)]
    for process in started:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b"")
    with Store(url) as store:
        assert len(store.projects.all()) == 4


def test_threads_write_at_once(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda k: store.replies.put_replies([(f"reply:{k}", "x"), ("reply:same", str(k))]), range(40)))
    assert len(store.replies.get_replies([f"reply:{k}" for k in range(40)])) == 40


def test_a_newer_database_is_refused(url: str) -> None:
    Store(url).close()
    engine = sa.create_engine(database.sqlalchemy_url(url))
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    engine.dispose()
    with pytest.raises(StoreError, match="newer Concord"):
        Store(url)


def test_a_full_disk_loses_nothing(tmp_path: Path, golden: GoldenSet) -> None:
    with Store(f"sqlite:///{tmp_path / 'c.sqlite'}") as store:
        project = store.projects.add("p")
        golden_id = store.goldens.add(project, golden)
        run_id = store.runs.add(NewRun(project, golden_id, "calibration", "t", "coherence", "offline", "{}"))
        store.replies.put_replies([("reply:kept", "paid for")])

        def no_more_pages(connection: sqlite3.Connection, *_: object) -> None:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")

        engine = store._database.engine
        engine.dispose()
        sa.event.listen(engine, "connect", no_more_pages)
        with pytest.raises(StoreFullError, match="make room"):
            store.replies.put_replies([(f"reply:{k}", "x" * 4000) for k in range(50)])
        assert store.replies.get_replies(["reply:kept", "reply:0"]) == {"reply:kept": "paid for"}
        assert store.goldens.load(golden_id) == golden
        store.runs.claim(run_id, 1, "w")
        assert store.runs.progress(run_id, "w", Progress("draft", "m", 1, 2, Usage()))  # small changes still fit
        sa.event.remove(engine, "connect", no_more_pages)
        engine.dispose()
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
        store.replies.put_replies([("reply:later", "x" * 4000)])
        assert "reply:later" in store.replies.get_replies(["reply:later"])


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:secret@h/d", "sqlite and postgresql are supported"),
        ("not a url", "cannot be read"),
        ("sqlite://", "needs a file"),
        ("postgresql://u:secret@127.0.0.1:1/d", "cannot be reached"),
    ],
)
def test_unusable_urls_say_what_to_do_and_no_password(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        Store(url)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"
    file.write_bytes(b"this is not a database, it is text " * 100)
    with pytest.raises(StoreError, match="damaged or no database"):
        Store(f"sqlite:///{file}")
    assert file.read_bytes().startswith(b"this is not")


def test_unknown_run(store: Store) -> None:
    for ask in (store.runs.get, store.runs.version, store.runs.request_cancel, store.runs.requeue):
        with pytest.raises(NotFoundError):
            ask("r-none")
