"""Screens on a Postgres that goes away say that they wait, and go on; a store that stays away is told in words."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.error_util import handle_user_script_exception
from streamlit.testing.v1 import AppTest

from core import projects
from core.settings import Settings
from core.store import database as patience
from pages.ui import faults
from tests.going_away import GoingAway
from tests.pages.screen import open_screen, press, write

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
    press(screen, "New project")
    write(screen, "Name of the project", "mine")
    back = server.be_away_meanwhile(1.0)
    press(screen, "Create project")
    back.join()
    assert "The database isn't responding. Waiting for up to" in screen.toast[0].value
    store = projects.open_store(Settings.from_environment())
    assert [project.name for project in store.projects.all()].count("mine") == 1


def test_a_database_that_stays_away_is_told_in_words(server: GoingAway, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = open_screen("10_runs")
    monkeypatch.setattr(patience, "PATIENCE", 0.3)
    server.go()
    screen.run()
    assert any("reach the database" in error.value for error in screen.error)


def test_an_error_that_no_screen_expected_is_told_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.errors._sent", set())  # keys of earlier tests

    def script() -> None:
        from core.errors import LostConnectionError, UsageError
        from pages.ui import faults

        assert faults.say_error(LostConnectionError("The database <b>cannot</b> be reached."))
        assert faults.say_error(UsageError("refused: Bearer canary-key-4f1d9a27c3"))
        assert faults.say_error(ValueError("canary-header-4f1d9a"))

    screen = AppTest.from_function(script, default_timeout=60).run()
    lost, refused, foreign = (error.value.replace("\\", "") for error in screen.error)
    assert lost == "The database <b>cannot</b> be reached."
    assert refused == "refused: [removed]"
    assert foreign.startswith("Something went wrong on this screen (ValueError).")
    assert "canary" not in foreign


def test_streamlit_logs_an_error_by_class_and_frames(caplog: pytest.LogCaptureFixture) -> None:
    usual = logging.getLogRecordFactory()
    streamlits = logging.getLogger("streamlit.error_util")
    streamlits.addHandler(caplog.handler)
    faults.log_no_messages()
    try:
        try:
            raise ValueError("canary-header-4f1d9a")
        except ValueError as error:
            handle_user_script_exception(error, lambda _: True)
            for words, *about in (("failed: %s", error), (error,), ("at %(x)s", {"x": 1}), ("plain %",)):
                logging.getLogger("uvicorn").error(words, *about, exc_info=True)
            logging.getLogger("uvicorn").error(error)
    finally:
        logging.setLogRecordFactory(usual)
        streamlits.removeHandler(caplog.handler)
    assert caplog.text.count("builtins.ValueError") == 5
    assert caplog.text.count(" in test_streamlit_logs_an_error") == 5
    assert "canary" not in caplog.text
