"""A judge examined: planted weaknesses are found, biases told apart from taste, bad input told in words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.comparison.examination import Examination, examine_judge
from core.findings.weak_spots import bias_finding, examination_finding
from core.records import AspectLabels, GoldenSet, Item, JudgeScores, Rating, Scale, canonical_json

ASPECT = "quality"
SYSTEMS = ("gpt-4o", "claude-3", "llama-2", "t5")
SOURCES = 50


class Drawn:
    """Labels of 50 sources by 4 systems, texts of 5 to 44 words, two raters."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.rng, n = rng, SOURCES * len(SYSTEMS)
        self.words = rng.integers(5, 45, n)
        self.system = np.tile(np.arange(len(SYSTEMS)), SOURCES)
        self.quality = rng.normal(0, 1, n)

    def golden(self, labels: Any = None, **more: Any) -> GoldenSet:
        values = self.quality if labels is None else labels
        ratings = np.clip(np.round(3 + values + self.rng.normal(0, 0.4, (2, values.size))), 1, 5)
        items = tuple(
            Item(f"i{k}", "word " * int(size), f"doc{k // len(SYSTEMS)}", SYSTEMS[system])
            for k, (size, system) in enumerate(zip(self.words, self.system, strict=True))
        )
        given = tuple(
            Rating(items[k].item_id, f"r{rater + 1}", ASPECT, float(value))
            for rater, row in enumerate(ratings)
            for k, value in enumerate(row)
        )
        labelled = AspectLabels(ASPECT, Scale(1, 5, 1.0), tuple(ratings.mean(axis=0).tolist()))
        return replace(GoldenSet("drawn", "single", items, {ASPECT: labelled}, given), **more)

    def judge(self, values: Any, name: str = "a judge", **more: Any) -> JudgeScores:
        return JudgeScores(name, "imported", ASPECT, np.clip(3 + np.asarray(values, dtype=float), 1, 5), **more)


def bias(examination: Examination, kind: str) -> Any:
    return next(own for own in examination.biases if own.kind == kind)


def test_a_system_that_it_cannot_judge_is_the_worst_part():
    drawn = Drawn()
    lost = drawn.system == 2
    noise = drawn.rng.normal(0, 1, lost.size)
    examination = examine_judge(drawn.golden(), ASPECT, drawn.judge(np.where(lost, noise, drawn.quality + 0.3 * noise)))
    assert [part.name for part in examination.worst] == ["llama-2"]
    worst = examination.worst[0]
    assert worst.interval is not None and worst.interval.low > 0 and worst.p is not None and worst.p < 0.05
    assert "llama-2" in examination_finding(examination).headline
    assert worst.alignment.n == SOURCES
    assert worst.error is not None and worst.expected is not None and worst.error > 1.2 * worst.expected
    others = [part for part in examination.parts if part.division == "system" and part.name != "llama-2"]
    assert worst.difference == pytest.approx(
        worst.error - worst.expected - np.mean([(part.error or 0.0) - (part.expected or 0.0) for part in others])
    )


def test_following_length_beyond_people_is_told():
    drawn = Drawn(2)
    length = (drawn.words - drawn.words.mean()) / drawn.words.std()
    golden, judge = drawn.golden(), drawn.judge(0.5 * drawn.quality + 0.8 * length)
    examination = examine_judge(golden, ASPECT, judge)
    found = bias(examination, "length")
    assert found.shown and "favours longer texts" in bias_finding(found).headline
    same = examine_judge(
        drawn.golden(0.6 * drawn.quality + 0.8 * length), ASPECT, drawn.judge(0.6 * drawn.quality + 0.8 * length)
    )
    assert not bias(same, "length").shown  # people like long texts as much


def test_its_own_family_is_favoured_only_beyond_people():
    drawn = Drawn(4)
    own = (drawn.system == 0) * 0.9
    noise = drawn.rng.normal(0, 0.5, drawn.words.size)
    favoured = bias(
        examine_judge(drawn.golden(), ASPECT, drawn.judge(drawn.quality + own + noise), model="openai:gpt-4o"),
        "own family",
    )
    assert favoured.shown and favoured.name == "GPT" and favoured.difference > 0.5
    harsh = bias(examine_judge(drawn.golden(), ASPECT, drawn.judge(drawn.quality - own + noise, "gpt-4")), "own family")
    assert not harsh.shown
    unknown = bias(examine_judge(drawn.golden(), ASPECT, drawn.judge(drawn.quality, "offline")), "own family")
    assert unknown.difference is None and "model family is unknown" in unknown.reason


def test_every_p_counts_every_test_and_intervals_are_widened():
    drawn = Drawn(5)
    examination = examine_judge(drawn.golden(), ASPECT, drawn.judge(drawn.quality + drawn.rng.normal(0, 1, 200)))
    tested = [part for part in examination.parts if part.p is not None]
    assert examination.n_tests == len(tested) + sum(own.p is not None for own in examination.biases)
    for part in tested:
        assert part.interval is not None and f"{examination.n_tests} tests" in part.interval.method
        assert part.interval.low < (part.difference or 0.0) < part.interval.high


def _bare(golden: GoldenSet, **more: Any) -> GoldenSet:
    return replace(golden, items=tuple(replace(item, **more) for item in golden.items))


def _bare_of(drawn: Drawn, broken: str) -> tuple[GoldenSet, JudgeScores]:
    golden, judge = drawn.golden(), drawn.judge(drawn.quality)
    match broken:
        case "no systems":
            golden = _bare(golden, system_id="")
        case "no ratings":
            golden = replace(golden, ratings=())
        case "constant judge":
            judge = drawn.judge(np.zeros(200))
        case _:
            judge = drawn.judge(drawn.quality, seen=tuple(range(200)))
    return golden, judge


@pytest.mark.parametrize(
    ("broken", "left_out"),
    [("no systems", "system"), ("no ratings", ""), ("constant judge", ""), ("nothing unseen", "")],
)
def test_bad_input_is_told_and_claims_nothing(broken, left_out):
    golden, judge = _bare_of(Drawn(8), broken)
    examination = examine_judge(golden, ASPECT, judge)
    canonical_json(examination.as_json())
    assert not examination.worst and not any(one.shown for one in examination.biases)
    assert examination_finding(examination).cautions == ()
    assert not left_out or left_out in examination.left_out


def test_a_judge_of_pairs_that_likes_long_texts_and_was_asked_one_way_round():
    rng = np.random.default_rng(9)
    n = 160
    items = tuple(
        Item(f"i{k}", "word " * int(a), f"doc{k // 2}", "", context="word " * int(b))
        for k, (a, b) in enumerate(rng.integers(4, 30, (n, 2)))
    )
    labels = rng.integers(0, 2, n).astype(float)
    golden = GoldenSet("pairs", "pair", items, {ASPECT: AspectLabels(ASPECT, Scale(0, 1, 0.5), tuple(labels.tolist()))})
    longer = np.array([float(len(item.context) > len(item.target)) for item in items])
    found = examine_judge(golden, ASPECT, JudgeScores("j", "imported", ASPECT, longer))
    assert bias(found, "position").reason == "no pair was judged in both orders"
    verbose = bias(found, "length")
    assert verbose.shown and verbose.difference > 0.5


def asked_both_ways(leaning: float, n_sources: int = 20) -> tuple[GoldenSet, JudgeScores]:
    """Pairs of a judge whose verdict is a taste for A or B plus `leaning` towards what stands first."""
    rng = np.random.default_rng(5)
    n = 4 * n_sources
    items = tuple(Item(f"p{k}", "a" * 40, f"s{k % n_sources}", context="b" * 40) for k in range(n))
    labels = AspectLabels(ASPECT, Scale(1, 3, 1.0), tuple(rng.integers(1, 4, n).astype(float).tolist()))
    taste = rng.normal(size=n)
    first, turned = 2.0 + np.sign(taste - leaning), 2.0 + np.sign(taste + leaning)
    golden = GoldenSet("pairs", "pair", items, {ASPECT: labels})
    return golden, JudgeScores("j", "imported", ASPECT, (first + turned) / 2.0, turned=turned)


def test_position_is_told_by_order_of_pairs_asked_both_ways() -> None:
    golden, judge = asked_both_ways(0.5)
    assert judge.turned is not None
    place = bias(examine_judge(golden, ASPECT, judge), "position")
    # the verdict changes exactly where the taste is weaker than the leaning, and then the first place has it twice
    changed = float((judge.turned != 2.0 * judge.values - judge.turned).mean())
    assert place.flips == pytest.approx(changed)
    assert place.difference == pytest.approx(-changed / 2.0)
    assert place.shown and "first" in bias_finding(place).headline


def test_a_judge_that_always_takes_the_first_place_is_told() -> None:
    golden, judge = asked_both_ways(99.0)
    place = bias(examine_judge(golden, ASPECT, judge), "position")
    assert (place.difference, place.flips) == (-0.5, 1.0)
    # twenty sources that all say 1: 0.025^(1/20) = 0.832, of which one half is fair
    assert (place.interval.low, place.interval.high) == (-0.5, pytest.approx(0.5 - 0.8316, abs=1e-4))
    assert place.shown
    fair = bias(examine_judge(golden, ASPECT, asked_both_ways(0.0)[1]), "position")
    assert fair.difference == 0.0 and not fair.shown
