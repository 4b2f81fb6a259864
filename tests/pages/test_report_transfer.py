"""A project out and in on screen, against a real store: prepared, downloaded, imported, refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import Actor
from core.records import AspectLabels, GoldenSet, Item, Scale
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place, golden_of
from tests.pages.screen import HOSTILE, button, draw, harmless, press, texts, upload


@pytest.fixture
def store(store: Store, settings: Settings) -> Store:
    Place(store, settings, golden_of(2, 2, name="set"))
    return store


@pytest.fixture
def foreign(tmp_path: Path) -> bytes:
    """The file of somebody else's project."""
    with Store(f"sqlite:///{tmp_path / 'foreign.sqlite'}") as other:
        project_id = projects.create_project(other.acting(Actor("Eve", "admin")), HOSTILE).project_id
        golden = GoldenSet("their set", "single", (Item("i", "t", "s"),), {"a": AspectLabels("a", Scale(1, 5), (3.0,))})
        golden_id = projects.add_golden(other, project_id, golden)
        other.runs.add(project_id, golden_id, "unknown kind", "t", "a", "openai:m@http://evil.example/v1", "{}")
        projects.export_project(other, Settings(home=tmp_path), project_id, tmp_path / "f.zip")
    return (tmp_path / "f.zip").read_bytes()


def opened(settings: Settings, role: str = "admin") -> AppTest:
    return draw(settings, "report.export", "", role=role, how="draw_project")


def importing(settings: Settings, role: str = "admin") -> AppTest:
    return draw(settings, "report.transfer", "", role=role, how="import_upload")


def bring(screen: AppTest, data: bytes) -> AppTest:
    return upload(screen, "p.zip", data, "application/zip")


def test_out_and_in_again(store: Store, settings: Settings) -> None:
    screen = opened(settings)
    assert not screen.get("download_button")
    press(screen, "Prepare the file")
    assert "1 golden set, 4 items, 0 runs" in texts(screen)
    (file,) = (settings.home / "exports").iterdir()
    (download,) = screen.get("download_button")
    assert download.proto.label == "Download the project"
    screen = bring(importing(settings), file.read_bytes())
    press(screen, "Import this project")
    assert "Mine was imported as Mine (2), because the original name is already taken" in texts(screen)
    new = store.projects.all()[-1]
    assert screen.query_params["project"] == new.project_id
    assert [golden.name for golden in store.goldens.all(new.project_id)] == ["set"]


def test_a_hostile_name_is_shown_as_it_is(store: Store, settings: Settings, foreign: bytes) -> None:
    screen = press(bring(importing(settings), foreign), "Import this project")
    assert [row.name for row in store.projects.all()][1:] == [HOSTILE]
    assert "The imported runs are read-only" in texts(screen)
    harmless(screen)


def test_a_file_that_is_refused(store: Store, settings: Settings, foreign: bytes) -> None:
    screen = press(bring(importing(settings), foreign[:-30]), "Import this project")
    assert "rejected this file and imported nothing" in texts(screen)
    assert "is truncated" in texts(screen)
    assert len(store.projects.all()) == 1


def test_admins_only(store: Store, settings: Settings) -> None:
    assert button(opened(settings, "reviewer"), "Prepare the file").disabled
    screen = importing(settings, "reviewer")
    assert not screen.get("file_uploader")
    assert "Your role is reviewer" in texts(screen)


def test_the_golden_set_screen_offers_the_import_and_uploads_only_to_who_may_freeze(
    store: Store, settings: Settings
) -> None:
    screen = draw(settings, "golden.golden_upload", "", role="admin", how="draw_upload")
    assert "Import a whole project from another installation" in [one.label for one in screen.expander]
    for role in ("viewer", "annotator"):
        screen = draw(settings, "golden.golden_upload", "", role=role, how="draw_upload")
        assert not screen.get("file_uploader")
        assert f"the reviewer role. Your role is {role}" in texts(screen)
