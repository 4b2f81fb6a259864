"""Evaluators that need no reference, no key and no network, fused on SummEval.

    python tests/bench/bench_fusion_summeval.py [--data ../shared/data] [--seeds 3]

Word overlap, ROUGE against the source, MiniLM similarity, the offline judge and RepEval on MiniLM, by ridge.  Half of
the sources fit (the parts that learn are scored out of fold there), the other half is reported.
Printed: sample-level Spearman on the held-out sources, for each aspect and as the mean of four aspects and all seeds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import core  # noqa: E402

ASPECTS = ("coherence", "consistency", "fluency", "relevance")
PARTS = ("overlap", "overlap_pairs", "rouge2_source_p", "rougeL_source_p", "similarity", "offline", "repeval")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()

    golden = core.load_golden(options.data / "summeval.jsonl.gz")
    rows: dict[str, dict[str, list[float]]] = {}
    for aspect in ASPECTS:
        for seed in range(options.seeds):
            settings = core.FusionSettings(level="sample", seed=seed)
            body = core.fuse(golden, aspect, PARTS, settings).summary
            for name, one in {"fusion": body["fused"], **body["parts"]}.items():
                rows.setdefault(name, {}).setdefault(aspect, []).append(float(one["value"] or 0.0))
            newest = ", ".join(f"{name} {row[aspect][-1]:.3f}" for name, row in rows.items())
            print(f"{aspect}, seed {seed}: {newest}", file=sys.stderr, flush=True)
    means = {name: {aspect: float(np.mean(values)) for aspect, values in row.items()} for name, row in rows.items()}
    print(f"sample-level Spearman on held-out sources, {options.seeds} seeds")
    print(f"{'':18}" + "".join(f"{aspect:>13}" for aspect in (*ASPECTS, "mean")))
    for name, row in sorted(means.items(), key=lambda pair: -float(np.mean(list(pair[1].values())))):
        values = [*(row[aspect] for aspect in ASPECTS), float(np.mean(list(row.values())))]
        print(f"{name:18}" + "".join(f"{value:13.3f}" for value in values))


if __name__ == "__main__":
    main()
