"""All pairs of many judges, paired over sources, against a loop over scipy.

    python tests/bench/bench_compare.py [--json] [--judges 12] [--sources 100] [--systems 16]

The loop is a thrifty one: it leaves out each source in turn, computes scipy's coefficient once for each judge and
piece and subtracts those for
every pair.  (A loop that takes the pairs one by one computes each judge once per partner: 11 times as much.)  It is
timed on the first sources left out and scaled up (the share is printed); both sides leave out the same, and their
values are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from itertools import combinations
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from bench_alignment import build_task
from scipy import stats as scipy_stats

from core.records import Measure
from core.stats import LabelledItems, compare_judges
from core.stats.intervals import MOST_PIECES
from core.stats.items import paired
from core.stats.reweighting import leave_outs, resampled_values

ORACLES = {"pearson": scipy_stats.pearsonr, "spearman": scipy_stats.spearmanr, "kendall": scipy_stats.kendalltau}
TIMED = {"dataset": 20, "sample": 2}
SEED = 1


def value_by_scipy(scores: np.ndarray, labels: np.ndarray, groups: list[slice], statistic: str) -> float:
    """One coefficient over everything, or the mean over the groups that vary on both sides."""
    oracle = ORACLES[statistic]
    if len(groups) == 1:
        return float(oracle(scores, labels).statistic)
    usable = [g for g in groups if np.ptp(scores[g]) > 0 and np.ptp(labels[g]) > 0]
    return float(np.mean([oracle(scores[g], labels[g]).statistic for g in usable]))


def loop(task: dict[str, np.ndarray], counts: np.ndarray, statistic: str, level: str) -> np.ndarray:
    """(pieces, pairs) differences: the sources left are written out and handed to scipy."""
    rows = [np.flatnonzero(task["sources"] == source) for source in range(counts.shape[1])]
    pairs = list(combinations(range(task["scores"].shape[0]), 2))
    place = np.empty((counts.shape[0], len(pairs)))
    for r, drawn in enumerate(counts.astype(int)):
        chosen = [rows[source] for source in np.repeat(np.arange(drawn.size), drawn)]
        items = np.concatenate(chosen)
        ends = np.cumsum([0, *(part.size for part in chosen)])
        cuts = [slice(*ends[k : k + 2]) for k in range(len(chosen))] if level == "sample" else [slice(None)]
        values = [value_by_scipy(row[items], task["labels"][items], cuts, statistic) for row in task["scores"]]
        place[r] = [values[i] - values[j] for i, j in pairs]
    return place


def measure(task: dict[str, np.ndarray], statistic: str, level: str) -> dict[str, Any]:
    """Seconds of both, their ratio, and how far their differences lie apart."""
    arguments = [task[part] for part in ("scores", "labels", "sources", "systems")]
    spent = []
    for _ in range(3):  # the machine's other work only ever adds time
        start = time.perf_counter()
        compare_judges(arguments[0], LabelledItems.from_arrays(*arguments[1:]), Measure(statistic, level), seed=SEED)
        spent.append(time.perf_counter() - start)
    counts = leave_outs(int(task["sources"].max()) + 1, MOST_PIECES, np.random.default_rng(SEED))
    pieces, timed = counts.shape[0], min(TIMED[level], counts.shape[0])
    counts = counts[:timed]
    start = time.perf_counter()
    looped = loop(task, counts, statistic, level)
    scaled = (time.perf_counter() - start) * pieces / timed
    values = resampled_values(
        paired(arguments[0], LabelledItems.from_arrays(*arguments[1:])), counts, Measure(statistic, level)
    )
    ours = np.array([values[:, i] - values[:, j] for i, j in combinations(range(values.shape[1]), 2)]).T
    return {
        "seconds": min(spent),
        "loop_seconds_scaled": scaled,
        "loop_share_timed": timed / pieces,
        "times_faster": scaled / min(spent),
        "largest_gap": float(np.abs(ours - looped).max()),
    }


def main() -> None:
    """Print a table, or one JSON object with --json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    for name, default in (("judges", 12), ("sources", 100), ("systems", 16)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    task = build_task(options.judges, options.sources, options.systems)
    task["scores"][::2] = np.clip(np.rint(task["scores"][::2] + 3), 1, 5)  # half of the judges score in whole points
    found = {
        f"{level} {statistic}": measure(task, statistic, level)
        for level in ("dataset", "sample")
        for statistic in ORACLES
    }
    if options.json:
        print(json.dumps({"options": vars(options), "compared": found}))
        return
    pairs = options.judges * (options.judges - 1) // 2
    print(
        f"{options.judges} judges ({pairs} pairs) x {options.sources * options.systems} items "
        f"({options.sources} sources)\n"
    )
    print(f"{'':18}{'ours':>10}{'scipy loop*':>14}{'ratio*':>9}{'largest gap':>14}")
    for name, one in found.items():
        print(
            f"{name:18}{one['seconds']:>8.3f} s{one['loop_seconds_scaled']:>12.1f} s"
            f"{one['times_faster']:>8.0f}x{one['largest_gap']:>14.1e}"
        )
    print(f"\n* timed on the first {TIMED['dataset']} (dataset) and {TIMED['sample']} (sample) pieces, scaled up")


if __name__ == "__main__":
    main()
