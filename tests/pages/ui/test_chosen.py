"""Choices are kept by their words, so no two may have the same."""

from __future__ import annotations

from pages.ui.chosen import distinct


def test_runs_of_one_second_are_told_apart() -> None:
    words = {"r1": "a round, 22 Nov 16:14:29", "r2": "a round, 22 Nov 16:14:29", "r3": "a round, 22 Nov 16:14:30"}
    assert distinct(words) == {
        "r1": "a round, 22 Nov 16:14:29 (r1)",
        "r2": "a round, 22 Nov 16:14:29 (r2)",
        "r3": "a round, 22 Nov 16:14:30",
    }
