"""Compare texts word by word, and find the quotations of a judge's reply in the judged text.

A quotation is text in quotation marks that is also in the judged text, or a run of words that both share without marks.
Case, white space and the kind of quotation marks do not count.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter
from typing import Literal

Change = Literal["same", "removed", "added", "quoted"]

_TOKEN = re.compile(r"\n+|[^\S\n]+|\w+|[^\w\s]+")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text that is in both versions, removed, added, or quoted by a reply."""

    change: Change
    text: str


def word_diff(old: str, new: str) -> tuple[Piece, ...]:
    """Compare two texts: "same" + "removed" pieces spell `old` exactly, "same" + "added" pieces spell `new`."""
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


# ── quotations ───────────────────────────────────────────────────────────────────────────────────────────────────

MIN_WORDS = 4
"""Words in a row that count as a quotation without marks; fewer match by chance."""

MIN_MARKED = 2
"""Fewest letters of a quotation in marks."""

LONGEST = 200_000
"""Characters of a text or reply that are compared; the rest of a longer text is one plain piece."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_MARKED = re.compile(r"“([^“”]+)”|„([^„“”]+)[“”]|«([^«»]+)»|\"([^\"\n]+)\"|(?<!\w)['‘]([^'‘’\n]+)['’](?!\w)")


def quoted_pieces(text: str, reply: str) -> tuple[Piece, ...]:
    """Split `text` into pieces that spell it exactly, "quoted" if they are in `reply`, else "same"."""
    words = list(_WORD.finditer(text, 0, min(len(text), LONGEST)))
    folded, said = [_folded(word[0]) for word in words], _folded_words(reply[:LONGEST])
    quotes = {tuple(said[k : k + MIN_WORDS]) for k in range(len(said) - MIN_WORDS + 1)}
    for match in _MARKED.finditer(reply[:LONGEST]):
        quote = tuple(_folded_words(next(filter(None, match.groups()))))
        if len(quote) < MIN_WORDS and sum(map(len, quote)) >= MIN_MARKED:  # longer ones are runs already
            quotes.add(quote)
    marked = [False] * len(words)
    for size in {len(quote) for quote in quotes}:
        for k in range(len(words) - size + 1):
            if tuple(folded[k : k + size]) in quotes:
                marked[k : k + size] = [True] * size
    pieces, done = list[Piece](), 0
    for quoted, run in groupby(zip(words, marked, strict=True), key=itemgetter(1)):
        if quoted:
            found = [word for word, _ in run]
            start, end = found[0].start(), found[-1].end()
            pieces += [Piece("same", text[done:start]), Piece("quoted", text[start:end])]
            done = end
    return tuple(piece for piece in [*pieces, Piece("same", text[done:])] if piece.text)


def _folded_words(text: str) -> list[str]:
    return [_folded(word) for word in _WORD.findall(text)]


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
