"""Plots of the candidates: who is compared with whom, and the line as scipy gives it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from core.calibration.analyse import ENOUGH, analyse, line_of
from core.calibration.calibration_settings import CalibrationSettings
from tests.core.calibration.planted import GOLDEN, PlantedJudge, run_whole


@pytest.mark.parametrize("budget", [None, 150])
def test_candidates_are_compared_on_the_most_items_that_enough_of_them_share(budget: int | None) -> None:
    """Every candidate's value is its Spearman rho per source, averaged, over the items that all of them share."""
    settings = CalibrationSettings(preset="quick", rounds=1, resamples=60, budget=budget)
    result, scores = run_whole(GOLDEN, PlantedJudge(), settings)
    found = analyse(result)
    assert found.n_candidates == len(result.candidates) - 1  # not the judge without criteria
    assert min(ENOUGH, found.n_candidates) <= len(found.places) <= found.n_candidates
    assert [one.value for one in found.places] == sorted((one.value for one in found.places), reverse=True)
    rows = dict(zip(scores.criteria_ids, scores.values, strict=True))
    shared = np.flatnonzero(np.isfinite(np.stack([rows[one.criteria_id] for one in found.places])).all(axis=0))
    assert len(shared) == found.n_items <= len(result.split.calibration)
    labels, sources = GOLDEN.labels("quality"), GOLDEN.source_codes
    for one in (found.places[0], found.places[-1]):
        own = [
            stats.spearmanr(rows[one.criteria_id][group], labels[group]).statistic
            for source in np.unique(sources[shared])
            if len(set(labels[group := shared[sources[shared] == source]])) > 1
        ]
        assert one.value == pytest.approx(np.mean(own), abs=1e-12)


def test_the_band_is_that_of_least_squares() -> None:
    """At x0 the band is the interval of the intercept when x is measured from x0, which scipy gives."""
    words = [30, 42, 55, 61, 78, 90, 120]
    values = np.array([0.31, 0.35, 0.30, 0.41, 0.39, 0.44, 0.40])
    line = line_of(words, values)
    t = stats.t.ppf(0.975, len(words) - 2)
    slope = stats.linregress(words, values)
    assert line.slope == pytest.approx(100 * slope.slope)
    assert line.interval is not None
    assert line.interval.low == pytest.approx(100 * (slope.slope - t * slope.stderr))
    assert line.interval.high == pytest.approx(100 * (slope.slope + t * slope.stderr))
    for k in (0, 17, len(line.words) - 1):
        there = stats.linregress(np.array(words) - line.words[k], values)
        assert line.middle[k] == pytest.approx(there.intercept)
        assert line.low[k] == pytest.approx(there.intercept - t * there.intercept_stderr)
        assert line.high[k] == pytest.approx(there.intercept + t * there.intercept_stderr)
    assert (line.words[0], line.words[-1]) == (30, 120)
