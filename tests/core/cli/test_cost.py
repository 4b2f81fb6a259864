"""What a command says of cost: before, in the end, and in its JSON; "—" where nobody knows the price, never 0."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import SUMMARIES, Run, Say, read_rows, write_rows
from tests.fake_openai import RunningServer

PRICED = "endpoints: {{{}: {{prices: {{fake-judge: {{prompt: 100, cached: 10, completion: 200}}}}}}}}"
CALIBRATE = ("calibrate", SUMMARIES, "--aspect", "relevance", "--preset", "quick", "--rounds", "0", "--budget", "60")


@pytest.fixture
def judge(server: RunningServer) -> str:
    return f"openai:fake-judge@{server.base_url}"


@pytest.mark.parametrize("known", [True, False])
def test_calibrate_and_score_say_what_they_cost(run: Run, say: Say, judge: str, known: bool) -> None:
    if known:
        Path("home").mkdir()
        Path("home/endpoints.yaml").write_text(PRICED.format(judge.partition("@")[2]), "utf-8")
    code, body = run(*CALIBRATE, "--judge", judge, "--out", "out")
    assert code == 0
    assert body["cost"] == body["usage"]["cost"]
    assert (body["cost"] or 0) > 0 if known else body["cost"] is None
    items = write_rows("items.jsonl", read_rows(SUMMARIES)[:7])
    asked = ("score", items, "--judge-file", "out/judge.yaml", "--again")
    fresh = say(*asked, "--out", "v.jsonl")
    assert (", about $" in fresh.err and ", cost $" in fresh) if known else ("$0" not in fresh + fresh.err)
    if not known:
        assert ", price —." in fresh.err and ", cost —" in fresh
    _, again = run(*asked, "--out", "w.jsonl")
    assert (again["requests"], again["cached"]) == (0, 7), "found again, and paid for before"
