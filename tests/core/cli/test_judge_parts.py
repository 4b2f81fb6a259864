"""`ablate`: the calibration of a judge file repeated, its parts taken away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core.cli.conftest import SUMMARIES, Run

QUICK = ("--aspect", "coherence", "--preset", "quick", "--out", "out")


def test_what_each_part_brings(run: Run) -> None:
    judge = "scripted:3"
    _, made = run("calibrate", SUMMARIES, *QUICK, "--judge", judge)
    code, body = run("ablate", "out/judge.yaml", SUMMARIES, "--out", "parts")
    assert (code, body["judge"], body["warnings"]) == (0, judge, [])
    rows = {row["variant"]: row for row in body["rows"]}
    assert rows["final"]["held_out"] == made["held_out"]
    assert rows["without criteria"]["held_out"] == made["no_criteria"]["held_out"]
    assert rows["without criteria"]["difference"]["value"] == pytest.approx(-made["gain"]["value"])
    assert rows["final"]["difference"] is None
    assert json.loads(Path("parts/summary.json").read_text("utf-8")) == body
