"""How sure verdicts are on unseen items: told of a calibration, of a judge with seen items, and of one without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import core
from core.comparison.sureness import calibrated_sureness, expected_errors, judge_sureness
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


@pytest.mark.parametrize("seen", [0, 200])
def test_intervals_hold_and_the_sure_ones_err_less(seen: int) -> None:
    sure = judge_sureness(*_with_aspect(*judged(seen=seen)))
    assert (sure.n, sure.n_sources) == (400 - seen, 100 - seen // 4)
    assert sure.held == pytest.approx(0.9, abs=0.06)
    assert [level.n for level in sure.systems] == [sure.n // 4] * 4
    assert sum(level.n for level in sure.levels) == sure.n
    assert sure.fifth is not None
    assert sure.fifth.helps
    assert sure.kept[9].error < 0.7 * sure.kept[-1].error
    assert json.loads(json.dumps(sure.as_json()))["fifth"]["change"] < 0


def _with_aspect(golden: GoldenSet, judge: JudgeScores) -> tuple[GoldenSet, str, JudgeScores]:
    return golden, "wit", judge


@pytest.mark.parametrize(
    ("scores", "reason"),
    [(np.full(400, 3.0), "all scores are equal"), (np.full(400, np.nan), "no item has both a score and a label")],
)
def test_a_judge_that_tells_nothing_has_no_intervals(scores: FloatArray, reason: str) -> None:
    golden, _ = judged()
    sure = judge_sureness(golden, "wit", JudgeScores("j", "imported", "wit", scores))
    assert (sure.held, sure.width, sure.fifth, sure.kept) == (None, None, None, ())
    assert reason in sure.reason


def test_a_judge_on_a_scale_of_its_own_is_mapped_first() -> None:
    golden, judge = judged()

    own = replace(judge, values=-100 * judge.values, on_scale=False, higher_is_better=False)
    sure, same = judge_sureness(golden, "wit", own), judge_sureness(golden, "wit", judge)
    assert sure.held == pytest.approx(same.held)
    assert sure.width == pytest.approx(same.width)


def test_few_sources_have_a_curve_and_no_interval() -> None:
    golden, judge = judged(n=400)

    coarse = replace(golden, items=tuple(replace(item, source_id=f"s{k // 50}") for k, item in enumerate(golden.items)))
    sure = judge_sureness(coarse, "wit", judge)
    assert (sure.held, len(sure.kept)) == (None, 20)
    assert "at least 9 sources" in sure.reason


def test_of_a_calibration_on_held_out_items(repository: Path) -> None:
    golden = core.load_golden(repository / "sample_data" / "summaries.jsonl")
    run = core.calibrate(golden, "relevance", preset="quick", rounds=0)
    sure = calibrated_sureness(golden, run)
    assert sure.n == len(run.split.held_out)
    assert sure.held is not None
    assert 0.75 <= sure.held <= 1


def test_errors_are_expected_of_items_without_a_label_too() -> None:
    golden, judge = judged()
    half = (*golden.aspects["wit"].values[:200], *[None] * 200)
    labels = AspectLabels("wit", SCALE, half)
    errors = expected_errors(replace(golden, aspects={"wit": labels}), "wit", judge)
    assert not np.isnan(errors).any()
    high, low = judge.values[200:] >= 6.5, judge.values[200:] < 3.5
    assert errors[200:][high].mean() > 2 * errors[200:][low].mean()
    few = AspectLabels("wit", SCALE, (5.0, 6.0, *[None] * 398))
    assert np.isnan(expected_errors(replace(golden, aspects={"wit": few}), "wit", judge)).all()
