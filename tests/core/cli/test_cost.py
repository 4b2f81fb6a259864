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
    asked = ("score", items, "--judge-file", "out/judge.yaml", "--force")
    fresh = say(*asked, "--out", "v.jsonl")
    assert (", about $" in fresh.err and ", cost $" in fresh) if known else ("$0" not in fresh + fresh.err)
    if not known:
        assert ", price unknown." in fresh.err and ", cost —" in fresh
    _, again = run(*asked, "--out", "w.jsonl")
    assert (again["requests"], again["cached"]) == (0, 7), "found again, and paid for before"


def dollars(server: RunningServer) -> float:
    """What the endpoint would charge, by the tokens that it counted itself."""
    cached = [each["prompt_tokens_details"]["cached_tokens"] for each in server.fake.billed]
    prompt = sum(each["prompt_tokens"] for each in server.fake.billed) - sum(cached)
    return (100 * prompt + 10 * sum(cached) + 200 * sum(each["completion_tokens"] for each in server.fake.billed)) / 1e6


@pytest.mark.parametrize(("budget", "thinks"), [(0.8, 0), (4.0, 0), (40.0, 400)])
def test_a_calibration_keeps_to_its_dollars(
    run: Run, judge: str, server: RunningServer, budget: float, thinks: int
) -> None:
    """With thoughts a reply costs several times what was expected, and the first one is asked for twice."""
    Path("home").mkdir()
    Path("home/endpoints.yaml").write_text(PRICED.format(judge.partition("@")[2]), "utf-8")
    server.fake.thinks = thinks
    code, body = run(*CALIBRATE[:6], "--budget-usd", str(budget), "--max-tokens", "100", "--judge", judge)
    assert code == 0, body
    assert body["cost"] == pytest.approx(dollars(server))
    assert 0.2 * budget < body["cost"] <= budget
    assert "budget of $" in " ".join(body["work"]["left_out"])
    assert body["held_out"]["value"] is not None


def test_dollars_need_a_price(run: Run, judge: str, server: RunningServer) -> None:
    code, body = run(*CALIBRATE[:6], "--budget-usd", "1", "--judge", judge)
    assert code == 2
    assert "endpoints.yaml" in body["error"]["message"]
    Path("home").mkdir(exist_ok=True)
    Path("home/endpoints.yaml").write_text(PRICED.format(judge.partition("@")[2]), "utf-8")
    code, body = run(*CALIBRATE[:6], "--budget-usd", "0.001", "--judge", judge)
    assert code == 2
    assert "doesn't cover a single call" in body["error"]["message"]
    assert server.fake.requests == 0


def test_score_and_repeat_keep_to_their_dollars(run: Run, judge: str, server: RunningServer) -> None:
    Path("home").mkdir()
    Path("home/endpoints.yaml").write_text(PRICED.format(judge.partition("@")[2]), "utf-8")
    assert run(*CALIBRATE, "--judge", judge, "--out", "out")[0] == 0
    items = write_rows("items.jsonl", [row | {"item_id": f"n{k}"} for k, row in enumerate(read_rows(SUMMARIES))])
    asked = ("score", items, "--judge-file", "out/judge.yaml", "--out", "v.jsonl")
    n_done, cost = 0, 0.0
    for _ in range(40):
        before = dollars(server)
        code, body = run(*asked, "--budget-usd", "1")
        assert code == 0, body
        assert dollars(server) - before == pytest.approx(body["cost"] or 0.0)
        assert (body["cost"] or 0.0) <= 1.0
        assert body["finished"] or body["n_left"] < body["n_items"] - n_done
        n_done, cost = body["n_items"] - body["n_left"], cost + (body["cost"] or 0.0)
        if body["finished"]:
            break
    assert body["finished"] and cost > 1.0, "several calls, each within its budget"
    assert len(read_rows("v.jsonl")) == 144

    before = dollars(server)
    code, body = run(
        "repeat", SUMMARIES, "--judge-file", "out/judge.yaml", "--items", "10", "--times", "9", "--budget-usd", "1.5"
    )
    assert code == 0, body
    assert dollars(server) - before == pytest.approx(body["usage"]["cost"])
    assert body["usage"]["cost"] <= 1.5
    assert 2 <= body["times"] < 9
    code, body = run("repeat", SUMMARIES, "--judge-file", "out/judge.yaml", "--budget-usd", "0.1")
    assert code == 1
    assert "exceed the budget" in body["error"]["message"]
