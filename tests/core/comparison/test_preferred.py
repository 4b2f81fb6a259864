"""Preferences on pairs of which some do not say which systems wrote them."""

from __future__ import annotations

import numpy as np

from core.comparison.measures import preferred
from core.data.reshape import PREFERENCES
from core.records import AspectLabels, GoldenSet, Item


def pairs(systems: list[str], labels: list[float]) -> GoldenSet:
    items = tuple(Item(f"p{k}", f"First {k}", f"s{k}", name, "", f"Second {k}") for k, name in enumerate(systems))
    return GoldenSet("pairs", "pair", items, {"preference": AspectLabels("preference", PREFERENCES, tuple(labels))})


def test_pairs_of_unknown_systems_count_for_the_agreement_and_for_no_strength() -> None:
    labels = [3.0, 1.0, 3.0, 2.0] * 6
    known, unknown = ["old vs new"] * 24, ["", "only one"] * 12
    scores = np.array(labels * 2)
    both = preferred(pairs(known + unknown, labels * 2), "preference", scores)
    alone = preferred(pairs(known, labels), "preference")
    assert both.by_people == alone.by_people
    assert {system.system for system in both.by_people.systems} == {"old", "new"}
    assert both.agreement is not None
    assert both.agreement.n == 48
    assert both.n_unknown == 24
    assert both.caution == "The strengths exclude 24 pairs without two known systems."
    assert alone.caution == ""


def test_pairs_of_a_system_beside_itself_count_for_no_strength_and_are_told() -> None:
    labels = [3.0, 1.0, 3.0, 2.0] * 6
    alone = preferred(pairs(["old vs new"] * 24, labels), "preference")
    both = preferred(
        pairs(["old vs new"] * 24 + ["old vs old"], [*labels, 3.0]), "preference", np.array([*labels, 3.0])
    )
    assert both.by_people == alone.by_people
    assert both.agreement is not None and both.agreement.n == 25
    assert both.caution == "The strengths exclude 1 pair of texts from the same system."
    assert both.as_json()["n_itself"] == 1
