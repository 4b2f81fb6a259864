"""When a worker is started: at once, or put off until the first page is out; never lost."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from core.errors import JobError
from core.jobs import launch
from core.jobs.worker import _Worker
from core.settings import Settings
from core.store.store import Store

AFTER = 0.2


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """The homes for which a worker process would have been started."""
    started: list[Path] = []
    monkeypatch.setattr(launch, "_start", lambda settings: started.append(settings.home))
    monkeypatch.setattr(launch._Child, "waiting", {})
    yield started
    for timer in launch._Child.waiting.values():
        timer.cancel()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, worker="auto", worker_id="w")


def test_the_first_page_is_let_out_first(settings: Settings, starts: list[Path], until: Callable[..., None]) -> None:
    launch.ensure_worker(settings, after=60)
    launch.ensure_worker(settings, after=60)
    assert starts == []
    launch._Child.waiting.pop(settings.home).cancel()
    launch.ensure_worker(settings, after=AFTER)
    until(lambda: starts == [settings.home])  # by itself, though nobody came again
    until(lambda: not launch._Child.waiting[settings.home].is_alive())
    launch.ensure_worker(settings, after=60)  # put off once; from now on one that has died is seen to at once
    assert starts == [settings.home] * 2


def test_a_run_does_not_wait(settings: Settings, starts: list[Path]) -> None:
    launch.ensure_worker(settings, after=60)
    launch.ensure_worker(settings)
    assert starts == [settings.home]


def test_workers_elsewhere_are_left_to_others(tmp_path: Path, starts: list[Path]) -> None:
    launch.ensure_worker(Settings(home=tmp_path, worker="external"), after=AFTER)
    assert launch._Child.waiting == {}


def test_a_start_that_fails_behind_the_page_is_logged_and_met_by_the_next(
    settings: Settings,
    starts: list[Path],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    until: Callable[..., None],
) -> None:
    def refused(_: Settings) -> None:
        raise JobError("The worker process cannot be started: no more processes.")

    monkeypatch.setattr(launch, "_start", refused)
    with caplog.at_level(logging.WARNING, "concord.jobs"):
        launch.ensure_worker(settings, after=AFTER)
        until(lambda: not launch._Child.waiting[settings.home].is_alive())
    assert "no more processes" in caplog.text
    with pytest.raises(JobError, match="no more processes"):
        launch.ensure_worker(settings, after=AFTER)


def test_settings_reach_the_worker_whole(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        database_url="sqlite:///x",
        worker_id="w",
        capability="gpu",
        ray="auto",
        concurrency=7,
        endpoints=tmp_path / "e.yaml",
        local_models=("a/b", "c/d"),
        roles={"ann@example.org": "annotator"},
        max_upload_mb=9,
        max_golden_items=8,
        demo=True,
        openai_api_key="sk-secret",
        openai_base_url="http://127.0.0.1/v1",
    )
    assert TypeAdapter(Settings).validate_json(TypeAdapter(Settings).dump_json(settings)) == settings


def test_an_external_worker_is_not_started(tmp_path: Path) -> None:
    launch.ensure_worker(Settings(home=tmp_path / "home", worker="external"))
    assert not (tmp_path / "home").exists()


def test_many_workers_look_at_the_queue_no_more_often_than_one(settings: Settings, tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        worker = _Worker(settings, store, None)
        worker._sign_on()
        pauses = {}
        for alive in range(1, 21):
            if alive > 1:
                store.workers.enter(f"other {alive}", "elsewhere", alive, "cpu")
            worker._beat()
            pauses[alive] = worker._pause
        assert pauses == pytest.approx({n: min(n / 10, 1) for n in range(1, 21)})
        for alive in range(2, 21):
            store.workers.leave(f"other {alive}")
        worker._beat()
        assert worker._pause == pytest.approx(0.1)


RANKED = """
import os
from core.jobs import worker
def rank():
    return worker._SESSION_RANK.read_text().split()[-1:] if worker._SESSION_RANK.exists() else []
before = rank()
os.nice(7)
worker._rank_session()
print(*before, *rank(), os.nice(0))
"""


@pytest.mark.parametrize("own", [True, False])
def test_a_workers_niceness_counts_beside_other_sessions(own: bool, repository: Path) -> None:
    """Linux that shares processors among sessions first took no heed of it; a session of others stays as it is.

    Where a process belongs to no session's share, the file is there and empty.
    """
    ran = subprocess.run(
        [sys.executable, "-c", RANKED],
        cwd=repository,
        start_new_session=own,
        capture_output=True,
        text=True,
        check=True,
    )
    *ranks, nice = ran.stdout.split()
    assert nice == str(os.nice(0) + 7)
    assert ranks == [] or ranks == [ranks[0], nice if own else ranks[0]]
    assert ran.stderr == ""
