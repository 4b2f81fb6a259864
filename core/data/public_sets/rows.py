"""What the converters share: ids of sources and items, means of ratings, and what a conversion gives back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from core.data.public_sets.reading import Fields, Number

Row = dict[str, Any]
Parts = Mapping[str, Sequence[Fields]]
"""Role of a downloaded file (``"texts"``, ``"ratings"``) → its rows."""


@dataclass(frozen=True)
class Converted:
    """Golden rows, and what a person should know about how they came about."""

    rows: list[Row]
    notes: tuple[str, ...] = ()


Converter = Callable[[Parts], Converted]


class Ids:
    """Ids in order of first appearance: ``se000`` for a source, ``se000-m11`` for an item of it.

    A system that has several texts for one source gets ``-2``, ``-3`` … behind the later ones.
    """

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._sources: dict[str, str] = {}
        self._taken: Counter[str] = Counter()

    def source(self, key: str) -> str:
        """The source id of `key`, whatever names the source in its file."""
        return self._sources.setdefault(key, f"{self._prefix}{len(self._sources):03d}")

    def item(self, source_id: str, system_id: str | None = None) -> str:
        """A new item id."""
        plain = f"{source_id}-{system_id}" if system_id else source_id
        self._taken[plain] += 1
        return plain if self._taken[plain] == 1 else f"{plain}-{self._taken[plain]}"


class Raters:
    """Names of raters → ``A1``, ``A2`` … in order of first appearance: golden files carry no names of people."""

    def __init__(self, prefix: str = "A") -> None:
        self._prefix = prefix
        self._known: dict[str, str] = {}

    def rater(self, name: str) -> str:
        """The rater's id."""
        return self._known.setdefault(name, f"{self._prefix}{len(self._known) + 1}")


def slug(name: str) -> str:
    """``"Nucleus Decoding (p = 0.3)"`` → ``"nucleus-decoding-p-0.3"``."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-") or "unnamed"


def mean(values: Sequence[Number]) -> float:
    """The mean, at ten digits: sums in another order give the same file."""
    return round(fmean(values), 10)
