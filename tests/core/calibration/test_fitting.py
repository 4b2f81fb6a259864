"""Strengths fitted within a calibration: they make the final judge where the judge can fit, and only there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import core
from core.calibration.calibrated import CalibratedRun
from core.calibration.calibration_records import Calibration
from core.calibration.loop import measure
from core.calibration.racing import BoundJudge
from core.comparison.sureness import calibrated_sureness
from core.judging.offline.features import GROUPED, KEYS, read
from core.records import AspectLabels, Criteria, Item, Scale

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def golden() -> core.GoldenSet:
    return core.load_golden(ROOT / "sample_data" / "summaries.jsonl")


def calibrated(golden: core.GoldenSet, **settings: object) -> CalibratedRun:
    return core.calibrate(
        golden,
        "coherence",
        settings=core.CalibrationSettings(preset="quick", **settings),  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def run(golden: core.GoldenSet) -> CalibratedRun:
    """A calibration with nothing chosen."""
    return calibrated(golden)


def measured(run: CalibratedRun, criteria: Criteria) -> Calibration:
    """The run's judge with criteria that somebody chose."""
    with run.reopened() as judge:
        return measure(BoundJudge(judge, run.golden, run.task), run.split, run.settings, [criteria])


def test_fitted_strengths_make_the_final_judge_and_say_what_they_were_fitted_to(run: CalibratedRun) -> None:
    (chosen,) = run.chosen
    seen = {run.golden.items[position].item_id for position in run.split.calibration}
    assert set(chosen.provenance.item_ids) == seen
    assert {clause.key for clause in read(chosen.text).clauses} <= set(KEYS[GROUPED:])
    assert run.work.drafts_made <= run.work.drafts_asked


@pytest.mark.parametrize("setting", ["refine_gate", "fit_strengths"])
def test_001_to_the_letter_fits_nothing_nor_does_who_wants_none(golden: core.GoldenSet, setting: str) -> None:
    run = calibrated(golden, **{setting: False})
    assert not any("(strength" in candidate.criteria.text for candidate in run.candidates)
    assert len(run.chosen) == 3


def test_a_budget_that_does_not_pay_for_fitting_is_reported(golden: core.GoldenSet, run: CalibratedRun) -> None:
    tight = calibrated(golden, budget=400)
    assert "(strength" not in tight.chosen[0].text
    assert tight.work.held_out_scored == len(run.split.held_out)
    assert "strengths" in tight.stopped_early


def test_a_measured_judge_warns_of_strengths_that_saw_other_labels_and_of_lines_it_cannot_read(
    run: CalibratedRun,
) -> None:
    (fitted,) = run.chosen
    edited = "\n".join(fitted.text.splitlines()[:-1])
    by_hand = "Above all, reward texts that say only what the source says. Reward purple prose."
    told = [measured(run, replace(fitted, text=text)).warnings for text in (fitted.text, edited, by_hand)]
    assert [any("strengths" in words for words in each) for each in told] == [False, True, False]
    assert [any("“Reward purple prose.”" in words for words in each) for each in told] == [False, False, True]


def test_the_map_and_the_intervals_rest_on_scores_of_labels_that_no_strengths_were_fitted_to() -> None:
    """Labels without any pattern: whoever fits and measures on the same ones sees a pattern all the same."""
    rng = np.random.default_rng(4)
    words = "the red house stood near old trees , and people of a small town walked there . Nobody said why".split()
    items = tuple(
        Item(f"i{k}", " ".join(rng.choice(words, int(rng.integers(6, 40)))) + " .", source_id=f"s{k}")
        for k in range(600)
    )
    spread, held = [], []
    for _ in range(2):
        labels = AspectLabels("coherence", Scale(0, 1), tuple(rng.random(600).tolist()))
        run = calibrated(core.GoldenSet("chance", "single", items, {"coherence": labels}))
        assert run.isotonic is not None
        spread.append(np.ptp(run.isotonic["y"]))
        held.append(calibrated_sureness(run.golden, run).held)
    assert np.mean(spread) < 0.45  # of their own scores .61, and .85 held
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)
