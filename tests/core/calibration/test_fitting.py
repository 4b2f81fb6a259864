"""Strengths fitted within a calibration: they make the final judge where the judge can fit, and only there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import core
from core.api.calibrated import CalibratedRun
from core.comparison.sureness import calibrated_sureness
from core.judging.offline.criteria import read
from core.judging.offline.features import GROUPED, KEYS
from core.records import AspectLabels, Item, Scale

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def golden() -> core.GoldenSet:
    return core.load_golden(ROOT / "sample_data" / "summaries.jsonl")


def calibrated(golden: core.GoldenSet, **settings: object) -> CalibratedRun:
    return core.calibrate(
        golden,
        "coherence",
        settings=core.CalibrationSettings(preset="quick", resamples=50, **settings),  # type: ignore[arg-type]
    )


def test_fitted_strengths_make_the_final_judge_and_say_what_they_were_fitted_to(golden: core.GoldenSet) -> None:
    run = calibrated(golden)
    (chosen,) = run.chosen
    seen = {golden.items[position].item_id for position in run.split.calibration}
    assert set(chosen.provenance.item_ids) == seen
    assert {clause.key for clause in read(chosen.text).clauses} <= set(KEYS[GROUPED:])
    assert run.work.drafts_made <= run.work.drafts_asked


def test_it_stands_beside_the_drafts_on_the_items_that_all_were_scored_on(golden: core.GoldenSet) -> None:
    run = calibrated(golden)
    shared = [{point.items for point in each.trace} for each in run.candidates if each.trace and each.criteria.text]
    assert set.intersection(*shared)


@pytest.mark.parametrize("setting", ["refine_gate", "fit_strengths"])
def test_001_to_the_letter_fits_nothing_nor_does_who_wants_none(golden: core.GoldenSet, setting: str) -> None:
    run = calibrated(golden, **{setting: False})
    assert not any("(strength" in candidate.criteria.text for candidate in run.candidates)
    assert len(run.chosen) == 3


@pytest.mark.parametrize("budget", [150, 400, 1_000, 2_500])
def test_a_budget_holds(golden: core.GoldenSet, budget: int) -> None:
    assert calibrated(golden, budget=budget).calls <= budget


def test_the_map_and_the_intervals_rest_on_scores_of_labels_that_no_strengths_were_fitted_to() -> None:
    """Labels without any pattern: whoever fits and measures on the same ones sees a pattern all the same."""
    rng = np.random.default_rng(4)
    words = "the red house stood near old trees , and people of a small town walked there . Nobody said why".split()
    items = tuple(
        Item(f"i{k}", " ".join(rng.choice(words, int(rng.integers(6, 40)))) + " .", source_id=f"s{k}")
        for k in range(600)
    )
    spread, held = [], []
    for _ in range(4):
        labels = AspectLabels("coherence", Scale(0, 1), tuple(rng.random(600).tolist()))
        run = calibrated(core.GoldenSet("chance", "single", items, {"coherence": labels}))
        assert run.isotonic is not None
        spread.append(np.ptp(run.isotonic["y"]))
        held.append(calibrated_sureness(run.golden, run).held)
    assert np.mean(spread) < 0.45  # of their own scores .61, and .85 held
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)
