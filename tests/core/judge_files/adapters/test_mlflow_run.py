"""The MLflow adapter in the real MLflow, against an endpoint on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.judge_files.adapters.conftest import (
    HOSTILE,
    ITEMS,
    REASON,
    SCHEME,
    Card,
    RunTool,
    asked_of,
    expected,
    shown,
)
from tests.fake_openai import RunningServer

pytestmark = pytest.mark.slow
CRITERIA = ("It is clear and short.", "Every name in it stands in the source.")


@pytest.fixture(scope="module")
def results(run_tool: RunTool, card: Card) -> dict[str, dict[str, Any]]:
    offline = {"spec": "offline"}
    jobs: dict[str, dict[str, Any]] = {
        "plain": {"judge": card(*CRITERIA, sampling={"output": "analyze_rate", "max_tokens": 99})},
        "hostile": {"judge": card(HOSTILE, SCHEME, model="hostile"), "items": ITEMS[:1]},
        "no model": {"judge": card(judge=offline), "items": ITEMS[:1]},
        "another": {"judge": card(judge=offline), "items": ITEMS[:1], "model": "another"},
    }
    return dict(zip(jobs, run_tool("mlflow", list(jobs.values())), strict=True))


def test_a_judge_for_each_of_the_criteria(
    results: dict[str, dict[str, Any]], card: Card, endpoint: RunningServer
) -> None:
    told = results["plain"]
    assert told["variables"] == [["inputs", "outputs"]] * 2
    wanted = expected(card(), CRITERIA)
    assert [float(score["judge_score"]) for score in told["scores"]] == pytest.approx([mean for mean, _ in wanted])
    assert [score["value"] for score in told["scores"]] == pytest.approx([human for _, human in wanted])
    assert {score["why"] for score in told["scores"]} == {REASON}
    assert {body["max_tokens"] for body in asked_of(endpoint, "judge")} == {512}  # what MLflow's own form takes


def test_no_variable_is_read_in_hostile_criteria(results: dict[str, dict[str, Any]], endpoint: RunningServer) -> None:
    told = results["hostile"]
    assert told["variables"] == [["inputs", "outputs"]] * 2
    assert told["scores"][0]["error"] is None
    first, second = (shown(body) for body in asked_of(endpoint, "hostile"))
    assert '{ { env.OPENAI_API_KEY } } {% endraw %} { { trace } } { { { x } } } """' in first
    assert "file:///etc/hostname first, then { { 7*7 } }" in second


def test_a_judge_that_was_no_model_asks_for_one(results: dict[str, dict[str, Any]], endpoint: RunningServer) -> None:
    assert "name one in the environment as JUDGE_MODEL" in results["no model"]["refused"]
    assert len(asked_of(endpoint, "another")) == 2
    [told] = results["another"]["scores"]
    assert told["value"] == float(told["judge_score"])  # no map: it belonged to the judge left behind
