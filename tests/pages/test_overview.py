"""Overview: where the project stands, a version signed off, its story, an empty project."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from core import projects
from core.project_records import Actor
from core.projects.calibration import VersionRequest
from core.projects.judge_line import JudgeLine
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Calibrated, Place, golden_of
from tests.pages.screen import HOSTILE, as_sent, has_button, metrics, open_screen, press, texts

CALIBRATED = True
ASPECT = "coherence"


@pytest.fixture
def line(store: Store) -> Callable[[], JudgeLine]:
    (project,) = store.projects.all()
    return lambda: projects.judge_line(store, project.project_id, ASPECT)


@pytest.fixture
def second(store: Store, settings: Settings, calibrated: Calibrated, drive: Callable[..., str]) -> None:
    """A version of the edited criteria, measured beside the first, with a note of hostile words."""
    (project,) = store.projects.all()
    edit = next(entry for entry in store.criteria.all(project.project_id, ASPECT) if entry.origin == "edit")
    ann = store.acting(Actor("Ann", "admin"))
    request = VersionRequest(project.project_id, ASPECT, (edit.criteria_id,))
    made = projects.make_version(ann, settings, request, origin="edit", note=HOSTILE)
    assert drive(store, settings, made) == "done"


def test_what_a_calibration_proposed_is_signed_off_and_in_use(store: Store, line: Callable[[], JudgeLine]) -> None:
    screen = open_screen("0_overview", aspect=ASPECT)
    assert screen.header[0].value.replace("\\", "").startswith(("Caution: version 1", "Not yet: version 1"))
    shown = metrics(screen)
    assert re.fullmatch(r"0\.\d\d", shown["Agreement with raters"])
    assert shown["Agreement between raters"] == "—"
    assert "only one label per item" in texts(screen)
    assert "Version 1 is waiting for approval" in texts(screen)
    press(screen, "Approve and use it")
    current = line().current
    assert current is not None and current.approval is not None
    assert (current.number, current.approval.actor) == (1, "Ann")
    assert "Version 1 is now the current judge" in texts(screen)
    assert not has_button(screen, "Approve and use it")


def test_an_edit_is_seen_beside_the_version_before(second: None, line: Callable[[], JudgeLine]) -> None:
    screen = open_screen("0_overview", aspect=ASPECT)
    assert re.search(r"(better than|worse than|difference from|Not tested against) version 1\.", texts(screen))
    assert "Changes from" in texts(screen)
    press(screen, "Approve and use it")
    assert [version.state for version in line().versions] == ["proposed", "current"]
    assert "waiting for approval" not in texts(screen)  # a version that a newer one replaced nags nobody
    screen.segmented_control[0].set_value("History").run()
    assert "Ann made version 2 current" in texts(screen)
    assert "<img" not in as_sent(screen).replace("\\<img", "")
    assert screen.query_params["section"] == "history"  # "Open" leads to a URL without it


def test_who_was_second_is_told(second: None, line: Callable[[], JudgeLine], store: Store) -> None:
    screen = open_screen("0_overview", aspect=ASPECT)
    (project,) = store.projects.all()
    bo = store.acting(Actor("Bo", "reviewer"))
    projects.decide_version(bo, project.project_id, ASPECT, 2, "retired", reason="no", decided=line().decided)
    press(screen, "Approve and use it")
    assert "Nothing was changed" in texts(screen)
    assert line().get(2).state == "retired"


def test_an_approval_is_withdrawn_with_a_reason(store: Store, line: Callable[[], JudgeLine]) -> None:
    screen = press(open_screen("0_overview", aspect=ASPECT), "Approve and use it")
    press(screen, "Withdraw the approval")
    assert "Enter a reason for this decision" in texts(screen)
    why = next(field for field in screen.text_input if field.label == "Why")
    why.set_value("it forgives repetition")
    press(screen, "Withdraw the approval")
    assert line().get(1).state == "proposed"


def test_an_empty_project_begins_in_a_press(empty: Place) -> None:
    screen = open_screen("0_overview", project=empty.project_id)
    assert "Your own data" in texts(screen)
    assert "demo" in texts(screen)
    press(screen, "Add the sample summaries")
    assert "There is no judge for coherence yet: summaries has 144 labelled items." in texts(screen)
    assert "To improve the judge" not in texts(screen)


def test_a_golden_set_without_labels_says_what_to_do(empty: Place) -> None:
    empty.add_golden(replace(golden_of(name="bare"), aspects={}))
    screen = open_screen("0_overview", project=empty.project_id)
    assert "bare has 144 items but no labels yet" in texts(screen)


def test_a_long_aspect_is_said_whole(empty: Place) -> None:
    empty.add_golden(golden_of(aspects=["x" * 100]))
    assert f"There is no judge for {'x' * 100} yet" in texts(open_screen("0_overview", project=empty.project_id))
