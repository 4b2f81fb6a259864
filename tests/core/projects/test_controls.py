"""Spoiled texts as a kept run: the estimate is of the same texts, and a run that failed resumes with paid replies."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core import projects
from core.errors import AuthError
from core.projects.calibration import CalibrationRequest
from core.projects.method_runs import ControlsRequest
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store
from tests.core.projects.conftest import ASPECT, QUICK, World
from tests.fake_openai import RunningServer


def test_the_offline_judge_is_asked_at_once(world: World) -> None:
    request = ControlsRequest(*world.where, world.run_id)
    assert projects.controls_of(world.store, world.run_id) is None
    assert projects.estimate_controls(world.store, world.settings, request).cost == 0.0
    found = world.do(projects.start_run(world.store, world.settings, request))
    assert projects.controls_of(world.store, world.run_id) == found
    assert {control.kind for control in found} >= {"a sentence deleted", "the text repeated"}
    assert max(control.n for control in found) == 30


def test_a_failed_run_resumes_with_the_replies_that_were_paid(
    store: Store, settings: Settings, project: str, few: GoldenSet, server: RunningServer, drive: Callable[..., str]
) -> None:
    golden_id = projects.add_golden(store, project, few)
    where, spec = (project, golden_id, ASPECT), f"openai:fake-judge@{server.base_url}"
    made = projects.start_run(store, settings, CalibrationRequest(*where, spec, QUICK))
    assert drive(store, settings, made) == "done"
    request = ControlsRequest(*where, made, 6)
    estimate = projects.estimate_controls(store, settings, request)
    assert estimate.cost is None, "the model has no price"
    before = server.fake.answered
    server.fake.fault, server.fake.fault_after = "401", server.fake.requests + 5
    run_id = projects.start_run(store, settings, request)
    with pytest.raises(AuthError):
        drive(store, settings, run_id)
    store.runs.finish(run_id, 1, "failed")
    assert server.fake.answered - before > 2
    server.fake.fault = ""
    projects.resume_run(store, settings, run_id)
    assert drive(store, settings, run_id) == "done"
    found = projects.controls_of(store, made)
    assert found is not None and sum(control.n for control in found) == estimate.calls - 6
    # the six originals are cached since the calibration, and two spoiled texts are the same
    assert server.fake.answered - before == estimate.calls - 8
