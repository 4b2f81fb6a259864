"""The word diff loses nothing and marks what changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.wording import Piece, word_diff

texts = st.text(alphabet="ab .\n", max_size=60)


@given(texts, texts)
def test_the_pieces_spell_both_versions(old: str, new: str) -> None:
    pieces = word_diff(old, new)
    assert "".join(p.text for p in pieces if p.change != "added") == old
    assert "".join(p.text for p in pieces if p.change != "removed") == new


@given(texts)
def test_equal_texts_have_no_changes(text: str) -> None:
    assert all(piece.change == "same" for piece in word_diff(text, text))


def test_a_replaced_phrase_is_one_removal_and_one_addition() -> None:
    assert word_diff("judge the short summary well", "judge the long text well") == (
        Piece("same", "judge the "),
        Piece("removed", "short summary"),
        Piece("added", "long text"),
        Piece("same", " well"),
    )
