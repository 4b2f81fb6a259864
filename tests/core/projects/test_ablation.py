"""Ablations as durable runs, and what may be asked about a finished calibration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core import projects
from core.calibration.ablate import Ablation, ablate
from core.calibration.racing import BoundJudge
from core.errors import NotFoundError, UsageError
from core.judging.judge_specs import make_judge
from core.project_records import Actor
from core.projects.method_runs import AblationRequest
from core.records import GoldenSet
from tests.core.projects.conftest import World


@pytest.fixture
def request_(world: World) -> AblationRequest:
    return AblationRequest(*world.where, world.run_id)


def test_a_run_gives_what_the_inline_driver_gives_and_enters_judges(
    world: World, request_: AblationRequest, golden: GoldenSet
) -> None:
    store, calibration = world.store, projects.load_calibration(world.store, world.run_id)
    estimate = projects.estimate_ablation(store, world.settings, request_)
    before = {entry.judge_id for entry in store.judges.all(world.project_id)}
    run_id = projects.start_run(store.acting(Actor("Ann", "reviewer")), world.settings, request_)
    outcome = world.do(run_id)
    view = projects.run_view(store, run_id)
    assert isinstance(outcome, Ablation)
    assert (view.request, view.standing, view.calibration) == (request_, None, None)
    assert view.calls == outcome.calls == view.calls_expected == estimate.calls

    judge = make_judge(outcome.judge_spec, world.settings)
    ready = judge.prepare(calibration.task, [golden.items[p] for p in calibration.split.calibration])
    inline = ablate(BoundJudge(ready, golden, calibration.task), calibration)
    assert outcome.rows == inline.rows
    np.testing.assert_array_equal(outcome.scores.values, inline.scores.values)
    assert inline.calls > outcome.calls  # the calibration's scores are found again, in a notebook they are not
    assert outcome.rows[0].held_out == calibration.held_out
    assert estimate.n_held_out == outcome.n_held_out == outcome.rows[0].held_out.n

    assert {entry.judge_id for entry in store.judges.all(world.project_id)} == before
    look = projects.list_held_out_accesses(store, *world.where)[-1]
    assert (look.actor, look.why) == ("Ann", "an ablation measured variants on them")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"project_id": "p-none"}, UsageError),
        ({"run_id": "r-none"}, NotFoundError),
        ({"aspect": "fluency"}, UsageError),
    ],
)
def test_what_cannot_be_started(
    world: World, request_: AblationRequest, change: dict[str, str], error: type[Exception]
) -> None:
    for ask in (projects.start_run, projects.estimate_ablation):
        with pytest.raises(error):
            ask(world.store, world.settings, replace(request_, **change))
    assert [run.kind for run in world.store.runs.all()] == ["calibration"]
