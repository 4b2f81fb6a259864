"""The Runs screen: nothing yet, all states, errors in words, cancel and resume, with and without a worker."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from urllib.parse import quote_plus

import pytest
import streamlit as st

from core import projects
from core.comparison.style_grid import StylesSettings
from core.judging.scoring_styles import Style
from core.project_records import Actor
from core.projects.calibration import CalibrationRequest
from core.projects.criteria import RescoreRequest
from core.projects.method_runs import RepEvalRequest, StylesRequest
from core.projects.project_judges import MetricsRequest
from core.records import Usage
from core.store.log import Action
from pages.ui import tables
from pages.ui.screens import plain
from tests.pages.making import HEAT, Place
from tests.pages.screen import HOSTILE, grids, harmless, marked, open_screen, press, run, texts

SCREEN = "10_runs"


def test_no_runs_yet(place: Place) -> None:
    assert "This project has no runs" in texts(open_screen(SCREEN))


def test_no_worker_alive_is_told_and_an_external_one_named_as_such(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.add_run("queued")
    assert "A worker is running: w" in texts(open_screen(SCREEN))
    place.store.workers.unregister("w")
    screen = open_screen(SCREEN)
    assert "No worker is running" in texts(screen)
    assert "python -m core worker" in texts(screen)
    monkeypatch.setenv("CONCORD_WORKER", "auto")
    monkeypatch.setattr(projects, "ensure_worker", lambda settings: None)
    st.cache_resource.clear()
    assert "A worker should start within seconds" in texts(open_screen(SCREEN))


def test_every_state_is_listed_with_its_cost_and_error(place: Place) -> None:
    paid = replace(HEAT, calls=3000, usage=Usage(3000, cost=1.5))
    place.add_run("queued")
    place.add_run("running")
    place.add_run("done", stage=paid)
    place.add_run("failed", error="The endpoint\nis down.")
    place.add_run("cancelled")
    place.store.runs.request_cancel(place.add_run("running"))
    screen = open_screen(SCREEN)
    shown = grids(screen)[0][::-1]  # the newest stands first
    assert list(shown["status"]) == ["waiting", "running", "done", "failed", "cancelled", "cancelling"]
    assert set(shown["run"]) == {"calibration of coherence"}
    assert shown["progress"].isna().tolist()[0]
    assert list(shown["progress"])[1:4] == pytest.approx([20.0, 100.0, 20.0])
    assert list(shown["cost"])[1:3] == ["—", "$1.50"]
    assert shown["error"].iloc[3] == "The endpoint is down."
    assert shown["started"].iloc[0] == "—"
    assert screen.header[0].value.replace("\\", "") == (
        "2 runs are running. 1 run waits. 1 run failed and can be resumed."
    )


def test_the_finding_comes_first_and_the_run_that_matters_with_it(place: Place) -> None:
    place.add_run("done")
    screen = open_screen(SCREEN)
    assert "Nothing is running. The last run, a calibration of coherence, finished" in texts(screen)
    place.add_run("failed", error="The endpoint is down.")
    place.add_run("done")
    screen = open_screen(SCREEN)
    assert "The endpoint is down." in texts(screen)  # though it is not the newest
    running = replace(HEAT, calls=1500)
    place.add_run("running", stage=running)
    assert "A calibration of coherence is running, 50 % done" in texts(open_screen(SCREEN))


def test_a_judge_that_makes_no_calls_shows_none(place: Place) -> None:
    counted = replace(HEAT, usage=Usage())
    run_id = place.add_run("done", stage=counted)
    screen = open_screen(SCREEN, run=run_id)
    assert "calls" not in grids(screen)[0]
    assert "calls" not in texts(screen)
    asked = place.add_run("done")
    screen = open_screen(SCREEN, run=asked)
    assert grids(screen)[0]["calls"].isna().tolist() == [False, True]
    assert "600 calls, 600 sent and 20 cached" in texts(screen)
    for usage, shown in ((Usage(), False), (Usage(1), True)):
        running = place.add_run("running", stage=replace(HEAT, usage=usage))
        assert ("Calls" in {metric.label for metric in open_screen(SCREEN, run=running).metric}) is shown


def test_runs_come_in_pages_by_the_link_and_say_who_started_them(place: Place) -> None:
    ids = [place.add_run("done") for _ in range(27)]
    place.store.events.add(place.project_id, Action("started a calibration", subject=ids[0]), Actor("<b>Ann</b>"))
    place.store.events.add(place.project_id, Action("resumed a run", subject=ids[0]), Actor("Bo"))
    assert len(grids(open_screen(SCREEN))[0]) == 25
    for link in ({"page": "2"}, {"run": ids[0]}, {"page": "99"}):  # a link to a run shows its page
        shown = grids(open_screen(SCREEN, **link))[0]
        assert shown["by"].tolist() == ["—", "<b>Ann</b>"]
    assert len(grids(open_screen(SCREEN, page="x", run="none"))[0]) == 25


def test_a_link_to_a_run_opens_it_whatever_was_open_before(place: Place) -> None:
    asked, _ = place.add_run("done"), place.add_run("done")
    screen = open_screen(SCREEN)
    assert marked(screen) == 0
    screen.query_params["run"] = asked
    assert marked(run(screen)) == 1


def test_the_marked_run_can_be_cancelled_or_resumed(place: Place) -> None:
    running, failed = place.add_run("running"), place.add_run("failed", error=f"No endpoint {HOSTILE}.")
    screen = open_screen(SCREEN, run=failed)
    assert "No endpoint" in texts(screen)
    harmless(screen)
    press(screen, "Resume")
    assert place.store.runs.get(failed).status == "queued"
    press(open_screen(SCREEN, run=running), "Cancel")
    assert place.store.runs.get(running).cancel_requested


@pytest.mark.parametrize(
    ("kind", "status", "labels"),
    [
        ("calibration", "done", ["Open in Calibrate"]),
        ("calibration", "running", ["Open in Calibrate"]),
        ("rescore", "done", ["Open in Criteria"]),
        ("metrics", "done", ["Open in Compare"]),
        ("styles", "budget", ["Open in Compare"]),
        ("styles", "failed", ["Open in Compare"]),
    ],
)
def test_a_run_leads_to_where_its_result_stands(place: Place, kind: str, status: str, labels: list[str]) -> None:
    where = (place.project_id, place.golden_id)
    requests = {
        "calibration": CalibrationRequest(*where, "coherence"),
        "rescore": RescoreRequest(*where, "coherence", "c1", "c0", "r0"),
        "metrics": MetricsRequest(*where, "coherence", ("overlap",)),
        "styles": StylesRequest(*where, "coherence", "scripted", StylesSettings((Style("score_only"),))),
    }
    run_id = place.add_run(status, requests[kind])
    links = {link.label: link.url for link in open_screen(SCREEN, run=run_id).main.get("link_button")}
    assert list(links) == labels
    if "Open in Compare" in links:
        assert f"golden={quote_plus(place.golden_id)}&aspect=coherence" in links["Open in Compare"]


def test_when_is_the_day_and_the_time() -> None:
    now = datetime(2026, 1, 2, 12, 30).astimezone()
    days = ("today", "yesterday", "31 Dec 2025")
    assert [tables.when(now - timedelta(days=n), now) for n in range(3)] == [f"{day} 12:30" for day in days]
    assert tables.when(now - timedelta(days=2), now - timedelta(days=1)) == "yesterday 12:30"
    assert tables.when(None, now) == "—"


@pytest.mark.parametrize(
    "text",
    ["<b>x</b>", "**x**", "![x](y)", ":red[x]", "$x$", "`x`", "# x", "1. x", "- x", "~~x~~", "|a|b|", "&lt;"],
)
def test_plain_escapes_every_mark(text: str) -> None:
    shown = plain(text)
    assert shown.replace("\\", "") == text
    assert all(shown[i - 1] == "\\" for i, c in enumerate(shown) if c in "<>*[]()`#$~|:&!-.")


def test_plain_breaks_what_would_become_a_link() -> None:
    assert "http\\:\u2060//" in plain("see http://evil.example")
    assert "www\u2060" in plain("www.evil.example")
    assert "\u2060@" in plain("a@b.example")


def test_which_worker_has_a_run(place: Place) -> None:
    place.store.workers.register("other", "there", 2)
    request = RepEvalRequest(place.project_id, place.golden_id, "coherence")
    waits = place.add_run("queued", request)
    place.add_run("running", request, worker="other")
    place.add_run("running", request)
    screen = open_screen(SCREEN, run=waits)
    assert sorted(grids(screen)[0]["worker"].fillna("—")) == ["other", "w", "—"]
    assert "2 workers are running" in texts(screen)


def test_what_could_not_be_read_is_counted(place: Place) -> None:
    request = CalibrationRequest(place.project_id, place.golden_id, "coherence", "scripted")
    run_id = projects.start_run(place.store, place.settings, request)
    place.store.runs.claim(run_id, 1, "w")
    place.store.runs.finish(run_id, 1, "done")
    assert "couldn't be read" not in texts(open_screen(SCREEN, run=run_id))
    cut_off = '{"text": "Sc", "finish": "length"}'
    place.store.replies.of_run(run_id).put_replies([("reply:1", cut_off), ("reply:2", cut_off)])
    screen = open_screen(SCREEN, run=run_id)
    assert "Concord couldn't read 2 replies." in texts(screen)
