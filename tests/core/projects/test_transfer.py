"""Taking a project away and bringing one in: who may, what the log keeps, full disks, limits, the commands."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from core import projects
from core.errors import ArchiveError, StoreFullError
from core.project_records import Actor
from core.records import GoldenSet, Item
from core.settings import Settings
from core.store.store import Store

ADA = Actor("Ada", "admin")


def test_a_full_disk_in_mid_export_leaves_the_old_file(
    store: Store, settings: Settings, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "p.zip"
    file.write_bytes(b"the old one")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArchiveError, match=r"disk is full\. Nothing was changed"):
        projects.export_project(store, settings, project, file)
    assert file.read_bytes() == b"the old one"
    assert [path.name for path in tmp_path.iterdir() if ".part" in path.name] == []


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


# ── the commands ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_project_without_a_golden_set_comes_back(store: Store, settings: Settings, tmp_path: Path) -> None:
    empty = projects.create_project(store, "empty").project_id
    file = tmp_path / "empty.zip"
    projects.export_project(store, settings, empty, file)
    assert projects.import_project(store, settings, file)
