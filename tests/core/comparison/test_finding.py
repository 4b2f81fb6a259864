"""The sentences say what the numbers say, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from core.comparison import compare_table, finding, version_finding, with_planned, without_p
from core.comparison.leaderboard import in_short
from core.records import Measure, Scale

ASPECT, MEASURE = "coherence", "Spearman rho, dataset level"


def finding_of(golden: Any, judges: Any, **more: Any) -> Any:
    measure = Measure(more.pop("statistic", "spearman"), more.pop("level", "dataset"))
    return finding(compare_table(golden, ASPECT, judges, measure, **{"resamples": 300} | more), MEASURE)


def test_the_best_is_named_with_its_number_and_its_items(noisy):
    golden, judges = noisy(0.5, 3.0)
    board = compare_table(golden, ASPECT, judges, Measure("spearman", "dataset"), resamples=300)
    stated = finding(board, MEASURE)
    best = board.rows[0].alignment
    assert stated.headline == f"noise 0.5 has the highest agreement with raters: {best.value:.2f}."
    items = f"{MEASURE}, on 120 items from 30 sources whose labels none of these judges has seen"
    assert stated.basis == f"{items}, 95 % interval {best.interval.low:.2f} to {best.interval.high:.2f}."


def test_who_is_beaten_and_who_is_not_follows_the_corrected_p(noisy, judge_of):
    golden, judges = noisy(0.5, 4.0)
    twin = judge_of("twin", list(judges[0].values))
    (standing,) = finding_of(golden, [judges[0], judges[1], twin]).details
    assert "significantly better than noise 4" in standing
    assert "not significantly different from twin" in standing


def test_one_judge_is_not_called_the_best(noisy):
    golden, judges = noisy(1.0)
    stated = finding_of(golden, judges)
    assert "agrees with raters" in stated.headline
    assert "it has not seen" in stated.basis
    assert not any("better" in detail for detail in stated.details)


def test_chance_is_called_chance(golden_of, judge_of):
    rng = np.random.default_rng(0)
    golden = golden_of(list(rng.integers(1, 6, 40).astype(float)))
    stated = finding_of(golden, [judge_of("dice", list(rng.uniform(1, 5, 40)))])
    assert any("holds 0" in caution for caution in stated.cautions)


def test_the_judge_is_set_beside_one_person(golden_of, judge_of):
    rng = np.random.default_rng(4)
    truth = np.tile([1.0, 2.0, 3.0, 4.0], 150)
    ratings = truth + rng.normal(0, 1.0, (3, truth.size))
    golden = golden_of(list(ratings.mean(axis=0)), per_source=4, scale=Scale(-5, 10), ratings=ratings.tolist())
    judge = judge_of("one", list(truth + rng.normal(0, 0.95, truth.size)))
    words = finding_of(golden, [judge]).people
    assert words.startswith("one agrees with these raters as well as one of them does")
    assert f"{MEASURE}, 600 items, 150 sources, 3 raters" in words
    assert words.endswith("needs the whole interval above −0.05.")


def test_without_single_ratings_nothing_is_said_of_people(noisy):
    golden, judges = noisy(1.0)
    words = finding_of(golden, judges).people
    assert "the judge cannot be compared with raters" in words
    assert "only one label an item" in words


def test_nothing_common_and_nothing_defined_are_said(golden_of, judge_of):
    golden = golden_of([1, 2, 3, 4])
    apart = finding_of(golden, [judge_of("a", [1, 2, None, None]), judge_of("b", [None, None, 3, 4])])
    assert apart.headline == "Nothing can be compared yet."
    flat = finding_of(golden, [judge_of("flat", [2, 2, 2, 2])])
    assert "No judge has a defined" in flat.headline
    assert "all scores are equal" in flat.details[0]


def test_few_sources_are_a_caution(golden_of, judge_of):
    golden = golden_of([1, 2, 3, 4, 5, 4], per_source=2)
    assert any(
        "Only 3 sources" in caution for caution in finding_of(golden, [judge_of("a", [1, 2, 3, 4, 5, 4])]).cautions
    )


def test_no_judge_is_called_significantly_better_under_eight_sources(noisy):
    golden, judges = noisy(0.5, 6.0)
    assert any("significantly better" in detail for detail in finding_of(golden, judges).details)
    few = replace(golden, items=tuple(replace(item, source_id=f"doc{k % 7}") for k, item in enumerate(golden.items)))
    stated = finding_of(few, judges)
    assert not any("better than" in detail or "told apart" in detail for detail in stated.details)
    assert any("no difference is tested (fewer than 8 sources" in caution for caution in stated.cautions)


def test_many_names_are_cut_short():
    assert in_short(["a"]) == "a"
    assert in_short(["a", "b", "c"]) == "a, b and c"
    assert in_short(list("abcdef")) == "a, b, c and 3 others"


def test_the_version_in_use_is_told_beside_no_criteria(noisy):
    """Of two judges the better is the version: highest, shown better, its gain the paired difference of the table."""
    golden, judges = noisy(0.5, 4.0)
    board = compare_table(golden, ASPECT, judges, Measure("spearman", "dataset"), resamples=300)
    stated = version_finding(board, MEASURE, "Version 2 of the judge", 0, baseline=1)
    gain = board.pairwise.pair(0, 1)
    assert stated.headline == f"Version 2 of the judge agrees best with raters: {board.rows[0].alignment.value:.2f}."
    assert stated.details[0].startswith(f"Compared with no criteria: {gain.value:+.2f} [")
    assert stated.details[0].endswith("p < 0.001.")
    assert not any("seen" in caution for caution in stated.cautions)
    beaten = version_finding(board, MEASURE, "Version 2 of the judge", 1, baseline=None)
    assert beaten.headline.startswith("Version 2 of the judge agrees with raters: ")
    assert "It is worse than noise 0.5" in beaten.details[0]


def test_after_a_choice_on_these_items_the_gain_carries_no_p(noisy):
    golden, judges = noisy(0.5, 4.0)
    board = compare_table(golden, ASPECT, judges, Measure("spearman", "dataset"), resamples=300)
    withheld = without_p(board, 0, "a choice may rest on them")
    stated = version_finding(withheld, MEASURE, "Version 3 of the judge", 0, baseline=1, looks=4)
    assert stated.details[0].endswith(", no p.")
    assert stated.cautions[0] == "The held-out items were seen 4 times."
    assert "agrees best" not in stated.headline
    assert stated.details[1] == "No p: a choice may rest on them."
    assert np.isnan(withheld.pairwise.p_holm[0, 1])
    assert not np.isnan(board.pairwise.p_holm[0, 1])  # the table that was handed in stays


def test_the_planned_comparison_has_its_own_p_and_is_said_once(noisy: Any) -> None:
    golden, judges = noisy(0.5, 1.0, 4.0)
    board = compare_table(golden, ASPECT, judges, Measure("spearman", "dataset"), resamples=300)
    places = (board.rows[0].place, board.rows[1].place)
    planned = with_planned(board, *places)
    own = board.pairwise.pair(0, 1).p
    assert planned.pairwise.p_holm[0, 1] == planned.pairwise.p_holm[1, 0] == own
    assert planned.pairwise.p_holm[0, 2] == board.pairwise.p_holm[0, 2]
    assert [pair["planned"] for pair in planned.as_json()["pairs"]] == [True, False, False]
    stated = version_finding(planned, MEASURE, "Version 2 of the judge", places[0], baseline=places[1])
    assert stated.details[1].count(board.rows[1].name) == 0
    assert with_planned(board, 0, 7) is board


def test_no_p_beside_others_is_not_told_of_the_planned_comparison(noisy: Any, judge_of: Any) -> None:
    """Beside a twin there is no p; beside no criteria there is one, and the reader must not take the words for its."""
    golden, judges = noisy(0.5, 4.0)
    twin = judge_of("twin", list(judges[0].values))
    board = compare_table(golden, ASPECT, [*judges, twin], Measure("spearman", "dataset"), resamples=300)
    at = {row.name: row.place for row in board.rows}
    version, bare = at[judges[0].name], at[judges[1].name]
    planned = with_planned(board, version, bare)
    untested = without_p(planned, at["twin"], "they are one")
    stated = version_finding(untested, MEASURE, "Version 2 of the judge", version, baseline=bare)
    assert stated.details[0].startswith("Compared with no criteria") and stated.details[0].endswith("p < 0.001.")
    assert "No p against twin: they are one." in stated.details
