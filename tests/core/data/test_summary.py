"""A golden set in one sentence."""

from __future__ import annotations

from core.data.summary import levels_used, sentence
from core.records import AspectLabels, GoldenSet, Item, Rating, Scale


def golden(*values: float | None, ratings: tuple[tuple[int, float], ...] = (), scale: Scale | None = None) -> GoldenSet:
    items = tuple(Item(f"i{k}", "t", f"s{k // 2}", f"m{k % 2}") for k in range(max(len(values), 4)))
    rated = tuple(Rating(f"i{k}", f"r{n}", "x", value) for n, (k, value) in enumerate(ratings))
    aspects = {"x": AspectLabels("x", scale or Scale(1, 5, 1), values)} if values else {}
    return GoldenSet("g", "source_target", items, aspects, rated)


def test_counts_people_and_levels() -> None:
    assert sentence(golden(1, 2, 2, 5)) == "4 items from 2 systems over 2 sources; labels use 3 of 5 levels."
    twice = golden(1.5, 2, 2, 2, ratings=tuple((k, value) for k in range(4) for value in (1.0, 2.0)))
    assert sentence(twice) == ("4 items from 2 systems over 2 sources, 2 people each; labels use 2 of 5 levels.")
    some = golden(1, None, None, 5, ratings=((0, 1.0), (3, 5.0), (3, 4.0)))
    assert "1 to 2 people each, 2 of them labelled" in sentence(some)


def test_what_has_no_labels_or_no_levels_says_none() -> None:
    assert sentence(golden()) == "4 items from 2 systems over 2 sources; no labels yet."
    assert levels_used(golden(1.5, 2, 3, 4)) == []  # means without the ratings they are of
    assert levels_used(golden(0.2, 0.5, 1, 0, scale=Scale(0, 1))) == []
    assert "level" not in sentence(golden(1, 2, 2, 5), labels=False)


def test_all_levels() -> None:
    assert sentence(golden(1, 2, 3, 4, 5)).endswith("labels use all 5 levels.")
