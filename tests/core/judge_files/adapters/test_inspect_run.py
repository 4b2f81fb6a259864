"""The Inspect adapter in the real Inspect: it asks and scores exactly as Concord does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from core.judge_files.loaded import CalibratedJudge
from core.judging.judge_specs import restore_judge
from core.records import Item, Scored
from core.settings import Settings
from tests.core.judge_files.adapters.conftest import HOSTILE, ITEMS, OUT_OF_SCALE, SCHEME, Card, RunTool, asked_of
from tests.fake_openai import RunningServer

pytestmark = pytest.mark.slow
WAYS: dict[str, dict[str, Any]] = {
    "rate": {"output": "rate_explain", "persona": "annotator", "steps": "1. Read.\n2. Rate."},
    "mix": {"output": "mix", "samples": 2},
    "json": {"output": "analyze_rate", "structured": True},
    "weighted": {"output": "score_only", "weighted": True},
    "free": {"output": "free_text"},
}
EMPTY = Item("empty", " ", source="s")


@pytest.fixture(scope="module")
def judges(card: Card, endpoint: RunningServer) -> dict[str, dict[str, Any]]:
    return {
        way: card(HOSTILE, SCHEME, sampling=sampling, model=way, url=endpoint.base_url)
        for way, sampling in WAYS.items()
    }


@pytest.fixture(scope="module")
def results(run_tool: RunTool, card: Card, judges: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    jobs = [{"judge": judge} for judge in judges.values()]
    jobs.append({"judge": card(model=OUT_OF_SCALE), "items": (ITEMS[0], EMPTY)})
    return dict(zip((*judges, OUT_OF_SCALE), run_tool("inspect", jobs), strict=True))


@pytest.mark.parametrize("way", WAYS)
def test_it_asks_and_scores_as_concord_does(
    results: dict[str, dict[str, Any]], judges: dict[str, dict[str, Any]], endpoint: RunningServer, way: str
) -> None:
    there, asked_there = results[way], asked_of(endpoint, way)
    ours = CalibratedJudge.of(judges[way], restore_judge(judges[way]["judge"], Settings.from_environment()))
    verdicts = ours.score(ITEMS)
    ours.close()
    asked_here = asked_of(endpoint, way)[len(asked_there) :]
    asked_here = [body for body in asked_here for _ in range(body.get("n", 1))]
    assert sorted(map(_question, asked_there)) == sorted(map(_question, asked_here))
    for verdict in verdicts:
        assert isinstance(verdict, Scored)
        told = there["scores"][verdict.item_id]
        assert told["judge_score"] == pytest.approx(verdict.value)
        assert told["value"] == pytest.approx(verdict.calibrated)
        assert told["unread_replies"] == 0
    calibrated = [one.calibrated for one in verdicts if isinstance(one, Scored) and one.calibrated is not None]
    assert len(calibrated) == len(ITEMS)
    assert there["metrics"]["mean"] == pytest.approx(np.mean(calibrated))


def _question(body: dict[str, Any]) -> str:
    """What decides the reply: messages, sampling, schema and logprobs."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    asked = {name: body.get(name) for name in ("messages", "temperature", "max_tokens", "logprobs", "top_logprobs")}
    return json.dumps(asked | {"schema": schema}, sort_keys=True)


def test_unreadable_replies_and_empty_texts_are_unscored(results: dict[str, dict[str, Any]]) -> None:
    told = results[OUT_OF_SCALE]
    assert told["unscored"] == 2
    assert told["scores"]["one"] == {
        "value": None,
        "reason": "grader_failed",
        "judge_score": None,
        "unread_replies": 2,
        "replies": 2,
    }
    assert told["scores"]["empty"] == {"value": None, "reason": "no_response"}
