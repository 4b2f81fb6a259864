"""Confidence sequences: the formula by hand, and how often they leave the mean over a whole stream."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.stats.change import share_of_level, stream_mean


def test_the_mean_and_its_error_are_those_of_independent_items() -> None:
    values = np.array([1.0, 2.0, 4.0, 5.0])
    mean = stream_mean(values, np.arange(4))
    assert mean is not None
    assert mean.value == 3.0
    assert mean.error == pytest.approx(values.std(ddof=1) / 2)


def test_items_of_one_source_are_not_taken_for_independent_ones() -> None:
    values = np.repeat([1.0, 2.0, 4.0, 5.0], 10)
    once, often = stream_mean(values[::10], np.arange(4)), stream_mean(values, np.repeat(np.arange(4), 10))
    assert once is not None and often is not None
    assert often.error == pytest.approx(once.error)
    assert often.radius(0.05, 100) is None  # 4 sources
    assert stream_mean(np.array([]), np.array([], dtype=np.intp)) is None


def test_the_radius_by_hand() -> None:
    rng = np.random.default_rng(0)
    mean = stream_mean(rng.normal(size=400), np.arange(400))
    assert mean is not None and mean.error is not None
    spent = -2 * math.log(0.05)
    rho2 = (spent + math.log(spent + 1)) / 400
    n = 400
    width = math.sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * math.log(math.sqrt(n * rho2 + 1) / 0.05))
    assert mean.radius(0.05, 400) == pytest.approx(mean.error * math.sqrt(n) * width)


def test_it_is_narrowest_about_the_n_that_was_named() -> None:
    mean = stream_mean(np.random.default_rng(1).normal(size=1000), np.arange(1000))
    assert mean is not None
    best = mean.radius(0.05, 1000)
    others = [mean.radius(0.05, at) for at in (50, 20_000)]
    assert best is not None
    assert all(other is not None and other > best for other in others)


def test_shares_never_add_up_to_more_than_the_level() -> None:
    assert sum(share_of_level(0.05, k) for k in range(1, 100_000)) < 0.05
