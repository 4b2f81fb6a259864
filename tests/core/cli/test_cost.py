"""What a command says of cost: before, in the end, and in its JSON; "—" where nobody knows the price, never 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import SUMMARIES, Run, Say, read_rows, write_rows
from tests.fake_openai import RunningServer

PRICED = "prices:\n  fake-judge: {prompt: 100, cached: 10, completion: 200}\n"
CALIBRATE = ("calibrate", SUMMARIES, "--aspect", "relevance", "--preset", "quick", "--rounds", "0", "--budget", "60")


@pytest.fixture
def judge(server: RunningServer) -> str:
    return f"openai:fake-judge@{server.base_url}"


def priced(text: str = PRICED) -> None:
    home = Path("home")
    home.mkdir(exist_ok=True)
    (home / "endpoints.yaml").write_text(text, encoding="utf-8")


def test_calibrate_and_score_say_what_they_cost(run: Run, say: Say, judge: str) -> None:
    priced()
    code, body = run(*CALIBRATE, "--judge", judge, "--out", "out")
    assert code == 0
    assert body["cost"] == body["usage"]["cost"] > 0
    items = write_rows("items.jsonl", read_rows(SUMMARIES)[:7])
    asked = ("score", items, "--judge-file", "out/judge.yaml", "--again")
    fresh = say(*asked, "--out", "v.jsonl")
    assert "At most 7 calls, about " in fresh.err
    assert ", about $" in fresh.err
    assert ", cost $" in fresh
    _, again = run(*asked, "--out", "w.jsonl")
    assert (again["requests"], again["cached"], again["cost"]) == (0, 7, 0.0), "found again, and paid for before"


def test_where_no_price_is_known_a_dash_is_said(run: Run, say: Say, judge: str) -> None:
    _, body = run(*CALIBRATE, "--judge", judge, "--out", "out")
    assert body["cost"] is None
    assert body["usage"]["requests"] > 0
    items = write_rows("items.jsonl", read_rows(SUMMARIES)[:7])
    score = say("score", items, "--judge-file", "out/judge.yaml", "--out", "v.jsonl", "--again")
    assert ", price —." in score.err
    assert ", cost —" in score
    assert "$0" not in score + score.err
