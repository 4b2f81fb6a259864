"""Ablations as durable runs, and the questions screens ask about a finished calibration."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core import projects
from core.calibration.ablate import Ablation, ablate
from core.calibration.calibration_result import Calibration, Estimate
from core.calibration.calibration_settings import CalibrationSettings
from core.calibration.candidate_pool import AskedJudge
from core.demo.build import do_here as drive
from core.errors import JobError, NotFoundError
from core.judging.judge_specs import make_judge
from core.people import Actor
from core.project_records import JudgeEntry
from core.projects.calibration import CalibrationRequest
from core.projects.judge_checks import AblationRequest
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store


@dataclass(frozen=True)
class Finished:
    home: Path
    scripted: AblationRequest
    offline: AblationRequest


QUICK = CalibrationSettings(preset="quick", resamples=50)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, golden: GoldenSet) -> Finished:
    """A home with two calibrations, made once; every test works on a copy."""
    settings = Settings(home=tmp_path_factory.mktemp("template") / "home", worker="external", worker_id="w")
    store = projects.open_store(settings)
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    requests = []
    for spec in ("scripted", "offline"):
        request = CalibrationRequest(project, golden_id, "coherence", spec, QUICK)
        run_id = projects.start_calibration(store, settings, request)
        drive(store, settings, run_id)
        requests.append(AblationRequest(project, golden_id, "coherence", run_id))
    store.close()
    return Finished(settings.home, *requests)


@pytest.fixture
def settings(tmp_path: Path, finished: Finished) -> Settings:
    home = tmp_path / "home"
    shutil.copytree(finished.home, home)
    return Settings(home=home, worker="external", worker_id="w")


@pytest.fixture
def scripted(finished: Finished) -> AblationRequest:
    return finished.scripted


@pytest.fixture
def offline(finished: Finished) -> AblationRequest:
    return finished.offline


@dataclass(frozen=True)
class Ablated:
    """What the ablation `run_id` of a calibration came to, beside what was known before."""

    run_id: str
    request: AblationRequest
    estimate: Estimate
    outcome: Ablation
    calibration: Calibration
    new_judges: list[JudgeEntry]


@pytest.fixture(scope="module")
def ablated_in(tmp_path_factory: pytest.TempPathFactory, finished: Finished) -> Iterator[Store]:
    home = tmp_path_factory.mktemp("ablated") / "home"
    shutil.copytree(finished.home, home)
    store = projects.open_store(Settings(home=home, worker="external", worker_id="w"))
    yield store
    store.close()


@pytest.fixture(scope="module", params=["scripted", "offline"])
def ablated(request: pytest.FixtureRequest, finished: Finished, ablated_in: Store, tmp_path_factory: Any) -> Ablated:
    """An ablation that Ann started, done."""
    store, settings = ablated_in, Settings(home=tmp_path_factory.mktemp("h"), worker="external", worker_id="w")
    request_: AblationRequest = getattr(finished, request.param)
    estimate = projects.estimate_ablation(store, settings, request_)
    before = {entry.judge_id for entry in store.judges.all(request_.project_id)}
    run_id = projects.start_ablation(store.acting(Actor("Ann", "reviewer")), settings, request_)
    drive(store, settings, run_id)
    view = projects.run_view(store, run_id)
    assert isinstance(view.outcome, Ablation)
    assert (view.kind, view.status, view.standing, view.calibration) == ("ablation", "done", None, None)
    assert view.request == request_
    assert view.calls == view.outcome.calls == view.calls_expected == estimate.calls
    new = [entry for entry in store.judges.all(request_.project_id) if entry.judge_id not in before]
    calibration = projects.load_calibration(store, request_.run_id)
    return Ablated(run_id, request_, estimate, view.outcome, calibration, new)


def test_a_run_gives_what_the_inline_driver_gives(ablated: Ablated, golden: GoldenSet, settings: Settings) -> None:
    outcome, calibration = ablated.outcome, ablated.calibration
    judge = make_judge(outcome.judge_spec, settings)
    ready = judge.prepare(calibration.task, [golden.items[p] for p in calibration.split.calibration])
    inline = ablate(AskedJudge(ready, golden, calibration.task), calibration)
    assert outcome.rows == inline.rows
    np.testing.assert_array_equal(outcome.scores.values, inline.scores.values)
    assert inline.calls > outcome.calls  # the calibration's scores are found again, in a notebook they are not
    assert outcome.rows[0].held_out == calibration.held_out
    assert ablated.estimate.n_held_out == outcome.n_held_out == outcome.rows[0].held_out.n
    if outcome.judge_spec == "scripted":
        assert (bool(ablated.estimate.prompt_tokens), ablated.estimate.cost) == (True, 0.0)


def test_new_variants_are_entered_among_the_judges(ablated: Ablated, golden: GoldenSet) -> None:
    outcome = ablated.outcome
    rows = {row.key for row in outcome.rows} - {"final", "without criteria"}
    names = {entry.name.removeprefix(f"{outcome.judge_spec} · "): entry.judge for entry in ablated.new_judges}
    assert set(names) == rows
    for key, judge in names.items():
        assert (judge.kind, judge.run_id, judge.aspect) == ("calibrated", ablated.run_id, "coherence")
        assert judge.seen == ablated.calibration.split.calibration
        own = outcome.scores.values[outcome.scores.criteria_ids.index(key)]
        np.testing.assert_array_equal(judge.values, own)
        assert judge.n_scored == len(golden.items) - len(judge.unscored)
        assert "ablation" in judge.note


def test_a_variant_has_no_map_of_its_own_and_the_final_judge_has(ablated_in: Store, ablated: Ablated) -> None:
    request = ablated.request
    listed = ablated_in.judges.all(request.project_id, request.golden_id)
    made = {
        entry.judge.run_id: projects.calibration_behind(ablated_in, request.project_id, entry.judge_id)
        for entry in listed
        if entry.judge.kind == "calibrated"
    }
    assert len(made) > 1
    assert {run_id for run_id, calibration in made.items() if calibration is not None} >= {request.run_id}
    assert None in made.values()


def test_a_look_at_held_out_is_written_down_with_who_asked(ablated_in: Store, ablated: Ablated) -> None:
    asked = ablated.request
    looks = projects.list_held_out_accesses(ablated_in, asked.project_id, asked.golden_id, "coherence")
    assert (looks[-1].actor, looks[-1].why) == ("Ann", "an ablation measured variants on them")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"project_id": "p-none"}, NotFoundError),
        ({"run_id": "r-none"}, NotFoundError),
        ({"aspect": "fluency"}, JobError),
    ],
)
def test_what_cannot_be_started(
    store: Store, settings: Settings, offline: AblationRequest, change: dict[str, str], error: type[Exception]
) -> None:
    for ask in (projects.start_ablation, projects.estimate_ablation):
        with pytest.raises(error):
            ask(store, settings, replace(offline, **change))
    assert [run.kind for run in projects.list_runs(store)] == ["calibration", "calibration"]
