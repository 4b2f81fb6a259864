"""A finding follows the tests in its record, and its headline is short."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.comparison import compare_table
from core.findings import Finding
from core.findings.agreement import board_finding, gain_finding, rater_finding, regression_words
from core.records import Alignment, Interval, Measure
from core.stats import PairedRater, RaterComparison
from core.stats.alignment import Difference, RegressionBar

ASPECT, MEASURE = "coherence", "Spearman rho, dataset level"


def board_of(golden: Any, judges: Any) -> Any:
    return compare_table(golden, ASPECT, judges, Measure("spearman", "dataset"))


def short(said: Finding) -> bool:
    """At most 20 words and two numbers, in one or two sentences."""
    numbers = re.findall(r"[−+]?\d+\.\d+", said.headline)
    return len(said.headline.split()) <= 20 and len(numbers) <= 2


def test_better_and_alike_follow_the_corrected_p(noisy: Any, judge_of: Any) -> None:
    golden, judges = noisy(0.5, 4.0)
    twin = judge_of("twin", list(judges[0].values))
    said = board_finding(board_of(golden, [*judges, twin]), MEASURE)
    assert "highest" in said.headline  # nothing tells it from its twin
    assert board_finding(board_of(golden, judges), MEASURE).headline.startswith("noise 0.5 agrees best")
    alone = board_finding(board_of(golden, judges[:1]), MEASURE)
    assert "better" not in alone.detail and "best" not in alone.headline


def test_under_eight_sources_no_judge_is_called_better(noisy: Any) -> None:
    golden, judges = noisy(0.5, 6.0)
    few = replace(golden, items=tuple(replace(item, source_id=f"doc{k % 7}") for k, item in enumerate(golden.items)))
    said = board_finding(board_of(few, judges), MEASURE)
    assert "significantly" not in said.detail and "best" not in said.headline
    assert "fewer than 8 sources" in said.detail


def test_the_current_version_is_compared_with_the_baseline(noisy: Any) -> None:
    board = board_of(*noisy(0.5, 4.0))
    gain = board.pairwise.pair(0, 1)
    said = board_finding(board, MEASURE, 0, baseline=1)
    assert said.headline.startswith("noise 0.5 agrees best")
    assert f"noise 0.5 minus the baseline: {gain.value:+.2f} [" in said.detail
    beaten = board_finding(board, MEASURE, 1)
    assert beaten.headline.startswith("noise 0.5 has the highest") and "noise 4 is worse." in beaten.headline
    # after a choice on these items nothing is claimed
    withheld = board.without_p(0, "the choice may depend on them")
    seen = board_finding(withheld, MEASURE, 0, baseline=1)
    assert "best" not in seen.headline and "the choice may depend on them" in seen.detail
    assert "noise 4 wasn't tested against it." in board_finding(withheld, MEASURE, 1).headline
    above = RegressionBar(replace(board.rows[0].alignment, value=0.99), 63, (difference(-0.2, None),) * 2)
    said = board_finding(replace(board, bar=above), MEASURE)
    assert said.headline.startswith("A plain regression has the highest agreement. noise 0.5 wasn't tested")
    assert "Holm" not in regression_words(above, 0), "nothing is corrected without p"
    assert np.isnan(withheld.pairwise.p_holm[0, 1])
    assert not np.isnan(board.pairwise.p_holm[0, 1])  # the table that was handed in stays


def test_a_planned_comparison_has_its_own_p_and_is_said_once(noisy: Any) -> None:
    board = board_of(*noisy(0.5, 1.0, 4.0))
    places = (board.rows[0].place, board.rows[1].place)
    planned, own = board.with_planned(*places), board.pairwise.pair(0, 1).p
    assert planned.pairwise.p_holm[0, 1] == planned.pairwise.p_holm[1, 0] == own
    assert planned.pairwise.p_holm[0, 2] == board.pairwise.p_holm[0, 2]
    said = board_finding(planned, MEASURE, places[0], baseline=places[1])
    assert said.detail.count(board.rows[1].name) == 0


UPSIDE_DOWN = Alignment("spearman", "sample", -0.3, 80, interval=Interval(-0.5, -0.1))


def difference(value: float | None, p: float | None, b: Alignment | None = None) -> Difference:
    ends = None if value is None else Interval(value - 0.1, value + 0.1)
    a = Alignment("spearman", "sample", 0.6, 80)
    return Difference(value, ends, p, 80, a, b or replace(a, value=0.4), reason="all equal", p_reason="few sources")


@pytest.mark.parametrize(
    ("gain", "word"),
    [
        (difference(0.2, 0.01), "raised"),
        (difference(-0.2, 0.01), "lowered"),
        (difference(0.05, 0.4), "No significant gain"),
        (difference(0.2, None), "can't be tested"),
        (difference(None, None), "undefined"),
        (
            difference(0.9, 0.01, Alignment("spearman", "sample", -0.3, 80, interval=Interval(-0.5, -0.1))),
            "contradicts",
        ),
    ],
)
def test_a_gain_is_called_what_its_test_shows(gain: Difference, word: str) -> None:
    said = gain_finding(gain)
    assert word in said.headline and short(said)
    assert bool(said.next_step) == (word == "contradicts")


@pytest.mark.parametrize(
    ("low", "high", "p", "word"),
    [
        (0.01, 0.2, 0.01, "better than"),
        (-0.04, 0.1, 0.3, "as well as"),
        (-0.3, -0.01, 0.01, "less well than"),
        (-0.2, 0.1, 0.3, "n't differ significantly"),
        (0.01, 0.2, None, "n't differ significantly"),
    ],
)
def test_a_judge_is_compared_with_a_rater_as_its_interval_allows(
    low: float, high: float, p: float | None, word: str
) -> None:
    own = Alignment("spearman", "dataset", 0.6, 80)
    raters = (PairedRater("r1", 0.6, 0.5, 80),)
    beside = RaterComparison(own, own, (low + high) / 2, Interval(low, high), p, 80, 20, raters)
    said = rater_finding(beside, MEASURE)
    assert word in said.headline and short(said)
    withheld = rater_finding(beside.without_claim("the choice may depend on them"), MEASURE)
    assert "wasn't tested" in withheld.headline and "choice" in withheld.cautions[0]
