"""`examine` as a command: JSON, words, and what may be wrong with the files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.cli.conftest import SUMMARIES, Run, write_rows

Files = tuple[Path, Path]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """40 sources by 3 systems; what the judge says of system C has nothing to do with people."""
    rng = np.random.default_rng(0)
    golden: list[dict[str, Any]] = []
    verdicts = []
    for source in range(40):
        for system in "ABC":
            quality = rng.normal()
            name, label = f"d{source}-{system}", float(np.clip(np.round(3 + quality), 1, 5))
            text = "word " * int(rng.integers(4, 30))
            place = {"item_id": name, "source_id": f"d{source}", "system_id": system, "target": text}
            golden.append(place | {"human_quality": label})
            score = 3 + (rng.normal() if system == "C" else quality + 0.3 * rng.normal())
            verdicts.append({"item_id": name, "score": float(np.clip(score, 1, 5))})
    return write_rows(tmp_path / "golden.jsonl", golden), write_rows(tmp_path / "verdicts.jsonl", verdicts)


def test_json_has_every_part_with_its_interval_and_what_is_claimed(files: Files, run: Run) -> None:
    code, body = run("examine", *files, "--aspect", "quality")
    assert code == 0
    parts = {(part["division"], part["name"]): part for part in body["parts"]}
    worst = parts["system", "C"]
    assert worst["worse"] and worst["alignment"]["interval"] and worst["interval"][0] > 0 and worst["p"] < 0.05
    assert len(body["claims"]) == 1
    assert body["left_out"] == {}
    assert {own["kind"] for own in body["biases"]} == {"length", "position", "own family"}


def test_spoiled_texts_are_scored_by_the_judge_of_a_file(tmp_path: Path, run: Run) -> None:
    run("calibrate", SUMMARIES, "--aspect", "coherence", "--preset", "quick", "--out", tmp_path)
    asked = ("examine", SUMMARIES, tmp_path / "verdicts.jsonl", "--aspect", "coherence", "--controls", "20")
    code, body = run(*asked, "--judge-file", tmp_path / "judge.yaml")
    assert code == 0
    found = {control["kind"]: control for control in body["controls"]}
    assert set(found["the text repeated"]) == set(
        "kind n n_sources n_unscored preferred interval interval_method reason".split()
    )
    assert found["another source's text"]["preferred"] < 0.5, "summaries of another article are seen through"
    assert run(*asked)[0] == 2
