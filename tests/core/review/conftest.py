"""A new store, whose runs nobody takes up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from core.projects.opening import open_store

from core.settings import Settings
from core.store.store import Store


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", worker="external", worker_id="w")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with open_store(settings) as opened:
        yield opened
