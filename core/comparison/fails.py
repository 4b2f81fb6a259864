"""Where a judge fails: by how far raters disagree, by its own score, by system and by length.

On labelled items that it scored and has not seen.  Each part shows the alignment inside it and the judge's mean error
in points of the labels' scale.  Only errors are tested: alignment inside a part falls with the range of the part
(`core.stats.slices`).  A part is called worse only where its error, compared with that of an equally good judge,
exceeds that of the other parts of its division.  That has to stay beyond chance after Holm's correction over every test
of the examination (`core.comparison.examination`); its interval is widened for as many looks.

Parts by disagreement of raters are shown and not tested.  Where raters disagree, their mean is a noisier label, so any
judge agrees less well there.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from core.errors import AspectError
from core.json_form import json_fields
from core.records import Alignment, FloatArray, GoldenSet, IntArray, Interval, Item, Measure
from core.stats import LabelledItems, RaterTable, claim, rater_table
from core.stats.claims import HALF_ALPHA
from core.stats.slices import (
    LEAST_EXCESS,
    UNTESTED,
    Contrast,
    error_contrasts,
    even_errors,
    part_alignments,
    stretches,
)
from core.texts import is_unspaced, text_length

Division = Literal["disagreement", "score", "system", "length"]
MOST_SYSTEMS = 40
"""Systems that are looked at, those with most items first: every one more takes power from all."""


@dataclass(frozen=True)
class Part:
    """Some items of a `division`, `name` says which: the judge's `alignment` there, of `n_sources` sources.

    `error` is the mean |label − expected label| in points of the scale, `expected` what it would be if the judge were
    equally good everywhere.  `difference` is the excess error here minus that of the division's other parts, `interval`
    widened and `p` corrected for all that was looked at.  None without a test.
    """

    division: Division
    name: str
    alignment: Alignment
    n_sources: int
    error: float | None = None
    expected: float | None = None
    difference: float | None = None
    interval: Interval | None = None
    p: float | None = None

    @property
    def worse(self) -> bool:
        """Whether the judge errs more here than in the other parts, beyond chance and by more than a trifle."""
        larger = claim(self.difference, self.interval, self.p, alpha=HALF_ALPHA) == "higher"
        least = LEAST_EXCESS * (self.expected or 0.0)
        return larger and self.interval is not None and self.interval.low > least

    def as_json(self) -> dict[str, Any]:
        return json_fields(self) | {"worse": self.worse}


class Subgroups(NamedTuple):
    """The parts of all divisions with the contrast of each, and why there is no division, by its name."""

    parts: tuple[Part, ...]
    contrasts: tuple[Contrast, ...]
    left_out: dict[Division, str]


@dataclass(frozen=True, eq=False)
class ExaminedItems:
    """Items of `golden` at `positions` (n,), all labelled and scored; `scores` turned so that more is better."""

    golden: GoldenSet
    aspect: str
    positions: IntArray
    scores: FloatArray
    given: FloatArray
    """(n,) scores as the judge gave them."""
    turned: FloatArray | None = None
    """(n,) what pairs were given the other way round (`core.records.Scored`), NaN where unknown."""

    @cached_property
    def items(self) -> tuple[Item, ...]:
        return tuple(self.golden.items[int(k)] for k in self.positions)

    @cached_property
    def ratings(self) -> RaterTable | None:
        """Single ratings of the items; None where each has one label only."""
        try:
            return rater_table(self.golden, self.aspect).at(self.positions)
        except AspectError:
            return None

    @cached_property
    def labelled(self) -> LabelledItems:
        return LabelledItems.of(self.golden, self.aspect, self.positions)


class _Divided(NamedTuple):
    """(n,) codes of parts, −1 for none, and the names of the parts; or why there are none."""

    codes: IntArray
    names: tuple[str, ...]
    reason: str = ""


def examine_parts(examined: ExaminedItems, measure: Measure) -> Subgroups:
    """Every division of the items; the tests are not yet corrected for their number."""
    divided: dict[Division, _Divided] = {
        "disagreement": _by_disagreement(examined),
        "score": _by_number(examined.given, ""),
        "system": _by_system(examined),
        "length": _by_length(examined),
    }
    errors = even_errors(examined.scores, examined.labelled.labels)
    parts: list[Part] = []
    contrasts: list[Contrast] = []
    left_out: dict[Division, str] = {}
    for division, (codes, names, reason) in divided.items():
        if reason or len(names) < 2:
            left_out[division] = reason or "all items are alike in this"
            continue
        sources = examined.labelled.sources
        alignments = part_alignments(examined.scores, examined.labelled, codes, measure)
        for k, (name, alignment) in enumerate(zip(names, alignments, strict=True)):
            inside = codes == k
            means = [None, None] if errors is None else [float(side[inside].mean()) for side in errors]
            n_sources = int(np.unique(sources[inside]).size)
            parts.append(Part(division, name, replace(alignment, n_unscored=0), n_sources, *means))
        if errors is None or division == "disagreement":
            contrasts += [UNTESTED] * len(names)
        else:
            contrasts += error_contrasts(errors, sources, codes)
    return Subgroups(tuple(parts), tuple(contrasts), left_out)


def _by_disagreement(examined: ExaminedItems) -> _Divided:
    """By the standard deviation of the ratings of an item, of those that two people or more rated."""
    table = examined.ratings
    if table is None:
        return _Divided(np.empty(0, dtype=np.intp), (), "every item has one label only")
    twice = table.rated_twice
    spread = np.full(examined.positions.size, np.nan)
    if not twice.size:
        return _Divided(np.empty(0, dtype=np.intp), (), "no item was rated by two raters")
    spread[twice] = np.nanstd(table.values[:, twice], axis=0)
    return _by_number(np.round(spread, 9), " points (SD)")


def _by_number(values: FloatArray, unit: str) -> _Divided:
    """Stretches of rising `values`, named by their ends."""
    codes = stretches(values)
    names = [_range_name(values[codes == k], unit) for k in range(int(codes.max(initial=-1)) + 1)]
    return _Divided(codes, tuple(names))


def _range_name(values: FloatArray, unit: str) -> str:
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"


def _by_system(examined: ExaminedItems) -> _Divided:
    named = [item.system_id for item in examined.items]
    counts = Counter(name for name in named if name)
    if len(counts) < 2:
        why = "only one system is named" if counts else "the items do not say which system wrote them"
        return _Divided(np.empty(0, dtype=np.intp), (), why)
    names = tuple(sorted(name for name, _ in counts.most_common(MOST_SYSTEMS)))
    places = {name: k for k, name in enumerate(names)}
    return _Divided(np.array([places.get(name, -1) for name in named], dtype=np.intp), names)


def _by_length(examined: ExaminedItems) -> _Divided:
    lengths, unit = text_lengths(examined.items)
    if not lengths.any():
        return _Divided(np.empty(0, dtype=np.intp), (), "the texts are empty")
    return _by_number(lengths, f" {unit}")


def text_lengths(items: tuple[Item, ...]) -> tuple[FloatArray, str]:
    """(n,) lengths of the texts judged and their unit: words, or characters in scripts without spaces."""
    lengths = np.array([text_length(item.target) for item in items], dtype=np.float64)
    unspaced = sum(is_unspaced(item.target) for item in items)
    return lengths, "characters" if 2 * unspaced > len(items) else "words"


def pair_lengths(items: tuple[Item, ...]) -> FloatArray:
    """(n,) how much longer the second text of a pair is than the first."""
    return np.array([text_length(item.context) - text_length(item.target) for item in items], dtype=np.float64)
