"""RepEval, Table 1, next to RepEval here with a model at hand: the paper's PCA and SVM, and our default.

    python tests/papers/repeval.py [--data ../shared/data] [--sets SummEval …] [--model minilm] [--seed 0]

The paper trains on one data set and reports on all items of the others, with Mistral-7B.  Here each set is split by
source: figures are those of the test sources.  Sets that rate no fluency give their naturalness.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import core
from tests.papers.printed import FILES, Column, Ours, run

METHODS: dict[str, dict[str, Any]] = {
    "PCA, 20 pairs": {"method": "paper-pca", "pairs": 20},
    "PCA, 5 pairs": {"method": "paper-pca", "pairs": 5},
    "SVM, 100 pairs": {"method": "paper-svm", "pairs": 100},
    "default": {},
}


def ours(data: Path, dataset: str, columns: list[Column], options: argparse.Namespace) -> Ours:
    golden = core.load_golden(data / f"{FILES[dataset]}.jsonl.gz")
    rows: dict[str, dict[Column, float | None]] = {}
    for name, how in METHODS.items():
        for column in columns:
            aspect = column.aspect if column.aspect in golden.aspects else "naturalness"
            fitted = core.fit_repeval(
                golden, aspect, model=options.model, level="dataset", bootstrap=0, seed=options.seed, **how
            )
            rows.setdefault(f"{options.model}, {name}", {})[column] = fitted.result.test.value
    return rows


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--seed", type=int, default=0)


if __name__ == "__main__":
    run("RepEval", __doc__, ours, options)
