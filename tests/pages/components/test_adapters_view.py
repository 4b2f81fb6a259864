"""The adapters on screen, on a real store: the empty state, each tool with what is lost, text and download."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.settings import CalibrationSettings
from core.data import load_golden
from core.export.adapters import NAMES
from core.projects.calibration import CalibrationRequest
from core.settings import Settings
from core.store.store import Store
from tests.pages.screen import as_sent, draw


class Place:
    """A project with a golden set on a store of its own, and the page that shows the component on it."""

    def __init__(self, store: Store, settings: Settings, source: Path) -> None:
        self.store, self.settings = store, settings
        self.project = projects.create_project(store, "p")
        self.golden_id = projects.add_golden(store, self.project.project_id, load_golden(source))

    def show(self, aspect: str = "coherence") -> AppTest:
        return draw(self.settings, "adapters_view", aspect)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("adapters")
    settings = Settings(home=home, worker="external", worker_id="w")
    with Store(f"sqlite:///{home / 'concord.sqlite'}") as store:
        yield Place(store, settings, repository / "sample_data" / "summaries.jsonl")
    st.cache_resource.clear()


def test_without_a_calibration_it_says_what_to_do(place: Place) -> None:
    page = place.show("relevance")
    assert not page.exception
    assert "Calibrate a judge; its files for other tools are here then." in as_sent(page)
    assert not page.code


def test_each_tool_with_what_it_keeps_and_what_is_lost(place: Place, drive: Callable[..., str]) -> None:
    request = CalibrationRequest(
        place.project.project_id,
        place.golden_id,
        "coherence",
        settings=CalibrationSettings(preset="quick", resamples=20),
    )
    run_id = projects.start_calibration(place.store, place.settings, request)
    assert drive(place.store, place.settings, run_id) == "done"
    page = place.show()
    assert not page.exception
    [tool] = [one for one in page.get("button_group") if one.label == "Tool"]
    assert len(tool.options) == len(NAMES)
    for name, words in (("deepeval", "mean over its"), ("promptfoo", "no language model"), ("python", "judge\\.yaml")):
        page = _choose(page, name)
        assert not page.exception
        assert words in as_sent(page)
        found = projects.judge_adapters(place.store, place.project.project_id, place.golden_id, "coherence")
        assert found is not None
        assert found.run.run_id == run_id
        [shown] = page.code
        assert _settled(shown.value) == _settled({one.name: one for one in found.adapters}[name].text)


def _settled(text: str) -> list[str]:
    """The lines of a file without those that tell when its judge file was written."""
    return [line for line in text.rstrip("\n").split("\n") if "written 20" not in line and "sha256:" not in line]


def _choose(page: AppTest, name: str) -> AppTest:
    [tool] = [one for one in page.get("button_group") if one.label == "Tool"]
    tool.set_value(name)
    return page.run()


def test_a_run_of_another_aspect_is_not_taken(place: Place) -> None:
    project_id = place.project.project_id
    assert projects.judge_adapters(place.store, project_id, place.golden_id, "relevance", "nothing") is None
