"""What screens make of projects that nobody planned for: no labels, endless names, hundreds of criteria, a judge that
is gone, people who may not."""

from __future__ import annotations

import pytest

from core import projects
from core.project_records import Actor, Role
from core.projects.calibration import VersionRequest
from core.records import AspectLabels, Criteria, GoldenSet, Item
from core.settings import Settings
from core.store.store import Store
from pages.ui import people
from pages.ui.screens import SCREENS
from tests.pages.making import SCALE, Calibrated
from tests.pages.screen import button, frame_with, has_button, open_screen, press, texts

CALIBRATED = True
ASPECT = "coherence"
FILES = [screen.file.removeprefix("pages/").removesuffix(".py") for screen in SCREENS.values()]


@pytest.fixture
def project_id(store: Store) -> str:
    (project,) = store.projects.all()
    return project.project_id


def act_as(monkeypatch: pytest.MonkeyPatch, role: Role) -> None:
    monkeypatch.setattr(people, "actor_of", lambda account, settings: Actor("Vi", role, at_screen=True))


@pytest.mark.parametrize("name", FILES)
def test_a_project_without_labels_opens_on_every_screen(store: Store, name: str) -> None:
    project = projects.create_project(store, "p").project_id
    items = tuple(Item(f"i{k}", f"text {k}", f"s{k}") for k in range(6))
    projects.add_golden(store, project, GoldenSet("bare", "single", items, {}))
    screen = open_screen(name, project=project)
    assert "Traceback" not in texts(screen)
    assert len(texts(screen)) > 60, "it says what is missing"


@pytest.mark.parametrize("name", FILES)
def test_names_of_300_letters_open_on_every_screen(store: Store, name: str) -> None:
    project, long = projects.create_project(store, "p").project_id, "n" * 300
    items = tuple(Item(f"{k}{long}", f"text {k}", f"s{k}{long}", f"{k % 2}{long}") for k in range(6))
    labels = AspectLabels(long, SCALE, tuple(1.0 + k % 5 for k in range(6)))
    golden_id = projects.add_golden(store, project, GoldenSet(long, "single", items, {long: labels}))
    criteria = Criteria("Reward what is clear.", long)
    store.criteria.add(project, golden_id, [criteria])
    assert "Traceback" not in texts(open_screen(name, project=project))


def test_five_hundred_criteria_are_one_list(store: Store, project_id: str, calibrated: Calibrated) -> None:
    golden_id = store.goldens.all(project_id)[0].golden_id
    store.criteria.add(project_id, golden_id, [Criteria(f"Reward point {k}.", ASPECT) for k in range(500)])
    screen = open_screen("4_criteria", project=project_id, aspect=ASPECT)
    best = projects.load_calibration(store, calibrated.run_id).chosen[0]
    assert best.text.splitlines()[0] in texts(screen), "the best that was measured stands open, not one of the 500"
    screen.segmented_control(key="criteria_view").set_value("Versions").run()
    assert len(frame_with(screen, "created from")) < 60, "what was not measured in full is shown when asked for"
    screen.toggle(key="form_lineage_all").set_value(True).run()
    assert len(frame_with(screen, "created from")) > 500


@pytest.mark.parametrize("role", ["viewer", "annotator"])
def test_who_may_label_but_not_review_reads_what_a_link_to_review_shows(
    store: Store, project_id: str, calibrated: Calibrated, monkeypatch: pytest.MonkeyPatch, role: Role
) -> None:
    act_as(monkeypatch, role)
    screen = open_screen("0_overview", project=project_id, aspect=ASPECT, version="1")
    assert button(screen, "Approve and use it").disabled
    assert f"Your role is {role}." in texts(screen)
    best = projects.load_calibration(store, calibrated.run_id).chosen[0]
    screen = open_screen("4_criteria", project=project_id, criteria=best.criteria_id)
    assert button(screen, "Edit").disabled
    assert best.text.splitlines()[0] in texts(screen)


def test_a_version_whose_endpoint_is_gone_says_why_and_can_be_measured_again(
    store: Store, settings: Settings, project_id: str, calibrated: Calibrated
) -> None:
    (edit,) = (entry for entry in store.criteria.all(project_id, ASPECT) if entry.origin == "edit")
    request = VersionRequest(project_id, ASPECT, (edit.criteria_id,))
    run_id = projects.make_version(store.acting(Actor("Ann", "admin")), settings, request)
    assert store.runs.claim(run_id, 1, "w")
    assert store.runs.finish(run_id, 1, "failed", error="The endpoint http://127.0.0.1:9/v1 cannot be reached.")
    screen = open_screen("0_overview", project=project_id, aspect=ASPECT, version="2")
    assert "http://127.0.0.1:9/v1 cannot be reached" in texts(screen)
    assert not has_button(screen, "Approve and use it"), "nothing is known of it"
    press(screen, "Measure it")
    again = projects.version_run(store, project_id, ASPECT, 2)
    assert again is not None
    assert (again.status, again.run_id != run_id) == ("queued", True)
    assert not has_button(screen, "Measure it"), "it is under way"


def test_an_approval_withdrawn_in_another_window_is_told_and_the_way_back_is_there(
    store: Store, project_id: str
) -> None:
    ann = store.acting(Actor("Ann", "admin"))
    projects.decide_version(
        ann, project_id, ASPECT, 1, "current", decided=projects.judge_line(store, project_id, ASPECT).decided
    )
    screen = open_screen("0_overview", project=project_id, aspect=ASPECT, version="1")
    line = projects.judge_line(store, project_id, ASPECT)
    projects.decide_version(ann, project_id, ASPECT, 1, "proposed", reason="not after all", decided=line.decided)
    screen.run()
    assert "Version 1 is waiting for approval" in texts(screen)
    assert has_button(screen, "Approve and use it")
