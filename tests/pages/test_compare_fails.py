"""Where it fails, on Compare: the sentence, the picture, and what is said where nothing can be."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pages.screen import grids, open_screen, texts
from tests.pages.test_compare import SCREEN, Place, choose_section, shelf

__all__ = ["shelf"]


def test_nothing_is_claimed_of_a_judge_that_is_as_good_everywhere(shelf: Place) -> None:
    shelf.add_judge("good", 0.6)
    screen = choose_section(open_screen(SCREEN, **shelf.ids), "fails")
    assert not screen.exception
    page_text = texts(screen)
    assert "errs more" not in page_text
    assert "Holm" in page_text and "People's labels: mean" in page_text.replace("\\", "")
    parts = grids(screen)[0]
    assert {"part", "alignment", "interval", "excess over the others", "p"} <= set(parts.columns)
    assert np.isfinite(parts["alignment"].astype(float)).any()


@pytest.mark.parametrize("seen", [80])
def test_a_judge_without_unseen_items_is_told_in_words(shelf: Place, seen: int) -> None:
    shelf.add_judge("fitted", 0.6, seen=tuple(range(seen)))
    screen = choose_section(open_screen(SCREEN, **shelf.ids), "fails")
    assert not screen.exception
    assert "no labelled item that it has not seen" in texts(screen)
