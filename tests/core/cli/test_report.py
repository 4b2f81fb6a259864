"""`report` on the command line: its JSON, the files it leaves, errors in words."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.data import load_golden
from core.projects.calibration import CalibrationRequest
from core.settings import Settings
from tests.core.cli.conftest import Run

PROJECT = "Dialogue <b>"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, repository: Path, drive: Callable[..., str]) -> Path:
    """A finished calibration of naturalness in a project beside an empty one."""
    folder = tmp_path_factory.mktemp("home")
    settings = Settings(
        home=folder, worker="external", worker_id="w", database_url=f"sqlite:///{folder}/concord.sqlite"
    )
    store = projects.open_store(settings)
    project = projects.create_project(store, PROJECT).project_id
    projects.create_project(store, "empty")
    golden_id = projects.add_golden(store, project, load_golden(repository / "sample_data" / "dialogue.jsonl"))
    chosen = CalibrationSettings(preset="quick", resamples=50, rounds=0)
    request = CalibrationRequest(project, golden_id, "naturalness", "offline", chosen)
    drive(store, settings, projects.start_calibration(store, settings, request))
    store.close()
    return folder


@pytest.fixture
def call(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`report` in the home with the calibration."""
    monkeypatch.setenv("CONCORD_HOME", str(home))
    return partial(run, "report", "--out", "out")


def test_it_writes_the_page_its_appendix_and_the_figures_and_tells(call: Run) -> None:
    code, body = call("--project", PROJECT, "--aspect", "naturalness")
    assert code == 0
    out = Path("out")
    assert {path.name for path in out.iterdir()} == {
        *("report.html", "appendix.html"),
        "figures.csv",
    }
    assert body["files"]["html"] == str(out / "report.html")
    assert body["bytes"]["html"] == (out / "report.html").stat().st_size < 5_000_000
    page = (out / "report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<b>" not in page
    rows = list(csv.DictReader((out / "figures.csv").read_text("utf-8").splitlines()))
    assert float(rows[0]["value"]) == body["held_out"]["value"]
    assert [float(rows[0]["low"]), float(rows[0]["high"])] == body["held_out"]["interval"]
    assert body["headline"] in (out / "appendix.html").read_text("utf-8").replace("&#39;", "'")
    assert body["version"] == {"number": 1, "state": "proposed"}
    assert body["signed_off"] == "Nobody here has approved version 1 of the judge."
    assert {limit["title"] for limit in body["limits"]} >= {"Nobody rated these texts", "Not signed off"}
    assert body["ceiling"]["n"] == body["held_out"]["n"]


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        (("--project", "nowhere", "--aspect", "naturalness"), "NotFoundError", "There is no project 'nowhere'"),
        (("--project", PROJECT, "--aspect", "coherence"), "JobError", "Run one to its end first"),
        (("--project", PROJECT, "--aspect", "naturalness", "--run", "x"), "NotFoundError", "x"),
    ],
)
def test_what_cannot_be_reported_is_told(call: Run, arguments: tuple[str, ...], kind: str, says: str) -> None:
    code, body = call(*arguments)
    assert (code, body["error"]["type"]) == (1, kind)
    assert says in body["error"]["message"]
    assert not Path("out").exists()
