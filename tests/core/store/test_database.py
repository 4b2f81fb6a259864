from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex, CreateTable

from core.errors import StoreError, StoreFullError
from core.progress import Stage
from core.records import GoldenSet, Usage, content_digest
from core.store import database
from core.store.database import HEAD, metadata
from core.store.store import Store

PAID = json.dumps({"text": "paid for", "finish": "stop"})
LONG = json.dumps({"text": "x" * 4000, "finish": "stop"})


def test_a_store_of_another_version_is_refused_and_left_as_it_is(url: str) -> None:
    version = "9999"
    Store(url).close()
    engine = sa.create_engine(database.sqlalchemy_url(url))
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = :version"), {"version": version})
    with pytest.raises(StoreError, match=r"newer version of Concord.*another CONCORD_HOME"):
        Store(url)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == version
    engine.dispose()


def test_the_tables_are_those_of_their_version() -> None:
    """Where this fails, existing databases differ from the code: raise `HEAD`, and write the step that leads to it."""
    tables = {
        table.name: [*sorted(str(CreateIndex(index)) for index in table.indexes), str(CreateTable(table))]
        for table in metadata.sorted_tables
    }
    assert (HEAD, content_digest("tables", tables)[:23]) == ("2", "tables:31bbb4d37b107c98")


AT_ONCE = """
import os, sys, traceback
from core.store.store import Store
begin, go = os.pipe()
for _ in range(4):
    if not os.fork():
        try:
            os.close(go)
            os.read(begin, 1)
            store = Store(sys.argv[1])
            store.projects.add("x")
            store.close()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
os.close(go)
assert [os.wait()[1] for _ in range(4)] == [0] * 4
"""


def test_processes_that_open_a_new_store_at_once(url: str, repository: Path) -> None:
    """Four, let go in the same moment."""
    command = [sys.executable, "-c", AT_ONCE, url]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    with Store(url) as store:
        assert len(store.projects.all()) == 4


def test_a_full_disk_loses_nothing(tmp_path: Path, golden: GoldenSet) -> None:
    with Store(f"sqlite:///{tmp_path / 'c.sqlite'}") as store:
        project = store.projects.add("p")
        golden_id = store.goldens.add(project, golden)
        run_id = store.runs.add(project, golden_id, "calibration", "t", "coherence", "offline", "{}")
        store.replies.put_replies([("reply:kept", PAID)])

        def no_more_pages(connection: sqlite3.Connection, *_: object) -> None:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages}")

        engine = store._database.engine
        engine.dispose()
        sa.event.listen(engine, "connect", no_more_pages)
        with pytest.raises(StoreFullError, match="Free some space"):
            store.replies.put_replies([(f"reply:{k}", LONG) for k in range(50)])
        assert store.replies.get_replies(["reply:kept", "reply:0"]) == {"reply:kept": PAID}
        assert store.goldens.load(golden_id) == golden
        store.runs.claim(run_id, 1, "w")
        assert store.runs.progress(run_id, 1, Stage("draft", "m", 1, 2, Usage()), 1)  # small changes still fit
        sa.event.remove(engine, "connect", no_more_pages)
        engine.dispose()
        with engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count = 1000000")
        store.replies.put_replies([("reply:later", LONG)])
        assert "reply:later" in store.replies.get_replies(["reply:later"])


@pytest.mark.parametrize(("free", "is_full"), [(16_384, True), (5_000_000, False)])
def test_the_disk_is_called_full_only_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, is_full: bool
) -> None:
    """A full tmpfs answers IOERR_SHMSIZE when the store is opened; so does a network disk without shared memory."""
    code = "SQLITE_IOERR_SHMSIZE"
    with Store(f"sqlite:///{tmp_path / 'c.sqlite'}") as store:
        monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=free))
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorname = code
        with pytest.raises(StoreError) as caught, store._database.read():
            raise error
    assert isinstance(caught.value, StoreFullError) is is_full
    assert ("The disk is full" in str(caught.value)) is is_full
    assert (code in str(caught.value)) is not is_full


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:secret@h/d", "must look like sqlite"),
        ("not a url", "must look like sqlite"),
        ("sqlite://", "path of a file"),
        ("postgresql://u:secret@127.0.0.1:1/d", "can't reach the database"),
    ],
)
def test_unusable_urls_say_what_to_do_and_no_password(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message) as caught:
        Store(url)
    assert "secret" not in str(caught.value)
