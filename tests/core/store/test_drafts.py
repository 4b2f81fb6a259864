"""Texts that are typed and not saved: one for each text and person, overwritten, taken away, never handed on."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from core.errors import StoreError
from core.store.layout import LAYOUT
from core.store.schema import metadata
from core.store.store import Store

HOSTILE = "<b>one</b> \x00 'two'; DROP TABLE drafts; -- 𝔘 🙂 \u2028"


def test_the_last_pause_is_what_is_kept(store: Store, project: str) -> None:
    first = store.drafts.keep(project, "criteria:c1", "Ann", "One", "head")
    store.drafts.keep(project, "criteria:c2", "Ann", "elsewhere", "")
    last = store.drafts.keep(project, "criteria:c1", "Ann", HOSTILE, "head")
    assert store.drafts.of(project, "criteria:c1") == [last]
    assert (last.text, last.base, last.author) == (HOSTILE, "head", "Ann")
    assert last.began_at == first.began_at == first.kept_at <= last.kept_at
    assert store.drafts.of("p-none", "criteria:c1") == []


def test_each_person_has_their_own(store: Store, project: str) -> None:
    for name in ("Ann", "Bo", ""):
        store.drafts.keep(project, "s", name, f"of {name}", "")
    assert {row.author: row.text for row in store.drafts.of(project, "s")} == {
        "Ann": "of Ann",
        "Bo": "of Bo",
        "": "of ",
    }
    store.drafts.drop(project, "s", ["Bo", "nobody of that name"])
    assert {row.author for row in store.drafts.of(project, "s")} == {"Ann", ""}


def test_the_newest_comes_first(store: Store, project: str) -> None:
    for name in ("Bo", "Ann"):
        store.drafts.keep(project, "s", name, name, "")
    with store._database.write() as connection:
        connection.execute(sa.text("UPDATE drafts SET kept_at = kept_at + 60 WHERE author = '\"Bo\"'"))
    assert [row.author for row in store.drafts.of(project, "s")] == ["Bo", "Ann"]


def test_a_draft_belongs_to_a_project_and_goes_with_it(store: Store, project: str) -> None:
    with pytest.raises(StoreError):
        store.drafts.keep("p-none", "s", "Ann", "x", "")
    store.drafts.keep(project, "s", "Ann", "x", "")
    store.projects.remove(project)
    assert store.drafts.of(project, "s") == []


def test_what_is_not_saved_leaves_with_no_project(store: Store, project: str) -> None:
    """Tables that stay behind: the list is exact, so that a new table has to say whether it goes."""
    assert set(metadata.tables) - set(LAYOUT) == {
        *("projects", "project_replies", "workers", "drafts", "consents", "blocks")
    }
    store.drafts.keep(project, "s", "Ann", "typed and not saved", "")
    left = {name: list(rows) for name, rows in store.transfers.dump(project)}
    assert "typed and not saved" not in str(left)
