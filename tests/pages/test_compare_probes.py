"""A judge is probed on Compare: asked again, shown spoiled texts, next to other models."""

from __future__ import annotations

import core
from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.data import load_golden
from core.findings.over_time import steadiness_finding
from core.findings.weak_spots import controls_finding
from core.projects.calibration import CalibrationRequest
from core.projects.start_and_resume import do_here
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place
from tests.pages.screen import ROOT, grids, has_button, open_screen, press, texts

ASPECT = "coherence"
STEADY = {"section": "errors", "what": "steady"}
SPOILED = {"section": "errors", "what": "spoiled"}


def calibrated(store: Store, settings: Settings) -> tuple[Place, str]:
    """A place with the scripted judge, calibrated in the run."""
    place = Place(store, settings, load_golden(ROOT / "sample_data" / "summaries.jsonl"))
    quick = CalibrationSettings(preset="quick", rounds=0)
    how = core.Asking(core.Style("rate_explain", temperature=1.0))
    run_id = projects.start_run(
        store, settings, CalibrationRequest(place.project_id, place.golden_id, ASPECT, "scripted", quick, asking=how)
    )
    assert do_here(store, settings, run_id) == "done"
    return place, run_id


def test_the_judge_is_asked_again(store: Store, settings: Settings) -> None:
    place, run_id = calibrated(store, settings)
    press(open_screen("6_compare", **place.ids, **STEADY), "Ask the judge again")
    assert do_here(store, settings, place.newest("repeat")) == "done"
    found = projects.steadiness_of(store, run_id)
    assert found is not None
    said = steadiness_finding(found)
    shown = texts(open_screen("6_compare", **place.ids, **STEADY))
    assert said.headline in shown
    assert said.detail in shown
    for screen in ("0_overview", "9_report"):
        assert said.headline in texts(open_screen(screen, **place.ids)), screen


def test_the_judge_is_shown_spoiled_texts(store: Store, settings: Settings) -> None:
    place, run_id = calibrated(store, settings)
    before = open_screen("6_compare", **place.ids, **SPOILED)
    assert "30 well-rated calibration items" in texts(before)
    press(before, "Judge spoiled texts")
    assert do_here(store, settings, place.newest("controls")) == "done"
    found = projects.controls_of(store, run_id)
    assert found is not None
    shown = open_screen("6_compare", **place.ids, **SPOILED)
    assert controls_finding(found).headline in texts(shown)
    (table,) = grids(shown)
    assert list(table["pairs"]) == [control.n for control in found]
    assert not has_button(shown, "Judge spoiled texts"), "the same texts would show the same"


def test_other_judges_are_not_asked(store: Store, settings: Settings) -> None:
    place = Place(store, settings, load_golden(ROOT / "sample_data" / "summaries.jsonl"))
    place.add_judge("brought in", 0.6)
    for view, label in ((STEADY, "Ask the judge again"), (SPOILED, "Judge spoiled texts")):
        shown = open_screen("6_compare", **place.ids, **view)
        assert "can't ask other judges again" in texts(shown)
        assert not has_button(shown, label)
