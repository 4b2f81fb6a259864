"""The report on screen, against a real store: nothing there yet, the result, hostile words, files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.projects.calibration import CalibrationRequest, VersionRequest
from core.projects.judge_line import JudgeLine
from core.records import JudgeScores
from core.report.headline import gained, headline, limits
from core.settings import Settings
from core.store.store import Store
from tests.pages.screen import HOSTILE_ASPECT, as_sent, choose, labelled, open_screen, press, texts

CALIBRATED = True  # every test begins in a copy of that home


@pytest.fixture
def whole(store: Store) -> Callable[..., AppTest]:
    """The screen's own file, opened as a link does."""
    return lambda **ids: open_screen("9_report", **({"project": store.projects.all()[0].project_id} | ids))


@pytest.fixture
def line(store: Store) -> Callable[[], JudgeLine]:
    return lambda: projects.judge_line(store, store.projects.all()[0].project_id, "coherence")


def found_report(store: Store, calibrated: Any) -> Any:
    (project,) = store.projects.all()
    run = projects.run_view(store, calibrated.run_id)
    return projects.report(store, project.project_id, run.golden_id, "coherence")


@pytest.mark.parametrize("section", ["report", "evidence", "export", "drift"])
def test_without_a_calibration_it_says_what_to_do(whole: Callable[..., AppTest], section: str) -> None:
    screen = whole(aspect=HOSTILE_ASPECT, section=section)
    assert "There is no judge for" in texts(screen)
    assert "<b>" not in as_sent(screen)
    assert "[x](" not in as_sent(screen)
    assert not screen.get("download_button")


def test_without_a_calibration_judges_that_were_brought_in_are_found_on_compare(
    whole: Callable[..., AppTest], store: Store, calibrated: Any
) -> None:
    (project,) = store.projects.all()
    golden_id = projects.run_view(store, calibrated.run_id).golden_id
    values = np.arange(len(store.goldens.load(golden_id).items), dtype=np.float64)
    judge = JudgeScores("<b>Theirs", "imported", HOSTILE_ASPECT, values, on_scale=False)
    projects.add_judge(store, project.project_id, golden_id, judge)
    screen = whole(aspect=HOSTILE_ASPECT)
    assert "There is no judge for" in texts(screen) and "Theirs, see the Compare page" in texts(screen)
    assert any("/compare" in link.proto.url for link in screen.get("link_button"))


def test_a_calibration_that_goes_on_is_told(
    whole: Callable[..., AppTest], store: Store, settings: Settings, calibrated: Any
) -> None:
    (project,) = store.projects.all()
    golden_id = projects.run_view(store, calibrated.run_id).golden_id
    projects.start_run(store, settings, CalibrationRequest(project.project_id, golden_id, HOSTILE_ASPECT))
    assert "is running" in texts(whole(aspect=HOSTILE_ASPECT))


def test_the_finding_stands_first_the_rest_part_by_part(
    whole: Callable[..., AppTest], store: Store, calibrated: Any
) -> None:
    screen = whole()
    report = found_report(store, calibrated)
    head, words = headline(report), texts(screen)
    assert screen.header[0].value.replace("\\", "") == head.headline
    assert head.detail in words
    assert gained(report).detail in words
    assert "No one in this project has approved version 1." in words
    assert len(screen.get("image")) == 1
    words = texts(whole(section="evidence"))
    for limit in limits(report):
        assert limit.headline in words
        assert limit.detail in words


def test_report_appendix_and_judge_file_are_offered(whole: Callable[..., AppTest]) -> None:
    def labels(section: str) -> list[str]:
        return [element.proto.label for element in whole(section=section).get("download_button")]

    assert labels("report") == ["Download the report", "Download judge.yaml"]
    assert labels("evidence") == ["Appendix", "Figures as CSV"]


def test_a_sign_off_is_there_at_once(
    whole: Callable[..., AppTest], store: Store, calibrated: Any, line: Callable[[], JudgeLine]
) -> None:
    assert "Not approved" in texts(whole(section="evidence"))
    project_id = store.projects.all()[0].project_id
    projects.decide_version(store, project_id, "coherence", 1, "current", reason=HOSTILE_ASPECT, decided=line().decided)
    assert "Not approved" not in texts(whole(section="evidence"))
    again = whole()
    assert "approved version 1" in texts(again)
    assert "The approved version is the current version." in texts(again)
    assert "<b>wit" not in as_sent(again)
    assert labelled(again.selectbox, "Judge").options == ["version 1 (current)"]
    assert "judge.yaml contains version 1, approved by" in texts(whole(section="export"))


def test_the_version_in_use_is_shown_unless_another_is_chosen(
    whole: Callable[..., AppTest],
    store: Store,
    settings: Settings,
    calibrated: Any,
    drive: Callable[..., str],
    line: Callable[[], JudgeLine],
) -> None:
    (project,) = store.projects.all()
    golden_id = projects.run_view(store, calibrated.run_id).golden_id
    chosen = CalibrationSettings(preset="quick", rounds=0, seed=5)
    request = CalibrationRequest(project.project_id, golden_id, "coherence", "offline", chosen)
    newest = projects.start_run(store, settings, request)
    drive(store, settings, newest)
    projects.decide_version(store, project.project_id, "coherence", 1, "current", decided=line().decided)
    screen = whole()
    picker = labelled(screen.selectbox, "Judge")
    assert picker.options == ["version 1 (current)", "version 2 (waiting for approval)"]
    assert picker.value != newest
    picker.set_value(newest).run()
    assert "No one in this project has approved version 2." in texts(screen)
    assert "version 2" in texts(whole(version="2"))


def test_a_version_without_held_out_figures_says_so_and_can_be_measured(
    whole: Callable[..., AppTest],
    store: Store,
    settings: Settings,
    calibrated: Any,
    drive: Callable[..., str],
    line: Callable[[], JudgeLine],
) -> None:
    (project,) = store.projects.all()
    ids = line().versions[0].criteria_ids[:1]
    request = VersionRequest(project.project_id, "coherence", ids, held_out=False)
    run_id = projects.make_version(store, settings, request)
    drive(store, settings, run_id)
    screen = whole(version="2")
    assert "Version 2 hasn't been measured on held-out items" in texts(screen)
    assert "not measured on held-out items)" in labelled(screen.selectbox, "Judge").options[0]
    press(screen, "Measure it")
    assert "Concord is measuring version 2" in texts(whole(version="2"))
    drive(store, settings, store.runs.all(project.project_id)[0].run_id)
    measured = whole(version="2")
    assert "No one in this project has approved version 2." in texts(measured)
    assert len(labelled(measured.selectbox, "Judge").options) == 2


def test_the_judge_file_is_shown_and_offered(whole: Callable[..., AppTest], store: Store, calibrated: Any) -> None:
    screen = whole(section="export")
    assert screen.get("download_button")[0].proto.label == "Download judge.yaml"
    shown = next(str(block.value) for block in screen.code if str(block.value).startswith("format: concord-judge"))
    for criteria in projects.load_calibration(store, calibrated.run_id).chosen:
        assert criteria.criteria_id in shown


def test_it_opens_with_the_report_and_a_link_opens_its_section(whole: Callable[..., AppTest]) -> None:
    for section in ("report", "nonsense"):
        screen = whole(section=section)
        assert "No one in this project has approved" in texts(screen)
        assert "<b>" not in as_sent(screen)
    choose(screen, "Section", "export")
    assert screen.query_params["section"] == "export"
    assert {"For other tools", "The whole project"} <= {part.value for part in screen.subheader}
    assert "hasn't been rechecked on newer labels yet" in texts(whole(section="drift"))
