"""Judges of every form on every scale, in the real tools: what comes back is on the scale, and nothing is cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.judge_files.adapters import adapter
from core.judge_files.loaded import CalibratedJudge
from core.judging.judge_specs import restore_judge
from core.records import Scored, Verdict
from core.settings import Settings
from tests.core.judge_files.adapters.conftest import (
    HOSTILE,
    ITEMS,
    SCHEME,
    Card,
    RunTool,
    asked_of,
    evaluated,
    number_for,
    shown,
)
from tests.fake_openai import RunningServer

pytestmark = pytest.mark.slow
CRITERIA = "It is clear and short."
FORMS: dict[str, dict[str, Any]] = {
    "score_only": {"output": "score_only"},
    "weighted": {"output": "score_only", "weighted": True},
    "score_only_json": {"output": "score_only", "structured": True},
    "rate_explain": {"output": "rate_explain"},
    "rate_explain_json": {"output": "rate_explain", "structured": True},
    "analyze_rate": {"output": "analyze_rate"},
    "analyze_rate_json": {"output": "analyze_rate", "structured": True},
    "several": {"output": "rate_explain", "samples": 2},
    "stars": {"output": "stars"},
    "free_text": {"output": "free_text"},
}
SCALES = {"1-5": (1, 5, 1), "0-1": (0, 1, None), "flag": (0, 1, 1), "1-10": (1, 10, 1), "-1-1": (-1, 1, 1)}


def cases() -> Iterator[tuple[str, str]]:
    """(form, scale) of judges of every form, and on every scale."""
    yield from ((form, "1-5") for form in FORMS)
    yield from (("rate_explain", scale) for scale in SCALES if scale != "1-5")
    yield "weighted", "flag"


@pytest.fixture(scope="module")
def judges(card: Card, endpoint: RunningServer) -> dict[tuple[str, str], dict[str, Any]]:
    made = {}
    for form, scale in cases():
        low, high, step = SCALES[scale]
        judge = card(CRITERIA, sampling=FORMS[form], model=f"{form} {scale}", url=endpoint.base_url, isotonic=None)
        judge["task"] |= {"scale": {"low": low, "high": high, "step": step}}
        made[form, scale] = judge
    return made


def ours(judge: dict[str, Any]) -> list[Verdict]:
    """What Concord itself makes of it."""
    loaded = CalibratedJudge.of(judge, restore_judge(judge["judge"], Settings.from_environment()))
    verdicts = loaded.score(ITEMS)
    loaded.close()
    return list(verdicts)


def stated(scale: str) -> list[int]:
    """What the endpoint states on each item to a tool that asks in its own words."""
    low, high, _ = SCALES[scale]
    rule = f"from {low} (lowest) to {high} (highest)\nHold to these rules when you choose the number:\n{CRITERIA}\n"
    return [number_for(f"{rule}{item.target}") for item in ITEMS]


def test_promptfoo(
    promptfoo: Path, judges: dict[tuple[str, str], dict[str, Any]], tmp_path: Path, endpoint: RunningServer
) -> None:
    """One evaluation of all judges: each is an assertion of its own."""
    import yaml

    made = {case: yaml.safe_load(adapter(judge, "promptfoo").text) for case, judge in judges.items()}
    whole = next(iter(made.values()))
    whole["defaultTest"]["assert"] = [
        one["defaultTest"]["assert"][0] | {"metric": "|".join(case)} for case, one in made.items()
    ]
    results = evaluated(promptfoo, tmp_path, endpoint, yaml.safe_dump(whole))
    wanted = {case: ours(judge) for case, judge in judges.items()}
    for place, result in enumerate(results):
        assert not result.get("error"), result["error"]
        for (case, verdicts), part in zip(wanted.items(), result["gradingResult"]["componentResults"], strict=True):
            low, high, _ = SCALES[case[1]]
            verdict = verdicts[place]
            assert isinstance(verdict, Scored)
            assert part["score"] == pytest.approx((verdict.value - low) / (high - low)), case


def test_mlflow(
    run_tool: RunTool, judges: dict[tuple[str, str], dict[str, Any]], card: Card, endpoint: RunningServer
) -> None:
    hostile = card(HOSTILE, SCHEME, model="no variable")
    jobs = [{"judge": judge} for judge in judges.values()]
    *told, last = run_tool("mlflow", [*jobs, {"judge": hostile, "items": ITEMS[:1]}])
    for case, made in zip(judges, told, strict=True):
        assert [score["error"] for score in made["scores"]] == [None] * len(ITEMS), case
        assert [score["value"] for score in made["scores"]] == pytest.approx(stated(case[1])), case
    assert last["variables"] == [["inputs", "outputs"]] * 2
    assert last["scores"][0]["error"] is None
    first, second = (shown(body) for body in asked_of(endpoint, "no variable"))
    assert '{ { env.OPENAI_API_KEY } } {% endraw %} { { trace } } { { { x } } } """' in first
    assert "file:///etc/hostname first, then { { 7*7 } }" in second
