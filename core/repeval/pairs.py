"""Good and bad texts side by side: the only labels that the paper's projections see (003 section 4.2).

A pair is a text that people rated well and one that they rated badly.  What counts as well and badly is given by two
thresholds on the label, or by the best and worst share of the training labels.  No text occurs twice (003: "no repeated
data" for PCA), unless `reuse` allows it; then no *pair* occurs twice, as the paper has it for its SVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from core.errors import AspectError, UsageError
from core.records import FloatArray, IntArray

QUANTILE = 0.3


@dataclass(frozen=True, slots=True)
class PairRule:
    """How pairs are chosen.

    `n` pairs; labels of at least `good` and at most `bad`, or, where these are None, of the best and the worst
    `quantile` of the training labels.  `within_source` pairs texts of one source only: its best with its worst, its
    second best with its second worst, …, the widest gaps first; `good`, `bad` and `quantile` then only narrow it down
    when thresholds are given.
    """

    n: int = 20
    good: float | None = None
    bad: float | None = None
    quantile: float = QUANTILE
    within_source: bool = False
    reuse: bool = False

    def __post_init__(self) -> None:
        if self.n < 2:
            raise UsageError(f"At least 2 pairs are needed, {self.n} came.")
        if not 0 < self.quantile <= 0.5:
            raise UsageError(f"The best and worst share must lie between 0 and 0.5, {self.quantile:g} came.")
        if (self.good is None) != (self.bad is None):
            raise UsageError("Give both thresholds, good and bad, or neither.")
        if self.good is not None and self.bad is not None and self.good <= self.bad:
            raise UsageError(f"The threshold for good ({self.good:g}) must lie above that for bad ({self.bad:g}).")


@dataclass(frozen=True)
class Pairs:
    """(n,) positions of the good and the bad text of each pair; `asked` may be more than could be had.

    `good_from` and `bad_to` are the thresholds that were used (NaN for pairs within sources without thresholds).
    """

    good: IntArray
    bad: IntArray
    asked: int
    good_from: float
    bad_to: float

    @property
    def n(self) -> int:
        return len(self.good)

    def shortage(self) -> str:
        """In plain words, "" when there are as many pairs as asked for."""
        if self.n >= self.asked:
            return ""
        return f"{self.asked} pairs were asked for, the training labels gave {self.n}."


def choose_pairs(
    labels: FloatArray,
    positions: IntArray,
    texts: Sequence[str],
    source_codes: IntArray,
    *,
    rule: PairRule,
    generator: Generator,
) -> Pairs:
    """Pairs among the items at `positions`.

    `labels`, `texts` and `source_codes` are (n_items,) over the whole golden set; items with equal text count as one.
    AspectError when all labels are equal or fewer than 2 pairs can be had.
    """
    usable = _first_of_each_text(positions[~np.isnan(labels[positions])], texts, generator)
    values = labels[usable]
    if not usable.size or values.min() == values.max():
        only = f"all equal {values[0]:g}" if usable.size else "missing"
        raise AspectError(
            f"The {usable.size} training labels are {only}: there is no good and no bad text to pair. Label items on "
            "which people differ, or choose another aspect."
        )
    good_from, bad_to = thresholds(values, rule)
    if rule.within_source:
        good, bad = _within(usable, labels, source_codes, rule, generator)
    elif rule.reuse:
        good, bad = _reused(usable[values >= good_from], usable[values <= bad_to], rule.n, generator)
    else:
        good, bad = usable[values >= good_from], usable[values <= bad_to]
        count = min(rule.n, good.size, bad.size)
        good, bad = generator.permutation(good)[:count], generator.permutation(bad)[:count]
    if len(good) < 2:
        raise AspectError(
            f"Only {len(good)} pair(s) of a good and a bad text could be had from {usable.size} training labels "
            f"(good from {good_from:g}, bad up to {bad_to:g}); at least 2 are needed. Move the thresholds, pair across "
            "sources, or label more items."
        )
    return Pairs(good, bad, rule.n, good_from, bad_to)


def thresholds(values: FloatArray, rule: PairRule) -> tuple[float, float]:
    """(least good label, largest bad label): as given, or quantiles of `values`, which must not be all equal.

    Where ties make both quantiles one value v, the larger side of the labels keeps v: bad is what lies below v when v
    is the largest label or when more labels lie below it than above; else good is what lies above.
    """
    if rule.good is not None and rule.bad is not None:
        return rule.good, rule.bad
    bad, good = np.quantile(values, [rule.quantile, 1.0 - rule.quantile])
    if good == bad:
        below, above = values[values < bad], values[values > good]
        if below.size >= above.size:
            bad = below.max()
        else:
            good = above.min()
    return float(good), float(bad)


def _first_of_each_text(positions: IntArray, texts: Sequence[str], generator: Generator) -> IntArray:
    """One item for each distinct text, a random one of those that share it; ascending."""
    shuffled = generator.permutation(positions)
    kept = {texts[position]: position for position in shuffled.tolist()}
    return np.array(sorted(kept.values()), dtype=np.intp)


def _reused(good: IntArray, bad: IntArray, n: int, generator: Generator) -> tuple[IntArray, IntArray]:
    """Up to `n` distinct pairs; each text is used about equally often."""
    count = min(n, good.size * bad.size)
    if not count:
        return good[:0], bad[:0]
    code = generator.choice(good.size * bad.size, size=count, replace=False)
    return good[code // bad.size], bad[code % bad.size]


def _within(
    usable: IntArray, labels: FloatArray, source_codes: IntArray, rule: PairRule, generator: Generator
) -> tuple[IntArray, IntArray]:
    """Best with worst of each source, then the second ones, …; the `n` widest gaps, ties by lot."""
    pairs: list[tuple[int, int]] = []
    for source in np.unique(source_codes[usable]):
        own = generator.permutation(usable[source_codes[usable] == source])
        own = own[np.argsort(labels[own], kind="stable")]
        pairs += [(int(own[-1 - i]), int(own[i])) for i in range(len(own) // 2)]
    candidates = np.array(pairs, dtype=np.intp).reshape(-1, 2)
    high, low = labels[candidates[:, 0]], labels[candidates[:, 1]]
    fits = high > low
    if rule.good is not None and rule.bad is not None:
        fits &= (high >= rule.good) & (low <= rule.bad)
    candidates, gaps = candidates[fits], (high - low)[fits]
    order = np.lexsort((generator.random(len(candidates)), -gaps))[: rule.n]
    return candidates[order, 0], candidates[order, 1]
