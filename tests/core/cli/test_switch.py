"""The command that tries other models with the criteria of a judge file."""

from __future__ import annotations

from pathlib import Path

import pytest

import core
from core.errors import UsageError
from tests.core.cli.conftest import SUMMARIES, Run

KEYS = set("judge calibration held_out difference p_holm unread_share cost usage".split())
"""What each model of `switch --json` holds; the record `TriedModel` says what each means."""


@pytest.fixture
def judge_file(tmp_path: Path, run: Run) -> Path:
    run("calibrate", SUMMARIES, "--aspect", "coherence", "--judge", "scripted", "--preset", "quick", "--out", tmp_path)
    return tmp_path / "judge.yaml"


def test_each_model_scores_the_same_items_and_is_compared_with_the_judges_own(judge_file: Path, run: Run) -> None:
    code, body = run("switch", judge_file, SUMMARIES, "--judge", "scripted:7", "--judge", "scripted")
    assert code == 0, body
    own, other, same = body["candidates"]
    assert set(own) == set(other) == KEYS
    assert (own["difference"], own["p_holm"], same["difference"]["value"]) == (None, None, 0.0)
    assert own["held_out"]["n"] + own["calibration"]["n"] == 144, "every labelled item is on one side"
    assert other["difference"]["value"] == pytest.approx(
        other["held_out"]["value"] - own["held_out"]["value"], abs=1e-12
    ), "all items were read, so both are measured on the same ones"


def test_what_cannot_be_compared_is_refused(judge_file: Path, run: Run) -> None:
    with pytest.raises(UsageError, match="1 to 5"):
        core.switch(lambda spec: core.load_judge(judge_file, judge=spec), core.load_golden(SUMMARIES), [])
    assert run("switch", judge_file, SUMMARIES)[0] == 2
