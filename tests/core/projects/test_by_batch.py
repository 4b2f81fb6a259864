"""A calibration by batch: the same judge as directly, no place at a worker while it waits, half the price before it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

import core
from core import projects
from core.calibration.settings import CalibrationSettings
from core.errors import UsageError
from core.jobs.queue import Queue
from core.projects.calibration import CalibrationRequest
from core.projects.kinds import do_run, run_view, wants_of
from core.providers import batch
from core.records import GoldenSet
from core.settings import Settings
from core.store.schema import runs
from core.store.store import Store
from tests.fake_openai import MODEL, FakeOpenAI, RunningServer

QUICK = CalibrationSettings(preset="quick", resamples=50, rounds=1, revisit="full", batch=True)


@pytest.fixture(scope="module")
def serving() -> Iterator[RunningServer]:
    server = RunningServer(FakeOpenAI())
    yield server
    server.stop()


@pytest.fixture
def fake(serving: RunningServer) -> FakeOpenAI:
    serving.fake.requests = 0
    serving.fake.repeats.clear()
    serving.fake.batches.__init__()  # type: ignore[misc]
    return serving.fake


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({MODEL: [2.0, 8.0]}), "utf-8")
    return Settings(home=tmp_path / "home", worker="external", worker_id="w", prices=prices)


@pytest.fixture
def request_(store: Store, few: GoldenSet, serving: RunningServer) -> CalibrationRequest:
    project = projects.create_project(store, "p")
    golden_id = projects.add_golden(store, project.project_id, few)
    judge = f"openai:{MODEL}@{serving.base_url}"
    return CalibrationRequest(project.project_id, golden_id, next(iter(few.aspects)), judge, QUICK)


def call_now(store: Store) -> None:
    """As if the time had come at which runs asked to be called again."""
    with store.workers._db.write() as connection:
        connection.execute(sa.update(runs).values(not_before=0.0))


class Worker:
    """One worker's queue in this process; every tick takes what is due."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.queue = Queue(store, "w", lambda run, progress: do_run(store, settings, run, progress), wants=wants_of)
        self.store = store
        store.workers.enter("w", "here", 1)

    def work(self, until: Callable[..., None]) -> None:
        """Until nothing is at work: what waits for a batch is not."""
        self.queue.tick()
        until(lambda: not self.queue._active, 120.0)


def test_a_waiting_run_gives_its_place_back_and_ends_as_if_asked_directly(
    request_: CalibrationRequest,
    store: Store,
    settings: Settings,
    fake: FakeOpenAI,
    until: Callable[..., None],
    tmp_path: Path,
) -> None:
    directly = replace(request_, settings=replace(QUICK, batch=False))
    other = replace(settings, home=tmp_path / "other")
    with projects.open_store(other) as elsewhere:
        project = projects.create_project(elsewhere, "p")
        golden_id = projects.add_golden(elsewhere, project.project_id, store.goldens.load(request_.golden_id))
        asked = replace(directly, project_id=project.project_id, golden_id=golden_id)
        direct_id = projects.start_calibration(elsewhere, other, asked)
        Worker(elsewhere, other).work(until)
        direct = run_view(elsewhere, direct_id)
    assert direct.calibration is not None, direct.error
    sent, fake.requests = fake.requests, 0
    fake.repeats.clear()

    fake.batches.polls = 3
    run_id = projects.start_calibration(store, settings, request_)
    worker = Worker(store, settings)
    worker.work(until)
    waiting = run_view(store, run_id)
    assert (waiting.status, waiting.worker_id, waiting.finished) == ("queued", "", False)
    assert waiting.placement == waiting.message == f"waiting for a batch, 0 of {fake.batches.n_asked} done"
    worker.work(until)
    assert (run_view(store, run_id).attempt, len(fake.batches.batches)) == (2, 1)  # not due yet
    projects.cancel_run(store, run_id)
    assert run_view(store, run_id).status == "cancelled"
    projects.resume_run(store, settings, run_id)
    for _ in range(8):
        call_now(store)
        worker.work(until)
    view = run_view(store, run_id)
    assert view.calibration is not None, (view.status, view.message, view.error)
    assert len(fake.batches.batches) == 3  # the drafts, the refinements, the held-out items
    assert set(fake.batches.asked.values()) == {1}
    assert fake.requests + fake.batches.n_asked == sent
    assert view.calibration.chosen == direct.calibration.chosen
    assert view.calibration.held_out == direct.calibration.held_out
    assert view.calibration.calls == direct.calibration.calls
    assert view.usage.requests == direct.usage.requests
    assert direct.usage.cost is not None and view.usage.cost is not None
    assert 0.5 * direct.usage.cost < view.usage.cost < 0.8 * direct.usage.cost


def test_from_python_it_waits_and_ends_the_same(
    request_: CalibrationRequest,
    store: Store,
    settings: Settings,
    fake: FakeOpenAI,
    few: GoldenSet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch, "FIRST_PAUSE", 0.01)
    monkeypatch.setenv("CONCORD_HOME", str(settings.home))
    chosen = replace(QUICK, rounds=0, revisit="racing")
    by_batch = core.calibrate(few, request_.aspect, request_.judge_spec, settings=chosen, replies=store.replies)
    n_batches = len(fake.batches.batches)
    assert n_batches > 1  # one a rung
    fake.repeats.clear()
    direct = core.calibrate(few, request_.aspect, request_.judge_spec, settings=replace(chosen, batch=False))
    assert (by_batch.chosen, by_batch.held_out, by_batch.calls) == (direct.chosen, direct.held_out, direct.calls)
    assert by_batch.usage.requests == direct.usage.requests
    assert (len(fake.batches.batches), set(fake.batches.asked.values())) == (n_batches, {1})


def test_the_estimate_is_half_of_what_goes_by_batch(
    request_: CalibrationRequest, store: Store, settings: Settings
) -> None:
    asked = replace(request_, settings=replace(QUICK, rounds=0))
    by_batch = projects.estimate(store, settings, asked)
    direct = projects.estimate(store, settings, replace(asked, settings=replace(asked.settings, batch=False)))
    assert by_batch.calls == direct.calls
    scored = (QUICK.plan.n_drafts + 1) * direct.n_calibration  # the drafts and the judge without criteria
    scored += (asked.settings.ensemble + 1) * direct.n_held_out
    assert by_batch.cost == pytest.approx(direct.cost * (1 - 0.5 * scored / direct.calls))
    assert any(f"{scored:,} of the {direct.calls:,} calls at half the price, in 2 batches" in n for n in by_batch.notes)
    racing = replace(asked, settings=replace(QUICK, revisit="racing"))
    assert any("days at most" in note for note in projects.estimate(store, settings, racing).notes)
    with pytest.raises(UsageError, match="asks no endpoint"):
        projects.estimate(store, settings, replace(asked, judge_spec="offline"))
