"""In which order calibration items are scored: whole sources by chance, or for racing spread over the labels."""

from __future__ import annotations

import math

import numpy as np

from core.calibration.calibration_settings import CalibrationSettings
from core.records import FloatArray, IntArray
from core.stats import LabelledItems

CHUNK = 4
"""Items of a source that racing takes at once: its lowest and its highest label, and two from between."""
LEAST_SPREAD, LEAST_SINGLE = 16, 12
"""Items at the first rung, of chunks and of single items: fewer make a correlation that says too little."""
LEAST_WHOLE, LEAST_SOURCES = 24, 4
"""Items at the first rung of whole sources, and so many sources."""
ENOUGH_ITEMS = 200
"""With fewer items in sources a race goes over whole sources: spread chunks were measured on 210 items and more."""


class Order:
    """Items in their order, in chunks that stay together and end at `ends`.

    `first` items are the fewest to rank on where labels are `spread`, None for whole sources.
    """

    def __init__(self, items: IntArray, last: np.ndarray, first: int | None = None) -> None:
        self.items: IntArray = items.astype(np.intp)
        self._ends = np.flatnonzero(last) + 1
        self.ends: tuple[int, ...] = tuple(self._ends.tolist())
        self.first = first

    @classmethod
    def whole(cls, sources: IntArray, seed: int) -> Order:
        """Whole sources, shuffled once with the run's seed."""
        codes = np.unique(sources)
        place = np.empty(int(codes.max()) + 1, dtype=np.intp)
        place[np.random.default_rng([seed, 2]).permutation(codes)] = np.arange(len(codes))
        items = np.argsort(place[sources], kind="stable")
        return cls(items, _changes(sources[items]))

    @classmethod
    def by_source(cls, labels: FloatArray, sources: IntArray, seed: int) -> Order:
        """Of each source, in shuffled order, `CHUNK` items spread from its lowest label to its highest; then the next.

        Sources whose labels are all equal, which no coefficient is of, come last.
        """
        rng = np.random.default_rng([seed, 2])
        place = _shuffled(sources, rng)
        ranked = np.lexsort((rng.random(labels.size), labels, place))
        sizes = np.bincount(place)
        turns = {int(size): _turns(int(size)) for size in np.unique(sizes)}
        turn = np.concatenate([turns[int(size)] for size in sizes])
        starts = np.cumsum(sizes) - sizes
        low, high = labels[ranked[starts]], labels[ranked[starts + sizes - 1]]
        turn = turn + np.repeat(np.where(low == high, sizes.max(), 0), sizes)
        order = np.argsort(turn, kind="stable")
        return cls(ranked[order], _changes(turn[order]) | _changes(place[ranked[order]]), LEAST_SPREAD)

    @classmethod
    def over_all(cls, labels: FloatArray, seed: int) -> Order:
        """Single items such that every beginning is spread over all labels (van der Corput, turned by chance)."""
        rng, n = np.random.default_rng([seed, 2]), labels.size
        ranked = np.lexsort((rng.random(n), labels))
        bits = max(1, (n - 1).bit_length())
        count = np.arange(2**bits)
        mirrored = sum(((count >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))
        places = (np.asarray(mirrored)[np.asarray(mirrored) < n] + int(rng.integers(n))) % n
        return cls(ranked[places], np.ones(n, dtype=np.bool_), LEAST_SINGLE)

    def near(self, items: float) -> int:
        """The end of the chunk that ends nearest to so many items, of all when there are fewer."""
        return self.ends[int(np.argmin(np.abs(self._ends - items)))]

    def up_to(self, share: float) -> int:
        """How many items the first `share` of whole sources hold, at least LEAST_WHOLE from LEAST_SOURCES of them."""
        n_chunks = max(math.ceil(share * len(self.ends)), min(LEAST_SOURCES, len(self.ends)))
        items = self.ends[n_chunks - 1]
        return next((end for end in self.ends if end >= max(items, LEAST_WHOLE)), self.ends[-1])


def racing_order(items: LabelledItems, settings: CalibrationSettings, share: float = 1.0) -> Order:
    """Spread over the labels where candidates race over all items.

    Whole sources by chance for `full`, at system level, for few items in sources, and where the budget ends before the
    items do (`share` < 1): then what is told of the winner rests on these items, and picked ones would flatter it.
    """
    level = settings.level or items.usual_level
    if settings.revisit == "full" or level == "system" or share < 1.0:
        return Order.whole(items.sources, settings.seed)
    if level == "dataset":
        return Order.over_all(items.labels, settings.seed)
    if items.n < ENOUGH_ITEMS:
        return Order.whole(items.sources, settings.seed)
    return Order.by_source(items.labels, items.sources, settings.seed)


def _shuffled(sources: IntArray, rng: np.random.Generator) -> IntArray:
    """(n,) place of each item's source, 0..n_sources - 1, by chance."""
    _, codes = np.unique(sources, return_inverse=True)
    return np.asarray(rng.permutation(int(codes.max()) + 1)[codes], dtype=np.intp)


def _changes(codes: IntArray) -> np.ndarray:
    """(n,), whether the next code is another one; true of the last."""
    return np.append(codes[1:] != codes[:-1], True)


def _turns(size: int) -> IntArray:
    """(size,) in which turn the items of a source come, from the lowest label to the highest."""
    turns, left = np.zeros(size, dtype=np.intp), np.arange(size)
    for turn in range(-(-size // CHUNK)):
        taken = np.unique(np.rint(np.linspace(0, left.size - 1, min(CHUNK, left.size))).astype(np.intp))
        turns[left[taken]] = turn
        left = np.delete(left, taken)
    return turns
