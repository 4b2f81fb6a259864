"""Claims about data in which there is nothing to find, at most 5 % and two simulation errors; planted effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.core.comparison import null_questions as ask


def share(question: Callable[..., bool], runs: int, **how: Any) -> float:
    return sum(question(np.random.default_rng([33, run]), **how) for run in range(runs)) / runs


NOTHING: list[tuple[Callable[..., bool], int, dict[str, Any]]] = [
    (ask.follows_length, 40, {"noise": (1.0, 0.3)}),
    (ask.follows_length, 40, {"noise": (0.5, 1.2)}),
    (ask.follows_length, 40, {"noise": (1.0, 0.3), "n_raters": 1}),
    (ask.follows_length, 40, {"noise": (0.5, 1.2), "n_raters": 1}),
    (ask.has_weak_part, 40, {}),
    (ask.has_weak_part, 40, {"middle": 4.2, "step": 1.0}),
    (ask.has_weak_part, 40, {"n_raters": 3, "step": 0.01}),
    (ask.favours_its_family, 40, {"noise": (1.0, 0.3)}),
    (ask.favours_its_family, 40, {"noise": (0.3, 1.2)}),
    (ask.best_is_above_a_rater, 30, {}),
    (ask.may_replace_a_rater, 400, {}),
]


@pytest.mark.parametrize(("question", "runs", "how"), NOTHING)
def test_nothing_is_claimed_where_there_is_nothing(question, runs, how):
    assert share(question, runs, **how) <= 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5


PLANTED: list[tuple[Callable[..., bool], dict[str, Any]]] = [
    (ask.follows_length, {"planted": 0.3, "n_sources": 100}),
    (ask.follows_length, {"planted": 0.5, "n_sources": 100, "n_raters": 1}),
    (ask.follows_length, {"planted": 0.3, "n_sources": 100, "noise": (0.7, 0.9)}),
    (ask.has_weak_part, {"planted": 3.0}),
    (ask.favours_its_family, {"planted": 0.5, "n_sources": 150}),
    (ask.best_is_above_a_rater, {"planted": 4.0}),
    (ask.may_replace_a_rater, {"planted": 0.3}),
]


@pytest.mark.parametrize(("question", "how"), PLANTED)
def test_what_is_planted_is_found(question, how):
    assert share(question, 20, **how) >= 0.75
