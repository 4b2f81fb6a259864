"""Where a judge's reply quotes the text it judged.  Pure: two texts in, the judged text cut into pieces out.

A quotation is what stands in quotation marks in the reply and also in the text, or a run of words that both share
even without marks.  Case, white space and the kind of quotation marks do not count; nothing is guessed beyond that.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

MIN_WORDS = 4
"""Words in a row that reply and text must share to count without quotation marks: fewer meet by chance."""

MIN_MARKED = 2
"""Letters that something in quotation marks must have to be looked for."""

LONGEST = 200_000
"""Characters of a text or a reply that are looked at; the rest of a longer text is one plain piece."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_MARKED = re.compile(r"“([^“”]+)”|„([^„“”]+)[“”]|«([^«»]+)»|\"([^\"\n]+)\"|(?<!\w)['‘]([^'‘’\n]+)['’](?!\w)")


@dataclass(frozen=True, slots=True)
class QuotedPiece:
    """A run of the judged text; `quoted` where the reply quotes it."""

    text: str
    quoted: bool


def quoted_pieces(text: str, reply: str) -> tuple[QuotedPiece, ...]:
    """`text` in pieces that spell it exactly, those quoted in `reply` marked; neighbours differ in `quoted`."""
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
    pieces, done = list[QuotedPiece](), 0
    for quoted, run in groupby(zip(words, marked, strict=True), key=itemgetter(1)):
        if quoted:
            found = [word for word, _ in run]
            start, end = found[0].start(), found[-1].end()
            pieces += [QuotedPiece(text[done:start], False), QuotedPiece(text[start:end], True)]
            done = end
    return tuple(piece for piece in [*pieces, QuotedPiece(text[done:], False)] if piece.text)


def _folded_words(text: str) -> list[str]:
    return [_folded(word) for word in _WORD.findall(text)]


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
