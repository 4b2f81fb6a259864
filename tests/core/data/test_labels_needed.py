"""The advice on numbers of labels."""

from __future__ import annotations

import pytest

from core.data.split import ENOUGH, TO_STACK, few_held_out, few_labels, too_few_to_stack


@pytest.mark.parametrize("n", [20, TO_STACK, ENOUGH - 1])
def test_few_labels_are_told(n: int) -> None:
    for words in (few_labels(n), few_labels(n, refining=True), few_held_out(n)):
        assert words.startswith(f"Only {n} ")


def test_enough_labels_need_no_words() -> None:
    assert [few_labels(ENOUGH, refining=True), few_held_out(ENOUGH), too_few_to_stack(TO_STACK)] == ["", "", ""]
    assert "49 labels are left to fit on" in too_few_to_stack(TO_STACK - 1)
