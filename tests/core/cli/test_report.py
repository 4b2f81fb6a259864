"""`report` on the command line: errors in words."""

from __future__ import annotations

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
    chosen = CalibrationSettings(preset="quick", rounds=0)
    request = CalibrationRequest(project, golden_id, "naturalness", "offline", chosen)
    drive(store, settings, projects.start_run(store, settings, request))
    store.close()
    return folder


@pytest.fixture
def call(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`report` in the home with the calibration."""
    monkeypatch.setenv("CONCORD_HOME", str(home))
    return partial(run, "report", "--out", "out")


@pytest.mark.parametrize(
    ("arguments", "kind", "says"),
    [
        (("--project", "nowhere", "--aspect", "naturalness"), "NotFoundError", "No project here is called 'nowhere'"),
        (("--project", PROJECT, "--aspect", "coherence"), "JobError", "wait for one to finish"),
    ],
)
def test_what_cannot_be_reported_is_told(call: Run, arguments: tuple[str, ...], kind: str, says: str) -> None:
    code, body = call(*arguments)
    assert (code, body["error"]["type"]) == (1, kind)
    assert says in body["error"]["message"]
    assert not Path("out").exists()
