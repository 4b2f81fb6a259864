"""`threshold` on sample labels: the same by command and in Python, items that chose the judge left out, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import core
from core.cli.main import main
from core.errors import UsageError

ASPECT = "relevance"


def test_a_threshold_by_command_and_in_python(
    repository: Path, judge_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = repository / "sample_data" / "summaries.jsonl"
    golden = core.load_golden(file)
    verdicts = core.load_judge(judge_file).score(golden.items)
    scores = dict(zip(golden.item_ids, verdicts.values.tolist(), strict=True))
    (tmp_path / "v.jsonl").write_text("".join(json.dumps({"item_id": i, "score": s}) + "\n" for i, s in scores.items()))
    command = ["threshold", str(file), str(tmp_path / "v.jsonl"), "--aspect", ASPECT, "--json"]
    assert main([*command, "--yes-from", "4", "--judge-file", str(judge_file)]) == 0
    body = json.loads(capsys.readouterr().out)
    direct = core.choose_threshold(golden, scores, ASPECT, yes_from=4, judge_file=judge_file)
    n_seen = len(golden.items) - body["n"]
    assert (body.pop("n_calibration_left_out"), body.pop("n_calibration_kept")) == (n_seen, 0)
    assert body == {k: v for k, v in json.loads(json.dumps(direct.as_json())).items() if k != "n_calibration_left_out"}
    assert body["n"] < len(golden.items)
    assert core.choose_threshold(golden, scores, ASPECT, yes_from=4).n == len(golden.items)
    labels = golden.labels(ASPECT)
    assert core.choose_threshold(golden, scores, ASPECT, yes_from=4).n_yes == np.count_nonzero(labels >= 4)
    assert main(command) == 2
    assert "--yes-from" in json.loads(capsys.readouterr().out)["error"]["message"]
    with pytest.raises(UsageError, match="Costs must be greater than 0"):
        core.choose_threshold(golden, scores, ASPECT, yes_from=4, miss_cost=0)
    with pytest.raises(UsageError, match="greater than 1 and at most 5"):
        core.choose_threshold(golden, scores, ASPECT, yes_from=6)


def test_pairs_from_file_to_strengths(repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs, out = str(repository / "sample_data" / "pairs.jsonl"), tmp_path / "out"
    golden = core.load_golden(pairs)
    assert main(["calibrate", pairs, "--aspect", "preference", "--level", "dataset", "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["held_out"]["value"] is not None
    judge = str(out / "judge.yaml")
    assert main(["score", pairs, "--judge-file", judge, "--out", str(out / "v.jsonl"), "--json"]) == 0
    capsys.readouterr()
    assert main(["preferences", pairs, str(out / "v.jsonl"), "--judge-file", judge, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert 0 < body["agreement"]["n"] < len(golden.items)
    assert {strength["system"] for strength in body["by_people"]["systems"]} == {
        system for item in golden.items for system in item.system_id.split(" vs ")
    }
