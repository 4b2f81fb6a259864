"""Whole calibrations: in the worker that the app starts, stopped by a budget, refused by an endpoint and resumed."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

import core
from core import projects
from core.calibration.calibration_records import Calibration, CalibrationSettings
from core.errors import JobError
from core.judging.judge_protocol import Judge
from core.judging.scoring_styles import Asking
from core.project_records import FINISHED
from core.projects.calibration import CalibrationRequest, VersionRequest, calibration_asked
from core.projects.criteria import RescoreRequest
from core.projects.start_and_resume import RunDetail
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store
from tests.fake_openai import RunningServer

pytestmark = pytest.mark.slow
WorkOff = Callable[..., None]
QUICK = CalibrationSettings(preset="quick")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", worker="auto", worker_id="w", concurrency=8)


@pytest.fixture
def here(settings: Settings) -> Settings:
    """Of the same home, where no worker is started."""
    return replace(settings, worker="external")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    opened = projects.open_store(settings)
    yield opened
    for pid in _workers(opened):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    opened.close()


@pytest.fixture
def request_(store: Store, golden: GoldenSet) -> CalibrationRequest:
    project = projects.create_project(store, "p")
    golden_id = projects.add_golden(store, project.project_id, golden)
    return CalibrationRequest(project.project_id, golden_id, next(iter(golden.aspects)), "scripted", QUICK)


@pytest.fixture
def few_asked(store: Store, few: GoldenSet, request_: CalibrationRequest) -> CalibrationRequest:
    return replace(request_, golden_id=projects.add_golden(store, request_.project_id, few))


def _workers(store: Store) -> list[int]:
    return [row.pid for row in store.workers.alive()]


def _finished(store: Store, run_id: str, until: Callable[..., None]) -> RunDetail:
    until(lambda: store.runs.get(run_id).status in FINISHED, 120)
    return projects.run_view(store, run_id)


def _same(calibration: Calibration, other: Calibration) -> None:
    """Equal in all but what repeats may change: which replies were sent for and which were found."""
    names = "task settings golden_digest split chosen candidates calibration held_out best_single no_criteria gain"
    for name in (*names.split(), "isotonic", "calls", "warnings", "problems"):
        assert getattr(calibration, name) == getattr(other, name), name
    np.testing.assert_array_equal(calibration.scores.values, other.scores.values)


def test_a_run_gives_what_the_inline_driver_gives(
    store: Store, settings: Settings, request_: CalibrationRequest, golden: GoldenSet, until: Callable[..., None]
) -> None:
    run_id = projects.start_run(store, settings, request_)
    view = _finished(store, run_id, until)
    assert (view.status, view.error) == ("done", "")
    assert view.calibration is not None
    assert view.standing is not None
    inline = core.calibrate(golden, request_.aspect, "scripted", settings=QUICK)
    _same(view.calibration, inline)
    assert view.calls == view.calibration.calls
    assert view.standing.phase == "done"
    loaded = projects.load_calibration(store, run_id)
    _same(loaded, view.calibration)
    card = yaml.safe_load(projects.judge_file(store, run_id))
    assert card["golden"]["digest"] == golden.digest
    assert card["held_out_opened"] == 1  # the calibration itself
    assert set(card["people"]) == {"raters", "edits", "decisions"}
    scores = projects.load_scores(store, run_id)
    best = inline.chosen[0].criteria_id
    labelled = list(inline.split.calibration)
    assert np.isfinite(scores.values[scores.criteria_ids.index(best)][labelled]).all()
    listed = store.criteria.all(request_.project_id)
    assert {row.criteria_id for row in listed if row.alignments} == {
        c.criteria.criteria_id for c in inline.candidates if c.alignment
    }
    best_view = store.criteria.get(request_.project_id, best)
    stood = {alignment.side: alignment.alignment for alignment in best_view.alignments}
    assert stood["held-out"] == inline.best_single.held_out
    assert stood["calibration"].value == inline.best_single.calibration.value

    _leaves_two_judges(store, request_, inline, golden)
    edit = projects.save_edit(store, request_.project_id, best, best_view.text + "\nReward brevity.", "Ann")
    ask = RescoreRequest(request_.project_id, request_.golden_id, request_.aspect, edit, best, run_id)
    again = _finished(store, projects.start_run(store, settings, ask), until)
    assert (again.status, again.calibration, again.standing) == ("done", None, None)
    rescored = again.outcome
    assert rescored.parent.value == pytest.approx(inline.best_single.calibration.value, abs=1e-12)
    assert rescored.new.value is not None
    difference = rescored.difference.value
    assert difference == pytest.approx(rescored.new.value - rescored.parent.value, abs=1e-12)
    assert rescored.new.n == len(labelled)


def _leaves_two_judges(store: Store, request_: CalibrationRequest, inline: Calibration, golden: GoldenSet) -> None:
    """The final judge and the one without criteria, each with the scores whose alignments the result reports."""
    final, bare = (entry.judge for entry in store.judges.all(request_.project_id, request_.golden_id, request_.aspect))
    assert (final.kind, final.seen, bare.kind, bare.seen) == ("calibrated", inline.split.calibration, "no criteria", ())
    held_out = [golden.items[k] for k in inline.split.held_out]
    for judge, reported in ((final, inline.held_out), (bare, inline.no_criteria.held_out)):
        scores = {item.item_id: judge.values[k] for k, item in zip(inline.split.held_out, held_out, strict=True)}
        known = {item_id: float(value) for item_id, value in scores.items() if not np.isnan(value)}
        again = core.align(golden, known, request_.aspect, core.MeasureSettings(reported.statistic, reported.level))
        assert again.value == pytest.approx(reported.value, abs=1e-12)


def test_a_budget_ends_in_order(store: Store, here: Settings, few_asked: CalibrationRequest, work_off: WorkOff) -> None:
    run_id = projects.start_run(store, here, replace(few_asked, settings=replace(QUICK, budget=150)))
    work_off(store, here)
    view = projects.run_view(store, run_id)
    assert (view.status, bool(view.calibration.stopped_early)) == ("budget", True)
    assert view.calls <= 150


def test_only_one_worker_per_home(store: Store, settings: Settings, until: Callable[..., None]) -> None:
    for _ in range(3):
        projects.ensure_worker(settings)
    until(store.workers.alive)
    (pid,) = _workers(store)
    projects.ensure_worker(settings)
    from core.jobs.worker import run_worker

    with pytest.raises(JobError, match="already running"):
        run_worker(settings)
    assert _workers(store) == [pid]
    assert "Traceback" not in (settings.home / "worker.log").read_text()


def test_a_refused_key_fails_with_our_message_and_the_run_resumes(
    store: Store,
    here: Settings,
    few_asked: CalibrationRequest,
    server: RunningServer,
    work_off: WorkOff,
) -> None:
    answered = server.fake.fault_after = 200
    server.fake.fault = "401"
    spec = f"openai:fake-judge@{server.base_url}"
    request = replace(few_asked, judge_spec=spec, settings=replace(QUICK, rounds=0, budget=400))
    run_id = projects.start_run(store, here, request)
    work_off(store, here)
    failed = projects.run_view(store, run_id)
    assert (failed.status, failed.resumable) == ("failed", True)
    assert "OPENAI_API_KEY" in failed.error
    assert "Traceback" not in failed.error
    assert failed.standing is not None
    server.fake.fault, before = "", server.fake.requests
    projects.resume_run(store, here, run_id)
    work_off(store, here)
    view = projects.run_view(store, run_id)
    assert (view.status, view.attempt) == ("budget", 2)
    assert view.calibration is not None
    sent = server.fake.requests
    assert sent - before <= view.calibration.calls - answered + 1
    again_id = projects.start_run(store, here, request)
    work_off(store, here)
    assert server.fake.requests == sent  # a second identical run sends nothing
    again = projects.run_view(store, again_id).calibration
    assert again is not None
    _same(view.calibration, again)


def test_edits_and_versions_ask_as_the_calibration_did(
    store: Store, here: Settings, few_asked: CalibrationRequest, work_off: WorkOff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Judge, "unread_lines", lambda *_: ["Be kind."])
    asking = Asking.of("scripted", form="analyze_rate", samples=4, steps=True, persona="annotator")
    run_id = projects.start_run(store, here, replace(few_asked, asking=asking, definition="Is it whole?"))
    work_off(store, here)
    result = projects.load_calibration(store, run_id)
    sampling, definition = result.judge_state["sampling"], result.task.definition
    assert (sampling["output"], sampling["samples"], sampling["persona"]) == ("analyze_rate", 4, "annotator")
    assert sampling["steps"] and definition
    assert calibration_asked(store, run_id).task(store.goldens.load(few_asked.golden_id)) == result.task
    best = result.chosen[0]
    where = (few_asked.project_id, few_asked.golden_id, few_asked.aspect)
    rescore = projects.start_run(
        store, here, RescoreRequest(*where, best.criteria_id, result.chosen[-1].criteria_id, run_id)
    )
    asked = VersionRequest(few_asked.project_id, few_asked.aspect, (best.criteria_id,), run_id=run_id)
    version = projects.make_version(store, here, asked)
    work_off(store, here)
    rescored = projects.run_view(store, rescore)
    assert rescored.usage.requests == 0, "all of it was answered in the calibration"
    assert "“Be kind.”" in rescored.outcome.unread
    measured = projects.load_calibration(store, version)
    assert measured.task == result.task and measured.judge_state["sampling"] == sampling
    card = yaml.safe_load(projects.judge_file(store, version))
    assert card["judge"]["sampling"]["steps"] == sampling["steps"] and card["task"]["definition"] == definition


def test_an_item_shows_each_clause_with_its_rating_and_its_learnt_weight(
    store: Store, here: Settings, few_asked: CalibrationRequest, work_off: WorkOff
) -> None:
    request = replace(few_asked, asking=Asking.of("scripted", form="clauses"), settings=replace(QUICK, rounds=0))
    run_id = projects.start_run(store, here, request)
    work_off(store, here)
    result = projects.load_calibration(store, run_id)
    learnt = max(result.chosen, key=lambda each: len(set(each.weights)))
    assert len(set(learnt.weights)) > 1, "some clause counts more than another"
    for score in projects.item_scores(store, run_id, learnt.criteria_id)[:5]:
        explanation, _ = projects.explain_item(store, here, run_id, learnt.criteria_id, score.item_id)
        parts = re.findall(r"(?m)^(\S+) \(weight (\S+)\): .", explanation)
        assert [float(weight) for _, weight in parts] == pytest.approx(learnt.weights, abs=0.006)
        assert sum(float(rating) * float(weight) for rating, weight in parts) == pytest.approx(score.score, abs=0.06)
    ids = tuple(each.criteria_id for each in result.chosen)
    asked = VersionRequest(request.project_id, request.aspect, ids[:2], run_id=run_id)
    version, again = projects.make_version(store, here, asked), projects.start_run(store, here, request)
    work_off(store, here)
    measured = projects.load_calibration(store, version)
    assert [each.weights for each in measured.chosen] == [each.weights for each in result.chosen[:2]]
    assert projects.run_view(store, again).usage.requests == 0, "clauses are found in the cache"
    _same(projects.load_calibration(store, again), result)


def test_the_same_run_started_again_asks_only_what_could_not_be_read(
    store: Store, here: Settings, few_asked: CalibrationRequest, work_off: WorkOff, server: RunningServer
) -> None:
    server.fake.fault, server.fake.fault_every, server.fake.fault_after = "no-number", 25, 40
    request = replace(few_asked, judge_spec=f"openai:m@{server.base_url}", settings=replace(QUICK, rounds=0))
    first = projects.start_run(store, here, request)
    work_off(store, here)
    n = projects.unread_replies(store, first)
    before, server.fake.fault = server.fake.requests, ""
    assert n > 3
    assert sum(projects.load_calibration(store, first).problems.values()) > 0
    again = projects.start_run(store, here, request)
    work_off(store, here)
    assert projects.unread_replies(store, again) == 0
    mended = projects.load_calibration(store, again)
    assert not any("unread" in problem for problem in mended.problems)
    assert mended.usage.requests == server.fake.requests - before
    assert 0 < mended.usage.requests <= 4 * n, "no more than those, and what a changed ranking asks anew"
    assert projects.unread_replies(store, first) == n, "the evidence stays with its run"
