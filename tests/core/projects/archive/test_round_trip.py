"""Out and in again: the same content, nothing of anybody else's touched, on both kinds of stores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from core import projects
from core.project_records import Actor
from core.projects.project_files import VERSION
from core.providers.cached import reply_from_json
from core.records import FloatArray, content_digest
from core.settings import Settings
from core.store.database import metadata
from core.store.log import Entry
from core.store.store import Store
from core.store.transfer import IMPORTED, LAYOUT

Fill = Callable[..., str]
TablesOf = Callable[[bytes], dict[str, list[Any]]]
ADA = Actor("Ada", "admin")


@pytest.fixture(
    params=[
        "sqlite to sqlite",
        pytest.param("sqlite to postgres", marks=pytest.mark.postgres),
        pytest.param("postgres to sqlite", marks=pytest.mark.postgres),
    ]
)
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Where the project comes from, and where it goes."""
    kinds = request.param.split(" to ")
    urls = [
        f"sqlite:///{tmp_path / str(k)}.sqlite" if kind == "sqlite" else str(request.getfixturevalue("postgres_url"))
        for k, kind in enumerate(kinds)
    ]
    with Store(urls[0]) as first, Store(urls[1]) as second:
        yield first, second


def _without_marks(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of the log as they were before the import, which marks their roles and adds one of its own."""
    return [row | {"role": row["role"].removesuffix(IMPORTED)} for row in rows][:-1]


def test_what_comes_in_is_what_went_out(
    stores: tuple[Store, Store], settings: Settings, fill: Fill, tables_of: TablesOf, tmp_path: Path
) -> None:
    here, there = stores
    first, second = tmp_path / "1.zip", tmp_path / "2.zip"
    exported = projects.export_project(here, settings, fill(here), first)
    came = projects.import_project(there.acting(ADA), settings, first)
    again = projects.export_project(there, settings, came.project_id, second)
    one, two = tables_of(first.read_bytes()), tables_of(second.read_bytes())
    assert _without_marks(two.pop("events")) == one.pop("events")
    assert one == two
    assert all(one[table] for table in one), "a table of the test's project is empty"
    assert (exported.holds, came.renamed) == (came.file.holds, False)
    assert again.holds["log"] == exported.holds["log"] + 1


def test_an_import_beside_the_original_changes_nothing_of_it(
    store: Store, settings: Settings, fill: Fill, tables_of: TablesOf, tmp_path: Path
) -> None:
    old = fill(store)
    projects.export_project(store, settings, old, tmp_path / "1.zip")
    copy = projects.import_project(store.acting(ADA), settings, tmp_path / "1.zip")
    third = projects.import_project(store, settings, tmp_path / "1.zip")
    assert (copy.project.name, third.project.name, copy.renamed) == ("Project ä (2)", "Project ä (3)", True)
    (run,) = store.runs.all(copy.project_id)
    (original,) = store.runs.all(old)
    assert run.run_id != original.run_id
    projects.export_project(store, settings, old, tmp_path / "2.zip")  # and logs that it did, behind what was there
    one, two = (tables_of((tmp_path / f"{k}.zip").read_bytes()) for k in (1, 2))
    assert two.pop("events")[: len(one["events"])] == one.pop("events")
    assert one == two
    projects.export_project(store, settings, copy.project_id, tmp_path / "3.zip")
    three = tables_of((tmp_path / "3.zip").read_bytes())
    del three["events"]
    assert json.loads(json.dumps(three).replace(run.run_id, original.run_id)) == one  # every reference followed
    assert original.run_id not in json.dumps(three)
    (version,) = projects.judge_line(store, copy.project_id, "coherence").versions
    assert (version.state, version.approval) == ("proposed", None)  # approved elsewhere: nobody here has
    assert version.newest is not None
    assert {version.made.base_run, version.newest.run_id} == {run.run_id}


def test_the_log_says_what_was_done_here_and_what_came(
    store: Store, elsewhere: Store, settings: Settings, fill: Fill, tmp_path: Path
) -> None:
    projects.export_project(store, settings, fill(store), tmp_path / "p.zip")
    new = projects.import_project(elsewhere.acting(ADA), settings, tmp_path / "p.zip", name=" Theirs ").project_id
    *came, own = elsewhere.events.all(new, Entry)
    assert {one.role for one in came} == {f"{role} (imported)" for role in ("annotator", "reviewer", "admin")}
    assert (own.actor, own.role, own.sentence) == ("Ada", "admin", "imported the project Project ä")


# ── replies ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_replies_come_along_and_serve_their_own_run_alone(
    store: Store, elsewhere: Store, settings: Settings, fill: Fill, tmp_path: Path
) -> None:
    exported = projects.export_project(store, settings, fill(store), tmp_path / "p.zip")
    assert exported.holds["replies"] == 1
    new = projects.import_project(elsewhere, settings, tmp_path / "p.zip").project_id
    (run,) = elsewhere.runs.all(new)
    (text, paid) = elsewhere.replies.of_run(run.run_id).answered(["reply:1", "reply:2"])["reply:1"]
    assert (reply_from_json(text), paid) == (reply_from_json(store.replies.get_replies(["reply:1"])["reply:1"]), True)
    assert elsewhere.replies.get_replies(["reply:1"]) == {}
    own = elsewhere.runs.add(new, run.golden_id, "calibration", "t", "coherence", "offline", "{}")
    assert elsewhere.replies.of_run(own).get_replies(["reply:1"]) == {}, "a run that is made here is not answered so"


# ── runs that are not over ───────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_is_not_over_leaves_as_cancelled(
    store: Store, elsewhere: Store, settings: Settings, fill: Fill, tmp_path: Path
) -> None:
    old = fill(store)
    (run,) = store.runs.all(old)
    store.runs.requeue(run.run_id)
    projects.export_project(store, settings, old, tmp_path / "p.zip")
    assert store.runs.get(run.run_id).status == "queued"
    new = projects.import_project(elsewhere, settings, tmp_path / "p.zip").project_id
    (came,) = elsewhere.runs.all(new)
    assert (came.status, came.worker_id, came.snapshots) == ("cancelled", "", 0)
    assert "hadn't finished" in came.message
    assert elsewhere.results.read(came.run_id, "search", Mapping[str, FloatArray])  # type: ignore[type-abstract]
    assert projects.run_view(elsewhere, came.run_id).request.project_id == new


# ── what leaves ──────────────────────────────────────────────────────────────────────────────────────────────


def test_no_row_leaves_with_its_project_a_host_or_another_project(exported: bytes, tables_of: TablesOf) -> None:
    text = json.dumps(tables_of(exported))
    assert "a worker's host" not in text
    assert "somebody else" not in text
    assert '"project_id": ""' in text
    assert text.count('"project_id"') == text.count('"project_id": ""')


def test_the_form_is_pinned() -> None:
    """Another column or kind is another format: raise `manifest.VERSION`, bring those before it up to it, then this."""
    told = {
        table: [(name, kind, metadata.tables[table].c[name].nullable) for name, kind in columns.items()]
        for table, columns in LAYOUT.items()
    }
    assert ("value", "real", True) in told["labels"]
    assert content_digest("layout", told)[:23] == "layout:9de75bb0fc253a05"
    assert VERSION == 1
