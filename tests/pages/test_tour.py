"""The demo's bar: there in the demo alone, a tour to begin, walk and leave, roles on what changes something."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import projects
from core.project_records import DEMO_PROJECT
from core.settings import Settings
from core.store.store import Store
from pages.overview import tour
from tests.pages.screen import open_screen, press, write


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A new store, as the first start of the app leaves it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CONCORD_HOME", str(tmp_path_factory.mktemp("tour") / "home"))
        patch.setenv("CONCORD_WORKER", "external")
        patch.setenv("CONCORD_DEMO", "on")
        st.cache_resource.clear()
        opened = projects.open_store(Settings.from_environment())
        yield opened
        st.cache_resource.clear()
        opened.close()


opened = partial(open_screen, "app")


def labels(screen: AppTest) -> list[str]:
    return [button.label for button in screen.button]


def test_the_first_start_lands_in_the_demo_and_says_what_it_is(store: Store) -> None:
    screen = opened()
    assert screen.selectbox(key="project_picker").value == DEMO_PROJECT
    assert tour.WHAT in [caption.value for caption in screen.caption]
    assert {"Take the tour", "Start with your own data", "Replay this calibration", "Reset the demo"} <= set(
        labels(screen)
    )
    assert not any("Tour 1 of" in block.value for block in screen.markdown)  # nobody is led who did not ask


def test_other_projects_have_no_bar(store: Store) -> None:
    screen = opened(project="sample")
    assert "Take the tour" not in labels(screen)
    assert tour.WHAT not in [caption.value for caption in screen.caption]


def test_the_tour_can_be_left_at_any_time(store: Store) -> None:
    screen = opened(tour="1")
    assert f"Tour 1 of {len(tour.STEPS)}" in screen.markdown[0].value + "".join(
        block.value for block in screen.markdown
    )
    assert {"Next", "Leave the tour"} <= set(labels(screen))
    assert not {"Back", "Take the tour"} & set(labels(screen))
    screen.button(key="form_tour_leave").click().run()
    assert "Take the tour" in labels(screen)
    assert not any("Tour 1 of" in block.value for block in screen.markdown)


def test_whoever_walks_off_is_waited_for(store: Store) -> None:
    screen = opened(tour="3")  # a stop on another screen
    assert any("You left the tour" in block.value for block in screen.markdown)
    assert "Continue the tour" in labels(screen)
    assert "Next" not in labels(screen)


@pytest.mark.parametrize("place", ["0", "99", "x", "-1", "1e3"])
def test_a_place_that_there_is_not_begins_no_tour(store: Store, place: str) -> None:
    assert "Take the tour" in labels(opened(tour=place))


def test_every_stop_is_a_screen_with_something_of_the_demo(store: Store) -> None:
    assert [step.screen for step in tour.STEPS] == ["overview", "golden_set", "calibrate", "criteria", "report"]
    runs = tuple(reversed(store.runs.all(DEMO_PROJECT)))
    finished = tour.Finished(runs[0].golden_id, runs[0].aspect, runs)
    for step in tour.STEPS:
        assert len(step.words.split()) <= 50, step.screen
        assert all(len(sentence.split()) <= 25 for sentence in step.words.split(". ")), step.screen
        assert all(step.ids(finished).values()), step.screen
    assert finished.run("calibration", "scripted") == runs[0].run_id


def test_the_first_stop_says_what_is_so_of_the_judge(store: Store) -> None:
    line = projects.judge_line(store, DEMO_PROJECT, "house_style")
    assert line.current is not None
    assert line.current.number == 2
    assert line.current.made.origin == "review"
    gain = line.current.newest.held_out_gain if line.current.newest else None
    assert gain is not None
    assert (gain.value or 0) > 0
    assert "Version 2 came from an edit" in "".join(block.value for block in opened(tour="1").markdown)


def test_own_data_begin_in_a_new_project(store: Store) -> None:
    screen = opened()
    press(screen, "Start with your own data")
    write(screen, "Name of the project", "My project")
    press(screen, "Create project")
    assert "My project" in [project.name for project in store.projects.all()]
    assert "Take the tour" not in labels(screen)
