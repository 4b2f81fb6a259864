"""Compare on a judge with versions: the one in use next to its baseline, the others aside; choices kept in the link."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core import projects
from core.project_records import Actor
from core.projects.calibration import VersionRequest
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Calibrated
from tests.pages.screen import grids, open_screen

CALIBRATED = True
SCREEN, ASPECT = "6_compare", "coherence"


@pytest.fixture
def in_use(store: Store, settings: Settings, calibrated: Calibrated, drive: Callable[..., str]) -> Store:
    """Version 2, made of an edit, is in use."""
    ann = store.acting(Actor("Ann", "admin"))
    (project,) = store.projects.all()
    edit = next(entry for entry in store.criteria.all(project.project_id, ASPECT) if entry.origin == "edit")
    made = projects.make_version(ann, settings, VersionRequest(project.project_id, ASPECT, (edit.criteria_id,)))
    assert drive(store, settings, made) == "done"
    line = projects.judge_line(store, project.project_id, ASPECT)
    projects.decide_version(ann, project.project_id, ASPECT, 2, "current", decided=line.decided)
    return ann


def test_the_version_in_use_is_what_the_screen_is_about(in_use: Store) -> None:
    screen = open_screen(SCREEN, aspect=ASPECT)
    assert screen.header[0].value.startswith("A plain regression has the highest agreement")
    assert "Version 2 \\(current\\) is not clearly worse" in screen.header[0].value
    table = grids(screen)[0]
    named = [name for name in table["judge"] if "ersion" in name]
    assert named == ["Version 2 (current)"]
    assert sum(name.endswith("baseline") for name in table["judge"]) == 1
    assert "highest" not in set(table["compared with version 2"])
    screen.multiselect[0].set_value([]).run()
    assert "Version 1 (waiting for approval)" in list(grids(screen)[0]["judge"])
    shown = projects.judges_shown(in_use, in_use.projects.all()[0].project_id, screen.query_params["golden"], ASPECT)
    screen.multiselect[0].set_value([shown.own]).run()
    assert "Version 2" not in screen.header[0].value
    assert "compared with version 2" not in grids(screen)[0]
