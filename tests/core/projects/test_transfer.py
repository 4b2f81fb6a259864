"""Taking a project away and bringing one in: who may, what the log keeps, full disks, limits, the commands."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core import projects
from core.__main__ import main
from core.errors import ArchiveError, NotFoundError, StoreFullError, UsageError
from core.people import Actor
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.settings import Settings
from core.store import transfer
from core.store.log import Entry
from core.store.store import Store

ADA = Actor("Ada", "admin")
GOLDEN = GoldenSet("g", "single", (Item("i", "t", "s"),), {"a": AspectLabels("a", Scale(1, 5), (3.0,))})


@pytest.fixture
def project(store: Store) -> str:
    project_id = projects.create_project(store.acting(ADA), "Summaries").project_id
    projects.add_golden(store, project_id, GOLDEN)
    return project_id


def test_the_log_names_who_took_it_away_and_where_it_came_from(
    store: Store, settings: Settings, project: str, tmp_path: Path
) -> None:
    file = tmp_path / "p.zip"
    exported = projects.export_project(store.acting(ADA), settings, project, file)
    assert [(event.actor, event.sentence) for event in store.events.all(project, Entry)][-1] == (
        "Ada",
        "exported the project",
    )
    assert str(tmp_path) not in str(store.events.all(project, Entry)[-1].body)  # where files lie is nobody's business
    new = projects.import_project(store.acting(Actor("Bo", "admin")), settings, file).project_id
    last = store.events.all(new, Entry)[-1]
    assert (last.actor, last.role, last.body["digest"]) == ("Bo", "admin", exported.digest)


def test_an_unknown_project_leaves_no_file(store: Store, settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        projects.export_project(store, settings, "none", tmp_path / "p.zip")
    assert list(tmp_path.glob("*.zip*")) == []


def test_a_full_disk_in_mid_export_leaves_the_old_file(
    store: Store, settings: Settings, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.zip"
    file.write_bytes(b"the old one")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArchiveError, match="disk is full; nothing was changed"):
        projects.export_project(store, settings, project, file)
    assert file.read_bytes() == b"the old one"
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


def test_a_store_that_breaks_in_mid_export_leaves_the_old_file(
    store: Store, settings: Settings, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.zip"
    file.write_bytes(b"the old one")

    def broken(*_: object) -> Any:
        raise StoreFullError("full")

    monkeypatch.setattr(transfer, "encode", broken)
    with pytest.raises(StoreFullError):
        projects.export_project(store, settings, project, file)
    assert file.read_bytes() == b"the old one"


def test_a_full_disk_in_mid_import_keeps_nothing(
    store: Store, settings: Settings, project: str, tmp_path: Path
) -> None:
    """SQLite itself runs out of pages: the import ends, all of it is taken back, the store goes on."""
    file = tmp_path / "p.zip"
    big = GoldenSet("big", "single", tuple(Item(f"i{k}", f"{k} " * 400, f"s{k}") for k in range(300)), {})
    projects.add_golden(store, project, big)
    projects.export_project(store, settings, project, file)
    with Store(f"sqlite:///{tmp_path / 'small.sqlite'}") as small:
        engine = small.transfers._db.engine
        with engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        import sqlalchemy as sa

        def bound(connection: Any, _: object) -> None:
            connection.execute(f"PRAGMA max_page_count={pages + 20}")

        engine.dispose()
        sa.event.listen(engine, "connect", bound)
        with pytest.raises(StoreFullError, match="disk is full"):
            projects.import_project(small, settings, file)
        assert small.projects.all() == []
        assert small.projects.add("goes on")


def test_limits_follow_the_setting(store: Store, project: str, tmp_path: Path) -> None:
    file = tmp_path / "p.zip"
    tight = Settings(home=tmp_path, max_upload_mb=1)
    projects.export_project(store, tight, project, file)
    with file.open("ab") as out:
        out.write(bytes(1_000_000))
    with pytest.raises(ArchiveError, match="1 MB are allowed"):
        projects.preview_project(store, tight, file)


def test_names(store: Store, settings: Settings, project: str, tmp_path: Path) -> None:
    file = tmp_path / "p.zip"
    projects.export_project(store, settings, project, file)
    assert projects.import_project(store, settings, file, name="  My   own ").project.name == "My own"
    assert projects.import_project(store, settings, file, name="My own").project.name == "My own (2)"
    with pytest.raises(UsageError, match="200 characters"):
        projects.import_project(store, settings, file, name="x" * 201)


# ── the commands ─────────────────────────────────────────────────────────────────────────────────────────────

Command = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def command(settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        monkeypatch.setenv("CONCORD_HOME", str(settings.home))
        monkeypatch.delenv("CONCORD_DATABASE_URL", raising=False)
        code = main([*arguments, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return run


def test_commands(store: Store, project: str, tmp_path: Path, command: Command) -> None:
    file = tmp_path / "p.zip"
    code, body = command("export-project", "Summaries", "--out", str(file))
    assert (code, body["project"], body["bytes"]) == (0, project, file.stat().st_size)
    assert body["holds"] == {
        **{"goldens": 1, "items": 1, "runs": 0, "criteria": 0, "judges": 0, "labels": 0, "log": 2, "replies": 0}
    }
    code, there = command("import-project", str(file), "--name", "Copy")
    assert (code, there["name"], there["renamed"], there["digest"]) == (0, "Copy", False, body["digest"])
    again = ("export-project", there["project"], "--out", str(file), "--without-replies")
    before = file.read_bytes()
    code, body = command(*again)
    assert (code, body["error"]["type"], file.read_bytes()) == (2, "UsageError", before)
    code, body = command(*again, "--force")
    assert (code, body["holds"]["replies"]) == (0, None)
    assert [row.name for row in store.projects.all()] == ["Summaries", "Copy"]
