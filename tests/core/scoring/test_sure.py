"""How sure the verdicts of an output are: intervals out of the judge file, and the unsure marked."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import core
from core.judge_files import CalibratedJudge
from core.judge_files.judge_writing import sealed, yaml_text
from core.records import Scored
from core.scoring import ScoreRequest, score_file

Change = Callable[[dict[str, Any]], None]


@pytest.fixture
def request_(tmp_path: Path, judge_file: Path, repository: Path) -> ScoreRequest:
    items = repository / "sample_data" / "summaries.jsonl"
    return ScoreRequest(items, judge_file, tmp_path / "v.jsonl", intervals=True)


@pytest.fixture
def changed(judge_file: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """The judge file with something changed before it was exported."""

    def write(change: Change) -> Path:
        card = yaml.safe_load(judge_file.read_text("utf-8"))
        change(card)
        path = tmp_path / "changed.yaml"
        path.write_text(yaml_text(sealed(card)), "utf-8")
        return path

    return write


def rows_in(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


def test_every_verdict_has_an_interval_around_it(request_: ScoreRequest) -> None:
    result = score_file(request_)
    rows = rows_in(request_.out)
    assert all(1 <= row["low"] <= row["calibrated"] <= row["high"] <= 5 for row in rows)
    assert all(row["width"] == row["high"] - row["low"] for row in rows)
    assert len({row["expected_error"] for row in rows}) > 10
    width = pytest.approx(np.mean([row["width"] for row in rows]))
    assert result.sure == {"intervals": {"coverage": 0.9, "n": len(rows), "mean_width": width, "reason": None}}


def test_the_loaded_judge_gives_the_same(request_: ScoreRequest) -> None:
    score_file(request_)
    judge = core.load_judge(request_.judge_file)
    assert isinstance(judge, CalibratedJudge)
    verdicts = judge.score(core.load_items(request_.items).items, intervals=True)
    told = [(verdict.low, verdict.high, verdict.expected_error) for verdict in verdicts if isinstance(verdict, Scored)]
    assert told == [(row["low"], row["high"], row["expected_error"]) for row in rows_in(request_.out)]


def test_the_least_sure_are_marked(request_: ScoreRequest, changed: Callable[[Change], Path]) -> None:
    score_file(request_)
    middle = float(np.median([row["expected_error"] for row in rows_in(request_.out)]))

    def half(card: dict[str, Any]) -> None:
        card["intervals"]["kept"] = [[0.5, middle, 0.2, 0.1], [1.0, 4.0, 0.6, 0.6]]

    sure = score_file(replace(request_, judge_file=changed(half), abstain_over=0.35)).sure["abstention"]
    rows = rows_in(request_.out)
    assert sure["share"] == 0.5
    gone = [row for row in rows if row["abstained"]]
    assert 0 < len(gone) == sure["n_abstained"] < len(rows)
    kept = [row["expected_error"] for row in rows if not row["abstained"]]
    assert max(kept) <= sure["most_expected"] < min(row["expected_error"] for row in gone)
    assert sure["share_kept"] == 1 - len(gone) / len(rows)
