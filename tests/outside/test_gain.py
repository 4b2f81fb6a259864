"""The gain over no criteria: a paired difference on the common items, with interval and p, wherever it is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

KEYS = {"statistic", "level", "value", "interval", "p", "n"}


def test_the_gain_is_a_paired_difference_in_every_answer(
    concord: Callable[..., Any], repository: Path, tmp_path: Path
) -> None:
    golden, out = repository / "sample_data" / "summaries.jsonl", tmp_path / "out"
    ask = ("--aspect", "coherence", "--preset", "quick", "--rounds", 0)
    answer = concord("calibrate", golden, *ask, "--out", out)
    assert answer.code == 0, answer.body
    gain, held = answer.body["gain"], answer.body["held_out"]
    assert gain.keys() >= KEYS
    assert (gain["statistic"], gain["level"], gain["n"]) == (held["statistic"], held["level"], held["n"])
    assert gain["interval"][0] <= gain["value"] <= gain["interval"][1]
    assert gain["value"] == pytest.approx(held["value"] - answer.body["no_criteria"]["held_out"]["value"])
    assert 0 < gain["p"] <= 1
    assert json.loads((out / "summary.json").read_text("utf-8"))["gain"] == gain
    card = yaml.safe_load((out / "judge.yaml").read_text("utf-8"))
    assert card["alignment"]["gain"] == gain


@pytest.mark.parametrize("aspect", ["consistency", "fluency"])
def test_what_the_run_says_of_its_criteria_follows_from_the_test(
    concord: Callable[..., Any], repository: Path, aspect: str
) -> None:
    golden = repository / "sample_data" / "summaries.jsonl"
    body = concord("calibrate", golden, "--aspect", aspect, "--preset", "quick", "--rounds", 0).body
    said, gain = " ".join(body["warnings"]), body["gain"]
    assert gain["value"] is not None
    shown = gain["p"] is not None and gain["p"] <= 0.05 and not gain["interval"][0] <= 0 <= gain["interval"][1]
    assert "bring nothing" not in said
    assert ("not shown" in said) == (gain["p"] is not None and not shown)
    assert f"the {gain['n']} items that both scored" in said or (shown and gain["value"] > 0)
