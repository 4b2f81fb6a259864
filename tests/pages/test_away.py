"""Screens on a Postgres that goes away say that they wait, and go on; a store that stays away is told in words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import projects
from core.settings import Settings
from core.store import reconnecting as patience
from pages.components import people
from tests.going_away import GoingAway
from tests.pages.screen import open_screen, press

pytestmark = pytest.mark.postgres


@pytest.fixture
def server(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GoingAway]:
    """The screens' database, by way of a proxy."""
    with GoingAway(postgres_url) as proxy:
        for name, value in {"DATABASE_URL": proxy.url, "HOME": str(tmp_path / "home"), "WORKER": "external"}.items():
            monkeypatch.setenv(f"CONCORD_{name}", value)
        st.cache_resource.clear()
        yield proxy
        st.cache_resource.clear()
        projects.open_store(Settings.from_environment()).close()


def test_a_screen_waits_for_the_database_and_saves_what_was_pressed_once(server: GoingAway) -> None:
    screen = open_screen("10_runs")
    screen.text_input(key="new_project").set_value("mine")
    back = server.be_away_meanwhile(1.0)
    press(screen, "Create")
    back.join()
    assert "The database does not answer. Waiting for it" in screen.toast[0].value
    store = projects.open_store(Settings.from_environment())
    assert [project.name for project in projects.list_projects(store)].count("mine") == 1


def test_a_database_that_stays_away_is_told_in_words(server: GoingAway, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen("10_runs")
    monkeypatch.setattr(patience, "PATIENCE", 0.3)
    people._names.clear()
    server.go()
    screen.run()
    assert any("cannot be reached" in error.value for error in screen.error)


def test_an_error_that_no_screen_expected_is_told_in_words() -> None:
    def script() -> None:
        from core.errors import LostConnectionError
        from pages.components import faults

        assert faults.say_error(LostConnectionError("The database <b>cannot</b> be reached."))
        assert not faults.say_error(ValueError("of ours"))

    screen = AppTest.from_function(script, default_timeout=60).run()
    assert [error.value.replace("\\", "") for error in screen.error] == ["The database <b>cannot</b> be reached."]
