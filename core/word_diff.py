"""Compare two texts word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Change = Literal["same", "removed", "added"]

_TOKEN = re.compile(r"\n+|[^\S\n]+|\w+|[^\w\s]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text: the same in both versions, removed, or added."""

    change: Change
    text: str


def word_diff(old: str, new: str) -> tuple[Piece, ...]:
    """Split two texts into pieces: "same" and "removed" pieces join to `old`, "same" and "added" pieces to `new`."""
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    pieces: list[Piece] = []
    for tag, a0, a1, b0, b1 in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag == "equal":
            pieces.append(Piece("same", "".join(a[a0:a1])))
        else:
            pieces += _both("".join(a[a0:a1]), "".join(b[b0:b1]))
    return tuple(_bridged(pieces))


def _bridged(pieces: list[Piece]) -> Iterator[Piece]:
    """Join changes separated only by white space, so that a changed phrase is one removal and one addition."""
    removed = added = ""
    for i, piece in enumerate(pieces):
        inside = 0 < i < len(pieces) - 1 and bool(removed or added)
        if piece.change == "removed":
            removed += piece.text
        elif piece.change == "added":
            added += piece.text
        elif inside and not piece.text.strip() and "\n" not in piece.text:
            removed, added = removed + piece.text, added + piece.text
        else:
            yield from _both(removed, added)
            removed = added = ""
            yield piece
    yield from _both(removed, added)


def _both(removed: str, added: str) -> Iterator[Piece]:
    if removed:
        yield Piece("removed", removed)
    if added:
        yield Piece("added", added)
