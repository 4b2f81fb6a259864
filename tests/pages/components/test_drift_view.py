"""Drift on screen, against a real store: what to do first, the form, the newest answer, the history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

import core
from core import projects
from core.calibration.settings import CalibrationSettings
from core.projects.calibration import CalibrationRequest
from core.records import AspectLabels, GoldenSet
from core.settings import Settings
from core.store.store import Store
from tests.pages.screen import ROOT, draw, press, texts

ASPECT = "fluency"
HOSTILE = "<img src=x>**b**"
Drive = Callable[..., str]


@pytest.fixture
def store(store: Store) -> Store:
    project = projects.create_project(store, "p")
    projects.add_golden(store, project.project_id, core.load_golden(ROOT / "sample_data" / "summaries.jsonl"))
    return store


def screen(settings: Settings) -> AppTest:
    return draw(settings, "drift_view", ASPECT, golden="summaries")


def calibrate(store: Store, settings: Settings, drive: Drive) -> None:
    (project,) = projects.list_projects(store)
    (golden,) = projects.list_goldens(store, project.project_id)
    chosen = CalibrationSettings(preset="quick", rounds=0, resamples=100)
    request = CalibrationRequest(project.project_id, golden.golden_id, ASPECT, settings=chosen)
    assert drive(store, settings, projects.start_calibration(store, settings, request)) == "done"


def add_newer(store: Store) -> None:
    (project,) = projects.list_projects(store)
    golden = core.load_golden(ROOT / "sample_data" / "summaries.jsonl")
    items = tuple(replace(one, item_id=f"n-{one.item_id}", target=f"{one.target} So it was.") for one in golden.items)
    labels = AspectLabels(ASPECT, golden.aspects[ASPECT].scale, golden.aspects[ASPECT].values)
    projects.add_golden(store, project.project_id, GoldenSet(HOSTILE, golden.kind, items, {ASPECT: labels}))


def test_without_a_calibrated_judge_it_says_what_to_do(store: Store, settings: Settings) -> None:
    shown = screen(settings)
    assert "Calibrate a judge first" in texts(shown)
    assert not shown.button


def test_without_newer_labels_it_says_what_to_do(store: Store, settings: Settings, drive: Drive) -> None:
    calibrate(store, settings, drive)
    shown = screen(settings)
    assert f"No other golden set of this project has labels of {ASPECT}" in texts(shown)
    assert not shown.button


def test_a_recheck_is_started_and_its_answer_drawn(store: Store, settings: Settings, drive: Drive) -> None:
    calibrate(store, settings, drive)
    add_newer(store)
    shown = screen(settings)
    assert "not rechecked yet" in texts(shown)
    press(shown, "Recheck")
    (run,) = (one for one in projects.list_runs(store) if one.kind == "recheck")
    assert drive(store, settings, run.run_id) == "done"
    shown = screen(settings)
    (found,) = projects.list_rechecks(store, run.project_id, ASPECT)
    words = texts(shown)
    assert found.outcome.words in words
    assert "The judge minus the judge without criteria, on the same 144 items" in words
    assert "Labels are distributed about as before (distance 0.00)" in words
    assert shown.metric[0].value == f"{found.outcome.now.value:.3f}"
    frame = shown.dataframe[0].value
    assert frame["decision"].tolist() == [found.outcome.decision]
    assert frame["newer labels"].tolist() == [HOSTILE]
    assert len(shown.get("plotly_chart")) == 1
