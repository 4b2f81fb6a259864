"""The MLflow adapter in the real MLflow, against an endpoint on this machine."""

from __future__ import annotations

import pytest

from tests.core.judge_files.adapters.conftest import (
    HOSTILE,
    ITEMS,
    SCHEME,
    Card,
    RunTool,
    asked_of,
    shown,
)
from tests.fake_openai import RunningServer

pytestmark = pytest.mark.slow


def test_no_variable_is_read_in_hostile_criteria(run_tool: RunTool, card: Card, endpoint: RunningServer) -> None:
    (told,) = run_tool("mlflow", [{"judge": card(HOSTILE, SCHEME, model="hostile"), "items": ITEMS[:1]}])
    assert told["variables"] == [["inputs", "outputs"]] * 2
    assert told["scores"][0]["error"] is None
    first, second = (shown(body) for body in asked_of(endpoint, "hostile"))
    assert '{ { env.OPENAI_API_KEY } } {% endraw %} { { trace } } { { { x } } } """' in first
    assert "file:///etc/hostname first, then { { 7*7 } }" in second
