"""Assistants that need no checkpoint, timed on SummEval; ROUGE also against a plain loop over rouge_score.

    python tests/bench/bench_metrics.py [--json] [--data ../shared/data] [--items 1600] [--loop-items 80] [--names …]

The plain loop makes one `RougeScorer` and calls it for every item and reference, as its documentation shows.  It is
timed on the first items and scaled up (the share is printed); its values are compared with ours on those items.
Similarity takes minutes without a GPU: `--names overlap chrf`, say, times those alone beside ROUGE.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from core.data import load_golden
from core.metrics import make_metric, metrics_for
from core.records import Item

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("rouge1", "rouge2", "rougeL", "rougeL_source_p")


def plain_loop(name: str, items: Sequence[Item]) -> list[float]:
    """The mean over the references, or the precision against the source, straight from rouge_score."""
    from rouge_score.rouge_scorer import RougeScorer

    kind = name.removesuffix("_source_p")
    scorer = RougeScorer([kind], use_stemmer=True)
    if name != kind:
        return [scorer.score(item.source, item.target)[kind].precision for item in items]
    return [
        sum(scorer.score(reference, item.target)[kind].fmeasure for reference in item.references) / len(item.references)
        for item in items
    ]


def compare(name: str, items: Sequence[Item], loop_items: int) -> dict[str, float]:
    """Seconds of both, and how far their values lie apart on the items of the loop."""
    few = items[:loop_items]
    start = time.perf_counter()
    expected = plain_loop(name, few)
    loop = (time.perf_counter() - start) * len(items) / len(few)
    start = time.perf_counter()
    found = make_metric(name).score(items).values
    ours = time.perf_counter() - start
    return {
        "seconds": ours,
        "loop_seconds_scaled": loop,
        "loop_share_timed": len(few) / len(items),
        "times_faster": loop / ours,
        "largest_gap": float(np.abs(found[: len(few)] - expected).max()),
    }


def measure(golden: Any, items: Sequence[Item], names: Sequence[str]) -> dict[str, float]:
    """Seconds of every metric that can run on these items."""
    seconds = {}
    for metric in metrics_for(golden):
        if metric.missing(items) or metric.name in KINDS or (names and metric.name not in names):
            continue
        start = time.perf_counter()
        metric.score(items)
        seconds[metric.name] = time.perf_counter() - start
    return seconds


def main() -> None:
    """Print a table, or one JSON object with --json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--items", type=int, default=1600)
    parser.add_argument("--loop-items", type=int, default=80)
    parser.add_argument("--names", nargs="*", default=[])
    options = parser.parse_args()
    golden = load_golden(options.data / "summeval.jsonl.gz")
    items = golden.items[: options.items]
    make_metric("rouge1").score(items[:1])  # imports rouge_score once, outside the figures
    rouge = {name: compare(name, items, min(options.loop_items, len(items))) for name in KINDS}
    others = measure(golden, items, options.names)
    if options.json:
        print(json.dumps({"n_items": len(items), "rouge": rouge, "seconds": others}))
        return
    print(f"SummEval, {len(items)} items, {sum(len(item.references) for item in items)} pairs with references\n")
    print(f"{'':22}{'ours':>10}{'plain loop*':>14}{'ratio*':>9}{'largest gap':>14}")
    for name, one in rouge.items():
        print(
            f"{name:22}{one['seconds']:>8.2f} s{one['loop_seconds_scaled']:>12.1f} s{one['times_faster']:>8.1f}x"
            f"{one['largest_gap']:>14.1e}"
        )
    print(f"\n* timed on {next(iter(rouge.values()))['loop_share_timed']:.1%} of the items and scaled up\n")
    for name, spent in others.items():
        print(f"{name:22}{spent:>8.2f} s")


if __name__ == "__main__":
    main()
