"""The command that asks a judge again."""

from __future__ import annotations

from pathlib import Path

from tests.core.cli.conftest import SUMMARIES, Run

KEYS = set(
    "aspect judge temperature times n_items n_unread changed_share mean_change reliability interval interval_method "
    "reason alignment forecasts usage words".split()
)
"""What `repeat --json` prints; the record `Steadiness` says what each means."""


def test_a_judge_file_and_a_spec(tmp_path: Path, run: Run) -> None:
    spec = ("--aspect", "coherence", "--judge", "scripted")
    run("calibrate", SUMMARIES, *spec, "--preset", "quick", "--temperature", "1", "--out", tmp_path)
    code, of_file = run("repeat", SUMMARIES, "--judge-file", tmp_path / "judge.yaml", "--items", "12")
    assert code == 0, of_file
    assert set(of_file) == KEYS
    assert (of_file["n_items"], of_file["times"]) == (12, 3)
    assert [set(each) for each in of_file["forecasts"]] == [{"samples", "reliability", "alignment"}] * 4
    assert of_file["changed_share"] > 0
    criteria = tmp_path / "criteria.txt"
    criteria.write_text("Reward texts that hold together.", "utf-8")
    _, of_spec = run("repeat", SUMMARIES, *spec, "--criteria", criteria)
    assert of_spec["changed_share"] == 0.0, "the stand-in repeats itself at temperature 0"
    assert of_spec["alignment"] is None
    assert run("repeat", SUMMARIES, "--judge", "scripted")[0] == 2
