"""How often intervals hold the truth, and how often equal judges are called different, in simulated golden sets.

    python tests/bench/bench_coverage.py [--runs 2000] [--quick]
        [--levels dataset sample system] [--statistics …] [--sources 3 8 25 100] [--worlds …] [--seed 1]

Every cell draws `runs` golden sets: sources with an effect of their own on the labels and on each judge's error,
labels from 1 to 5.  Three judges score each set: two alike (their difference is 0: *false positives* are p ≤ .05; under
8 sources, where there is no p, intervals that leave 0 out) and a worse one (*coverage* of the true difference).
*Coverage* is of the first judge's alignment.  Truths are the same statistic on very many sources; at system level
that of the systems' expected means, drawn anew in every run.  The error beside each share is one simulation error
√(share (1 − share) / runs).  Draws without an interval (a perfect judge, one source that carries all) are counted.

Worlds: `usual` (r about .6), `whole` (the judge scores in whole points), `high` (about .9), `zero` (no agreement).
Sources have 5 items, one, or 1 to 7 (at system level one of each of 7 or 16 systems).  `--quick`: 200 runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from core.records import Measure
from core.stats import LEAST_SOURCES, LabelledItems, coefficients_by_source, compare_judges, correlate
from core.stats.correlation import mean_defined, paired
from core.stats.intervals import LEAST_RANKED

WORLDS = {  # quality, error a source shares, error of an item, whole points
    "usual": (0.7, 0.5, 0.8, False),
    "whole": (0.7, 0.5, 0.8, True),
    "high": (1.0, 0.25, 0.3, False),
    "zero": (0.0, 0.7, 0.8, False),
}
SHAPES = {"dataset": ("5 items", "1 item", "1-7 items"), "sample": ("5 items", "4-9 items"), "system": ("7", "16")}
STATISTICS = ("pearson", "spearman", "kendall")
WORSE = 0.6
"""Quality of the third judge as a share of the first's, its error being 1.3 times as large."""
MANY = 30_000


class Drawn(NamedTuple):
    """scores: (3, n_items); labels, sources, systems: (n_items,)."""

    scores: np.ndarray
    labels: np.ndarray
    sources: np.ndarray
    systems: np.ndarray


@dataclass(frozen=True)
class Cell:
    """One line of the table."""

    level: str
    statistic: str
    world: str
    shape: str
    sources: int


@dataclass(frozen=True)
class Result:
    """Shares of `runs`; `undefined` is the share of draws in which the first judge has no interval.

    `false_positives` is a share of the `tests`: pairs of equal judges that have a p.
    """

    covered: float
    covered_difference: float
    false_positives: float
    undefined: float
    runs: int
    tests: int

    def error(self, share: float, of: int | None = None) -> float:
        """One simulation error of a share of the runs; that of a nominal 5 % where the share is 0 or 1."""
        kept = share if 0 < share < 1 else 0.05
        return float(np.sqrt(kept * (1 - kept) / max(self.runs if of is None else of, 1)))


def draw(rng: np.random.Generator, cell: Cell, n_sources: int) -> Drawn:
    """A golden set with three judges, without systems."""
    sizes = {"5 items": (5, 6), "1 item": (1, 2), "1-7 items": (1, 8), "4-9 items": (4, 10)}[cell.shape]
    sources = np.repeat(np.arange(n_sources), rng.integers(*sizes, n_sources))
    quality, shared, own, whole = WORLDS[cell.world]
    truth = 0.7 * rng.normal(size=n_sources)[sources] + rng.normal(size=sources.size)
    labels = np.clip(np.rint(3 + truth), 1, 5)
    scores = np.stack(
        [
            share * quality * truth
            + scale * (shared * rng.normal(size=n_sources)[sources] + own * rng.normal(size=sources.size))
            for share, scale in ((1, 1), (1, 1), (WORSE, 1.3))
        ]
    )
    scores = np.clip(np.rint(3 + scores), 1, 5) if whole else scores
    return Drawn(scores, labels, sources, np.zeros(sources.size, dtype=int))


def draw_systems(rng: np.random.Generator, cell: Cell) -> tuple[Drawn, np.ndarray]:
    """A golden set in which each system has an item of every source, and the systems' true coefficients (3,)."""
    n, (quality, shared, own, _) = int(cell.shape), WORLDS[cell.world]
    height, lean = 0.6 * rng.normal(size=n), 0.3 * rng.normal(size=n)
    sources, systems = np.repeat(np.arange(cell.sources), n), np.tile(np.arange(n), cell.sources)
    truth = height[systems] + 0.6 * rng.normal(size=cell.sources)[sources] + 0.9 * rng.normal(size=sources.size)
    labels = np.clip(np.rint(3 + truth), 1, 5)
    kinds = ((1, 1), (1, 1), (WORSE, 1.3))
    scores = np.stack(
        [
            share * quality * truth
            + lean[systems]
            + scale * (shared * rng.normal(size=cell.sources)[sources] + own * rng.normal(size=sources.size))
            for share, scale in kinds
        ]
    )
    expected = np.stack([share * quality * height + lean for share, _ in kinds])
    return Drawn(scores, labels, sources, systems), correlate(expected, _expected_labels(height), cell.statistic)


def _expected_labels(height: np.ndarray) -> np.ndarray:
    """Means of labels 1 to 5 around 3 + height, with variance .6² + .9²."""
    from scipy.special import ndtr

    spread = np.hypot(0.6, 0.9)
    return 1 + sum(1 - ndtr((step - 0.5 - 3 - height) / spread) for step in (2, 3, 4, 5))


def truths(cell: Cell, seed: int) -> np.ndarray:
    """(3,) values of the judges with very many sources."""
    many = draw(np.random.default_rng([seed, 0]), cell, MANY * (5 if cell.shape == "1 item" else 1))
    if cell.level == "dataset":
        found = correlate(many.scores, many.labels, cell.statistic)
    else:
        found = mean_defined(
            coefficients_by_source(
                paired(many.scores, LabelledItems.from_arrays(many.labels, many.sources)), cell.statistic
            )
        )
    found[:2] = found[:2].mean()
    return found


def simulate(cell: Cell, runs: int, seed: int = 1) -> Result:
    """Draw `runs` golden sets and count."""
    known = None if cell.level == "system" else truths(cell, seed)
    rng = np.random.default_rng([seed, 1])
    covered, apart, called, undefined, tested, with_p = 0, 0, 0, 0, 0, 0
    for _ in range(runs):
        drawn, truth = draw_systems(rng, cell) if known is None else (draw(rng, cell, cell.sources), known)
        comparison = compare_judges(
            drawn[0],
            LabelledItems.from_arrays(*drawn[1:]),
            Measure(cell.statistic, cell.level),
            seed=rng,
        )
        interval = comparison.alignments[0].interval
        equal, worse = comparison.pair(0, 1), comparison.pair(0, 2).interval
        if interval is None or equal.interval is None or worse is None:
            undefined += 1
            continue
        tested += 1
        covered += interval.low - 1e-9 <= truth[0] <= interval.high + 1e-9
        apart += worse.low <= truth[0] - truth[2] <= worse.high
        p = equal.p
        if cell.sources < LEAST_SOURCES:
            called += not equal.interval.low <= 0 <= equal.interval.high
        else:
            called, with_p = called + (p is not None and p <= 0.05), with_p + (p is not None)
    share = max(tested, 1)
    n_tests = with_p if cell.sources >= LEAST_SOURCES else tested
    return Result(covered / share, apart / share, called / max(n_tests, 1), undefined / runs, share, n_tests)


def cells(options: argparse.Namespace) -> Iterator[Cell]:
    """All lines asked for."""
    for level in options.levels:
        for statistic, world, shape, n in product(options.statistics, options.worlds, SHAPES[level], options.sources):
            if not (shape == "1 item" and n < (8 if statistic == "pearson" else LEAST_RANKED)):  # no interval is shown
                yield Cell(level, statistic, world, shape, n)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--levels", nargs="+", default=list(SHAPES), choices=list(SHAPES))
    parser.add_argument("--statistics", nargs="+", default=list(STATISTICS), choices=list(STATISTICS))
    parser.add_argument("--worlds", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--sources", nargs="+", type=int, default=[3, 8, 25, 100])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    runs = 200 if options.quick else options.runs
    print(f"{'level':8} {'statistic':9} {'world':6} {'a source':9} {'sources':>7}  {'covered':15}", end="  ")
    print("difference       false positives  no interval")
    for cell in cells(options):
        result = simulate(cell, runs, options.seed)
        told = "  ".join(f"{one:.3f} ± {result.error(one):.3f} " for one in (result.covered, result.covered_difference))
        told += f"  {result.false_positives:.3f} ± {result.error(result.false_positives, result.tests):.3f} "
        name = f"{cell.level:8} {cell.statistic:9} {cell.world:6} {cell.shape:9} {cell.sources:>7}"
        print(f"{name}  {told}  {result.undefined:.3f}", flush=True)


if __name__ == "__main__":
    main()
