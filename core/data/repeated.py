"""Which items say what an earlier one says: one text under two ids, white space and case aside."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from core.records import Item

SHORTEST_TEXT = 20
"""Characters, source and context included, from which two items of the same texts are taken for one text twice."""


def repeated_texts(items: Iterable[tuple[int, Item | None]]) -> list[tuple[int, int]]:
    """Of `items` with their places: the place of each that repeats an earlier one, and that of the first to say it.

    Alike are target, source and context together.  Items are looked up by a number of 64 bits and what that finds is
    compared, so no second copy of a text is kept; time grows with the length of all texts.
    """
    first: dict[int, list[tuple[int, Item]]] = {}
    pairs: list[tuple[int, int]] = []
    for place, item in items:
        if item is None or len(item.source) + len(item.context) + len(item.target) < SHORTEST_TEXT or not item.target:
            continue
        known = first.setdefault(hash(tuple(map(_number, _texts(item)))), [])
        earlier = next((at for at, other in known if _same(item, other)), None)
        if earlier is None:
            known.append((place, item))
        else:
            pairs.append((place, earlier))
    return pairs


def _texts(item: Item) -> tuple[str, str, str]:
    return item.target, item.source, item.context


def _same(item: Item, other: Item) -> bool:
    return all(map(_alike, _texts(item), _texts(other)))


def _alike(text: str, other: str) -> bool:
    return text == other or _plain(text) == _plain(other)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


@lru_cache(maxsize=1_000)
def _number(text: str) -> int:
    """The same for texts that are alike; items of one source have its text in common."""
    return hash(_plain(text))
