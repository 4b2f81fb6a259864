"""The DeepEval adapter in the real DeepEval, against an endpoint on this machine."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.judge_files.adapters.conftest import (
    HOSTILE,
    ITEMS,
    KEY,
    REASON,
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
def results(run_tool: RunTool, card: Card) -> list[dict[str, Any]]:
    hostile = card(HOSTILE, model="hostile", sampling={"temperature": 0.25, "samples": 2})
    return run_tool(
        "deepeval",
        [{"judge": card(*CRITERIA), "evaluate": True}, {"judge": hostile, "items": ITEMS[:1]}],
    )


def test_it_measures_and_evaluates(results: list[dict[str, Any]], card: Card) -> None:
    told, wanted = results[0], expected(card(), CRITERIA)
    assert [(measure["judge"], measure["human"]) for measure in told["measured"]] == [
        pytest.approx(pair) for pair in wanted
    ]
    shares = [(human - 1) / 4 for _, human in wanted]  # the ends of the scale, 1 and 5, are 0 and 1
    assert [measure["score"] for measure in told["measured"]] == pytest.approx(shares)
    assert told["evaluated"] == pytest.approx(shares)
    assert [measure["passed"] for measure in told["measured"]] == [share >= 0.5 for share in shares]
    assert {measure["why"] for measure in told["measured"]} == {REASON}


def test_hostile_criteria_are_shown_as_they_are(results: list[dict[str, Any]], endpoint: RunningServer) -> None:
    requests = asked_of(endpoint, "hostile")
    assert len(requests) == 2
    assert {body["temperature"] for body in requests} == {0.25}
    assert endpoint.fake.keys == {f"Bearer {KEY}"}
    assert all('{{ env.OPENAI_API_KEY }} {% endraw %} {{ trace }} {{{ x }}} """' in shown(body) for body in requests)
    assert not any(KEY in shown(body) for body in requests)
