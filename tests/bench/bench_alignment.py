"""Alignment of many candidates with intervals over sources, against loops over scipy.

    python tests/bench/bench_alignment.py [--json] [--candidates 60] [--sources 100] [--systems 16]

Sample level, Spearman and tau-b, the same task on both sides: each source left out once (jackknife).  Two loops are
timed:

- *plain*: every time, scipy's coefficient is computed for every source left again.  Timed on a few candidates and
  sources left out and scaled up (the share is printed), since whole it takes minutes to hours;
- *thrifty*: scipy once per source and candidate, then a Python loop that averages the sources left.  Timed whole.

Dataset and system level intervals are timed alone, without a loop beside them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from scipy import stats as scipy_stats

from core.records import Measure
from core.stats import LabelledItems, align_each, coefficients_by_source
from core.stats.intervals import MOST_PIECES
from core.stats.items import paired
from core.stats.levels import mean_defined
from core.stats.reweighting import leave_outs, resampled_values

ORACLES: dict[str, Callable[..., Any]] = {"spearman": scipy_stats.spearmanr, "kendall": scipy_stats.kendalltau}


def build_task(candidates: int, sources: int, systems: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Continuous scores beside labels that are means of three ratings from 1 to 5 (so labels tie, scores do not)."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(sources, systems)) + rng.normal(size=(sources, 1))
    ratings = np.clip(np.rint(3 + truth[..., None] + rng.normal(size=(sources, systems, 3))), 1, 5)
    noise = rng.normal(size=(candidates, sources, systems)) * rng.uniform(0.5, 4.0, size=(candidates, 1, 1))
    return {
        "scores": (truth + noise).reshape(candidates, -1),
        "labels": ratings.mean(axis=-1).reshape(-1),
        "sources": np.repeat(np.arange(sources), systems),
        "systems": np.tile(np.arange(systems), sources),
    }


def items_of(task: dict[str, np.ndarray]) -> LabelledItems:
    """The items of a task, grouped anew each time: what a first call pays."""
    return LabelledItems.from_arrays(task["labels"], task["sources"], task["systems"])


def loop_group_values(task: dict[str, np.ndarray], statistic: str, candidates: int) -> np.ndarray:
    """scipy once for each candidate and source."""
    n_sources = int(task["sources"].max()) + 1
    rows = [np.flatnonzero(task["sources"] == source) for source in range(n_sources)]
    oracle = ORACLES[statistic]
    return np.array(
        [
            [oracle(task["scores"][c, items], task["labels"][items]).statistic for items in rows]
            for c in range(candidates)
        ]
    )


def thrifty_loop(task: dict[str, np.ndarray], statistic: str, drawn: list[np.ndarray]) -> np.ndarray:
    """(pieces, candidates): average the stored coefficients of the sources left, one piece at a time."""
    by_source = loop_group_values(task, statistic, task["scores"].shape[0])
    return np.array([[np.nanmean(row[chosen]) for row in by_source] for chosen in drawn])


def plain_loop(task: dict[str, np.ndarray], statistic: str, drawn: list[np.ndarray], candidates: int) -> float:
    """Compute everything again each time; seconds spent."""
    start = time.perf_counter()
    oracle = ORACLES[statistic]
    for chosen in drawn:
        rows = [np.flatnonzero(task["sources"] == source) for source in chosen]
        for c in range(candidates):
            np.nanmean([oracle(task["scores"][c, items], task["labels"][items]).statistic for items in rows])
    return time.perf_counter() - start


def best_of(function: Callable[[], Any], times: int = 3) -> float:
    """Fewest seconds of a few runs: the machine's other work only ever adds time."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        spent.append(time.perf_counter() - start)
    return min(spent)


def measure(statistic: str, task: dict[str, np.ndarray]) -> dict[str, float]:
    """Seconds and ratios for one statistic at sample level, and how far the values lie apart."""
    candidates, n_sources = task["scores"].shape[0], int(task["sources"].max()) + 1
    data = paired(task["scores"], items_of(task))
    counts = leave_outs(n_sources, MOST_PIECES, np.random.default_rng(1))
    drawn = [np.flatnonzero(row) for row in counts]
    ours = best_of(lambda: align_each(task["scores"], items_of(task), Measure(statistic, "sample"), seed=1))
    start = time.perf_counter()
    looped = thrifty_loop(task, statistic, drawn)
    thrifty = time.perf_counter() - start
    share = (2, min(3, candidates))  # sources left out, candidates
    plain = plain_loop(task, statistic, drawn[: share[0]], share[1])
    plain *= len(drawn) / share[0] * candidates / share[1]
    values = mean_defined(coefficients_by_source(task["scores"], items_of(task), statistic))
    oracle = np.nanmean(loop_group_values(task, statistic, candidates), axis=1)
    resampled = resampled_values(data, counts, Measure(statistic, "sample"))
    return {
        "seconds": ours,
        "thrifty_seconds": thrifty,
        "plain_seconds_scaled": plain,
        "plain_share_timed": share[0] * share[1] / (len(drawn) * candidates),
        "times_faster_than_thrifty": thrifty / ours,
        "times_faster_than_plain": plain / ours,
        "largest_gap": float(np.abs(values - oracle).max()),
        "largest_gap_resampled": float(np.abs(resampled - looped).max()),
    }


def measure_levels(task: dict[str, np.ndarray]) -> dict[str, float]:
    """Seconds for values and intervals of all candidates at the other levels."""
    return {
        f"{level} {statistic}": best_of(
            lambda level=level, statistic=statistic: align_each(
                task["scores"], items_of(task), Measure(statistic, level), seed=1
            ),
            times=1,
        )
        for level in ("dataset", "system")
        for statistic in ("pearson", "spearman", "kendall")
    }


def main() -> None:
    """Print a table, or one JSON object with --json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    for name, default in (("candidates", 60), ("sources", 100), ("systems", 16)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    task = build_task(options.candidates, options.sources, options.systems)
    sample = {statistic: measure(statistic, task) for statistic in ORACLES}
    levels = measure_levels(task)
    if options.json:
        print(json.dumps({"options": vars(options), "sample": sample, "seconds": levels}))
        return
    print(
        f"{options.candidates} candidates x {options.sources * options.systems} items "
        f"({options.sources} sources x {options.systems} systems), sample level\n"
    )
    print(f"{'':10}{'ours':>10}{'thrifty loop':>15}{'ratio':>9}{'plain loop*':>14}{'ratio*':>10}{'largest gap':>14}")
    for statistic, found in sample.items():
        print(
            f"{statistic:10}{found['seconds']:>8.3f} s{found['thrifty_seconds']:>13.2f} s"
            f"{found['times_faster_than_thrifty']:>8.0f}x{found['plain_seconds_scaled']:>12.0f} s"
            f"{found['times_faster_than_plain']:>9.0f}x{found['largest_gap']:>14.1e}"
        )
    share = next(iter(sample.values()))["plain_share_timed"]
    print(f"\n* timed on {share:.4%} of the work and scaled up")
    print("\nvalues and intervals at the other levels:")
    for name, seconds in levels.items():
        print(f"  {name:18}{seconds:>8.2f} s")


if __name__ == "__main__":
    main()
