"""The report on screen, against a real store: nothing there yet, the result, hostile words, files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.settings import CalibrationSettings
from core.data import load_golden
from core.people import Actor
from core.projects.calibration import CalibrationRequest
from core.records import AspectLabels, GoldenSet
from core.report.findings import headline, limits
from core.settings import Settings
from core.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<b>wit</b> [x](http://evil.example) $y$"


@dataclass(frozen=True)
class Template:
    home: Path
    run_id: str
    edit_id: str


def kept_in(home: Path) -> Settings:
    return Settings(home=home, worker="external", worker_id="w")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory, repository: Path, drive: Callable[..., str]) -> Template:
    """A home with an offline calibration of coherence, and an aspect with a hostile name that has none."""
    whole = load_golden(repository / "sample_data" / "summaries.jsonl")
    n = int(np.flatnonzero(whole.source_codes < 12)[-1]) + 1
    labels = replace(whole.aspects["coherence"], values=whole.aspects["coherence"].values[:n])
    golden = GoldenSet(
        f"some {HOSTILE}", whole.kind, whole.items[:n],
        {"coherence": labels, HOSTILE: AspectLabels(HOSTILE, labels.scale, labels.values)},
    )  # fmt: skip
    home = tmp_path_factory.mktemp("template") / "home"
    settings = kept_in(home)
    store = projects.open_store(settings)
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    chosen = CalibrationSettings(preset="quick", resamples=50, rounds=0)
    run_id = projects.start_calibration(
        store, settings, CalibrationRequest(project, golden_id, "coherence", "offline", chosen)
    )
    drive(store, settings, run_id)
    best = projects.load_calibration(store, run_id).chosen[0].criteria_id
    edit_id = projects.save_edit(
        store.acting(Actor(HOSTILE, "admin")), project, best, f"Be clear. {HOSTILE}", note=HOSTILE
    )
    store.close()
    return Template(home, run_id, edit_id)


@pytest.fixture
def settings(tmp_path: Path, template: Template) -> Settings:
    shutil.copytree(template.home, tmp_path / "home")
    return kept_in(tmp_path / "home")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    st.cache_resource.clear()
    opened = projects.open_store(settings)
    yield opened
    opened.close()
    st.cache_resource.clear()


@pytest.fixture
def show(store: Store, settings: Settings) -> Callable[..., AppTest]:
    def shown(component: str = "report_view", aspect: str = "coherence") -> AppTest:
        arguments = (str(settings.home), component, aspect)
        screen = AppTest.from_function(a_page, default_timeout=30, args=arguments).run()
        assert not screen.exception, screen.exception
        return screen

    return shown


@pytest.fixture
def whole(store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """The screen's own file, opened as a link does."""
    monkeypatch.setenv("CONCORD_HOME", str(settings.home))
    monkeypatch.setenv("CONCORD_WORKER", "external")

    def opened(**ids: str) -> AppTest:
        screen = AppTest.from_file(ROOT / "pages" / "9_report.py", default_timeout=60)
        project = next(one for one in projects.list_projects(store) if one.name == "p")
        for name, value in ({"project": project.project_id} | ids).items():
            screen.query_params[name] = value
        screen.run()
        assert not screen.exception, screen.exception
        return screen

    return opened


def a_page(home: str, component: str, aspect: str) -> None:
    """A screen that holds one component alone."""
    from pathlib import Path

    from core import projects
    from core.settings import Settings
    from pages.components import report_judge, report_view
    from pages.components.page import Opened

    settings = Settings(home=Path(home), worker="external", worker_id="w")
    store = projects.open_store(settings)
    (project,) = projects.list_projects(store)
    (golden,) = projects.list_goldens(store, project.project_id)
    draw = {"report_view": report_view.draw, "report_judge": report_judge.draw}[component]
    draw(Opened(settings, store, project), golden, aspect)


def written(screen: AppTest) -> str:
    kinds = ("error", "warning", "success", "info", "caption", "markdown", "text", "subheader", "code")
    return "\n".join(str(element.value) for kind in kinds for element in screen.get(kind))


def read(screen: AppTest) -> str:
    """What a person reads: without the marks that keep text from being markup."""
    return written(screen).replace("\\", "").replace("\u2060", "")


def found_report(store: Store, template: Template) -> Any:
    (project,) = projects.list_projects(store)
    run = projects.run_view(store, template.run_id)
    return projects.report(store, project.project_id, run.golden_id, "coherence")


@pytest.mark.parametrize("component", ["report_view", "report_judge"])
def test_without_a_calibration_it_says_what_to_do(show: Callable[..., AppTest], component: str) -> None:
    screen = show(component, HOSTILE)
    assert "has come to a result" in read(screen)
    assert "<b>" not in written(screen)
    assert "[x](" not in written(screen)
    assert not screen.get("download_button")


def test_a_calibration_that_goes_on_is_told(
    show: Callable[..., AppTest], store: Store, settings: Settings, template: Template
) -> None:
    (project,) = projects.list_projects(store)
    golden_id = projects.run_view(store, template.run_id).golden_id
    projects.start_calibration(store, settings, CalibrationRequest(project.project_id, golden_id, HOSTILE))
    assert "is going on" in read(show("report_view", HOSTILE))


def test_the_result_stands_first_with_what_limits_it(
    show: Callable[..., AppTest], store: Store, template: Template
) -> None:
    screen = show()
    report = found_report(store, template)
    words = read(screen)
    assert headline(report).sentence in words
    for one in limits(report):
        assert one.title in words
        assert one.text in words
    metrics = {one.label: one.value for one in screen.metric}
    assert metrics["Judge and people, held-out"] == f"{report.held_out.value:.2f}"
    assert metrics["Judge minus one rater"] == "—"  # this golden set has one label an item
    assert metrics["Criteria approved"] == f"0 of {len(report.history.chosen)}"
    for one in report.history.chosen:
        assert one.criteria.text in words
    assert report.reproduce.command in words
    tables = [frame.value for frame in screen.dataframe]
    assert list(tables[0]["n held-out"]) == [report.held_out.n] * 3
    assert list(tables[1]["judge"]) == [one.name for one in report.judges.rows]


def test_three_files_are_offered(show: Callable[..., AppTest]) -> None:
    labels = [one.proto.label for one in show().get("download_button")]
    assert labels == ["Report as one page (HTML)", "For a wiki (Markdown)", "Every figure (CSV)"]


def test_what_people_do_is_there_at_once(show: Callable[..., AppTest], store: Store, template: Template) -> None:
    assert "Criteria not approved" in read(show())
    (project,) = projects.list_projects(store)
    for one in projects.load_calibration(store, template.run_id).chosen:
        for state in ("proposed", "approved"):
            seen = projects.review_of(store, project.project_id, one.criteria_id).seen
            projects.set_state(
                store,
                project.project_id,
                one.criteria_id,
                state,
                reason=HOSTILE,
                seen=seen,
                run_id=template.run_id,  # type: ignore[arg-type]
            )
    again = show()
    assert "Criteria not approved" not in read(again)
    assert "<b>wit" not in written(again)
    n = len(projects.load_calibration(store, template.run_id).chosen)
    assert {one.label: one.value for one in again.metric}["Criteria approved"] == f"{n} of {n}"


def test_with_two_calibrations_one_is_chosen(
    show: Callable[..., AppTest], store: Store, settings: Settings, template: Template, drive: Callable[..., str]
) -> None:
    (project,) = projects.list_projects(store)
    golden_id = projects.run_view(store, template.run_id).golden_id
    chosen = CalibrationSettings(preset="quick", resamples=0, rounds=0, seed=5)
    asked = CalibrationRequest(project.project_id, golden_id, "coherence", "offline", chosen)
    newest = projects.start_calibration(store, settings, asked)
    drive(store, settings, newest)
    screen = show()
    (picker,) = screen.selectbox
    assert picker.value == newest
    assert "--seed 5" in read(screen)
    picker.set_value(template.run_id).run()
    assert not screen.exception
    assert "--seed 0" in read(screen)


def test_the_judge_file_is_shown_and_offered(show: Callable[..., AppTest], store: Store, template: Template) -> None:
    screen = show("report_judge")
    (button,) = screen.get("download_button")
    assert button.proto.label == "Download judge.yaml"
    shown = max((str(one.value) for one in screen.code), key=len)
    assert shown.startswith("format: concord-judge")
    for one in projects.load_calibration(store, template.run_id).chosen:
        assert one.criteria_id in shown


def test_the_screen_opens_with_the_report_and_has_four_sections(whole: Callable[..., AppTest]) -> None:
    screen = whole()
    assert screen.title[0].value == "Report"
    (sections,) = (one for one in screen.get("button_group") if one.key == "form_report_section")
    assert sections.options == ["Report", "Judge file", "Drift", "Project"]
    assert "What to keep in mind" in read(screen)
    assert "<b>" not in written(screen)
    sections.set_value("judge").run()
    assert not screen.exception
    assert screen.query_params["section"] == "judge"
    assert "For other tools" in read(screen)
    assert "judge.yaml" in read(screen)


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
    assert says in read(whole(section=section))


def test_a_project_without_a_golden_set_can_still_bring_one_in(whole: Callable[..., AppTest], store: Store) -> None:
    empty = projects.create_project(store, "empty").project_id
    assert "no golden set yet" in read(whole(project=empty))
    assert "Take this project away" in read(whole(project=empty, section="project"))


def test_an_aspect_without_a_calibration_says_what_to_do_in_every_section(whole: Callable[..., AppTest]) -> None:
    for section in ("report", "judge", "drift"):
        screen = whole(section=section, aspect=HOSTILE)
        assert "<b>" not in written(screen)
        assert read(screen)
