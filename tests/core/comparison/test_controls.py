"""Spoiled texts: each kind changes what it says, and the shares and intervals are those of a hand calculation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import t

from core.comparison.controls import Control, negative_controls, spoiled
from core.errors import GoldenError
from core.findings.weak_spots import controls_finding
from core.records import AspectLabels, GoldenSet, Interval, Item, Scale, Scored, Unscored, Verdict

N = 20
ITEMS = tuple(Item(f"i{k}", f"It sold {k} boats in 2019. The port was shut.", f"s{k // 2}") for k in range(N))
GOLDEN = GoldenSet("g", "single", ITEMS, {"q": AspectLabels("q", Scale(1, 5), tuple(1.0 + k % 5 for k in range(N)))})


def by_length(items: Sequence[Item]) -> list[Verdict]:
    return [Scored(item.item_id, float(len(item.target))) for item in items]


def test_each_kind_spoils_the_text_it_names_and_leaves_out_what_it_cannot_spoil() -> None:
    rng = np.random.default_rng(0)
    item, others = ITEMS[3], [ITEMS[8]]
    made = {kind: spoiled(kind, item, others, rng) for kind in ("another source's text", "the text repeated")}
    assert [each and each.target for each in made.values()] == [ITEMS[8].target, f"{item.target}\n\n{item.target}"]
    shorter = spoiled("a sentence deleted", item, others, rng)
    assert shorter is not None and shorter.target in ("It sold 3 boats in 2019.", "The port was shut.")
    changed = spoiled("numbers changed", item, others, rng)
    assert changed is not None and changed.target.startswith("It sold 3") and " 2019." not in changed.target
    for kind in ("another source's text", "numbers changed", "a sentence deleted"):
        assert spoiled(kind, Item("x", "No number here", "s"), [], rng) is None


def test_a_judge_by_length_prefers_what_is_longer_and_ties_count_half() -> None:
    found = {control.kind: control for control in negative_controls(GOLDEN, "q", by_length, range(N))}
    assert found["the text repeated"].preferred == found["numbers changed"].preferred == 1.0
    assert found["a sentence deleted"].preferred == 0.0
    same = negative_controls(GOLDEN, "q", lambda items: [Scored(item.item_id, 3.0) for item in items], range(N))
    assert {control.preferred for control in same} == {0.5}
    # labels 1 to 5, four each: the better half are 3, 4 and 5, two of every five items
    repeated = found["the text repeated"]
    assert repeated.n == 12 and repeated.interval is not None
    g, quantile = repeated.n_sources, t.ppf(0.975, repeated.n_sources - 1)
    assert repeated.interval.low == pytest.approx(g / (g + quantile**2))  # Wilson at a share of 1


def test_unscored_pairs_are_counted_and_few_sources_give_no_interval() -> None:
    def half(items: Sequence[Item]) -> list[Verdict]:
        return [
            Unscored(item.item_id, "refused") if "repeated" in item.item_id else Scored(item.item_id, 1.0)
            for item in items
        ]

    found = {control.kind: control for control in negative_controls(GOLDEN, "q", half, range(10))}
    assert (found["the text repeated"].preferred, found["the text repeated"].n_unscored) == (None, 6)
    assert found["numbers changed"].interval is None and "8 sources" in found["numbers changed"].reason
    with pytest.raises(GoldenError, match="No labelled item here was used"):
        negative_controls(GOLDEN, "q", half, [])


def test_no_kind_is_called_noticed_while_its_interval_holds_a_half() -> None:
    sure, unsure = Interval(0.2, 0.4, 0.95), Interval(0.0, 0.6, 0.95)
    kinds = ("numbers changed", 60, 20, 0, 0.3, sure), ("a sentence deleted", 8, 8, 3, 0.1, unsure)
    controls = [Control(*kind) for kind in kinds]
    said = controls_finding(controls)
    assert said.headline.startswith("The judge may not notice spoiled texts (a sentence deleted)")
    assert said.cautions == ("Left out: 3 pairs that couldn't be scored.",)
    assert "every kind" in controls_finding(controls[:1]).headline
