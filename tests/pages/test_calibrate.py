"""The Calibrate screen in every state a run can be in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.errors import AspectError
from tests.pages.screen import button, has_button, open_screen, press, texts

SCREEN = "3_calibrate"


def test_an_empty_project_says_what_to_do_next(world: Any) -> None:
    screen = open_screen(SCREEN, project="p2")
    assert "no golden set yet" in texts(screen)
    assert not has_button(screen, "Start the calibration")


def test_the_form_shows_the_cost_before_the_start(world: Any) -> None:
    screen = open_screen(SCREEN)
    shown = {m.label: m.value for m in screen.metric}
    assert shown["Calls, at most about"] == "3,000"
    assert shown["Price"] == "—"
    assert shown["Calibration items"] == "72"
    assert "no LLM" in texts(screen)


def test_start_puts_the_run_in_the_url_and_shows_it(world: Any) -> None:
    screen = open_screen(SCREEN)
    press(screen, "Start the calibration")
    assert screen.query_params["run"] == "new"
    assert [r.judge_spec for r in world.started] == ["offline"]
    assert "Waiting for a worker." in texts(screen)


def test_advanced_choices_reach_the_request(world: Any) -> None:
    screen = open_screen(SCREEN)
    screen.selectbox(key="form_preset").set_value("quick")
    screen.radio(key="form_revisit").set_value("full")
    screen.number_input(key="form_rounds").set_value(2)
    screen.number_input(key="form_budget").set_value(500)
    screen.selectbox(key="form_statistic").set_value("kendall")
    screen.selectbox(key="form_level").set_value("dataset")
    screen.radio(key="form_split").set_value("sources+systems")
    screen.number_input(key="form_seed").set_value(7).run()
    press(screen, "Start the calibration")
    asked = world.started[0].settings
    assert (asked.preset, asked.revisit, asked.rounds, asked.budget) == ("quick", "full", 2, 500)
    assert (asked.statistic, asked.level, asked.split, asked.seed) == ("kendall", "dataset", "sources+systems", 7)
    assert world.started[0].scale is None


def test_an_endpoint_needs_a_model_and_never_asks_for_a_key(world: Any) -> None:
    screen = open_screen(SCREEN)
    screen.radio(key="form_judge").set_value("openai").run()
    assert "Name the model" in texts(screen)
    assert "No key in the environment" in texts(screen)
    assert not [w for w in screen.text_input if "key" in w.label.lower()]
    screen.text_input(key="form_model").set_value("small-model")
    screen.text_input(key="form_base_url").set_value("http://127.0.0.1:8000/v1").run()
    press(screen, "Start the calibration")
    assert world.started[0].judge_spec == "openai:small-model@http://127.0.0.1:8000/v1"


def test_a_key_in_the_environment_is_told_but_not_shown(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    screen = open_screen(SCREEN)
    screen.radio(key="form_judge").set_value("openai").run()
    assert "A key is set in the environment" in texts(screen)
    assert "sk-very-secret" not in texts(screen)


def test_few_labels_are_warned_of_before_the_start(world: Any) -> None:
    """The labels that will choose the criteria are counted, not all there are."""
    assert world.goldens["p1"][0].aspects["coherence"].n_labelled > 100
    assert "72 calibration labels: 100 are advised (200 in all" in texts(open_screen(SCREEN))


def test_an_unusable_aspect_is_told_instead_of_started(world: Any) -> None:
    world.estimate_error = AspectError("All labels are equal; choose another aspect.")
    screen = open_screen(SCREEN)
    assert "All labels are equal" in texts(screen)
    assert not has_button(screen, "Start the calibration")


def test_a_running_run_shows_its_ranking_and_can_be_cancelled(world: Any) -> None:
    candidates = world.candidates(5)
    world.add_run("r1", "running", standing=world.standing(candidates))
    screen = open_screen(SCREEN, run="r1")
    board = screen.dataframe[0].value
    assert list(board["rank"]) == [1, 2, 3, 4, 5, 6]
    assert board["Spearman, sample"].iloc[0] == pytest.approx(0.6)
    assert board["status"].iloc[-1] == "baseline"
    assert {m.label: m.value for m in screen.metric}["Time left"] == "16 min"  # 600 of 3,000 calls took 4
    press(screen, "Cancel")
    assert world.cancelled == ["r1"]
    assert button(screen, "Cancelling …").disabled


def test_the_marked_row_follows_its_candidate_when_ranks_change(world: Any) -> None:
    first, second, *rest = world.candidates(4)
    run = world.add_run("r1", "running", standing=world.standing((first, second, *rest)))
    screen = open_screen(SCREEN, run="r1")
    screen.session_state["picked_criteria"] = first.criteria.criteria_id
    screen.run()
    assert first.criteria.text in texts(screen)
    world.runs["r1"] = replace(run, version=2, standing=world.standing((second, first, *rest)))
    screen.run()
    assert first.criteria.text in texts(screen)
    assert screen.session_state["leaderboard"]["selection"]["rows"] == [1]


def test_an_undefined_alignment_is_a_dash_in_the_ranking(world: Any) -> None:
    undefined = replace(world.candidates(1)[0], alignment=None)
    world.add_run("r1", "running", standing=world.standing((undefined, world.candidates(1)[-1])))
    board = open_screen(SCREEN, run="r1").dataframe[0].value
    assert board["Spearman, sample"].isna().tolist() == [True, False]
    assert board["interval"].iloc[0] == "—"


def test_unread_items_are_counted_in_the_ranking_where_there_are_any(world: Any) -> None:
    first, *rest = world.candidates(2)
    world.add_run("r1", "running", standing=world.standing((first, *rest)))
    assert "unread" not in open_screen(SCREEN, run="r1").dataframe[0].value.columns
    unread = replace(first, alignment=replace(first.alignment, n_unscored=7))
    world.add_run("r2", "running", standing=world.standing((unread, *rest)))
    assert list(open_screen(SCREEN, run="r2").dataframe[0].value["unread"]) == [7, 0, 0]


def test_a_finished_run_tells_held_out_beside_calibration(world: Any) -> None:
    candidates = world.candidates(5, "kept")
    world.add_run("r1", "done", standing=world.standing(candidates), outcome=world.calibration(candidates), calls=3000)
    screen = open_screen(SCREEN, run="r1")
    assert {m.label: m.value for m in screen.metric}["Held-out, Spearman rho, sample level"] == "0.520 [0.42, 0.62]"
    said = texts(screen)
    assert "0.090 above held-out" in said
    assert "3 unread" in said
    assert "offline, which is no LLM" in said
    assert "Only 80 labels on calibration" in said
    assert not [b for b in screen.button if b.label in ("Cancel", "Resume")]
    assert [b.label for b in screen.download_button] == ["Download judge.yaml (not approved)"]


def test_an_undefined_result_is_a_dash_with_its_reason(world: Any) -> None:
    candidates = world.candidates(2, "kept")
    undefined = replace(candidates[0].alignment, value=None, interval=None, reason="all scores are equal")
    world.add_run("r1", "done", outcome=world.calibration(candidates, held_out=undefined))
    screen = open_screen(SCREEN, run="r1")
    assert {m.label: m.value for m in screen.metric}["Held-out, Spearman rho, sample level"] == "—"
    assert "undefined: all scores are equal" in texts(screen)


def test_a_failed_run_says_why_and_can_be_resumed(world: Any) -> None:
    world.add_run("r1", "failed", error="The key was refused (401). Set OPENAI_API_KEY.", standing=world.standing(()))
    screen = open_screen(SCREEN, run="r1")
    assert "The key was refused" in texts(screen)
    press(screen, "Resume")
    assert world.resumed == ["r1"]
    assert not screen.exception
    assert button(screen, "Cancel")


def test_a_run_that_cannot_be_resumed_says_so(world: Any) -> None:
    world.add_run("stuck", "failed", error="x")
    screen = open_screen(SCREEN, run="stuck")
    press(screen, "Resume")
    assert "cannot be resumed" in texts(screen)


def test_a_cancelled_run_keeps_its_ranking(world: Any) -> None:
    world.add_run("r1", "cancelled", standing=world.standing(world.candidates(3)))
    screen = open_screen(SCREEN, run="r1")
    assert len(screen.dataframe[0].value) == 4
    assert button(screen, "Resume")


def test_an_unknown_run_is_told_with_a_way_out(world: Any) -> None:
    assert "There is no run gone" in texts(open_screen(SCREEN, run="gone"))


def test_without_a_worker_the_screen_says_that_the_run_waits(world: Any) -> None:
    world.alive = False
    world.add_run("r1", "queued", calls=0, calls_expected=0)
    assert "No worker is alive" in texts(open_screen(SCREEN, run="r1"))


def test_a_run_that_goes_on_is_offered_to_whoever_comes_back(world: Any) -> None:
    world.add_run("r1", "running", standing=world.standing(()))
    screen = open_screen(SCREEN)
    assert "coherence of summaries" in texts(screen)
    press(screen, "Watch it")
    assert screen.query_params["run"] == "r1"
    assert "Ranking on the calibration items" in texts(screen)


def test_an_unchanged_run_is_read_once_however_often_the_screen_is_drawn(world: Any) -> None:
    run = world.add_run("r1", "running", standing=world.standing(world.candidates(3)))
    screen = open_screen(SCREEN, run="r1")
    screen.run()
    assert world.reads == 1
    world.runs["r1"] = replace(run, version=2)
    screen.run()
    assert world.reads == 2
