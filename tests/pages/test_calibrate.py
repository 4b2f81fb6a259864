"""The Calibrate screen in every state a run can be in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.calibration.calibration_records import CalibrationSettings
from core.findings.agreement import gain_warning
from core.judging.scoring_styles import Asking, Style
from core.projects.calibration import CalibrationRequest
from pages.ui import state
from tests.fake_openai import FakeOpenAI, RunningServer
from tests.pages.making import Place, aligned, calibrate, calibration, candidates, golden_of, standing
from tests.pages.screen import (
    button,
    choose,
    choose_section,
    grids,
    has_button,
    labelled,
    marked,
    metrics,
    open_screen,
    press,
    texts,
)

SCREEN = "3_calibrate"
pytestmark = pytest.mark.usefixtures("as_demo")


@pytest.fixture
def form(place: Place) -> AppTest:
    return open_screen(SCREEN, project=place.project_id)


def shown(run_id: str) -> AppTest:
    return open_screen(SCREEN, run=run_id)


@contextmanager
def fake_endpoint() -> Iterator[RunningServer]:
    server = RunningServer(FakeOpenAI())
    yield server
    server.stop()


def start_is_off(screen: AppTest) -> bool:
    return [button.disabled for button in screen.button if button.label == "Start the calibration"] == [True]


def test_an_empty_project_says_what_to_do_next(empty: Place) -> None:
    screen = open_screen(SCREEN, project=empty.project_id)
    assert "no golden set yet" in texts(screen)
    assert not has_button(screen, "Start the calibration")


def test_the_form_shows_the_cost_before_the_start(place: Place, form: AppTest) -> None:
    usual = {"Time": "about 5 s", "Price": "free", "Calibration items": "72", "Held-out items": "72"}
    assert metrics(form) == usual | {"Refinement rounds": "0"}  # 72 labels are few
    form.radio(key="form_judge").set_value("scripted").run()
    request = CalibrationRequest(place.project_id, place.golden_id, "coherence", "scripted")
    estimate = projects.estimate(place.store, place.settings, request)
    assert metrics(form)["Maximum calls (approximate)"] == f"{estimate.calls:,}"
    assert metrics(form)["Price"] == "$0.00"
    assert estimate.notes[0] in texts(form)
    choose(form, "Search", "Thorough")
    assert (form.selectbox(key="form_revisit").value, metrics(form)["Refinement rounds"]) == ("full", "0")


def test_start_puts_the_run_in_the_url_and_shows_it(place: Place, form: AppTest) -> None:
    press(form, "Start the calibration")
    assert form.query_params["run"] == place.newest("calibration")
    assert place.request_of(place.newest("calibration")).judge_spec == "offline"
    assert "waiting for a worker" in texts(form)


def test_advanced_choices_reach_the_request(place: Place, form: AppTest) -> None:
    form.selectbox(key="form_preset").set_value("quick")
    form.selectbox(key="form_revisit").set_value("full")
    form.number_input(key="form_rounds").set_value(2)
    form.number_input(key="form_budget").set_value(500)
    form.selectbox(key="form_statistic").set_value("kendall")
    form.selectbox(key="form_level").set_value("dataset")
    form.selectbox(key="form_split").set_value("sources+systems")
    form.number_input(key="form_seed").set_value(7).run()
    press(form, "Start the calibration")
    request = place.request_of(place.newest("calibration"))
    asked = request.settings
    assert (asked.preset, asked.revisit, asked.rounds, asked.budget) == ("quick", "full", 2, 500)
    assert (asked.statistic, asked.level, asked.split, asked.seed) == ("kendall", "dataset", "sources+systems", 7)
    assert request.scale is None


def test_levels_and_examples_are_for_judges_that_read_prompts_and_the_estimate_prices_them(
    place: Place, form: AppTest
) -> None:
    assert "form_examples" not in {field.key for field in form.number_input}
    projects.set_anchors(place.store, place.project_id, place.golden_id, "coherence", {1: "Poor.", 5: "Good."})
    form.radio(key="form_judge").set_value("scripted").run()
    form.number_input(key="form_examples").set_value(4).run()
    choose(form, "Examples chosen by", "similarity")
    assert "Level descriptions and 4 examples add about" in texts(form)
    form.checkbox(key="form_levels").uncheck().run()
    press(form, "Start the calibration")
    asked = place.request_of(place.newest("calibration"))
    assert (asked.settings.examples, asked.settings.levels, asked.levels) == (4, False, ())
    assert asked.settings.examples_by == "similarity"


def test_one_press_sets_the_search_as_in_the_paper(place: Place, form: AppTest) -> None:
    form.radio(key="form_judge").set_value("scripted").run()
    form.number_input(key="form_keep").set_value(6).run()
    press(form, "As in the paper")
    assert not [one.value for one in form.warning if "Session State" in one.value]
    press(form, "Start the calibration")
    asked = place.request_of(place.newest("calibration")).settings
    assert (asked.revisit, asked.refine_gate, asked.ensemble) == ("full", False, 1)
    assert asked.keep == 6  # 001 does not say how many are kept
    again = open_screen(SCREEN, project=place.project_id)
    press(again, "New calibration")
    press(again, "As in the paper")
    choose(again, "Search", "Quick")
    press(again, "Start the calibration")
    chosen = place.request_of(place.newest("calibration")).settings
    assert (chosen.preset, chosen.revisit, chosen.rounds) == ("quick", "racing", None)


def test_an_endpoint_needs_a_model_and_never_asks_for_a_key(place: Place, form: AppTest) -> None:
    form.radio(key="form_judge").set_value("openai").run()
    assert "Enter the name of the model" in texts(form)
    assert start_is_off(form)
    assert "No key is set in the environment" in texts(form)
    assert not [field for field in form.text_input if "key" in field.label.lower()]
    form.text_input(key="form_model").set_value("small-model")
    form.text_input(key="form_base_url").set_value("http://127.0.0.1:8000/v1").run()
    assert metrics(form)["Price"] == "unknown"  # nobody has said what this model costs
    press(form, "Start the calibration")
    spec = place.request_of(place.newest("calibration")).judge_spec
    assert spec == "openai:small-model@http://127.0.0.1:8000/v1"


def test_a_press_tests_the_connection(form: AppTest) -> None:
    form.radio(key="form_judge").set_value("openai").run()
    assert button(form, "Test connection").disabled
    with fake_endpoint() as server:
        form.text_input(key="form_model").set_value("fake-judge")
        form.text_input(key="form_base_url").set_value(server.base_url).run()
        press(form, "Test connection")
        assert f"fake-judge at {server.base_url} responds" in texts(form)
        assert server.fake.requests == 1
        server.fake.fault = "404"
        press(form, "Test connection")
        assert "the model or path doesn't exist" in texts(form)
    form.text_input(key="form_model").set_value("another").run()
    assert "the model or path doesn't exist" not in texts(form)


def test_a_key_in_the_environment_is_told_but_not_shown(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    screen = open_screen(SCREEN, project=place.project_id)
    screen.radio(key="form_judge").set_value("openai").run()
    assert "A key is set in the environment" in texts(screen)
    assert "sk-very-secret" not in texts(screen)


def test_a_running_run_shows_its_ranking_and_can_be_cancelled(place: Place) -> None:
    run_id = place.add_run("running", shown=standing(candidates(5)))
    screen = shown(run_id)
    board = grids(screen)[0]
    assert list(board["rank"]) == [1, 2, 3, 4, 5, 6]
    assert board["Spearman, sample"].iloc[0] == pytest.approx(0.6)
    assert board["status"].iloc[-1] == "baseline"
    assert metrics(screen)["Time left"].endswith(" s")  # it has only begun, and a fifth is done
    press(screen, "Cancel")
    assert place.store.runs.get(run_id).cancel_requested
    assert button(screen, "Cancelling …").disabled


def test_the_marked_row_follows_its_candidate_when_ranks_change(place: Place) -> None:
    first, second, *rest = candidates(4)
    run_id = place.add_run("running", shown=standing((first, second, *rest)))
    screen = shown(run_id)
    screen.session_state[state.GRID_PICKS] = {state.LEADERBOARD: first.criteria.criteria_id}
    screen.run()
    assert first.criteria.text in texts(screen)
    place.publish(run_id, standing((second, first, *rest)))
    screen.run()
    assert first.criteria.text in texts(screen)
    assert marked(screen) == 1


def test_an_undefined_alignment_is_a_dash_in_the_ranking(place: Place) -> None:
    undefined = replace(candidates(1)[0], alignment=None)
    run_id = place.add_run("running", shown=standing((undefined, candidates(1)[-1])))
    board = grids(shown(run_id))[0]
    assert board["Spearman, sample"].isna().tolist() == [True, False]
    assert board["95 % interval"].iloc[0] == "—"


def test_a_finished_run_opens_with_what_it_found(place: Place) -> None:
    kept = candidates(5, "kept")
    screen = shown(place.add_run("done", shown=standing(kept), outcome=calibration(kept)))
    page_text = texts(screen)
    assert "Calibration raised agreement with raters from 0.21 to 0.52." in page_text
    assert "Agreement: 0.52 [0.42, 0.62]; gain: " in page_text
    assert "Spearman rho, sample level, held-out items, n = 72" in page_text
    assert "offline judge, which isn't an LLM" in page_text
    assert "Only 80 labels on calibration" in page_text
    assert not [widget for widget in screen.button if widget.label in ("Cancel", "Resume")]
    assert [widget.label for widget in screen.download_button] == ["Download judge.yaml (not approved)"]
    choose_section(screen, "All figures")
    assert "3 unread" in screen.table[0].value["held-out"].iloc[0]


def test_a_gain_that_is_not_shown_is_said_once(place: Place) -> None:
    kept = candidates(3, "kept")
    result = calibration(kept)
    result = replace(result, warnings=(*result.warnings, "Few labels.", gain_warning(result.gain)))
    place.add_run("done", shown=standing(kept), outcome=result)
    said = texts(open_screen(SCREEN, project=place.project_id))
    assert said.count(f"{result.gain.value:+.2f}") == 1
    assert "Few labels." in said


def test_it_opens_on_the_newest_result_and_the_form_is_behind_a_press(place: Place) -> None:
    kept = candidates(3, "kept")
    older = place.add_run("done", shown=standing(kept), outcome=calibration(kept, held_out=aligned(0.4)))
    place.add_run("done", shown=standing(kept), outcome=calibration(kept))
    place.add_run("failed", error="The key was refused.")
    screen = open_screen(SCREEN, project=place.project_id)
    assert "from 0.21 to 0.52" in texts(screen)
    labelled(screen.selectbox, "Result").set_value(older).run()
    assert "from 0.21 to 0.40" in texts(screen)
    press(screen, "New calibration")
    assert has_button(screen, "Start the calibration")
    press(screen, "Back to the results")
    assert "from 0.21 to 0.52" in texts(screen)
    press(press(screen, "New calibration"), "Start the calibration")
    assert "waiting for a worker" in texts(screen)


def test_the_finding_names_the_version_and_the_next_step_is_its_sign_off(place: Place) -> None:
    run_id = calibrate(place, CalibrationSettings(preset="quick", rounds=0))
    screen = open_screen(SCREEN, project=place.project_id)
    assert "Version 1, waiting for approval." in texts(screen)
    step = next(link for link in screen.get("link_button") if link.proto.label == "Approve version 1")
    assert "version=1" in step.proto.url
    names = projects.criteria_names(place.store, place.project_id, "coherence")
    chosen = projects.load_calibration(place.store, run_id).chosen
    assert [names[criteria.criteria_id] for criteria in chosen] == [
        part.label.replace("\\", "") for part in screen.expander
    ]
    newer = calibrate(place, CalibrationSettings(preset="quick", rounds=0, seed=1))
    projects.decide_version(place.store, place.project_id, "coherence", 2, "current", decided=0)
    assert open_screen(SCREEN, project=place.project_id).query_params["run"] == newer
    older = [link.proto.label for link in shown(run_id).get("link_button")]
    assert ("Version 1" in older, "Approve version 1" in older) == (True, False)


def test_on_newer_labels_known_sources_keep_their_side_and_the_form_says_so(place: Place) -> None:
    calibrate(place, CalibrationSettings(preset="quick", rounds=0))
    place.add_golden(golden_of(30, 6, name="more summaries"))
    screen = open_screen(SCREEN, project=place.project_id, golden=place.golden_id)
    assert "Sources that were held out in summaries stay held out" in texts(screen)
    press(screen, "Start the calibration")
    kept = candidates(2, "kept")
    split_from = place.request_of(place.newest("calibration")).split_from
    request = CalibrationRequest(place.project_id, place.golden_id, "coherence", split_from=split_from)
    screen = shown(place.add_run("done", request, shown=standing(kept), outcome=calibration(kept)))
    assert "Sources that were held out in summaries stay held out" in texts(screen)


def test_an_undefined_result_is_said_with_its_reason(place: Place) -> None:
    kept = candidates(2, "kept")
    undefined = replace(kept[0].alignment, value=None, interval=None, reason="all scores are equal")
    screen = shown(place.add_run("done", outcome=calibration(kept, held_out=undefined)))
    assert "Agreement with raters is undefined: all scores are equal." in texts(screen)


def test_a_failed_run_says_why_and_can_be_resumed(place: Place) -> None:
    error = "The key was refused (401). Set OPENAI_API_KEY."
    screen = shown(place.add_run("failed", error=error, shown=standing(())))
    assert "The key was refused" in texts(screen)
    press(screen, "Resume")
    assert place.store.runs.get(place.newest("calibration")).status == "queued"
    assert button(screen, "Cancel")


def test_an_unknown_run_is_told_with_a_way_out(place: Place) -> None:
    assert "Run 'gone' not found" in texts(shown("gone"))


def test_without_a_worker_the_screen_says_that_the_run_waits(place: Place) -> None:
    place.store.workers.unregister("w")
    assert "No worker is running" in texts(shown(place.add_run("queued")))


def test_an_unchanged_run_is_read_once_however_often_the_screen_is_drawn(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, reads = projects.run_view, []

    def counted(store: Any, run_id: str) -> Any:
        reads.append(run_id)
        return read(store, run_id)

    monkeypatch.setattr(projects, "run_view", counted)
    run_id = place.add_run("running", shown=standing(candidates(3)))
    screen = shown(run_id)
    screen.run()
    assert reads == [run_id]
    place.publish(run_id, standing(candidates(2)))
    screen.run()
    assert reads == [run_id] * 2


def test_how_the_judge_is_asked_reaches_the_request_and_the_estimate(place: Place, form: AppTest) -> None:
    assert "Replies per score" not in [box.label for box in form.number_input], "the offline judge takes no prompt"
    form.radio(key="form_judge").set_value("openai").run()
    form.text_input(key="form_model").set_value("m")
    form.text_input(key="form_base_url").set_value("http://127.0.0.1:1/v1").run()
    once = metrics(form)["Tokens"]
    form.selectbox(key="form_form_model").set_value("analyze_rate")
    form.number_input(key="form_samples").set_value(5).run()
    assert form.number_input(key="form_temperature_1").value == 1.0
    form.selectbox(key="form_persona").set_value("annotator")
    form.selectbox(key="form_effort").set_value("low")
    form.text_input(key="form_extra_body").set_value('{"top_k": 5}')
    form.number_input(key="form_max_tokens").set_value(4000)
    form.checkbox(key="form_steps").set_value(True).run()
    assert int(metrics(form)["Tokens"].replace(",", "")) > 4 * int(once.replace(",", ""))
    assert "5 replies" in texts(form)
    press(form, "Start the calibration")
    request = place.request_of(place.newest("calibration"))
    style = Style("analyze_rate", samples=5, temperature=1.0, persona="annotator", max_tokens=4000)
    assert request.asking == Asking(style, writes_steps=True, effort="low", extra='{"top_k": 5}')


def test_a_bad_extra_body_is_told_and_nothing_starts(place: Place, form: AppTest) -> None:
    form.radio(key="form_judge").set_value("openai").run()
    form.text_input(key="form_model").set_value("m").run()
    form.text_input(key="form_extra_body").set_value('{"messages": []}').run()
    assert "must not contain messages" in texts(form)
    assert start_is_off(form)


def test_a_temperature_is_left_to_the_model_and_a_definition_is_taken(place: Place, form: AppTest) -> None:
    form.radio(key="form_judge").set_value("scripted").run()
    form.text_area(key="form_definition").set_value("Do the sentences hang together?")
    form.checkbox(key="form_own_temperature").set_value(True).run()
    press(form, "Start the calibration")
    request = place.request_of(place.newest("calibration"))
    assert request.asking == Asking(Style(temperature=None))
    assert request.definition == "Do the sentences hang together?"
