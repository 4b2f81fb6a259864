"""Fusion-Eval, Table 1, next to a fusion here of evaluators that need no key.

    python tests/papers/fusion_eval.py [--data ../shared/data] [--sets SummEval …] [--with offline overlap …] [--seed 0]

The paper's own rows are at system level, its baselines at sample level: both are printed.  Here half of the sources fit
the weights and the other half is reported.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import core
from tests.papers.printed import FILES, Column, Ours, run

PARTS = ("overlap", "rouge2_source_p", "similarity", "offline", "repeval")


def ours(data: Path, dataset: str, columns: list[Column], options: argparse.Namespace) -> Ours:
    golden = core.load_golden(data / f"{FILES[dataset]}.jsonl.gz")
    rows: dict[str, dict[Column, float | None]] = {}
    for column in columns:
        statistic, level = column.measure.split()
        settings = core.FusionSettings(statistic=statistic, level=level, seed=options.seed)
        body = core.fuse(golden, column.aspect, options.parts, settings).summary
        rows.setdefault("fusion", {})[column] = body["fused"]["value"]
        for name, alignment in body["parts"].items():
            rows.setdefault(name, {})[column] = alignment["value"]
    return rows


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--with", dest="parts", nargs="+", default=list(PARTS))
    parser.add_argument("--seed", type=int, default=0)


if __name__ == "__main__":
    run("Fusion-Eval", __doc__, ours, options)
