"""Splitting a golden set by source, or by source and system, so that nothing judged held out was seen before.

METHODS §4: selecting and reporting on the same items flatters, so the split is made before anything is drafted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from core.data.check import usable_aspect
from core.data.labels_needed import ENOUGH
from core.errors import AspectError, GoldenError, UsageError
from core.records import GoldenSet, IntArray, Split

SplitKind = Literal["sources", "sources+systems"]
CALIBRATION_NAMES = frozenset("calibration calib cal train training dev development validation valid val".split())
HELD_OUT_NAMES = frozenset("held_out held-out heldout test testing eval evaluation".split())


class Fold(NamedTuple):
    """Positions (into `GoldenSet.items`) to fit on and to validate on; no source is in both."""

    fit: tuple[int, ...]
    validation: tuple[int, ...]


def split_sources(
    golden: GoldenSet,
    *,
    aspect: str,
    fraction: float = 0.5,
    seed: int = 0,
    kind: SplitKind = "sources",
    given: bool = False,
) -> Split:
    """Split the items labelled on `aspect` into calibration and held-out.

    `fraction` (0 to 1, ends excluded) of the sources, rounded, go to calibration.  "sources+systems" also holds out
    half of the systems: calibration keeps items of the other systems only, held-out those of held-out systems only, so
    that neither source nor system is shared; the rest is `dropped`.  `given` takes the file's ``split`` column instead.
    The same seed gives the same split.  AspectError when the aspect or what either part would hold cannot be used;
    GoldenError for fewer than 2 sources or systems or an unusable ``split`` column; UsageError for a bad `fraction`.
    """
    if not 0 < fraction < 1:
        raise UsageError(f"The fraction for calibration must lie between 0 and 1, {fraction:g} came.")
    if kind not in ("sources", "sources+systems"):
        raise UsageError(f"The split must be 'sources' or 'sources+systems', not {kind!r}.")
    usable_aspect(golden, aspect)
    labelled = np.flatnonzero(np.isfinite(golden.labels(aspect)))
    if given:
        return _given_split(golden, labelled, aspect, kind, seed)
    rng = np.random.default_rng(seed)
    fitting = _share(golden.source_codes[labelled], fraction, rng, f"the sources labelled on {aspect!r}", golden.name)
    calibration, held_out, dropped = fitting, ~fitting, 0
    if kind == "sources+systems":
        if any(not golden.items[position].system_id for position in labelled):
            raise GoldenError(
                "A split by systems needs a system_id for every labelled item; split by 'sources'.", file=golden.name
            )
        seen = _share(golden.system_codes[labelled], 0.5, rng, f"the systems labelled on {aspect!r}", golden.name)
        calibration, held_out = fitting & seen, ~fitting & ~seen
        dropped = int((~calibration & ~held_out).sum())
    return _checked(
        golden, aspect, Split(_positions(labelled[calibration]), _positions(labelled[held_out]), kind, seed, dropped)
    )


def calibration_labels(golden: GoldenSet, aspect: str) -> int | None:
    """How many labels of `aspect` would choose criteria with the usual split; None where nothing can be split."""
    try:
        return len(split_sources(golden, aspect=aspect).calibration)
    except (AspectError, GoldenError):
        return None


def inner_fold(positions: Sequence[int], source_codes: IntArray, fraction: float, seed: int) -> Fold:
    """Split `positions` by source for gating refinements: about `fraction` of the sources to fit on.

    `source_codes` (n_items,) as in `GoldenSet.source_codes`.  GoldenError for fewer than 2 sources.
    """
    if not 0 < fraction < 1:
        raise UsageError(f"The fraction to fit on must lie between 0 and 1, {fraction:g} came.")
    chosen = np.asarray(sorted(positions), dtype=np.intp)
    fitting = _share(source_codes[chosen], fraction, np.random.default_rng(seed), "the calibration sources")
    return Fold(_positions(chosen[fitting]), _positions(chosen[~fitting]))


def _share(codes: IntArray, fraction: float, rng: Generator, what: str, file: str | None = None) -> NDArray[np.bool_]:
    """(n,) bool: whether each entry's code is among a random `fraction` of the distinct ones, at least 1 in, 1 out."""
    distinct = np.unique(codes)
    if distinct.size < 2:
        raise GoldenError(f"At least 2 are needed to split {what}, {distinct.size} came.", file=file)
    n = min(max(round(fraction * distinct.size), 1), distinct.size - 1)
    return np.isin(codes, rng.permutation(distinct)[:n])


def _given_split(golden: GoldenSet, labelled: IntArray, aspect: str, kind: SplitKind, seed: int) -> Split:
    """The split named in the file; items with any other name are dropped."""
    if not golden.given_split:
        raise GoldenError("The file has no split column (calibration / held_out).", file=golden.name, column="split")
    names = [golden.given_split[position].strip().lower() for position in labelled]
    calibration = labelled[np.array([name in CALIBRATION_NAMES for name in names])]
    held_out = labelled[np.array([name in HELD_OUT_NAMES for name in names])]
    codes = [("source", golden.source_codes)] + ([("system", golden.system_codes)] if kind == "sources+systems" else [])
    for what, code in codes:
        shared = np.intersect1d(code[calibration], code[held_out])
        if shared.size:
            position = int(np.flatnonzero(code == shared[0])[0])
            name = golden.items[position].source_id if what == "source" else golden.items[position].system_id
            message = (
                f"The {what} {name[:80]!r} is on both sides of the split ({shared.size} are); move it to one side."
            )
            raise GoldenError(message, file=golden.name, column="split")
    dropped = len(labelled) - len(calibration) - len(held_out)
    return _checked(golden, aspect, Split(_positions(calibration), _positions(held_out), kind, seed, dropped))


def _checked(golden: GoldenSet, aspect: str, split: Split) -> Split:
    """AspectError unless both parts hold at least 2 labels."""
    n_calibration, n_held_out = len(split.calibration), len(split.held_out)
    if min(n_calibration, n_held_out) < 2:
        raise AspectError(
            f"Aspect {aspect!r} would have {n_calibration} label(s) to calibrate on and {n_held_out} held out; at "
            f"least 2 are needed on each side, and {ENOUGH} to calibrate on are advised. Label more items.",
            file=golden.name,
        )
    return split


def _positions(array: IntArray) -> tuple[int, ...]:
    return tuple(int(position) for position in array)


def whole_sources(
    source_codes: IntArray, positions: IntArray, n_items: int, generator: np.random.Generator
) -> IntArray:
    """Of `positions`, ascending, all items of sources drawn at random until at least `n_items` are in.

    `source_codes` is (n_items,) over the whole golden set.  All of `positions` where they are too few.
    """
    codes = source_codes[positions]
    sources, sizes = np.unique(codes, return_counts=True)
    order = generator.permutation(sources.size)
    taken = sources[order[: int(np.searchsorted(np.cumsum(sizes[order]), n_items)) + 1]]
    return np.sort(positions[np.isin(codes, taken)])
