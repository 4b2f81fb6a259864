"""Two texts word by word, whole or only the lines that changed."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from pages.ui import diff_view
from tests.pages.screen import run

OLD = "Start from 5.\nTake off 1 for length.\nTake off 2 for opinion.\nBe exact.\nEnd."


def drawn(old: str, new: str, *, changed_only: bool) -> str:
    """What stands on the screen, as Markdown."""

    def show(old: str, new: str, changed_only: bool) -> None:
        from core.word_diff import word_diff
        from pages.ui import diff_view

        diff_view.draw(word_diff(old, new), changed_only=changed_only)

    screen = run(AppTest.from_function(show, args=(old, new, changed_only)))
    return str(screen.markdown[0].value).replace("\\", "")


@pytest.mark.parametrize(
    ("new", "lines"),
    [
        (OLD.replace("2 for", "3 for"), ["⋯", "3", "⋯"]),
        (f"{OLD}\nAnd one more.\nAnd another.", ["⋯", "And one more", "And another"]),
        (OLD.replace("Start from 5.\n", ""), ["Start from 5", "⋯"]),
        (OLD.replace("length", "words").replace("Be exact", "Be short"), ["⋯", "words", "⋯", "short", "⋯"]),
    ],
)
def test_lines_without_a_change_are_left_out(new: str, lines: list[str]) -> None:
    shown = drawn(OLD, new, changed_only=True).split("  \n")
    assert len(shown) == len(lines)
    for line, part in zip(shown, lines, strict=True):
        assert part in line


def test_the_whole_text_stands_unless_only_changes_are_asked_for() -> None:
    assert "Start from 5" in drawn(OLD, OLD.replace("2 for", "3 for"), changed_only=False)
    assert diff_view.APART not in drawn(OLD, OLD.replace("2 for", "3 for"), changed_only=False)
