"""A kept project whose judge is asked as the endpoint file says: what it cost is told, its secrets are nowhere."""

from __future__ import annotations

import io
import logging
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.project_records import FINISHED
from core.projects.calibration import CalibrationRequest
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store
from tests.fake_openai import RunningServer

SECRETS = ("sk-the-key-of-the-host", "the-token-of-the-team", "the-name-of-the-organisation")
ENTRY = """
endpoints:
  {base_url}:
    key: HOST_KEY
    headers: {{x-team-token: $TEAM_TOKEN, OpenAI-Organization: $OUR_ORG}}
    extra_body: {{service_tier: flex}}
    prices: {{fake-judge: {{prompt: 100, cached: 10, completion: 200}}}}
"""


@pytest.fixture
def settings(tmp_path: Path, server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> Settings:
    for name, value in zip(("HOST_KEY", "TEAM_TOKEN", "OUR_ORG"), SECRETS, strict=True):
        monkeypatch.setenv(name, value)
    home = tmp_path / "home"
    home.mkdir()
    (home / "endpoints.yaml").write_text(ENTRY.format(base_url=server.base_url), "utf-8")
    return Settings(home=home, worker="external", concurrency=8, openai_api_key="sk-of-the-environment")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with projects.open_store(settings) as opened:
        yield opened


def request(store: Store, golden: GoldenSet, spec: str) -> CalibrationRequest:
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    quick = CalibrationSettings(preset="quick", rounds=0, budget=120)
    return CalibrationRequest(project, golden_id, next(iter(golden.aspects)), spec, quick)


def contents(path: Path) -> Iterator[tuple[str, bytes]]:
    """Every file beneath `path` by name, those in zips unpacked."""
    for file in (each for each in path.rglob("*") if each.is_file()):
        data = file.read_bytes()
        yield str(file), data
        if zipfile.is_zipfile(io.BytesIO(data)):
            with zipfile.ZipFile(file) as archive:
                yield from ((f"{file}/{name}", archive.read(name)) for name in archive.namelist())


def test_a_run_is_priced_and_no_secret_is_anywhere(
    store: Store,
    settings: Settings,
    golden: GoldenSet,
    server: RunningServer,
    work_off: Callable[..., None],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    asked = request(store, golden, f"openai:fake-judge@{server.base_url}")
    with caplog.at_level(logging.DEBUG):
        estimate = projects.estimate(store, settings, asked)
        run_id = projects.start_run(store, settings, asked)
        work_off(store, settings)
        server.fake.fault = "400"
        failed_id = projects.start_run(store, settings, replace(asked, settings=replace(asked.settings, seed=9)))
        work_off(store, settings)
    assert server.fake.keys == {f"Bearer {SECRETS[0]}"}
    assert {request.headers["x-team-token"] for request in server.fake.seen} == {SECRETS[1]}
    run, failed = (store.runs.get(each) for each in (run_id, failed_id))
    assert run.status in FINISHED
    assert failed.error
    used = run.usage
    assert used.cached_prompt_tokens > 0
    fresh = used.prompt_tokens - used.cached_prompt_tokens
    dollars = (fresh * 100 + used.cached_prompt_tokens * 10 + used.completion_tokens * 200) / 1e6
    assert used.cost == pytest.approx(dollars, rel=1e-9)
    assert estimate.cost
    projects.export_project(store, settings, asked.project_id, tmp_path / "project.zip")
    (tmp_path / "judge.yaml").write_text(projects.judge_file(store, run_id), "utf-8")
    told = "".join(record.getMessage() for record in caplog.records) + "".join(capfd.readouterr())
    assert not any(secret in told for secret in (*SECRETS, "sk-of-the-environment"))
    files = list(contents(tmp_path))
    assert len(files) > 5
    for name, data in files:
        assert not any(secret.encode() in data for secret in (*SECRETS, "sk-of-the-environment")), name
