"""Intervals around verdicts: they hold what they say with other sources, and say why where there are none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from core.records import FloatArray, IntArray, Scale
from core.stats import fit_isotonic
from core.stats.on_scale import abstain_over, fit_intervals, kept_shares, source_quantile

SCALE = Scale(1, 5, 1.0)


class Sample(NamedTuple):
    scores: FloatArray
    labels: FloatArray
    sources: IntArray


def judged(seed: int, n_sources: int, per: int, *, alike: float = 0.0, loud: float = 0.0) -> Sample:
    """Labels around a score: errors of a source are `alike` (0 to 1); high scores are judged worse by `loud`."""
    rng = np.random.default_rng(seed)
    n = n_sources * per
    sources = np.repeat(np.arange(n_sources), per)
    scores = rng.uniform(2, 4, n)
    noise = np.sqrt(alike) * rng.standard_normal(n_sources)[sources] + np.sqrt(1 - alike) * rng.standard_normal(n)
    size = 0.4 * np.exp(loud * (scores - 3))
    return Sample(scores, np.clip(scores + size * noise, 1, 5), sources)


def given(fitted: Sample, told: Sample) -> tuple[FloatArray, FloatArray]:
    """Ends (2, n), and the expected errors, of `told` by what `fitted` teaches."""
    intervals, score_map = fit_intervals(*fitted, SCALE), fit_isotonic(fitted.scores, fitted.labels, SCALE)[0]
    calibrated = score_map.apply(told.scores)
    return intervals.around(calibrated, SCALE), intervals.expected_errors(calibrated)


@pytest.mark.parametrize(("n_sources", "per", "alike"), [(12, 6, 0.0), (12, 6, 0.8), (40, 1, 0.0), (30, 6, 0.5)])
def test_intervals_hold_the_labels_of_other_sources(n_sources, per, alike):
    held = []
    for seed in range(40):
        fitted, told = judged(seed, n_sources, per, alike=alike), judged(1000 + seed, 200, 1, alike=alike)
        (low, high), _ = given(fitted, told)
        held.append(float(((low <= told.labels) & (told.labels <= high)).mean()))
    # 40 sets of 12 to 40 sources: the standard error of the mean is about .008
    assert 0.88 <= np.mean(held) <= 0.95


def test_sources_count_not_items():
    too_few = np.repeat(np.arange(8), 50)
    assert source_quantile(np.arange(400.0), too_few) is None
    # of nine errors, the ceil(10 · .9) = 9th
    assert source_quantile(np.arange(1.0, 10), np.arange(9)) == pytest.approx(9)


def test_yes_and_no_give_sets_that_hold_the_answer():
    yes_no, held, both = Scale(0, 1, 1.0), [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores = rng.uniform(0, 1, 400)
        labels = (rng.uniform(0, 1, 400) < scores).astype(float)
        fitted, told = (Sample(scores[half], labels[half], np.arange(200)) for half in (slice(200), slice(200, 400)))
        intervals, score_map = fit_intervals(*fitted, yes_no), fit_isotonic(fitted.scores, fitted.labels, yes_no)[0]
        assert intervals.on_points
        calibrated = score_map.apply(told.scores)
        low, high = intervals.around(calibrated, yes_no)
        assert set(np.unique([low, high])) <= {0.0, 1.0}
        held.append(((low <= told.labels) & (told.labels <= high)).mean())
        both.append((low < high).mean())
    assert 0.88 <= np.mean(held) <= 0.93
    assert 0.1 < np.mean(both) < 0.9


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"scores": np.full(60, 3.0)}, "all scores are equal"),
        ({"labels": np.full(60, 3.0)}, "all labels are equal"),
        ({"scores": np.full(60, np.nan)}, "0 items have both a score and a label"),
        ({"sources": np.zeros(60, dtype=np.intp)}, "from 1 sources"),
        ({"labels": np.linspace(10, 50, 60)}, "outside the scale 1-5"),
    ],
)
def test_where_there_are_none_the_reason_is_told(change, reason):
    intervals = fit_intervals(*judged(1, 30, 2)._replace(**change), SCALE)
    assert intervals.expected_error == ()
    assert reason in intervals.why_none
    assert intervals.reach is None


# ── leaving the least sure out ───────────────────────────────────────────────────────────────────────────────


def test_the_curve_by_hand():
    # ten verdicts, the surest first, errors 0 to 9: half of them err 2 on average, all 4.5; the order is the best
    kept = kept_shares(np.arange(10.0), np.arange(10.0))
    half, every = kept[9], kept[-1]
    assert (half, every) == ((0.5, 4, 2, 2), (1, 9, 4.5, 4.5))  # share, expected, error, best
    turned = kept_shares(np.arange(10.0)[::-1], np.arange(10.0))
    assert (turned[9].error, turned[9].best) == (7, 2)
    assert kept_shares(np.array([]), np.array([])) == ()


def test_the_wanted_error_says_who_goes():
    kept = kept_shares(np.arange(100.0), np.arange(100.0))
    asked = abstain_over(kept, 20)
    # the surest 41 err 20 on average: 40 % is the largest share on the curve, and nobody could keep more
    assert (asked.share, asked.most_expected, asked.overall) == (0.4, 39, 49.5)
    assert (abstain_over(kept, 60).share, abstain_over(kept, 60).most_expected) == (1.0, np.inf)
    nothing = abstain_over(kept_shares(np.arange(100.0), np.ones(100)), 0.5)
    assert (nothing.share, nothing.most_expected) == (0.0, None)
