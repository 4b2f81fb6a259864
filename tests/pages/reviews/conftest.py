"""A project after a calibration and a refinement round, on a real store, for the review screens."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.settings import Settings
from core.store.store import Store
from pages.ui import state
from tests.pages.making import Reviewed, review
from tests.pages.screen import prepared, run


@pytest.fixture(scope="session")
def reviewed_home(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reviewed]:
    home = tmp_path_factory.mktemp("reviewed") / "home"
    return home, review(home)


@pytest.fixture
def reviewed(reviewed_home: tuple[Path, Reviewed]) -> Reviewed:
    return reviewed_home[1]


@pytest.fixture
def settings(settings: Settings, reviewed_home: tuple[Path, Reviewed]) -> Settings:
    """The home that the screen opens: a copy of the prepared one."""
    shutil.copytree(reviewed_home[0], settings.home)
    return settings


@pytest.fixture
def open_criteria(store: Store, reviewed: Reviewed) -> Callable[..., AppTest]:
    """Opens the screen for `who`, with ids in the URL; fails on an exception on screen."""

    def opened(who: str = "Ann", **ids: str) -> AppTest:
        screen = prepared("4_criteria", **{"project": reviewed.project_id, **ids})
        screen.session_state[state.RATER] = who
        return run(screen)

    return opened
