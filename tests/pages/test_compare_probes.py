"""A judge is probed on Compare: asked again, shown spoiled texts, next to other models."""

from __future__ import annotations

import core
from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.comparison.switching import TriedModel
from core.data import load_golden
from core.findings.over_time import steadiness_finding, switch_finding
from core.findings.weak_spots import controls_finding
from core.projects.calibration import CalibrationRequest
from core.projects.method_runs import SwitchRequest
from core.projects.start_and_resume import execute_here
from core.records import Usage
from core.settings import Settings
from core.store.store import Store
from tests.pages.making import Place, aligned
from tests.pages.screen import ROOT, grids, has_button, labelled, open_screen, press, texts

ASPECT = "coherence"
PROBES = {"section": "errors", "what": "probes"}


def calibrated(store: Store, settings: Settings) -> tuple[Place, str]:
    """A place with the scripted judge, calibrated in the run."""
    place = Place(store, settings, load_golden(ROOT / "sample_data" / "summaries.jsonl"))
    quick = CalibrationSettings(preset="quick", rounds=0)
    how = core.Asking(core.Style("rate_explain", temperature=1.0))
    run_id = projects.start_run(
        store, settings, CalibrationRequest(place.project_id, place.golden_id, ASPECT, "scripted", quick, asking=how)
    )
    assert execute_here(store, settings, run_id) == "done"
    return place, run_id


def test_the_judge_is_asked_again_and_shown_spoiled_texts(store: Store, settings: Settings) -> None:
    place, run_id = calibrated(store, settings)
    before = open_screen("6_compare", **place.ids, **PROBES)
    assert "30 highly rated calibration items" in texts(before)
    press(before, "Ask the judge again")
    assert execute_here(store, settings, place.newest("repeat")) == "done"
    press(open_screen("6_compare", **place.ids, **PROBES), "Judge spoiled texts")
    assert execute_here(store, settings, place.newest("controls")) == "done"
    steadiness, controls = projects.steadiness_of(store, run_id), projects.controls_of(store, run_id)
    assert steadiness is not None and controls is not None
    said = steadiness_finding(steadiness)
    shown = open_screen("6_compare", **place.ids, **PROBES)
    assert said.headline in texts(shown) and controls_finding(controls).headline in texts(shown)
    assert list(grids(shown)[-1]["pairs"]) == [control.n for control in controls]
    assert not has_button(shown, "Judge spoiled texts"), "the same texts would show the same"
    for screen in ("0_overview", "9_report"):
        assert said.headline in texts(open_screen(screen, **place.ids)), screen


def test_other_judges_are_not_asked(store: Store, settings: Settings) -> None:
    place = Place(store, settings, load_golden(ROOT / "sample_data" / "summaries.jsonl"))
    place.add_judge("brought in", 0.6)
    assert "can't rerun other judges" in texts(open_screen("6_compare", **place.ids, **PROBES))


def test_another_model_is_tried_and_becomes_a_version(store: Store, settings: Settings) -> None:
    place, run_id = calibrated(store, settings)
    empty = open_screen("6_compare", **place.ids, **PROBES)
    assert not has_button(empty, "Try these models")
    chosen = labelled(empty.multiselect, "Models to try").set_value(["offline", "hf:/etc"]).run()
    assert "Choose other models from the list" in texts(chosen) and not has_button(chosen, "Try these models")
    chosen = labelled(chosen.multiselect, "Models to try").set_value(["offline", "openai:m"]).run()
    assert "OPENAI_API_KEY" in texts(chosen) and not has_button(chosen, "Try these models"), "as the run would say"
    chosen = labelled(chosen.multiselect, "Models to try").set_value(["offline"]).run()
    assert "at most 864 calls" in texts(chosen), "two models, three criteria, 144 items"
    press(chosen, "Try these models")
    assert execute_here(store, settings, place.newest("switch")) == "done"
    found = projects.models_tried(store, run_id)
    assert found is not None
    shown = open_screen("6_compare", **place.ids, **PROBES)
    assert switch_finding(found).headline in texts(shown)
    (table,) = grids(shown)
    assert list(table["model"]) == ["scripted", "offline"] and list(table["unread"]) == ["0 %", "0 %"]
    press(shown, "Save as a version")
    assert execute_here(store, settings, place.newest("version")) == "done"
    version = projects.judge_line(store, place.project_id, ASPECT).versions[-1]
    assert (version.number, version.made.judge_spec, version.made.parent) == (2, "offline", 1)
    after = open_screen("6_compare", **place.ids, **PROBES, version="1")
    assert not has_button(after, "Save as a version")
    form = open_screen("3_calibrate", **place.ids, section="new", judge="openai:m@http://127.0.0.1:9/v1")
    assert labelled(form.text_input, "Model").value == "m"
    assert labelled(form.text_input, "Base URL").value == "http://127.0.0.1:9/v1"


def test_a_model_that_reads_nothing_has_no_button(store: Store, settings: Settings) -> None:
    place, run_id = calibrated(store, settings)
    own = TriedModel("scripted", aligned(0.5), aligned(0.4), None, None, 0.0, 0.0, Usage())
    mute = TriedModel("openai:mute", aligned(None, 0), aligned(None, 0), None, None, 1.0, None, Usage())
    request = SwitchRequest(place.project_id, place.golden_id, ASPECT, run_id, ("openai:mute",))
    place.add_run("done", request, outcome=(own, mute))
    shown = open_screen("6_compare", **place.ids, **PROBES)
    (table,) = grids(shown)
    last = table.iloc[-1]
    assert (last["model"], last["unread"], last["95 % interval"], last["per 1,000"]) == ("mute", "100 %", "—", "—")
    assert not has_button(shown, "Save as a version") and "Calibrate with this model" not in texts(shown)
