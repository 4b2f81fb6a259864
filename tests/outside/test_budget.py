"""A budget of calls is never exceeded, and what is reported is what happened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Concord = Callable[..., Any]


def calibrate(concord: Concord, repository: Path, out: Path, *options: str) -> Any:
    golden = repository / "sample_data" / "summaries.jsonl"
    asked = ("--aspect", "relevance", "--judge", "scripted", "--preset", "quick", *options)
    answer = concord("calibrate", golden, *asked, "--out", out)
    assert answer.code == 0, answer.body
    return answer


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.parametrize("budget", [90, 700, 4000])
def test_what_is_said_is_what_happened(concord: Concord, repository: Path, tmp_path: Path, budget: int) -> None:
    answer = calibrate(concord, repository, tmp_path, "--rounds", "1", "--budget", str(budget))
    body, work = answer.body, answer.body["work"]
    assert body["calls"] == work["calls"]["used"] <= work["calls"]["planned"] <= budget == work["calls"]["budget"]
    candidates = lines(tmp_path / "candidates.jsonl")
    drafts, refined = (
        [candidate for candidate in candidates if candidate["origin"] == origin] for origin in ("draft", "refine")
    )
    assert work["drafts"]["made"] == len(drafts)
    assert work["drafts"]["ranked"] == sum(draft["calls"] > 0 for draft in drafts)
    assert work["refined"]["made"] == len(refined)
    assert work["refined"]["accepted"] == sum(one["status"] in ("kept", "chosen") for one in refined)
    assert body["rounds"] == work["rounds"]["done"] == len({one["round"] for one in refined})
    assert body["held_out"]["n"] + body["held_out"]["n_unscored"] <= work["held_out"]["scored"]
    card = yaml.safe_load((tmp_path / "judge.yaml").read_text("utf-8"))
    assert card["work"] == work
    assert set(work["left_out"]) <= set(card["warnings"])
    said = " ".join(work["left_out"])
    assert (" of 12 drafts" in said) == (work["drafts"]["made"] < work["drafts"]["asked"])
    assert ("refinement" in said) == (work["rounds"]["done"] == 0)
    assert ("held-out" in said) == (work["held_out"]["scored"] < work["held_out"]["asked"])
    assert ("may stop the search early" in " ".join(answer.err.split())) == (budget < 4000)
