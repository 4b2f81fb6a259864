"""What the server does before its first visitor, and that no screen depends on it."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core import projects
from core.errors import StoreError
from core.project_records import DEMO_PROJECT
from core.settings import Settings
from pages.ui import page, serving


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONCORD_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CONCORD_WORKER", "external")
    monkeypatch.setenv("CONCORD_DEMO", "on")
    monkeypatch.setattr(serving.gc, "freeze", lambda: None)  # the tests' own objects are not to be kept
    return tmp_path / "home"


def test_the_demo_is_there_before_anybody_comes(home: Path) -> None:
    serving.preload()
    with projects.open_store(Settings.from_environment()) as store:
        assert [project.project_id for project in store.projects.all()] == [DEMO_PROJECT, "sample"]


def test_a_store_that_cannot_be_opened_stops_no_server(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(settings: Settings) -> None:
        raise StoreError("The store is of a newer Concord.")

    monkeypatch.setattr(page, "open_store", refused)
    with caplog.at_level(logging.ERROR, "concord"):
        serving.preload()
    assert "of a newer Concord" in caplog.text


@pytest.mark.parametrize("headless", [True, False])
def test_the_address_is_told_when_all_is_ready_and_a_browser_opened_on_it(
    headless: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done: list[str] = []
    options = {"server.headless": headless, "server.address": "127.0.0.1"}
    monkeypatch.setattr(serving, "preload", lambda: done.append("ready"))
    monkeypatch.setattr(serving.st, "get_option", options.get)
    monkeypatch.setattr(serving.cli_util, "open_browser", done.append)

    async def through() -> None:
        async with serving.lifespan(None):
            assert done == ["ready"]
            await asyncio.sleep(3 * serving._LISTENS_AFTER)

    with ThreadPoolExecutor(1) as thread:  # browser tests leave a loop in this one
        thread.submit(asyncio.run, through()).result()
    url = serving.server_util.get_url("127.0.0.1")
    assert f"Concord is ready: {url}" in capsys.readouterr().out
    assert done == (["ready"] if headless else ["ready", url])


def test_the_server_and_a_session_run_the_same_file(repository: Path) -> None:
    code = "import app, streamlit as st; print(type(app.app) is st.App, app.app._user_lifespan.__name__)"
    run = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["True", "lifespan"]
