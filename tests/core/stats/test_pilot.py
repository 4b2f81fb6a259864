"""The forecast from a pilot: reliability by hand and by ANOVA, the formula, simulation, and real replies."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import f_oneway

from core.errors import UsageError
from core.judging.parse import read_rating
from core.records import FloatArray, IntArray, Measure, Scale
from core.stats import align, pilot_forecast
from core.stats.items import paired
from core.stats.pilot import expected_alignment, reliabilities
from core.stats.reweighting import draw_counts
from tests.core.stats.arrays import items, reliability

NAN = np.nan


@dataclass
class Made:
    """Simulated scores (n_items, n_samples) with labels, sources and systems."""

    scores: FloatArray
    labels: FloatArray
    sources: IntArray
    systems: IntArray


def made(seed: int, n_sources: int, n_samples: int, *, noise: float = 1.0, n_systems: int = 6) -> Made:
    """Score = item quality + sampling noise; label = quality + raters' noise; sources and systems shift both."""
    rng = np.random.default_rng(seed)
    sources, systems = (part.ravel() for part in np.mgrid[:n_sources, :n_systems])
    quality = rng.normal(0, 0.7, n_sources)[sources] + np.linspace(-1, 1, n_systems)[systems]
    quality = quality + rng.normal(0, 0.7, sources.size)
    scores = quality[:, None] + rng.normal(0, noise, (sources.size, n_samples))
    return Made(scores, quality + rng.normal(0, 0.8, sources.size), sources, systems)


def test_the_formula_is_the_one_of_reliability():
    data, ns = made(1, 20, 5), (1, 2, 5, 10, 20, 40)
    measured = align(data.scores.mean(axis=1), items(data.labels), Measure("pearson", "dataset")).value
    labelled = items(data.labels, data.sources)
    forecast = pilot_forecast(data.scores, labelled, Measure("pearson", "dataset"), n_labelled=1600, call_cost=0.5)
    (expected,) = expected_alignment(np.array([measured]), 5, np.array([reliability(data.scores)]), ns)
    assert [point.value for point in forecast.points] == pytest.approx(list(expected), abs=1e-12)
    assert forecast.points[2].value == pytest.approx(measured), "at the pilot's own n it is what was measured"
    assert [(point.n, point.calls, point.cost) for point in forecast.points] == [(n, 1600 * n, 800 * n) for n in ns]
    assert (forecast.n_items, forecast.n_labelled) == (120, 1600)


def _written_out(data: Made, counts: FloatArray) -> tuple[FloatArray, IntArray]:
    """The scores of a resample, and sources of which every draw is one of its own."""
    drawn = np.repeat(np.arange(counts.size), counts.astype(int))
    rows = [np.flatnonzero(data.sources == source) for source in drawn]
    return data.scores[np.concatenate(rows)], np.repeat(np.arange(drawn.size), [own.size for own in rows])


def test_resampled_reliability_is_that_of_the_written_out_resample():
    data = made(2, 9, 4)
    data.scores[np.random.default_rng(0).random(data.scores.shape) < 0.3] = NAN
    counts = draw_counts(np.random.default_rng(3), 9, 20)
    values = reliabilities(paired(data.scores.T, items(data.labels, data.sources)), counts, "dataset")
    expected = [reliability(_written_out(data, count)[0]) for count in counts]
    assert values == pytest.approx(np.array(expected, dtype=float), abs=1e-12)


def test_reliability_within_sources_and_between_systems():
    data = made(4, 9, 4)
    pairs = paired(data.scores.T, items(data.labels, data.sources, data.systems))
    counts = draw_counts(np.random.default_rng(5), 9, 10)
    within, between = (reliabilities(pairs, counts, level) for level in ("sample", "system"))
    for k, count in enumerate(counts):
        scores, sources = _written_out(data, count)
        # within: mean squares with the sources' own means taken out; 9 sources of 6 items, 4 calls each
        means = scores.mean(axis=1)
        centre = np.bincount(sources, means) / 6
        msb = 4 * ((means - centre[sources]) ** 2).sum() / (9 * 5)
        msw = ((scores - means[:, None]) ** 2).sum() / (54 * 3)
        assert within[k] == pytest.approx((msb - msw) / (msb + 3 * msw), abs=1e-12)
        # between: one row a system, its mean over the drawn sources in each call
        by_system = scores.reshape(9, 6, 4).mean(axis=0)
        assert between[k] == pytest.approx(reliability(by_system), abs=1e-12)


@pytest.mark.parametrize("level", ["dataset", "sample", "system"])
def test_the_forecast_comes_true_on_average(level):
    measure, errors, spread = Measure("pearson", level), [], []
    for seed in range(30):
        data = made(seed, 60, 20, noise=1.6)
        labelled, pilot = items(data.labels, data.sources, data.systems), data.scores[:, :4]
        (forecast,) = pilot_forecast(pilot, labelled, measure, ns=[20], n_labelled=360, resamples=0).points
        whole, few = (align(samples.mean(axis=1), labelled, measure).value for samples in (data.scores, pilot))
        errors.append(forecast.value - whole)
        spread.append(whole - few)
    # 30 draws: the standard error of the mean error is about a fifth of its standard deviation
    assert abs(float(np.mean(errors))) < 4 * float(np.std(errors)) / np.sqrt(30) + 0.003
    if level != "system":  # with 60 sources a system's mean hardly knows noise: nothing to gain there
        assert abs(float(np.mean(errors))) < 0.25 * float(np.mean(spread)), "taking the pilot as it is errs far more"


def test_intervals_hold_the_value_and_shrink_with_more_sources():
    widths = []
    for n_sources in (10, 90):
        data = made(6, n_sources, 5)
        labelled = items(data.labels, data.sources, data.systems)
        for point in pilot_forecast(data.scores, labelled, Measure("spearman", "dataset"), n_labelled=1).points:
            assert point.interval.low < point.value < point.interval.high
            assert f"{n_sources} sources" in point.interval.method
        widths.append(point.interval.high - point.interval.low)
    assert widths[1] < 0.6 * widths[0]  # a third, if the width went with the root of the sources


def test_unread_samples_are_left_out_and_items_without_label_too():
    data = made(7, 15, 5)
    data.labels[3] = NAN
    data.scores[4] = NAN
    data.scores[5, 1:] = NAN
    labelled = items(data.labels, data.sources)
    forecast = pilot_forecast(data.scores, labelled, Measure("pearson", "dataset"), ns=[1, 10], n_labelled=90)
    assert forecast.n_items == 88
    first, tenth = (point.value for point in forecast.points)
    assert first < tenth


@pytest.mark.parametrize(
    ("scores", "labels", "says"),
    [
        ([[1, 2], [2, 3], [3, 4]], [2, 2, 2], "all labels are equal"),
        ([[1, NAN], [2, NAN], [3, NAN]], [1, 2, 3], "fewer than 2 items"),
        ([[2, 2], [2, 2], [2, 2]], [1, 2, 3], "all scores are equal"),
        ([[1, 4], [4, 1], [2, 4]], [1, 2, 3], "nothing about the items"),
        ([[NAN, NAN], [NAN, NAN]], [1, 2], "fewer than 2 items"),
        (np.empty((0, 3)), [], "no item has a label"),
    ],
)
def test_undefined_says_why(scores, labels, says):
    forecast = pilot_forecast(scores, items(labels), Measure("pearson", "dataset"), n_labelled=3)
    assert {(point.value, point.interval) for point in forecast.points} == {(None, None)}
    assert says in forecast.reason


def test_one_source_has_no_interval_and_no_n_is_below_one():
    data = made(8, 1, 5, n_systems=12)
    chosen = {"measure": Measure("pearson", "dataset"), "n_labelled": 12}
    (point,) = pilot_forecast(data.scores, items(data.labels, data.sources), ns=[5], **chosen).points
    assert point.value is not None
    assert point.interval is None
    with pytest.raises(UsageError, match="at least 1, not 0"):
        pilot_forecast(data.scores, items(data.labels), ns=[0, 1], **chosen)


# ── reliability of a single call ─────────────────────────────────────────────────────────────────────────────


def test_icc_by_hand():
    assert reliability([[1, 1], [2, 2], [5, 5]]) == pytest.approx(1.0)
    # items (1, 3), (5, 7): grand mean 4, item means 2 and 6; MSB = 2·(4 + 4) / 1 = 16, MSW = (1+1+1+1) / 2 = 2, k = 2
    assert reliability([[1, 3], [5, 7]]) == pytest.approx((16 - 2) / (16 + 2))


def test_icc_equals_the_one_of_the_f_ratio():
    # with k calls on every item, ICC(1) = (F − 1) / (F + k − 1)
    calls = np.random.default_rng(0).normal(size=(20, 1)) + np.random.default_rng(1).normal(size=(20, 4))
    f = f_oneway(*calls).statistic
    assert reliability(calls) == pytest.approx((f - 1) / (f + 3), abs=1e-12)


def test_unequal_numbers_of_calls():
    # items (1, 3), (5, 7, 6), and one with a single call that does not count.
    # N = 5, grand mean 22/5; SSB = 2·2.4² + 3·1.6² = 19.2 with 1 degree; SSW = 2 + 2 with 3; k0 = 5 − 13/5 = 2.4
    alpha = reliability([[1, 3, NAN], [5, 7, 6], [NAN, 9, NAN]])
    assert alpha == pytest.approx((19.2 - 4 / 3) / (19.2 + 1.4 * 4 / 3))


def test_too_few_or_equal_calls_have_no_reliability():
    assert np.isnan(reliability([[1, 2], [3, NAN]]))
    assert np.isnan(reliability([[2, 2], [2, 2]]))
    with pytest.raises(UsageError, match="infinity"):
        reliability([[1, np.inf], [1, 2]])


def test_spearman_and_brown():
    # 4 calls at .5 have the reliability 4·.5 / (1 + 3·.5) = .8: r grows by √(.8 / .5)
    values = expected_alignment(np.array([0.5, 0.5]), 1, np.array([0.5, 0.0]), [1, 4])
    assert values[0] == pytest.approx([0.5, 0.5 * np.sqrt(1.6)])
    assert np.isnan(values[1]).all(), "without reliability nothing can be predicted"


# ── real replies: 002's rate-explain, 20 samples an item ─────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def topical_chat(shared_data: Path) -> list[Made]:
    """The four aspects: scores read from the recorded replies."""
    with gzip.open(shared_data / "topical_chat.jsonl.gz", "rt", encoding="utf-8") as lines:
        golden = {row["item_id"]: row for row in map(json.loads, lines)}
    return [
        _read(shared_data, golden, aspect) for aspect in ("naturalness", "coherence", "engagingness", "groundedness")
    ]


def _read(data: Path, golden: dict[str, dict[str, float]], aspect: str) -> Made:
    scale = Scale(0, 1) if aspect == "groundedness" else Scale(1, 3)
    path = data / "topical_chat_responses" / f"{aspect}_rate_explain.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["item_id"] in golden]
    values = [[read_rating(reply, scale, aspect).value for reply in row["responses"]] for row in rows]
    scores = np.array(values, dtype=np.float64)
    codes = [np.unique([row[name] for row in rows], return_inverse=True)[1] for name in ("source_id", "system_id")]
    return Made(scores, np.array([golden[row["item_id"]][f"human_{aspect}"] for row in rows], float), *codes)


def test_sixty_items_with_five_samples_tell_the_alignment_of_twenty(topical_chat):
    """Pilots of 60 items × 5 samples against the mean of all 20, Pearson at dataset level, 4 aspects × 20 seeds.

    Mean absolute error .024 (mean error +.001) against the 60 items' own alignment at n = 20: what the formula adds.
    Against all 360 items it is .072, as much as 60 items let any alignment be known ((1 − r²)/√60 · √(2/π) is .07);
    95 % intervals held it in 96 % of the pilots.
    """
    on_pilot, on_all, held = [], [], []
    for data in topical_chat:
        whole = _at_twenty(data, np.arange(data.labels.size))
        for seed in range(20):
            rng = np.random.default_rng(seed)
            at = rng.choice(data.labels.size, 60, replace=False)
            samples = rng.choice(20, 5, replace=False)
            (forecast,) = pilot_forecast(
                data.scores[np.ix_(at, samples)],
                items(data.labels[at], data.sources[at], data.systems[at]),
                Measure("pearson", "dataset"),
                ns=[20],
                n_labelled=360,
                resamples=400,
                seed=rng,
            ).points
            on_pilot.append(forecast.value - _at_twenty(data, at))
            on_all.append(forecast.value - whole)
            held.append(forecast.interval.low <= whole <= forecast.interval.high)
    assert np.abs(on_pilot).mean() < 0.03
    assert abs(np.mean(on_pilot)) < 0.01
    assert np.abs(on_all).mean() < 0.09
    assert np.mean(held) > 0.9


def _at_twenty(data: Made, at: IntArray) -> float:
    return align(np.nanmean(data.scores[at], axis=1), items(data.labels[at]), Measure("pearson", "dataset")).value
