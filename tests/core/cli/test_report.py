"""`report` on the command line: its JSON, the files it leaves, errors in words."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import core
from core import projects
from core.__main__ import main
from core.calibration.settings import CalibrationSettings
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
    asked = CalibrationRequest(project, golden_id, "naturalness", "offline", chosen)
    drive(store, settings, projects.start_calibration(store, settings, asked))
    store.close()
    return folder


@pytest.fixture
def call(run: Run, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`report` in the home with the calibration."""
    monkeypatch.setenv("CONCORD_HOME", str(home))
    return partial(run, "report", "--out", str(tmp_path / "out"))


def test_it_writes_the_three_files_and_tells(call: Run, tmp_path: Path) -> None:
    code, body = call("--project", PROJECT, "--aspect", "naturalness")
    assert code == 0
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {"report.html", "report.md", "figures.csv"}
    assert body["files"]["html"] == str(out / "report.html")
    assert body["bytes"]["html"] == (out / "report.html").stat().st_size < 5_000_000
    page = (out / "report.html").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "<b>" not in page
    rows = list(csv.DictReader((out / "figures.csv").read_text("utf-8").splitlines()))
    assert float(rows[0]["value"]) == body["held_out"]["value"]
    assert [float(rows[0]["low"]), float(rows[0]["high"])] == body["held_out"]["interval"]
    assert body["headline"] in page.replace("&#39;", "'")
    assert {one["title"] for one in body["limits"]} >= {"No person rated these texts", "Criteria not approved"}
    assert body["ceiling"]["n"] == body["held_out"]["n"]


def test_python_writes_the_same_files(home: Path, call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("--project", PROJECT, "--aspect", "naturalness")
    written = core.write_report(PROJECT, "naturalness", tmp_path / "python")
    assert (written.report.aspect, written.report.project) == ("naturalness", PROJECT)
    for path in (written.html, written.markdown, written.csv):
        by_command = (tmp_path / "out" / path.name).read_text("utf-8")
        moments = r" on \d{4}-\d\d-\d\d \d\d:\d\d UTC"  # when each was written
        assert re.sub(moments, "", path.read_text("utf-8")) == re.sub(moments, "", by_command)
    with pytest.raises(core.UsageError, match="2 golden sets are called"):
        monkeypatch.setattr(projects, "list_goldens", lambda *_: [written.report.golden] * 2)
        core.write_report(PROJECT, "naturalness", tmp_path / "python", golden=written.report.golden.name)


def test_the_golden_set_and_the_run_can_be_named(call: Run) -> None:
    _, first = call("--project", PROJECT, "--aspect", "naturalness")
    same = ("--golden", first["golden"]["digest"], "--run", first["run"])
    _, again = call("--project", PROJECT, "--aspect", "naturalness", *same)
    assert again["held_out"] == first["held_out"]
    assert call("--project", PROJECT, "--aspect", "naturalness", "--golden", first["golden"]["name"])[0] == 0


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        (("--project", "nowhere", "--aspect", "naturalness"), "NotFoundError", "There is no project 'nowhere'"),
        (("--project", "empty", "--aspect", "naturalness"), "NotFoundError", "has no golden set"),
        (("--project", PROJECT, "--aspect", "coherence"), "JobError", "Run one to its end first"),
        (("--project", PROJECT, "--aspect", "naturalness", "--golden", "x"), "NotFoundError", "no golden set 'x'"),
        (("--project", PROJECT, "--aspect", "naturalness", "--run", "x"), "NotFoundError", "x"),
    ],
)
def test_what_cannot_be_reported_is_told(
    call: Run, tmp_path: Path, arguments: tuple[str, ...], kind: str, says: str
) -> None:
    code, body = call(*arguments)
    assert code == 1
    assert body["error"]["type"] == kind
    assert says in body["error"]["message"]
    assert not (tmp_path / "out").exists()


def test_without_json_it_reads_as_sentences(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONCORD_HOME", str(home))
    assert main(["report", "--project", PROJECT, "--aspect", "naturalness", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "simulated raters" in lines[0]
    assert any(line.startswith("Keep in mind: ") for line in lines)
    assert lines[-1].startswith("Written: ")
