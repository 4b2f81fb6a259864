"""The router and what every screen does first: menu, project selector, a store that cannot be opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.errors import StoreError, UsageError
from tests.pages.screen import open_screen, press, texts

ROOT = Path(__file__).resolve().parents[2]
SCREENS = {
    "pages/1_golden_set.py": "Golden set",
    "pages/3_calibrate.py": "Calibrate",
    "pages/4_criteria.py": "Criteria",
    "pages/5_misaligned.py": "Misaligned",
    "pages/6_compare.py": "Compare",
    "pages/9_report.py": "Report",
    "pages/10_runs.py": "Runs",
}


@pytest.fixture
def app(world: Any) -> AppTest:
    return open_screen("app")


def test_the_golden_sets_come_first(app: AppTest) -> None:
    assert app.title[0].value == "Golden set"


@pytest.mark.parametrize(("file", "title"), SCREENS.items())
def test_every_screen_is_reached_from_the_menu(app: AppTest, file: str, title: str) -> None:
    app.switch_page(file).run()
    assert not app.exception
    assert app.title[0].value == title


@pytest.mark.parametrize("file", SCREENS)
def test_a_screen_says_the_same_by_menu_and_alone(app: AppTest, file: str) -> None:
    by_menu = app.switch_page(file).run()
    assert texts(by_menu) == texts(open_screen(Path(file).stem))


def test_the_project_stays_chosen_from_screen_to_screen(app: AppTest) -> None:
    app.sidebar.selectbox[0].set_value("p2").run()
    assert app.query_params["project"] == "p2"
    app.switch_page("pages/10_runs.py").run()
    assert app.sidebar.selectbox[0].value == "p2"


def test_another_project_drops_the_ids_of_the_old_one(world: Any) -> None:
    world.add_run("r1", "running")
    screen = open_screen("3_calibrate", run="r1")
    screen.sidebar.selectbox[0].set_value("p2").run()
    assert "run" not in screen.query_params
    assert not screen.exception


def test_a_link_to_a_run_opens_the_project_of_the_run(world: Any) -> None:
    world.projects.reverse()
    world.add_run("r1", "running")
    assert open_screen("3_calibrate", run="r1").sidebar.selectbox[0].value == "p1"


def test_a_new_project_is_opened_at_once(world: Any) -> None:
    screen = open_screen("1_golden_set")
    screen.text_input(key="new_project").set_value("Mine")
    press(screen, "Create")
    assert world.projects[-1].name == "Mine"
    assert screen.sidebar.selectbox[0].value == "p3"
    assert "no golden set yet" in texts(screen)


def test_a_project_that_cannot_be_made_is_told(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(store: object, name: str) -> None:
        raise UsageError("A project needs a name.")

    monkeypatch.setattr(projects, "create_project", refused)
    screen = open_screen("1_golden_set")
    press(screen, "Create")
    assert "A project needs a name." in texts(screen)


def test_a_store_that_cannot_be_opened_is_told_in_words(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(settings: object) -> None:
        raise StoreError("The folder /nowhere cannot be written. Set CONCORD_HOME.")

    monkeypatch.setattr(projects, "open_store", closed)
    assert "Set CONCORD_HOME." in texts(open_screen("10_runs"))
