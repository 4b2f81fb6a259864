"""The advice on numbers of labels: its thresholds, its figures, its sentences."""

from __future__ import annotations

import pytest

from core.data.split import ENOUGH, MEASURED, TO_STACK, few_held_out, few_labels, too_few_to_stack


@pytest.mark.parametrize(
    ("n", "known"), [(20, "(.495 and .500)"), (TO_STACK - 1, "no better than"), (TO_STACK, "44 % of runs on 50 labels")]
)
def test_few_labels_are_told_with_what_was_measured(n: int, known: str) -> None:
    plain, refining = few_labels(n), few_labels(n, refining=True)
    assert plain.startswith(f"{n} calibration labels: 100 are advised (200 in all")
    assert known in plain
    assert refining.startswith(plain)
    assert refining.endswith("from .520 to .495.")


def test_enough_labels_need_no_words() -> None:
    assert [few_labels(ENOUGH, refining=True), few_held_out(ENOUGH), too_few_to_stack(TO_STACK)] == ["", "", ""]
    assert "49 labels are left to fit on" in too_few_to_stack(TO_STACK - 1)


def test_the_thresholds_are_among_what_was_measured() -> None:
    assert {TO_STACK, ENOUGH} <= {one.n for one in MEASURED}
