"""The command that asks a judge again."""

from __future__ import annotations

from pathlib import Path

from tests.core.cli.conftest import SUMMARIES, Run

KEYS = set(
    "aspect judge temperature times n_items n_unread changed_share mean_change reliability interval interval_method "
    "reason alignment forecasts usage words".split()
)
"""What `repeat --json` prints; the record `Steadiness` says what each means."""


def test_a_judge_file(tmp_path: Path, run: Run) -> None:
    spec = ("--aspect", "coherence", "--judge", "scripted")
    run("calibrate", SUMMARIES, *spec, "--preset", "quick", "--temperature", "1", "--out", tmp_path)
    code, body = run("repeat", SUMMARIES, "--judge-file", tmp_path / "judge.yaml", "--items", "12")
    assert code == 0, body
    assert set(body) == KEYS
    assert (body["n_items"], body["times"]) == (12, 3)
    assert [set(each) for each in body["forecasts"]] == [{"samples", "reliability", "alignment"}] * 4
    assert body["changed_share"] > 0
