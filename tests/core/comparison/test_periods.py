"""Periods of simulated traffic: quiet streams stay quiet at daily looks, falls are reported, labels correct means."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from core.comparison.monitoring import By, Period, compare_looks, watch
from core.errors import UsageError
from core.records import FloatArray, Item, Scale

START = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)  # a Monday
SCALE = Scale(1, 5)


@dataclass(frozen=True)
class Stream:
    items: tuple[Item, ...]
    times: tuple[datetime | None, ...]
    scores: FloatArray
    labels: FloatArray

    def watch(self, by: By) -> tuple[Period, ...]:
        return watch(self.items, self.times, self.scores, self.labels, SCALE, by=by, alpha=0.05)


def moved(periods: tuple[Period, ...]) -> list[str]:
    return [period.name for period in periods if period.change is not None and period.change.moved]


def stream(days: FloatArray, seed: int = 0, *, noise: float = 1.0, labelled: float = 0.0) -> Stream:
    """Texts of as many days as `days` (n_days, n) has rows, whose mean score each cell gives."""
    rng = np.random.default_rng(seed)
    places = [(d, k) for d, day in enumerate(days) for k in range(day.size)]
    items = tuple(Item(f"{d}-{k}", f"Text {d} {k}", "", f"v{d // 3}") for d, k in places)
    times = tuple(START + timedelta(days=d, minutes=k) for d, k in places)
    scores = np.clip(days.ravel() + noise * rng.normal(size=days.size), 1, 5)
    labels = np.where(rng.random(days.size) < labelled, np.clip(scores + 0.5, 1, 5), np.nan)
    return Stream(items, times, scores, labels)


def test_quiet_traffic_raises_no_alarm_over_a_month_of_daily_looks() -> None:
    """5 of 100 quiet streams may raise an alarm; a rolling z test raises one in 75."""
    alarms = sum(bool(moved(stream(np.full((30, 60), 3.0), seed).watch("day"))) for seed in range(100))
    assert alarms <= 5


def test_a_fall_is_reported_with_its_days() -> None:
    days = np.full((10, 200), 3.5)
    days[6:] -= 0.6
    periods = stream(days).watch("day")
    assert moved(periods)
    assert set(moved(periods)) <= {f"2026-11-{d:02d}" for d in (8, 9, 10, 11)}
    assert periods[0].in_baseline
    assert periods[0].change is None
    last = periods[-1].change
    assert last is not None and last.value is not None and last.reach is not None
    assert last.value == pytest.approx(-0.6, abs=0.15)
    assert last.reach < 0.6


def test_weeks_and_versions() -> None:
    whole = stream(np.full((9, 40), 3.0))
    assert [period.name for period in whole.watch("week")] == ["2026-11-02", "2026-11-09"]
    assert [period.name for period in whole.watch("version")] == ["v0", "v1", "v2"]


def test_labels_correct_the_mean_of_a_period() -> None:
    for period in stream(np.full((2, 300), 3.0), noise=0.7, labelled=0.2).watch("day"):
        assert period.judged is not None and period.corrected is not None
        assert period.corrected.value == pytest.approx(period.judged.value + 0.5, abs=0.12)
        assert period.corrected.interval is not None


def test_days_need_times() -> None:
    whole = stream(np.full((2, 50), 3.0))
    timeless = replace(whole, times=(None,) * 100)
    with pytest.raises(UsageError, match="100 of 100 texts have no readable time"):
        timeless.watch("day")
    assert len(timeless.watch("version")) == 1


def test_anchors_show_that_the_judge_changed() -> None:
    rng = np.random.default_rng(0)
    first = {f"a{k}": float(rng.integers(1, 6)) for k in range(40)}
    sources = {anchor: anchor for anchor in first}
    moved = {anchor: score + 0.4 + 0.3 * rng.normal() for anchor, score in first.items()}
    noisy = {anchor: score + 0.3 * rng.normal() for anchor, score in first.items()}
    assert compare_looks([first, noisy, moved], sources, 0.05).moved
    assert not compare_looks([first, moved, noisy], sources, 0.05).moved
    same = compare_looks([first, first], sources, 0.05)
    assert not same.moved
    assert same.reason == "no score has changed"


def test_noise_of_an_unchanged_judge_raises_no_alarm_over_a_year_of_looks() -> None:
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(40):
        first = {f"a{k}": 3.0 + rng.normal() for k in range(20)}
        base = {anchor: score + 0.3 * rng.normal() for anchor, score in first.items()}
        looks = [{anchor: score + 0.3 * rng.normal() for anchor, score in first.items()} for _ in range(60)]
        outcomes = [compare_looks([base, *looks[: k + 1]], {a: a for a in first}, 0.05) for k in range(60)]
        alarms += any(outcome.moved for outcome in outcomes)
    assert alarms <= 4
