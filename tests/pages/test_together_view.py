"""Several aspects in one call on screen, on a real store: what is missing, the price, the run, its result and files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.settings import CalibrationSettings
from core.data import load_golden
from core.projects.calibration import CalibrationRequest
from core.projects.together import TogetherRequest, TogetherResult
from core.settings import Settings
from core.stats import change_figures
from core.store.store import Store
from pages.components import together_view
from tests.pages.making import Place, calibrate
from tests.pages.screen import ROOT, draw, frame_with, has_button, press, texts

QUICK = CalibrationSettings(preset="quick", rounds=0, ensemble=1, budget=2_000, resamples=20)
ASPECTS = ("coherence", "fluency")
Drive = Callable[..., str]


@pytest.fixture
def place(store: Store, settings: Settings) -> Place:
    store.workers.enter("w", "here", 1)
    return Place(store, settings, load_golden(ROOT / "sample_data" / "summaries.jsonl"))


def show(place: Place, aspect: str = "coherence") -> AppTest:
    return draw(place.settings, "together_view", aspect, golden=place.golden.name)


def calibrated(place: Place, drive: Drive) -> None:
    """A judge of two aspects by the scripted model, and one of a third that computes."""
    for aspect in ASPECTS:
        request = CalibrationRequest(place.project_id, place.golden_id, aspect, "scripted", QUICK)
        assert drive(place.store, place.settings, projects.start_calibration(place.store, place.settings, request))
    calibrate(place, replace(QUICK, fit_strengths=False), "relevance")


def test_without_judges_it_says_what_is_missing(place: Place, drive: Drive) -> None:
    page = show(place)
    assert "The judge of coherence cannot be asked: it has no judge yet." in texts(page)
    assert not has_button(page, "Ask them together")
    calibrate(place, replace(QUICK, fit_strengths=False))
    assert "No other aspect has a judge that can be asked in one call with that of coherence." in texts(show(place))


@pytest.mark.slow
def test_price_then_run_then_each_aspect_beside_its_judge_alone(place: Place, drive: Drive) -> None:
    calibrated(place, drive)
    page = show(place)
    assert "relevance is left out" in texts(page)
    assert re.search(r"72 calls about 72 held-out items, about [\d,]+ tokens, price .+; one aspect a call", texts(page))
    assert "would take 144." in texts(page)
    page.multiselect[0].set_value([]).run()
    assert "Choose at least one aspect more" in texts(page)
    assert not has_button(page, "Ask them together")
    page.multiselect[0].set_value(["fluency"]).run()
    press(page, "Ask them together")
    run_id = place.newest("together")
    request = place.request_of(run_id)
    assert isinstance(request, TogetherRequest)
    assert request.aspects == ASPECTS
    assert "This tab can be closed" in texts(page)
    assert not has_button(page, "Ask them together")

    assert drive(place.store, place.settings, run_id) == "done"
    page = show(place, "fluency")
    result = projects.run_view(place.store, run_id).outcome
    assert isinstance(result, TogetherResult)
    table = frame_with(page, "in one call")
    assert list(table["aspect"]) == list(ASPECTS)
    for aspect, *shown in zip(ASPECTS, table["in one call"], table["alone"], table["n"], strict=True):
        found = result.measured[aspect].difference
        assert shown == [found.a.value, found.b.value, found.n]
    first = result.measured["coherence"]
    assert first.difference.value is not None
    figures = change_figures(first.difference.value, first.difference.interval)
    assert table["in one call minus alone"][0].startswith(figures)
    assert "72 calls; one aspect a call takes 144" in texts(page)
    assert "p by Holm over 2 aspects" in texts(page)
    command = "--judge-file coherence.yaml --judge-file fluency.yaml --together"
    assert command in page.code[0].value
    judges = projects.list_judges(place.store, place.project_id, place.golden_id, "fluency")
    assert "Judge, in one call with coherence" in {entry.judge.name for entry in judges}

    assert "is the judge in use" not in texts(page)
    again = CalibrationRequest(place.project_id, place.golden_id, "fluency", "scripted", replace(QUICK, seed=5))
    assert drive(place.store, place.settings, projects.start_calibration(place.store, place.settings, again))
    line = projects.judge_line(place.store, place.project_id, "fluency")
    projects.use_version(place.store, place.project_id, "fluency", 2, decided=line.decided)
    assert "Another version is the judge in use of fluency since" in texts(show(place))


def test_the_finding_is_grouped_by_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {"a": "lower", "b": "open", "c": "lower", "d": "undefined"}
    monkeypatch.setattr(together_view, "_shown", lambda outcome, aspect: shown[aspect])
    outcome = TogetherResult({}, {aspect: aspect for aspect in shown}, 1, 4)  # type: ignore[dict-item]
    words = together_view.found_words(outcome)
    assert words == "In one call: worse than alone on a, c; no change shown on b; undefined on d"
