"""The Runs screen: nothing yet, all states, errors in words, cancel and resume, with and without a worker."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote_plus

import pytest
from streamlit.testing.v1 import AppTest

from core import projects
from core.kept import Worker
from core.records import Usage
from pages.components import tables
from pages.components.screens import plain
from tests.pages.screen import open_screen, press, texts

Open = Callable[..., AppTest]
SCREEN = "10_runs"


def test_no_runs_yet(world: Any) -> None:
    screen = open_screen(SCREEN)
    assert "Nothing has been run" in texts(screen)
    assert "a worker is alive" in texts(screen)


def test_no_worker_alive_is_told(world: Any) -> None:
    world.alive = False
    assert "no worker is alive" in texts(open_screen(SCREEN))


def test_an_external_worker_is_named_as_such(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORD_WORKER", "external")
    world.alive = False
    assert "python -m core worker" in texts(open_screen(SCREEN))


def test_every_state_is_listed_with_its_cost_and_error(world: Any) -> None:
    world.add_run("a", "queued", calls=0, calls_expected=0, started_at=None)
    world.add_run("b", "running")
    world.add_run("c", "done", calls=3000, usage=Usage(3000, cost=1.5))
    world.add_run("d", "failed", error="The endpoint\nis down.")
    world.add_run("e", "cancelled")
    world.add_run("f", "running", cancel_requested=True)
    shown = open_screen(SCREEN).dataframe[0].value
    assert list(shown["status"]) == ["waiting", "running", "done", "failed", "cancelled", "cancelling"]
    assert shown["progress"].isna().tolist()[0]
    assert list(shown["progress"])[1:4] == pytest.approx([20.0, 100.0, 20.0])
    assert list(shown["cost"])[1:3] == ["—", "$1.50"]
    assert shown["error"].iloc[3] == "The endpoint is down."
    assert shown["started"].iloc[0] == "—"


def test_the_marked_run_can_be_cancelled_or_resumed(world: Any) -> None:
    world.add_run("b", "running")
    world.add_run("d", "failed", error="The endpoint is down.")
    screen = open_screen(SCREEN, run="d")
    assert "The endpoint is down." in texts(screen)
    press(screen, "Resume")
    assert world.resumed == ["d"]
    screen = open_screen(SCREEN, run="b")
    press(screen, "Cancel")
    assert world.cancelled == ["b"]


@pytest.mark.parametrize(
    ("kind", "status", "labels"),
    [
        ("calibration", "done", ["Open in Calibrate", "Compare its judges"]),
        ("calibration", "running", ["Open in Calibrate"]),
        ("rescore", "done", ["Open in Criteria"]),
        ("metrics", "done", ["Compare its judges"]),
        ("styles", "budget", ["Compare its judges"]),
        ("styles", "failed", []),
    ],
)
def test_a_run_leads_to_where_its_result_stands(world: Any, kind: str, status: str, labels: list[str]) -> None:
    run = world.add_run("k", status, kind=kind)
    links = {link.label: link.url for link in open_screen(SCREEN, run="k").main.get("link_button")}
    assert list(links) == labels
    if "Compare its judges" in links:
        assert f"golden={quote_plus(run.golden_id)}&aspect=coherence" in links["Compare its judges"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "—"), (0.4, "0 s"), (89, "89 s"), (600, "10 min"), (7500, "2 h 5 min"), (400_000, "4 days")],
)
def test_durations_in_words(seconds: float | None, words: str) -> None:
    assert tables.duration(seconds) == words


@pytest.mark.parametrize(("cost", "words"), [(None, "—"), (0.0, "$0.00"), (0.0123, "$0.0123"), (1234.5, "$1,234.50")])
def test_money_in_words(cost: float | None, words: str) -> None:
    assert tables.money(cost) == words


def test_ago_counts_from_now() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert tables.ago(now - timedelta(minutes=10), now) == "10 min ago"
    assert tables.ago(None, now) == "—"


def test_telling_parts_cut_an_opening_that_three_texts_share() -> None:
    texts = [
        "Rate order. Reward links.",
        "",
        "Rate order.\nPunish gaps.",
        "Rate order. Be\nstrict.",
        "Rate all. Be kind.",
    ]
    assert tables.telling_parts(texts) == [
        "… Reward links.",
        "",
        "… Punish gaps.",
        "… Be strict.",
        "Rate all. Be kind.",
    ]


def test_telling_parts_leave_a_text_that_is_all_opening() -> None:
    assert tables.telling_parts(["Rate order."] * 3) == ["Rate order."] * 3


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


def test_which_worker_has_a_run_and_why_another_waits(world: Any) -> None:
    why = "waiting for a GPU worker: gpu-1 (cuda) takes it when free"
    world.add_run("q", "queued", worker_id="", placement=why, started_at=None, calls=0, calls_expected=0)
    world.add_run("g", "running", worker_id="gpu-1", capability="cuda")
    world.add_run("p", "running", placement="on a worker without a GPU, because none with a GPU was there")
    screen = open_screen(SCREEN, run="q")
    assert list(screen.dataframe[0].value["worker"].fillna("—")) == ["—", "gpu-1 (cuda)", "w"]
    assert "Waiting for a GPU worker: gpu-1 (cuda) takes it when free." in texts(screen)
    assert "on a worker without a GPU" in texts(open_screen(SCREEN, run="p"))


def test_live_workers_are_named_with_what_they_compute_on(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "w · cpu" in texts(open_screen(SCREEN))
    two = [Worker(name, "here", 1, datetime.now(UTC), 0.0, kind) for name, kind in (("a", "cpu"), ("b-1", "cuda"))]
    monkeypatch.setattr(projects, "list_workers", lambda store: two)
    shown = texts(open_screen(SCREEN))
    assert "2 workers are alive" in shown
    assert "b-1 · cuda" in shown
