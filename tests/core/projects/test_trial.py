"""Criteria tried on one item: asked by the worker at once, prompt and reply as they were, nothing saved."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from core import projects
from core.calibration.calibration_settings import CalibrationSettings
from core.errors import AccessError, CriteriaError, JobError, UsageError
from core.jobs.queue import RUNS_AT_ONCE, Queue, RunProgress
from core.people import Actor
from core.project_records import Run
from core.projects.calibration import CalibrationRequest, sides_of
from core.projects.edit_scoring import TrialRequest, TrialResult
from core.projects.run_kinds import wants_of
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store

Drive = Callable[[Store, Settings, str], str]
TEXT = "Reward texts that cover the main points of the source. <b>{criteria}</b>"


def asked(store: Store, settings: Settings, golden: GoldenSet, drive: Drive, judge: str = "offline") -> TrialRequest:
    """A trial of a text on a calibration item, with the judge of a calibration that is done."""
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    settings_ = CalibrationSettings("quick", rounds=0, resamples=0)
    request = CalibrationRequest(project, golden_id, "coherence", judge, settings_)
    run_id = projects.start_calibration(store, settings, request)
    assert drive(store, settings, run_id) == "done"
    item = golden.items[sides_of(store, run_id, golden).calibration[0]]
    return TrialRequest(project, golden_id, "coherence", run_id, item.item_id, TEXT)


def tried(store: Store, settings: Settings, request: TrialRequest, drive: Drive) -> TrialResult:
    run_id = projects.start_trial(store, settings, request)
    assert drive(store, settings, run_id) == "done"
    result = projects.run_view(store, run_id).trial
    assert result is not None
    return result


def test_the_offline_judge_shows_what_it_computed_on(
    store: Store, settings: Settings, golden: GoldenSet, drive: Drive
) -> None:
    request = asked(store, settings, golden, drive)
    before = store.criteria.all(request.project_id)
    result = tried(store, settings, request, drive)
    assert result.score is not None
    assert 1 < result.score < 5
    assert (result.prompts, result.replies) == ((), ())
    assert "main points" in result.explanation
    assert store.criteria.all(request.project_id) == before, "a trial saves no criteria"
    trial = projects.list_runs(store, request.project_id)[0].run_id
    assert not projects.load_scores(store, trial).criteria_ids, "nor scores"


def test_a_model_is_shown_with_its_prompt_and_its_reply(
    store: Store, settings: Settings, golden: GoldenSet, drive: Drive
) -> None:
    request = asked(store, settings, golden, drive, "scripted")
    result = tried(store, settings, request, drive)
    item = golden.items[golden.item_ids.index(request.item_id)]
    (prompt,) = result.prompts
    whole = "\n".join(message.content for message in prompt)
    assert TEXT in whole
    assert item.target in whole
    assert len(result.replies) >= 1
    assert result.usage.requests == len(result.replies)
    again = tried(store, settings, request, drive)
    assert (again.replies, again.usage.requests) == (result.replies, 0), "what was answered once is paid for once"


def test_what_a_trial_refuses(store: Store, settings: Settings, golden: GoldenSet, drive: Drive) -> None:
    request = asked(store, settings, golden, drive)
    split = sides_of(store, request.run_id, golden)
    held_out = golden.items[split.held_out[0]].item_id
    offered = projects.trial_items(store, request.run_id)
    assert (held_out in offered, request.item_id in offered) == (False, True)
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"item_id": held_out}, UsageError, "is held out"),
        ({"item_id": "none"}, UsageError, "'none' is not in the golden set"),
        ({"aspect": "fluency"}, UsageError, "calibrated for coherence"),
        ({"text": "x" * 20_001}, CriteriaError, "20,000"),
    ]
    for changes, error, words in refused:
        with pytest.raises(error, match=words):
            projects.start_trial(store, settings, replace(request, **changes))
    with pytest.raises(AccessError):
        projects.start_trial(store.acting(Actor("Ann", "annotator")), settings, request)
    waiting = CalibrationRequest(request.project_id, request.golden_id, "coherence")
    with pytest.raises(JobError, match="not come to its judge"):
        projects.start_trial(
            store, settings, replace(request, run_id=projects.start_calibration(store, settings, waiting))
        )


def test_a_trial_waits_for_no_long_run(
    store: Store, settings: Settings, golden: GoldenSet, drive: Drive, until: Callable[..., None]
) -> None:
    request = asked(store, settings, golden, drive)
    ends, began = threading.Event(), []

    def work(run: Run, progress: RunProgress) -> str:
        began.append(run.kind)
        if run.kind != "trial":
            ends.wait(60)
        return "done"

    queue = Queue(store, "w", work, wants=wants_of)
    for _ in range(RUNS_AT_ONCE["any"] + 2):
        long = CalibrationRequest(request.project_id, request.golden_id, "coherence")
        projects.start_calibration(store, settings, long)
    queue.tick()
    until(lambda: len(began) == RUNS_AT_ONCE["any"])
    trial = projects.start_trial(store, settings, request)
    queue.tick()
    until(lambda: store.runs.get(trial).finished)
    assert began.count("calibration") == RUNS_AT_ONCE["any"], "the others wait, the trial does not"
    ends.set()
    queue.stop()
