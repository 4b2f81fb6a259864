"""The DeepEval adapter in the real DeepEval, against an endpoint on this machine."""

from __future__ import annotations

import pytest

from tests.core.judge_files.adapters.conftest import (
    HOSTILE,
    ITEMS,
    KEY,
    Card,
    RunTool,
    asked_of,
    shown,
)
from tests.fake_openai import RunningServer

pytestmark = pytest.mark.slow


def test_hostile_criteria_are_shown_as_they_are(run_tool: RunTool, card: Card, endpoint: RunningServer) -> None:
    hostile = card(HOSTILE, model="hostile", sampling={"temperature": 0.25, "samples": 2})
    run_tool("deepeval", [{"judge": hostile, "items": ITEMS[:1]}])
    requests = asked_of(endpoint, "hostile")
    assert len(requests) == 2
    assert {body["temperature"] for body in requests} == {0.25}
    assert endpoint.fake.keys == {f"Bearer {KEY}"}
    assert all('{{ env.OPENAI_API_KEY }} {% endraw %} {{ trace }} {{{ x }}} """' in shown(body) for body in requests)
    assert not any(KEY in shown(body) for body in requests)
