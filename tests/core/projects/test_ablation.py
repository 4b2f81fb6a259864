"""Ablations as durable runs, and the questions screens ask about a finished calibration."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from core import projects
from core.calibration.ablate import Ablation, ablate
from core.calibration.settings import CalibrationSettings
from core.data import load_golden
from core.demo.build import do_here as drive
from core.errors import JobError, NotFoundError
from core.judging.registry import make_judge
from core.people import Actor
from core.projects.analyses import AblationRequest
from core.projects.calibration import CalibrationRequest
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
def golden(repository: Path) -> GoldenSet:
    """The first 12 sources of the sample summaries."""
    whole = load_golden(repository / "sample_data" / "summaries.jsonl")
    n = int(np.flatnonzero(whole.source_codes < 12)[-1]) + 1
    aspects = {name: replace(one, values=one.values[:n]) for name, one in whole.aspects.items()}
    ids = {item.item_id for item in whole.items[:n]}
    ratings = tuple(one for one in whole.ratings if one.item_id in ids)
    return replace(whole, items=whole.items[:n], aspects=aspects, ratings=ratings, metrics={}, given_split=())


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, golden: GoldenSet) -> Finished:
    """A home with two calibrations, made once; every test works on a copy."""
    settings = Settings(home=tmp_path_factory.mktemp("template") / "home", worker="external", worker_id="w")
    store = projects.open_store(settings)
    project = projects.create_project(store, "p").project_id
    golden_id = projects.add_golden(store, project, golden)
    requests = []
    for spec in ("scripted", "offline"):
        asked = CalibrationRequest(project, golden_id, "coherence", spec, QUICK)
        run_id = projects.start_calibration(store, settings, asked)
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


def test_a_run_gives_what_the_inline_driver_gives(
    store: Store, settings: Settings, scripted: AblationRequest, golden: GoldenSet
) -> None:
    estimate = projects.estimate_ablation(store, settings, scripted)
    run_id = projects.start_ablation(store, settings, scripted)
    drive(store, settings, run_id)
    view = projects.run_view(store, run_id)
    assert (view.kind, view.status, view.standing, view.calibration) == ("ablation", "done", None, None)
    assert view.request == scripted
    found = view.outcome
    assert isinstance(found, Ablation)
    inline = ablate(projects.load_calibration(store, scripted.run_id), golden, make_judge("scripted", settings))
    assert found.rows == inline.rows
    assert found.steps == inline.steps
    np.testing.assert_array_equal(found.scores.values, inline.scores.values)
    assert found.calls == estimate.calls  # the calibration's scores are found again, in a notebook they are not
    assert inline.calls > found.calls
    assert view.calls == found.calls == view.calls_expected
    assert found.rows[0].held_out == projects.load_calibration(store, scripted.run_id).held_out
    assert estimate.n_held_out == found.n_held_out == found.rows[0].held_out.n
    assert estimate.prompt_tokens
    assert estimate.cost == 0.0


def test_new_variants_stand_on_the_shelf_of_judges(
    store: Store, settings: Settings, scripted: AblationRequest, golden: GoldenSet
) -> None:
    before = {one.judge_id for one in projects.list_judges(store, scripted.project_id)}
    run_id = projects.start_ablation(store, settings, scripted)
    drive(store, settings, run_id)
    found = projects.run_view(store, run_id).outcome
    assert isinstance(found, Ablation)
    new = [one for one in projects.list_judges(store, scripted.project_id) if one.judge_id not in before]
    assert {one.name for one in new} == {
        f"scripted · {row.key}" for row in found.rows if row.key not in ("final", "without criteria")
    }
    calibration = projects.load_calibration(store, scripted.run_id)
    for one in new:
        judge, key = one.judge, one.name.removeprefix("scripted · ")
        assert (judge.kind, judge.run_id, judge.aspect) == ("calibrated", run_id, "coherence")
        assert judge.seen == calibration.split.calibration
        own = found.scores.values[found.scores.criteria_ids.index(key)]
        np.testing.assert_array_equal(judge.values, own)
        assert judge.n_scored == len(golden.items) - len(judge.unscored)
        assert "ablation" in judge.note


@pytest.mark.parametrize("which", ["scripted", "offline"])
def test_scores_with_other_steps_do_not_pass_for_plain_ones(
    store: Store, settings: Settings, finished: Finished, golden: GoldenSet, which: str
) -> None:
    """What a run stores by criteria id are scores without other steps, and nothing else."""
    asked = getattr(finished, which)
    run_id = projects.start_ablation(store, settings, asked)
    drive(store, settings, run_id)
    found, calibration = projects.run_view(store, run_id).outcome, projects.load_calibration(store, asked.run_id)
    assert bool(found.steps) == (which == "scripted")
    kept = projects.load_scores(store, run_id)
    assert kept.criteria_ids or which == "scripted"  # there, all plain scores were known
    candidates = {one.criteria.criteria_id: one.criteria for one in calibration.candidates}
    judge = make_judge(which, settings).prepare(
        calibration.task, [golden.items[k] for k in calibration.split.calibration]
    )
    if not kept.criteria_ids:
        return
    plain = judge.score(calibration.task, golden.items, [candidates[name] for name in kept.criteria_ids]).values
    np.testing.assert_array_equal(np.where(np.isnan(kept.values), np.nan, plain), kept.values)


def test_a_look_at_held_out_is_written_down_with_who_asked(
    store: Store, settings: Settings, offline: AblationRequest
) -> None:
    run_id = projects.start_ablation(store.acting(Actor("Ann", "reviewer")), settings, offline)
    drive(store, settings, run_id)
    openings = projects.list_openings(store, offline.project_id, offline.golden_id, "coherence")
    assert [(one.actor, one.why) for one in openings if "ablation" in one.why] == [
        ("Ann", "an ablation measured variants on them")
    ]


def test_the_ablation_of_a_calibration_is_found_again(
    store: Store, settings: Settings, offline: AblationRequest, scripted: AblationRequest
) -> None:
    assert projects.last_ablation(store, offline.run_id) is None
    run_id = projects.start_ablation(store, settings, offline)
    waiting = projects.last_ablation(store, offline.run_id)
    assert waiting is not None
    assert (waiting.run_id, waiting.status) == (run_id, "queued")
    drive(store, settings, run_id)
    later = projects.start_ablation(store, settings, offline)
    projects.cancel_run(store, later)
    done = projects.last_ablation(store, offline.run_id)
    assert done is not None
    assert (done.run_id, done.status) == (run_id, "done")  # the table that is there, not the attempt that was stopped
    assert projects.last_ablation(store, scripted.run_id) is None
    listed = projects.calibrations_of(store, offline.project_id, offline.golden_id, "coherence")
    assert [run.run_id for run in listed] == [offline.run_id, scripted.run_id]
    assert projects.calibrations_of(store, offline.project_id, offline.golden_id, "fluency") == []


def test_an_offline_judge_has_no_steps_to_switch(store: Store, settings: Settings, offline: AblationRequest) -> None:
    estimate = projects.estimate_ablation(store, settings, offline)
    assert any("no language model" in note for note in estimate.notes)
    run_id = projects.start_ablation(store, settings, offline)
    drive(store, settings, run_id)
    found = projects.run_view(store, run_id).outcome
    assert isinstance(found, Ablation)
    assert "no language model" in found.left_out["with evaluation steps"]
    assert found.calls == estimate.calls


def test_steps_can_be_left_out_of_the_bill(store: Store, settings: Settings, scripted: AblationRequest) -> None:
    whole = projects.estimate_ablation(store, settings, scripted).calls
    spared = projects.estimate_ablation(store, settings, replace(scripted, with_steps=False)).calls
    calibration = projects.load_calibration(store, scripted.run_id)
    n_members, n_items = len(calibration.chosen), len(calibration.scores.item_ids)
    assert whole - spared == n_members * (1 + n_items)  # the steps once, and every item


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


def test_a_calibration_that_is_not_done_cannot_be_ablated(
    store: Store, settings: Settings, offline: AblationRequest
) -> None:
    asked = CalibrationRequest(offline.project_id, offline.golden_id, "coherence", "offline", QUICK)
    run_id = projects.start_calibration(store, settings, asked)
    with pytest.raises(JobError, match="no finished calibration"):
        projects.start_ablation(store, settings, replace(offline, run_id=run_id))
    with pytest.raises(JobError, match="no calibration result"):
        projects.analyse_candidates(store, run_id)


def test_analyses_and_the_case_study_come_from_the_store(
    store: Store, settings: Settings, offline: AblationRequest
) -> None:
    whole, common = (projects.analyse_candidates(store, offline.run_id, scope) for scope in ("complete", "common"))
    assert len(whole.pool.places) < len(common.pool.places) == common.pool.n_candidates
    listed = projects.list_refinements(store, offline.run_id)
    case = projects.case_study(store, offline.run_id)
    assert case is not None
    assert case.child == listed[0].criteria
    assert listed[0].alignment is not None
    assert case.after["spearman"].value == pytest.approx(listed[0].alignment.value)
    with pytest.raises(NotFoundError):
        projects.case_study(store, offline.run_id, "c-none")
