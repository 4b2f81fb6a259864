"""Overlap with what the target was written from: plain shares of words and of word pairs, with no data files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from core.fusion.assistants.base import Assistant, Need, item_by_item, texts_of
from core.judging.offline.text import cut
from core.records import Item


def overlap(name: str, against: Literal["source", "context"] = "source", *, pairs: bool = False) -> Assistant:
    """The share of the target's words (`pairs`: of its pairs of neighbouring words) that occur in `against`.

    Words are compared by their stems; each occurrence in the target counts.  A target of one word has no pair and is
    Unscored there.
    """
    needs: frozenset[Need] = frozenset({against})
    return Assistant(
        name=name,
        measures=f"Share of the target's {'pairs of neighbouring words' if pairs else 'words'} found in the {against}.",
        low=0.0,
        high=1.0,
        needs=needs,
        cost="free; about a second for 1,000 items",
        scorer=item_by_item(needs, lambda: _measure(against, 2 if pairs else 1)),
    )


def _measure(against: Literal["source", "context"], size: int) -> Callable[[Item], float | str]:
    known: dict[str, frozenset[tuple[str, ...]]] = {}

    def measure(item: Item) -> float | str:
        text = texts_of(item, against)[0]
        if text not in known:
            known[text] = frozenset(_runs(cut(text).stems, size))
        written = _runs(cut(item.target).stems, size)
        if not written:
            return f"The target holds fewer than {size} words."
        return sum(run in known[text] for run in written) / len(written)

    return measure


def _runs(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + size]) for start in range(len(words) - size + 1)]
