"""AutoCalibrate, Tables 1 to 5 and 8, next to the stored metrics of the reference data and our calibrated judge.

    python tests/papers/autocalibrate.py [--data ../shared/data] [--sets SummEval …] [--judge offline] [--seed 0]

The paper reports on all items.  Our judge is calibrated on half of the sources and reported on the other half.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import core
from core.records import GoldenSet
from tests.papers.printed import FILES, Column, Ours, run

METRICS = {"ROUGE-1": "rouge1_f", "ROUGE-2": "rouge2_f", "ROUGE-L": "rougeL_f", "UniEval": "unieval_{}"}
"""Stored columns of the reference data; `{}` is the aspect."""


def stored_metric(golden: GoldenSet, metric: str, column: Column) -> float | None:
    """Alignment of a stored metric over all items; None where the data has no such metric."""
    scores = golden.metrics.get(metric.format(column.aspect))
    if scores is None:
        return None
    statistic, level = column.measure.split()
    by_item = dict(zip(golden.item_ids, scores, strict=True))
    return core.align(golden, by_item, column.aspect, core.MeasureSettings(statistic, level)).value


def ours(data: Path, dataset: str, columns: list[Column], options: argparse.Namespace) -> Ours:
    golden = core.load_golden(data / f"{FILES[dataset]}.jsonl.gz")
    rows: dict[str, dict[Column, float | None]] = {
        judge: {column: stored_metric(golden, metric, column) for column in columns}
        for judge, metric in METRICS.items()
    }
    calibrated, bare = f"{options.judge}, calibrated, held-out", f"{options.judge}, no criteria, held-out"
    for column in columns:
        statistic, level = column.measure.split()
        result = core.calibrate(
            golden, column.aspect, options.judge, seed=options.seed, statistic=statistic, level=level
        )
        rows.setdefault(calibrated, {})[column] = result.held_out.value
        rows.setdefault(bare, {})[column] = result.no_criteria.held_out.value
    return rows


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--judge", default="offline")
    parser.add_argument("--seed", type=int, default=0)


if __name__ == "__main__":
    run("AutoCalibrate", __doc__, ours, options)
