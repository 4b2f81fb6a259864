"""Alignment of many candidates with intervals over sources, compared with loops over scipy.

    python tests/bench/bench_alignment.py [--json] [--candidates 60] [--sources 100] [--systems 16]

Sample level, Spearman and tau-b, on the same task: each source left out once (jackknife).  The loop calls scipy once
per source and candidate, then averages the sources that are left in Python.  Dataset and system level are timed alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from scipy import stats as scipy_stats

from core.records import Measure
from core.stats import LabelledItems, align_each, coefficients_by_source
from core.stats.correlation import mean_defined, paired

ORACLES: dict[str, Callable[..., Any]] = {"spearman": scipy_stats.spearmanr, "kendall": scipy_stats.kendalltau}
Task = dict[str, np.ndarray]


def build_task(candidates: int, sources: int, systems: int) -> Task:
    """Continuous scores and labels that are means of three ratings from 1 to 5 (labels tie, scores do not)."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(sources, systems)) + rng.normal(size=(sources, 1))
    ratings = np.clip(np.rint(3 + truth[..., None] + rng.normal(size=(sources, systems, 3))), 1, 5)
    noise = rng.normal(size=(candidates, sources, systems)) * rng.uniform(0.5, 4.0, size=(candidates, 1, 1))
    return {
        "scores": (truth + noise).reshape(candidates, -1),
        "labels": ratings.mean(axis=-1).reshape(-1),
        "sources": np.repeat(np.arange(sources), systems),
        "systems": np.tile(np.arange(systems), sources),
    }


def align(task: Task, measure: Measure) -> None:
    """Group the items anew and align: what a first call costs."""
    align_each(
        task["scores"], LabelledItems.from_arrays(task["labels"], task["sources"], task["systems"]), measure, seed=1
    )


def loop(task: Task, statistic: str) -> np.ndarray:
    """Return (candidates, sources + 1) means of scipy's coefficients: over all sources, and with each left out."""
    rows = [np.flatnonzero(task["sources"] == source) for source in range(int(task["sources"].max()) + 1)]
    means = []
    for scores in task["scores"]:
        values = np.array([ORACLES[statistic](scores[items], task["labels"][items]).statistic for items in rows])
        means.append([np.nanmean(values), *(np.nanmean(np.delete(values, left_out)) for left_out in range(len(rows)))])
    return np.array(means)


def best_of(function: Callable[[], Any], times: int = 3) -> float:
    """Fewest seconds of a few runs: the machine's other work only ever adds time."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        spent.append(time.perf_counter() - start)
    return min(spent)


def measure_sample_level(statistic: str, task: Task) -> dict[str, float]:
    """Return seconds and ratio at sample level, and the largest distance to the loop's values."""
    ours = best_of(partial(align, task, Measure(statistic, "sample")))
    start = time.perf_counter()
    looped = loop(task, statistic)
    seconds = time.perf_counter() - start
    items = LabelledItems.from_arrays(task["labels"], task["sources"], task["systems"])
    values = mean_defined(coefficients_by_source(paired(task["scores"], items), statistic))
    gap = float(np.abs(values - looped[:, 0]).max())
    return {"seconds": ours, "loop_seconds": seconds, "times_faster": seconds / ours, "largest_gap": gap}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    for name, default in (("candidates", 60), ("sources", 100), ("systems", 16)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    task = build_task(options.candidates, options.sources, options.systems)
    sample = {statistic: measure_sample_level(statistic, task) for statistic in ORACLES}
    seconds = {
        f"{level} {statistic}": best_of(partial(align, task, Measure(statistic, level)), times=1)
        for level in ("dataset", "system")
        for statistic in ("pearson", "spearman", "kendall")
    }
    if options.json:
        print(json.dumps({"sample": sample, "seconds": seconds}))
        return
    print(f"{options.candidates} candidates × {options.sources} sources × {options.systems} systems, sample level")
    for statistic, found in sample.items():
        print(
            f"  {statistic:10}{found['seconds']:8.3f} s, loop {found['loop_seconds']:.2f} s: "
            f"{found['times_faster']:.0f} × as fast, largest gap {found['largest_gap']:.1e}"
        )
    print("values and intervals at the other levels")
    for name, spent in seconds.items():
        print(f"  {name:18}{spent:8.2f} s")


if __name__ == "__main__":
    main()
