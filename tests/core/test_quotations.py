"""Quotations: what stands in marks or in a run of words is found, chance is not, and no letter of the text is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.word_diff import MIN_WORDS, Piece, quoted_pieces

TEXT = "The mayor said that the old bridge will stay open. It's closed on Sundays, she added."


def quoted(text: str, reply: str) -> list[str]:
    return [piece.text for piece in quoted_pieces(text, reply) if piece.change == "quoted"]


@pytest.mark.parametrize("marks", ["“{}”", '"{}"', "«{}»", "„{}“", "'{}'", "‘{}’"])
def test_what_stands_in_marks_is_found_whatever_the_marks(marks: str) -> None:
    assert quoted(TEXT, f"It says {marks.format('Old Bridge')} but not where.") == ["old bridge"]


def test_a_run_of_words_is_found_without_marks() -> None:
    four, three = "the old bridge will", "the old bridge"
    assert len(four.split()) == MIN_WORDS
    assert quoted(TEXT, f"I noticed that {four} do something.") == ["that the old bridge will"]
    assert quoted(TEXT, f"I noticed {three} there.") == []


def test_nothing_to_quote() -> None:
    assert quoted_pieces("", "anything") == ()
    assert quoted_pieces("A text.", "") == (Piece("same", "A text."),)
    assert quoted_pieces("A text.", '"" “ ” "…"') == (Piece("same", "A text."),)


@given(st.text(), st.text())
def test_the_pieces_spell_the_text(text: str, reply: str) -> None:
    pieces = quoted_pieces(text, reply)
    assert "".join(piece.text for piece in pieces) == text
    assert all(one.change != other.change for one, other in pairwise(pieces))
