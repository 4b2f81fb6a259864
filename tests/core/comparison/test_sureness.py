"""How sure the verdicts of a calibrated judge are on unseen items, and the errors to expect."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

import core
from core.comparison.sureness import calibrated_sureness
from core.records import AspectLabels, FloatArray, GoldenSet, Item, JudgeScores, Scale

SCALE = Scale(0, 10)


def golden_of(labels: FloatArray, per: int) -> GoldenSet:
    items = tuple(
        Item(f"i{k}", f"{'word ' * (k % 40)}end", source_id=f"s{k // per}", system_id=f"m{k % per}")
        for k in range(labels.size)
    )
    return GoldenSet("g", "single", items, {"wit": AspectLabels("wit", SCALE, tuple(labels.tolist()))})


def judged(seed: int = 0, n: int = 400, *, seen: int = 0) -> tuple[GoldenSet, JudgeScores]:
    """Scores whose errors grow with the score."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(2, 8, n)
    labels = np.clip(scores + (scores - 2) / 3 * rng.standard_normal(n), 0, 10)
    return golden_of(labels, 4), JudgeScores("j", "imported", "wit", scores, seen=tuple(range(seen)))


def test_of_a_calibration_on_held_out_items(repository: Path) -> None:
    golden = core.load_golden(repository / "sample_data" / "summaries.jsonl")
    run = core.calibrate(golden, "relevance", preset="quick", rounds=0)
    sure = calibrated_sureness(golden, run)
    assert sure.n == len(run.split.held_out)
    assert sure.held is not None
    assert 0.75 <= sure.held <= 1
    assert json.loads(json.dumps(sure.as_json()))["held"] == sure.held
    bare = replace(run, intervals=None)
    none = calibrated_sureness(golden, bare)
    assert (none.held, none.width) == (None, None)
    assert "aren't mapped" in none.reason
