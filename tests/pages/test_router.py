"""The router and what every screen does first: menu, project selector, a store that cannot be opened."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.errors import StoreError
from pages.ui.screens import SCREENS
from tests.pages.making import Place
from tests.pages.screen import HOSTILE, MARKUP, ROOT, as_sent, has_button, open_screen, press, run, texts, write

FILES = sorted(path.stem for path in (ROOT / "pages").glob("[0-9]*.py"))


@pytest.fixture
def app(place: Place, empty: Place) -> AppTest:
    return open_screen("app")


def test_the_overview_comes_first(app: AppTest) -> None:
    assert app.title[0].value == "Overview"


@pytest.mark.parametrize("file", FILES)
def test_a_screen_is_reached_from_the_menu_and_says_the_same_alone(app: AppTest, file: str) -> None:
    by_menu = app.switch_page(f"pages/{file}.py").run()
    assert app.title[0].value == next(screen.title for screen in SCREENS.values() if screen.file == f"pages/{file}.py")
    assert texts(by_menu) == texts(open_screen(file))


def test_the_project_stays_chosen_from_screen_to_screen(app: AppTest, empty: Place) -> None:
    app.sidebar.selectbox[0].set_value(empty.project_id).run()
    assert app.query_params["project"] == empty.project_id
    app.switch_page("pages/10_runs.py").run()
    assert app.sidebar.selectbox[0].value == empty.project_id


def test_another_project_drops_the_ids_of_the_old_one(place: Place, empty: Place) -> None:
    screen = open_screen("3_calibrate", run=place.add_run("running"))
    screen.sidebar.selectbox[0].set_value(empty.project_id).run()
    assert "run" not in screen.query_params


def test_a_link_to_a_run_opens_the_project_of_the_run(place: Place, empty: Place) -> None:
    """Without one the oldest project opens."""
    empty.add_golden(place.golden)
    assert open_screen("3_calibrate", run=empty.add_run("running")).sidebar.selectbox[0].value == empty.project_id
    assert open_screen("3_calibrate").sidebar.selectbox[0].value == place.project_id


def test_a_new_project_is_opened_at_once_and_one_that_cannot_be_made_is_told(place: Place) -> None:
    screen = open_screen("1_golden_set")
    press(screen, "New project")
    write(screen, "Name of the project", "Other")
    press(screen, "Create project")
    made = place.store.projects.all()[-1]
    assert made.name == "Other"
    assert screen.sidebar.selectbox[0].value == made.project_id
    assert "no golden set yet" in texts(screen)
    press(screen, "New project")
    write(screen, "Name of the project", " ")
    press(screen, "Create project")
    assert "Enter a name for the project" in texts(screen)


def test_a_store_that_cannot_be_opened_is_told_in_words(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(settings: object) -> None:
        raise StoreError("The folder /nowhere cannot be written. Set CONCORD_HOME.")

    monkeypatch.setattr(projects, "open_store", closed)
    assert "Set CONCORD_HOME." in texts(open_screen("10_runs"))


def test_a_link_to_a_project_that_is_not_here_says_so(place: Place) -> None:
    screen = open_screen("10_runs", project="nowhere", golden="g")
    assert "This link points to a project that isn't here." in texts(screen)
    assert screen.sidebar.selectbox[0].value == place.project_id
    assert "golden" not in screen.query_params
    assert "points to a project" not in texts(open_screen("10_runs"))


def test_a_link_to_a_golden_set_that_is_not_here_says_so(place: Place) -> None:
    place.add_golden(place.golden)
    assert "points to a golden set that isn't in this project" in texts(open_screen("7_repeval", golden="nowhere"))
    assert "points to a golden set" not in texts(open_screen("7_repeval"))


def test_a_bare_screen_has_no_menu_until_it_is_asked_for(place: Place, empty: Place) -> None:
    screen = open_screen("10_runs", view="bare", project=empty.project_id)
    assert not screen.sidebar.children
    assert screen.title[0].value == "Runs"
    press(screen, "Menu")
    assert screen.sidebar.selectbox[0].value == empty.project_id
    assert "view" not in screen.query_params


def test_a_finding_is_shown_letter_by_letter_with_its_next_step(place: Place) -> None:
    def script(sentence: str) -> None:
        import streamlit as st

        from pages.ui.page import finding

        finding(sentence, step=lambda: st.button("Go on"))

    screen = run(AppTest.from_function(script, args=(HOSTILE,)))
    assert not MARKUP.search(as_sent(screen))
    assert screen.header[0].value
    assert has_button(screen, "Go on")
