"""A worker's work in threads of this process, an endpoint that speaks OpenAI's API, a judge file."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from core.jobs.queue import Queue
from core.projects.start_and_resume import execute_run
from core.settings import Settings
from core.store.store import Store

if TYPE_CHECKING:
    from tests.fake_openai import RunningServer


def wait_until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    """Poll until `condition`; fails the test after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"still not so after {seconds} s")
        time.sleep(0.02)


@pytest.fixture
def work_off() -> Callable[[Store, Settings], None]:
    """`work_off(store, settings)` does what is queued as a worker would, endings and all, in threads of this process.

    It returns when nothing is queued or running any more, or with `wait=False` as soon as the runs have begun.
    """

    def worked(store: Store, settings: Settings, *, wait: bool = True) -> None:
        queue = Queue(store, "here", lambda run, progress: execute_run(store, settings, run, progress))
        queue.tick()
        if wait:
            wait_until(lambda: queue.idle, 120)

    return worked


@pytest.fixture
def until() -> Callable[..., None]:
    """`wait_until`, for tests (they do not import from each other)."""
    return wait_until


@pytest.fixture
def server() -> Iterator[RunningServer]:
    """An OpenAI-compatible server that runs at `server.base_url`; `server.fake` holds its settings and counts."""
    from tests.fake_openai import FakeOpenAI, RunningServer

    running = RunningServer(FakeOpenAI(keep_bodies=True))
    yield running
    running.stop()


@pytest.fixture(scope="session")
def judge_file(tmp_path_factory: pytest.TempPathFactory, repository: Path) -> Path:
    """An offline judge of relevance, calibrated on the sample summaries: an isotonic map, several sets of criteria."""
    import core
    from core.judge_files import judge_yaml

    golden = core.load_golden(repository / "sample_data" / "summaries.jsonl")
    path = tmp_path_factory.mktemp("judge") / "judge.yaml"
    drafts = core.CalibrationSettings(preset="quick", rounds=0, fit_strengths=False)
    path.write_text(judge_yaml(core.calibrate(golden, "relevance", settings=drafts)), encoding="utf-8")
    return path


APART = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


@pytest.fixture(scope="session")
def lone_namespace(repository: Path) -> Callable[..., dict[str, Any]]:
    """`lone_namespace("tests/…", argument, …)` runs a script without a network and reads the JSON it ends with.

    All that it started ends with it.
    """
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    if shutil.which("unshare") is None or subprocess.run([*APART, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no network namespace can be made here (unshare --net)")

    def run(script: str, *arguments: object) -> dict[str, Any]:
        done = subprocess.run(
            [*APART, sys.executable, str(repository / script), *map(str, arguments)],
            cwd=repository,
            env=os.environ | {"PYTHONPATH": str(repository)},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        body: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return body

    return run
