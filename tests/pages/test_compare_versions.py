"""Compare on a judge with versions: the one in use beside no criteria, the others aside; choices kept in the link."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core import projects
from core.people import Actor
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Calibrated
from tests.pages.screen import choose, open_screen, texts

CALIBRATED = True
SCREEN, ASPECT = "6_compare", "coherence"


@pytest.fixture
def in_use(store: Store, settings: Settings, calibrated: Calibrated, drive: Callable[..., str]) -> Store:
    """Version 2, made of an edit, is in use."""
    ann = store.acting(Actor("Ann", "admin"))
    (project,) = projects.list_projects(store)
    edit = next(entry for entry in projects.list_criteria(store, project.project_id, ASPECT) if entry.origin == "edit")
    made = projects.make_version(ann, settings, project.project_id, ASPECT, [edit.criteria_id], origin="edit")
    assert drive(store, settings, made) == "done"
    line = projects.judge_line(store, project.project_id, ASPECT)
    projects.use_version(ann, project.project_id, ASPECT, 2, decided=line.decided)
    return ann


def test_the_version_in_use_is_what_the_screen_is_about(in_use: Store) -> None:
    screen = open_screen(SCREEN, aspect=ASPECT)
    assert screen.header[0].value.startswith("Version 2 of the judge ")
    assert "beside no criteria" in screen.header[0].value
    table = screen.dataframe[0].value
    named = [name for name in table["judge"] if "version" in name]
    assert named == ["Judge, version 2 (in use)"]
    assert sum(name.endswith("no criteria") for name in table["judge"]) == 1
    assert "beside version 2" in table
    choose(screen, "Earlier versions", True)
    assert "Judge, version 1 (waits for sign-off)" in list(screen.dataframe[0].value["judge"])
    assert screen.query_params["versions"] == "all"
    link = open_screen(SCREEN, aspect=ASPECT, versions="all")
    assert len(link.dataframe[0].value) == len(table) + 1


def test_columns_are_chosen_and_stand_in_the_link(in_use: Store) -> None:
    screen = open_screen(SCREEN, aspect=ASPECT)
    assert "calls" not in screen.pills[0].options  # the offline judge makes none
    assert "MAE" not in screen.dataframe[0].value
    screen.pills[0].set_value(["MAE", "kind"]).run()
    assert {"MAE", "kind"} <= set(screen.dataframe[0].value)
    assert screen.query_params["columns"] == "MAE,kind"
    link = open_screen(SCREEN, aspect=ASPECT, columns="kind,<b>")
    assert "kind" in link.dataframe[0].value
    assert "<b>" not in texts(link)


def test_without_the_version_the_table_speaks_of_the_highest(in_use: Store) -> None:
    screen = open_screen(SCREEN, aspect=ASPECT)
    (project,) = projects.list_projects(in_use)
    shown = projects.judges_shown(in_use, project.project_id, screen.query_params["golden"], ASPECT)
    screen.multiselect[0].set_value([shown.own]).run()
    assert "Version 2" not in screen.header[0].value
    assert "beside version 2" not in screen.dataframe[0].value
