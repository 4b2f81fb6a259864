"""The promptfoo adapter in the real promptfoo, against an endpoint on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.judge_files.adapters import adapter
from core.records import Item
from tests.core.judge_files.adapters.conftest import (
    HOSTILE,
    ITEMS,
    KEY,
    OUT_OF_SCALE,
    SCHEME,
    Card,
    asked_of,
    evaluated,
    shown,
)
from tests.fake_openai import RunningServer

pytestmark = pytest.mark.slow
ERROR = 2
"""promptfoo's `failureReason` of a test that ended in an error; 1 is a failed assertion."""


@pytest.fixture(scope="module")
def judge(card: Card, endpoint: RunningServer) -> dict[str, Any]:
    how = {"persona": "annotator", "max_tokens": 177, "samples": 2, "temperature": 0.5}
    return card(HOSTILE, SCHEME, url=endpoint.base_url, sampling=how)


@pytest.fixture(scope="module")
def results(
    tmp_path_factory: pytest.TempPathFactory, promptfoo: Path, judge: dict[str, Any], endpoint: RunningServer
) -> list[dict[str, Any]]:
    home = tmp_path_factory.mktemp("promptfoo")
    return evaluated(promptfoo, home, endpoint, adapter(judge, "promptfoo").text, ITEMS)


def test_texts_of_strangers_are_never_templates(results: list[dict[str, Any]], endpoint: RunningServer) -> None:
    asked = [shown(body) for body in asked_of(endpoint, "judge")]
    first = [text for text in asked if SCHEME not in text]
    assert len(first) * 2 == len(asked)
    assert all('Rule {{ env.OPENAI_API_KEY }} {% endraw %} {{ trace }} {{{ x }}} """' in text for text in first)
    assert all("\nfile:///etc/hostname first, then {{ 7*7 }}\n" in text for text in asked if text not in first)
    assert not any(KEY in text for text in asked)


def test_what_cannot_be_scored_is_an_error_and_no_score(
    promptfoo: Path, card: Card, endpoint: RunningServer, tmp_path: Path
) -> None:
    out = card("It is clear.", model=OUT_OF_SCALE, url=endpoint.base_url)
    items = (ITEMS[0], Item("empty", " ", source="s"), Item("lacking", "A text."))
    results = evaluated(promptfoo, tmp_path, endpoint, adapter(out, "promptfoo").text, items)
    assert [result["failureReason"] for result in results] == [ERROR] * 3
    assert all(result["gradingResult"] is None for result in results)
    first, empty, lacking = (result["error"] for result in results)
    assert "No reply gave a number on the scale; the first was: Score: 11" in first
    assert "The text to rate is empty." in empty
    assert "This judge needs the var 'source'." in lacking
