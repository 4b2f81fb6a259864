"""What numbers in a file mean: the scale of an aspect, codes that are no labels, and what a person says of both.

On the command line and in Python a person's answer is a text, once for each::

    missing=99          99 is no label; also 99,-1, or quality:99 for one aspect
    missing=none        every number is a label
    pairs=1/2/0         first text / second text / tie; the tie can be left out
    pairs=scale         the numbers are a scale, and high ones prefer the second text
    verdicts=1/2/0      as pairs, for the scores in a file of verdicts on pairs
    best=low            the lowest label is the best; best=quality:low for one aspect
    best=high           the highest label is the best
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.errors import UsageError
from core.records import FloatArray, Scale

USUAL = tuple(
    Scale(float(low), float(high))
    for low, high in (
        *((0, 1), (-1, 1), (1, 3), (0, 2), (1, 4), (0, 3), (1, 5), (0, 4), (1, 6), (0, 5), (1, 7)),
        *((-2, 2), (-3, 3), (1, 10), (0, 10), (0, 100)),
    )
)
"""The scales in use, in the order they are tried: the first that holds all values is proposed."""

MAX_STEPS = 20

CODES = frozenset(
    map(float, "8 9 77 88 97 98 99 777 888 999 7777 8888 9999 -1 -2 -3 -7 -8 -9 -77 -88 -98 -99 -999 -9999".split())
)
"""Numbers that people write for "no answer"; what lies off the scale and is none of them is a slip."""

_FAR = 2.0
"""A slip is farther from the other labels than this, than half their scale, and than twice their widest gap."""
_FAR_CODES, _SMALL = 77, 20
_SLIPS, _LEAST_NEXT_TO_SLIP = 0.05, 5
_MANY_OFF = 0.05
"""Share of scores off the scale up to which they count as slips; of more, the judge has another scale."""


def find_scale(gold: Sequence[float], ratings: Sequence[float] = (), *, all_count: bool = False) -> Scale:
    """Find the narrowest scale in use that holds the values, with a step of 1, 0.5 or None (continuous).

    Steps are read from the individual `ratings` where there are any, for gold labels may be means of them.  A range
    of more than 20 steps counts as continuous.  Ends cannot be known from values alone (labels of a 1-5 scale
    that never reach 5 read as 1-4): proposals are shown and can be confirmed.  What `strays` finds is left outside,
    unless `all_count`.  Where no scale in use holds the values, its ends are theirs.  ValueError without values.
    """
    values = np.asarray([*gold, *ratings], dtype=np.float64)
    if not values.size:
        raise ValueError("a scale cannot be found without values")
    if not all_count:
        values = values[~np.isin(values, strays(values))]
    scale = narrowest_scale(values.min(), values.max())
    if scale is None:
        low, high = float(np.floor(values.min())), float(np.ceil(values.max()))
        scale = Scale(low, high if high > low else low + 1)
    own = np.asarray(ratings if len(ratings) else gold, dtype=np.float64)
    own = own[(own >= scale.low) & (own <= scale.high)]
    for step in (1.0, 0.5):
        if (scale.high - scale.low) / step <= MAX_STEPS and np.array_equal(np.round(own / step), own / step):
            return Scale(scale.low, scale.high, step)
    return scale


def narrowest_scale(low: float, high: float) -> Scale | None:
    """The first of the scales in use that holds all numbers from `low` to `high`; None when none does."""
    return next((scale for scale in USUAL if scale.low <= low and high <= scale.high), None)


def is_usual(scale: Scale) -> bool:
    """Whether the scale is one of those in use."""
    return Scale(scale.low, scale.high) in USUAL


def strays(values: FloatArray) -> tuple[float, ...]:
    """The different values that lie off the scale that the others fit: codes for "no answer", and slips.

    A code such as 99 or -1 may come any number of times.  A slip is far from all other labels and rare.  A 0 is in
    question where the others fill a scale from 1 to 5, 6 or 7 in whole steps.
    """
    different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    for usual in USUAL:
        inside = (different >= usual.low) & (different <= usual.high)
        if inside.all():
            break
        width = usual.high - usual.low
        if _are_strays(different[~inside], counts[~inside], different[inside], counts[inside], width):
            return tuple(different[~inside].tolist())
    if different.size <= 4 or different[0] != 0:
        return ()
    second, top = different[1], different[-1]
    if np.array_equal(different, np.round(different)):
        return (0.0,) if second <= 2 and top in (5, 6, 7) else ()
    return (0.0,) if different.size > 7 and second >= 1 and 4 < top <= 5 else ()


def _are_strays(off: FloatArray, n_off: NDArray[Any], on: FloatArray, n_on: NDArray[Any], width: float) -> bool:
    """Whether the values `off` a scale, each coming `n_off` times, are codes or slips next to those `on` it."""
    if on.size < 2:
        return False
    if set(off.tolist()) <= CODES and (np.abs(off) >= _FAR_CODES).all() and np.abs(on).max() <= _SMALL:
        return True  # several such codes, 97 to 99, tell why there is no label
    if off.tolist() == [-1.0] and on[0] == 0 and on[-1] >= 3:
        return True  # no scale runs from -1 to 3
    if set(off.tolist()) <= {8.0, 9.0} and on.tolist() == [0.0, 1.0] and n_on.sum() >= _LEAST_NEXT_TO_SLIP:
        return True  # yes, no, and no answer
    widest_gap = float(np.diff(on).max())
    gaps = np.maximum(on.min() - off, off - on.max())
    if set(off.tolist()) <= CODES and off.size <= 2:
        # 8 and 9 may continue the scale, and so may the negative numbers of a scale around 0
        around_zero = on.min() <= 0 and on.max() <= 3 if width > 1 else on.size < 4
        apart = np.where(off < 0, not around_zero, gaps > widest_gap) & ((on.size > 2) | (gaps > 10))
        return bool(apart.all())
    rare = n_off.sum() <= max(2, _SLIPS * n_on.sum()) and n_on.sum() >= _LEAST_NEXT_TO_SLIP
    return bool(rare and on.size > 2 and (gaps > max(_FAR, width / 2, 2 * widest_gap)).all())


def off_scale(scores: FloatArray, scale: Scale) -> tuple[NDArray[np.bool_], bool]:
    """(n,) which of a judge's `scores` (n,; NaN for none) are no scores next to labels on `scale`.

    Codes for "could not be read" and slips off the scale are none.  Where many lie off it, the judge has a scale of
    its own, and codes are looked for among the scores alone; whether that is so comes with the mask.
    """
    known = ~np.isnan(scores)
    off = known & ~((scores >= scale.low - 1e-9) & (scores <= scale.high + 1e-9))
    n_off, outside = int(off.sum()), np.unique(scores[off])
    inside = np.unique(scores[known & ~off])
    middle = (scale.low + scale.high) / 2
    few = outside.size <= 2 or bool((np.abs(outside) >= _FAR_CODES).all())
    codes = set(outside.tolist()) <= CODES | {0.0} and few and inside.size > 1 and inside.max() > middle
    yes_no = scale.high - scale.low == 1 and set(inside.tolist()) == {scale.low, scale.high}
    if codes and np.isin(outside, (8, 9)).any() and not yes_no:  # a judge with a scale to 10 gives these too
        codes = inside.size > 2 and n_off <= 0.3 * known.sum() and outside[0] - inside.max() > np.diff(inside).max()
    if codes or n_off <= _MANY_OFF * known.sum():
        return off, False
    found = [value for value in strays(scores) if value in CODES]
    return known & np.isin(scores, found), True


# ── what a person says ───────────────────────────────────────────────────────────────────────────────────────

Codes = tuple[float, float, float | None]
"""Numbers for "the first text", "the second text" and a tie."""
Best = Literal["low", "high"]

_FORMS = "missing=99, missing=none, pairs=1/2/0, pairs=scale, verdicts=1/2/0, best=low, best=high"


@dataclass(frozen=True)
class Values:
    """A person's answers; None or empty where nobody has said.

    `missing` are (aspect or "" for all, number that is no label; None says that all others are labels).  `best` are
    (aspect or "" for all, end).
    """

    missing: tuple[tuple[str, float | None], ...] = ()
    pairs: Codes | Literal["scale"] | None = None
    verdicts: Codes | Literal["scale"] | None = None
    best: tuple[tuple[str, Best], ...] = ()

    @classmethod
    def of(cls, answers: Values | str | Sequence[str] | None) -> Values:
        """Read answers in the forms above.  UsageError for any other."""
        if isinstance(answers, Values):
            return answers
        said: dict[str, Any] = {}
        for answer in (answers,) if isinstance(answers, str) else answers or ():
            name, _, given = answer.replace(" ", "").partition("=")
            parts = (part.rpartition(":") for part in answer.partition("=")[2].split(","))
            words = [(aspect.strip().removeprefix("human_"), word.strip()) for aspect, _, word in parts]
            try:
                if name == "missing":
                    found = ((aspect, None if word == "none" else _number(word)) for aspect, word in words)
                    said[name] = (*said.get(name, ()), *found)
                elif name == "best" and {word for _, word in words} <= {"low", "high"}:
                    said[name] = (*said.get(name, ()), *words)
                elif name in ("pairs", "verdicts") and given == "scale":
                    said[name] = given
                elif name in ("pairs", "verdicts"):
                    first, second, *tie = map(_number, given.split("/"))
                    if len({first, second, *tie}) < 2 + len(tie) or len(tie) > 1:
                        raise ValueError
                    said[name] = (first, second, tie[0] if tie else None)
                else:
                    raise ValueError
            except ValueError:
                message = f"{answer[:60]!r} does not say what values mean. Use one of these forms: {_FORMS}."
                raise UsageError(message) from None
        return cls(**said)

    @property
    def answers(self) -> tuple[str, ...]:
        """The answers as `of` takes them."""
        said = [
            f"missing={aspect and aspect + ':'}{'none' if number is None else f'{number:g}'}"
            for aspect, number in self.missing
        ]
        for name, codes in (("pairs", self.pairs), ("verdicts", self.verdicts)):
            if codes is not None:
                words = codes if codes == "scale" else "/".join(f"{n:g}" for n in codes if n is not None)
                said.append(f"{name}={words}")
        return (*said, *(f"best={aspect and aspect + ':'}{end}" for aspect, end in self.best))

    def is_missing(self, value: float | None, aspect: str) -> bool:
        """Whether a number was said to be no label of `aspect`; None: whether every other number is one."""
        return ("", value) in self.missing or (aspect, value) in self.missing

    def best_of(self, aspect: str) -> Best | None:
        """Which end of the scale is the best, as far as somebody said; an answer for the aspect goes first."""
        said = dict(self.best)
        return said.get(aspect, said.get(""))


def _number(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number
