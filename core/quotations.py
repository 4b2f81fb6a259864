"""Where a judge's reply quotes the text it judged.  Pure: two texts in, the judged text cut into pieces out.

A quotation is what stands in quotation marks in the reply and also in the text, or a run of words that both share
even without marks.  Case, white space and the kind of quotation marks do not count; nothing is guessed beyond that.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

MIN_WORDS = 4
"""Words in a row that reply and text must share to count without quotation marks: fewer meet by chance."""

MIN_MARKED = 2
"""Letters that something in quotation marks must have to be looked for."""

LONGEST = 200_000
"""Characters of a text or a reply that are looked at; the rest of a longer text is one plain piece."""

_WORD = re.compile(r"\w+(?:['’]\w+)*")
_MARKED = re.compile(r"“([^“”]+)”|„([^„“”]+)[“”]|«([^«»]+)»|\"([^\"\n]+)\"|(?<!\w)['‘]([^'‘’\n]+)['’](?!\w)")


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of the judged text; `quoted` where the reply quotes it."""

    text: str
    quoted: bool


def quoted_pieces(text: str, reply: str) -> tuple[Piece, ...]:
    """`text` in pieces that spell it exactly, those quoted in `reply` marked; neighbours differ in `quoted`."""
    words = [(match.start(), match.end()) for match in _WORD.finditer(text, 0, min(len(text), LONGEST))]
    folded = [_folded(text[start:end]) for start, end in words]
    start_of_reply = reply[:LONGEST]
    runs = {MIN_WORDS: _runs([_folded(word) for word in _WORD.findall(start_of_reply)], MIN_WORDS)}
    for match in _MARKED.finditer(start_of_reply):
        quote = tuple(_folded(word) for word in _WORD.findall(next(part for part in match.groups() if part)))
        if len(quote) < MIN_WORDS and sum(map(len, quote)) >= MIN_MARKED:  # longer ones are runs already
            runs.setdefault(len(quote), set()).add(quote)
    return _cut(text, words, _marked(folded, runs))


def _folded(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().replace("’", "'")


def _runs(words: list[str], size: int) -> set[tuple[str, ...]]:
    return {tuple(words[k : k + size]) for k in range(len(words) - size + 1)}


def _marked(words: list[str], runs: dict[int, set[tuple[str, ...]]]) -> list[bool]:
    """(n_words,) whether a word stands in one of the runs, which are keyed by their length."""
    marked = [False] * len(words)
    for size, known in runs.items():
        for k in range(len(words) - size + 1 if known else 0):
            if tuple(words[k : k + size]) in known:
                marked[k : k + size] = [True] * size
    return marked


def _cut(text: str, words: list[tuple[int, int]], marked: list[bool]) -> tuple[Piece, ...]:
    """Marked neighbours make one piece with what stands between them."""
    pieces: list[Piece] = []
    done = k = 0
    while k < len(words):
        if not marked[k]:
            k += 1
            continue
        last = k
        while last + 1 < len(words) and marked[last + 1]:
            last += 1
        start, end = words[k][0], words[last][1]
        pieces += [Piece(text[done:start], False)] if start > done else []
        pieces.append(Piece(text[start:end], True))
        done, k = end, last + 1
    return (*pieces, Piece(text[done:], False)) if done < len(text) else tuple(pieces)
