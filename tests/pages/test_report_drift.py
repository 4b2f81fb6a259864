"""Drift on screen, against a real store: what to do first, the form, the newest answer, the history."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.data import load_golden
from core.findings.over_time import recheck_finding
from core.projects.start_and_resume import execute_here
from core.records import GoldenSet
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place, calibrate
from tests.pages.screen import ROOT, grids, has_button, open_screen, press, texts

ASPECT = "fluency"
HOSTILE = "<img src=x>**b**"
QUICK = CalibrationSettings(preset="quick", rounds=0)


@pytest.fixture
def place(store: Store, settings: Settings) -> Place:
    return Place(store, settings, load_golden(ROOT / "sample_data" / "summaries.jsonl"))


def screen(place: Place) -> AppTest:
    goldens = place.store.goldens.all(place.project_id)
    golden_id = next(golden.golden_id for golden in goldens if golden.name == "summaries")
    return open_screen("9_report", project=place.project_id, section="drift", aspect=ASPECT, golden=golden_id)


def add_newer(place: Place) -> None:
    golden = place.golden
    items = tuple(
        replace(item, item_id=f"n-{item.item_id}", target=f"{item.target} So it was.") for item in golden.items
    )
    place.add_golden(GoldenSet(HOSTILE, golden.kind, items, {ASPECT: golden.aspects[ASPECT]}))


def test_newer_labels_are_asked_for_then_a_recheck_is_started_and_its_answer_drawn(place: Place) -> None:
    calibrate(place, QUICK, ASPECT)
    shown = screen(place)
    assert f"No other golden set in this project has labels for {ASPECT}" in texts(shown)
    assert not has_button(shown, "Recheck")
    add_newer(place)
    shown = screen(place)
    assert "hasn't been rechecked on newer labels yet" in texts(shown)
    press(shown, "Recheck")
    assert execute_here(place.store, place.settings, place.newest("recheck")) == "done"
    shown = screen(place)
    (recheck,) = projects.list_rechecks(place.store, place.project_id, ASPECT)
    words = texts(shown)
    assert f", on {HOSTILE}." in words
    assert recheck_finding(recheck.outcome).detail in words
    assert "unscored" not in words
    assert not grids(shown)  # the newest recheck is shown above
    other = replace(place.golden, name="another", aspects=place.golden.aspects)
    other_id = place.add_golden(
        replace(other, items=tuple(replace(each, item_id=f"o-{each.item_id}") for each in other.items))
    )
    shown = screen(place)
    shown.selectbox(key="form_drift_golden").set_value(other_id).run()
    assert "hasn't been rechecked on another yet" in texts(shown)
