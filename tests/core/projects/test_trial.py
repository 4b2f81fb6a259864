"""Criteria tried on one item: asked by the worker at once, nothing saved, no item that is held out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core import projects
from core.errors import AccessError, CriteriaError, JobError, UsageError
from core.jobs.queue import RUNS_AT_ONCE, Queue, RunProgress
from core.people import Actor
from core.project_records import Run
from core.projects.calibration import CalibrationRequest, sides_of
from core.projects.refining import TrialRequest
from core.projects.run_kinds import wants_of
from core.records import GoldenSet
from tests.core.projects.conftest import World


@pytest.fixture
def request_(world: World, golden: GoldenSet) -> TrialRequest:
    item = golden.items[sides_of(world.store, world.run_id, golden).calibration[0]]
    return TrialRequest(*world.where, world.run_id, item.item_id, "Reward texts that cover the main points.")


def test_the_offline_judge_shows_what_it_computed_on(world: World, request_: TrialRequest) -> None:
    before = world.store.criteria.all(request_.project_id)
    run_id = projects.start_trial(world.store, world.settings, request_)
    result = world.do(run_id)
    assert 1 < result.score < 5
    assert (result.prompts, result.replies) == ((), ())
    assert "main points" in result.explanation
    assert world.store.criteria.all(request_.project_id) == before, "a trial saves no criteria"
    assert not projects.load_scores(world.store, run_id).criteria_ids, "nor scores"


def test_what_a_trial_refuses(world: World, request_: TrialRequest, golden: GoldenSet) -> None:
    store, settings = world.store, world.settings
    held_out = golden.items[sides_of(store, world.run_id, golden).held_out[0]].item_id
    offered = projects.trial_items(store, world.run_id)
    assert (held_out in offered, request_.item_id in offered) == (False, True)
    calibration = CalibrationRequest(*world.where)
    waiting = projects.start_calibration(store, settings, calibration)
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"item_id": held_out}, UsageError, "is held out"),
        ({"item_id": "none"}, UsageError, "'none' is not in the golden set"),
        ({"aspect": "fluency"}, UsageError, "calibrated for relevance"),
        ({"text": "x" * 20_001}, CriteriaError, "20,000"),
        ({"run_id": waiting}, JobError, "not come to its judge"),
    ]
    for changes, error, words in refused:
        with pytest.raises(error, match=words):
            projects.start_trial(store, settings, replace(request_, **changes))
    with pytest.raises(AccessError):
        projects.start_trial(store.acting(Actor("Ann", "annotator")), settings, request_)


def test_a_trial_waits_for_no_long_run(world: World, request_: TrialRequest, until: Callable[..., None]) -> None:
    store, ends, began = world.store, threading.Event(), []

    def work(run: Run, progress: RunProgress) -> str:
        began.append(run.kind)
        if run.kind != "trial":
            ends.wait(60)
        return "done"

    queue = Queue(store, "w", work, wants=wants_of)
    for _ in range(RUNS_AT_ONCE["any"] + 2):
        projects.start_calibration(store, world.settings, CalibrationRequest(*world.where))
    queue.tick()
    until(lambda: len(began) == RUNS_AT_ONCE["any"])
    trial = projects.start_trial(store, world.settings, request_)
    queue.tick()
    until(lambda: store.runs.get(trial).finished)
    assert began.count("calibration") == RUNS_AT_ONCE["any"], "the others wait, the trial does not"
    ends.set()
    queue.stop()
