"""The report on screen, against a real store: nothing there yet, the result, hostile words, files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.settings import CalibrationSettings
from core.projects.calibration import CalibrationRequest
from core.report.findings import headline, limits
from core.settings import Settings
from core.store.store import Store
from tests.pages.screen import HOSTILE_ASPECT, as_sent, draw, open_screen, texts

CALIBRATED = True  # every test begins in a copy of that home


@pytest.fixture
def show(store: Store, settings: Settings) -> Callable[..., AppTest]:
    return lambda view="report_view", aspect="coherence": draw(settings, view, aspect)


@pytest.fixture
def whole(store: Store) -> Callable[..., AppTest]:
    """The screen's own file, opened as a link does."""
    return lambda **ids: open_screen("9_report", **({"project": projects.list_projects(store)[0].project_id} | ids))


def found_report(store: Store, calibrated: Any) -> Any:
    (project,) = projects.list_projects(store)
    run = projects.run_view(store, calibrated.run_id)
    return projects.report(store, project.project_id, run.golden_id, "coherence")


@pytest.mark.parametrize("component", ["report_view", "report_judge"])
def test_without_a_calibration_it_says_what_to_do(show: Callable[..., AppTest], component: str) -> None:
    screen = show(component, HOSTILE_ASPECT)
    assert "has come to a result" in texts(screen)
    assert "<b>" not in as_sent(screen)
    assert "[x](" not in as_sent(screen)
    assert not screen.get("download_button")


def test_a_calibration_that_goes_on_is_told(
    show: Callable[..., AppTest], store: Store, settings: Settings, calibrated: Any
) -> None:
    (project,) = projects.list_projects(store)
    golden_id = projects.run_view(store, calibrated.run_id).golden_id
    projects.start_calibration(store, settings, CalibrationRequest(project.project_id, golden_id, HOSTILE_ASPECT))
    assert "is going on" in texts(show("report_view", HOSTILE_ASPECT))


def test_the_result_stands_first_with_what_limits_it(
    show: Callable[..., AppTest], store: Store, calibrated: Any
) -> None:
    screen = show()
    report = found_report(store, calibrated)
    words = texts(screen)
    assert headline(report).sentence in words
    for one in limits(report):
        assert one.title in words
        assert one.text in words
    metrics = {metric.label: metric.value for metric in screen.metric}
    assert metrics["Judge and people, held-out"] == f"{report.held_out.value:.2f}"
    assert metrics["Judge minus one rater"] == "—"  # this golden set has one label an item
    assert metrics["Criteria approved"] == f"0 of {len(report.history.chosen)}"
    for one in report.history.chosen:
        assert one.criteria.text in words
    assert report.reproduce.command in words
    tables = [frame.value for frame in screen.dataframe]
    assert list(tables[0]["n held-out"]) == [report.held_out.n] * 3
    assert list(tables[1]["judge"]) == [row.name for row in report.judges.rows]


def test_three_files_are_offered(show: Callable[..., AppTest]) -> None:
    labels = [element.proto.label for element in show().get("download_button")]
    assert labels == ["Report as one page (HTML)", "For a wiki (Markdown)", "Every figure (CSV)"]


def test_what_people_do_is_there_at_once(show: Callable[..., AppTest], store: Store, calibrated: Any) -> None:
    assert "Criteria not approved" in texts(show())
    (project,) = projects.list_projects(store)
    for criteria in projects.load_calibration(store, calibrated.run_id).chosen:
        for state in ("proposed", "approved"):
            seen = projects.review_of(store, project.project_id, criteria.criteria_id).seen
            projects.set_state(
                store,
                project.project_id,
                criteria.criteria_id,
                state,
                reason=HOSTILE_ASPECT,
                seen=seen,
                run_id=calibrated.run_id,  # type: ignore[arg-type]
            )
    again = show()
    assert "Criteria not approved" not in texts(again)
    assert "<b>wit" not in as_sent(again)
    n = len(projects.load_calibration(store, calibrated.run_id).chosen)
    assert {metric.label: metric.value for metric in again.metric}["Criteria approved"] == f"{n} of {n}"


def test_with_two_calibrations_one_is_chosen(
    show: Callable[..., AppTest], store: Store, settings: Settings, calibrated: Any, drive: Callable[..., str]
) -> None:
    (project,) = projects.list_projects(store)
    golden_id = projects.run_view(store, calibrated.run_id).golden_id
    chosen = CalibrationSettings(preset="quick", resamples=0, rounds=0, seed=5)
    request = CalibrationRequest(project.project_id, golden_id, "coherence", "offline", chosen)
    newest = projects.start_calibration(store, settings, request)
    drive(store, settings, newest)
    screen = show()
    (picker,) = screen.selectbox
    assert picker.value == newest
    assert "--seed 5" in texts(screen)
    picker.set_value(calibrated.run_id).run()
    assert "--seed 0" in texts(screen)


def test_the_judge_file_is_shown_and_offered(show: Callable[..., AppTest], store: Store, calibrated: Any) -> None:
    screen = show("report_judge")
    (button,) = screen.get("download_button")
    assert button.proto.label == "Download judge.yaml"
    shown = max((str(block.value) for block in screen.code), key=len)
    assert shown.startswith("format: concord-judge")
    for criteria in projects.load_calibration(store, calibrated.run_id).chosen:
        assert criteria.criteria_id in shown


def test_the_screen_opens_with_the_report_and_has_four_sections(whole: Callable[..., AppTest]) -> None:
    screen = whole()
    assert screen.title[0].value == "Report"
    (sections,) = (element for element in screen.get("button_group") if element.key == "form_report_section")
    assert sections.options == ["Report", "Judge file", "Drift", "Project"]
    assert "What to keep in mind" in texts(screen)
    assert "<b>" not in as_sent(screen)
    sections.set_value("judge").run()
    assert screen.query_params["section"] == "judge"
    assert "For other tools" in texts(screen)
    assert "judge.yaml" in texts(screen)


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ("judge", "judge.yaml"),
        ("drift", ""),
        ("project", "Take this project away"),
        ("nonsense", "What to keep in mind"),
    ],
)
def test_a_link_opens_its_section(whole: Callable[..., AppTest], section: str, says: str) -> None:
    assert says in texts(whole(section=section))


def test_a_project_without_a_golden_set_can_still_bring_one_in(whole: Callable[..., AppTest], store: Store) -> None:
    empty = projects.create_project(store, "empty").project_id
    assert "no golden set yet" in texts(whole(project=empty))
    assert "Take this project away" in texts(whole(project=empty, section="project"))


def test_an_aspect_without_a_calibration_says_what_to_do_in_every_section(whole: Callable[..., AppTest]) -> None:
    for section in ("report", "judge", "drift"):
        screen = whole(section=section, aspect=HOSTILE_ASPECT)
        assert "<b>" not in as_sent(screen)
        assert texts(screen)
