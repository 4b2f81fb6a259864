"""Scores as points of the human scale: bins by hand, fitted and evaluated on different items."""

from __future__ import annotations

import numpy as np
import pytest

from core.comparison import calibration_curve
from core.stats import absolute_errors, fit_isotonic
from core.stats.on_scale import IsotonicMap

ASPECT = "coherence"


def test_few_scores_are_bins_of_their_own(golden_of, judge_of):
    golden = golden_of([1, 2, 2, 4, 5, None])
    curve = calibration_curve(golden, ASPECT, judge_of("one", [1, 1, 3, 3, None, 3]))
    assert [(score_bin.mean_score, score_bin.mean_label, score_bin.n) for score_bin in curve.bins] == [
        (1, 1.5, 2),
        (3, 3.0, 2),
    ]
    assert curve.n == 4
    assert curve.score_map is None
    assert "a map needs at least 10" in curve.map_note
    assert curve.after is None


def test_a_strict_judge_is_mended_by_its_seen_items(golden_of, judge_of):
    labels = [1.0, 2.0, 3.0, 4.0, 5.0] * 12
    strict = [1 + (label - 1) / 2 for label in labels]  # 1, 1.5, 2, 2.5, 3
    curve = calibration_curve(golden_of(labels, 5), ASPECT, judge_of("strict", strict, seen=tuple(range(20))))
    assert curve.n == 40
    assert "20 items that the judge was calibrated on" in curve.fitted_on
    assert curve.before.bias == pytest.approx(-1.0)  # mean 2 against mean 3
    assert curve.after.mae < 0.05  # the map keeps a margin of half a hundredth of the scale at its ends


def test_cross_fitting_tells_more_than_the_fit_itself_would(golden_of, judge_of):
    rng = np.random.default_rng(4)
    labels, dice = rng.integers(1, 6, 100).astype(float), rng.uniform(1, 5, 100)
    golden = golden_of(list(labels), per_source=2)
    curve = calibration_curve(golden, ASPECT, judge_of("dice", list(dice)))
    assert "cross-fitted over sources" in curve.fitted_on
    flattering, _ = fit_isotonic(dice, labels, golden.aspects[ASPECT].scale)
    assert flattering is not None
    assert curve.after.mae > absolute_errors(flattering.apply(dice), labels).mae


def test_a_judge_that_brings_its_map_is_told_by_that_one(golden_of, judge_of):
    labels = [1.0, 2, 3, 4, 5] * 4
    own = IsotonicMap((1.0, 5.0), (2.0, 4.0), 1.0, 5.0)
    judge = judge_of("own", labels, seen=tuple(range(10)))
    curve = calibration_curve(golden_of(labels, 5), ASPECT, judge, own=own)
    assert curve.score_map is own
    assert curve.after is not None
    assert curve.after.mae == pytest.approx(np.abs(own.apply(labels[10:]) - labels[10:]).mean())
