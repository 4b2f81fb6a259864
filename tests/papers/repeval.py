"""RepEval, Table 1, next to RepEval here with a model at hand: the paper's PCA and SVM, and our default.

    python tests/papers/repeval.py [--data ../shared/data] [--sets SummEval …] [--model minilm] [--seed 0]

The paper trains on one data set and reports on all items of the others, with Mistral-7B.  Here each set is split by
source: figures are those of the test sources.  Sets that rate no fluency give their naturalness.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import core
from core.repeval import RepEvalSettings
from core.repeval.model import ModelSpec
from tests.papers.printed import FILES, Column, Ours, run

METHODS = {
    "PCA, 20 pairs": RepEvalSettings(method="paper-pca", n_pairs=20),
    "PCA, 5 pairs": RepEvalSettings(method="paper-pca", n_pairs=5),
    "SVM, 100 pairs": RepEvalSettings(method="paper-svm"),
    "default": RepEvalSettings(),
}


def ours(data: Path, dataset: str, columns: list[Column], options: argparse.Namespace) -> Ours:
    golden = core.load_golden(data / f"{FILES[dataset]}.jsonl.gz")
    rows: dict[str, dict[Column, float | None]] = {}
    for name, how in METHODS.items():
        for column in columns:
            aspect = column.aspect if column.aspect in golden.aspects else "naturalness"
            more = {"level": "dataset", "random_vectors": 0, "seed": options.seed}
            fitted = core.fit_repeval(golden, aspect, replace(how, model=ModelSpec(options.model), **more))
            rows.setdefault(f"{options.model}, {name}", {})[column] = fitted.result.test.value
    return rows


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--seed", type=int, default=0)


if __name__ == "__main__":
    run("RepEval", __doc__, ours, options)
