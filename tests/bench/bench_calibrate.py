"""Calibration on real data, end to end: what the judge reaches on held-out sources, how long it takes, how much memory.

    python tests/bench/bench_calibrate.py [--data ../shared/data] [--sets summeval newsroom qags_cnndm] [--seeds 3]
        [--judge offline] [--processes 1] [--json]

Default settings of Concord: half the sources for calibration, the statistic and level that the golden set allows.
Each calibration (set, aspect, seed) runs in a process of its own, so that seconds (reading the file included) and peak
memory are those of one run.  Each row is one held-out alignment with its interval and n; the mean rows average aspects
and seeds and have no interval of their own.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import core  # noqa: E402

ASPECTS = {
    "summeval": ("coherence", "consistency", "fluency", "relevance"),
    "newsroom": ("coherence", "fluency", "informativeness", "relevance"),
    "qags_cnndm": ("consistency",),
    "qags_xsum": ("consistency",),
    "sfres": ("informativeness", "naturalness", "quality"),
    "sfhot": ("informativeness", "naturalness", "quality"),
    "topical_chat": ("naturalness", "coherence", "engagingness", "groundedness"),
}
HEADER = (
    f"{'set':<12} {'aspect':<16} {'seed':>4} {'statistic':<18} {'calibration':>11} {'held out':>8}  "
    f"{'95 % interval':<14} {'n':>4}  {'no criteria':>11} {'calls':>7} {'seconds':>7} {'peak MB':>7}"
)


@dataclass(frozen=True)
class Row:
    """One calibration; `value`s are alignments, None where undefined."""

    set: str
    aspect: str
    seed: int
    statistic: str
    level: str
    calibration: float | None
    held_out: float | None
    interval: tuple[float, float] | None
    n: int
    no_criteria: float | None
    calls: int
    seconds: float
    peak_mb: float


def calibrate(path: Path, aspect: str, seed: int, judge: str) -> Row:
    started = time.perf_counter()
    result = core.calibrate(core.load_golden(path), aspect, judge=judge, seed=seed)
    told = result.held_out
    return Row(
        set=path.name.split(".")[0],
        aspect=aspect,
        seed=seed,
        statistic=told.statistic,
        level=told.level,
        calibration=result.calibration.value,
        held_out=told.value,
        interval=(told.interval.low, told.interval.high) if told.interval else None,
        n=told.n,
        no_criteria=result.no_criteria.held_out.value,
        calls=result.calls,
        seconds=time.perf_counter() - started,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def shown(value: float | None) -> str:
    return "—" if value is None else f"{value:.3f}"


def print_row(row: Row) -> None:
    interval = f"[{row.interval[0]:.3f}, {row.interval[1]:.3f}]" if row.interval else "—"
    print(
        f"{row.set:<12} {row.aspect:<16} {row.seed:>4} {row.statistic + ', ' + row.level:<18} "
        f"{shown(row.calibration):>11} {shown(row.held_out):>8}  {interval:<14} {row.n:>4}  "
        f"{shown(row.no_criteria):>11} {row.calls:>7} {row.seconds:>7.1f} {row.peak_mb:>7.0f}",
        flush=True,
    )


def mean_of(rows: list[Row], name: str) -> dict[str, object]:
    """Means over aspects and seeds; an undefined value counts for nothing and is counted."""

    def mean(values: list[float | None]) -> float | None:
        defined = [value for value in values if value is not None]
        return fmean(defined) if defined else None

    return {
        "set": name,
        "runs": len(rows),
        "undefined": sum(row.held_out is None for row in rows),
        "calibration": mean([row.calibration for row in rows]),
        "held_out": mean([row.held_out for row in rows]),
        "no_criteria": mean([row.no_criteria for row in rows]),
        "most_seconds": max(row.seconds for row in rows),
        "most_mb": max(row.peak_mb for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="+", choices=ASPECTS, default=["summeval", "newsroom", "qags_cnndm"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--judge", default="offline")
    parser.add_argument("--processes", type=int, default=1, help="calibrations at a time")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()

    asked = [(name, aspect, seed) for name in options.sets for aspect in ASPECTS[name] for seed in range(options.seeds)]
    if not options.json:
        print(HEADER)
    rows: list[Row] = []
    with ProcessPoolExecutor(options.processes, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        paths = [options.data / f"{name}.jsonl.gz" for name, _, _ in asked]
        _, aspects, seeds = zip(*asked, strict=True)
        for row in pool.map(calibrate, paths, aspects, seeds, [options.judge] * len(asked)):
            rows.append(row)
            if not options.json:
                print_row(row)
    means = [mean_of([row for row in rows if row.set == name], name) for name in options.sets]
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], "means": means}))
        return
    for mean in means:
        print(
            f"\nmean of {mean['set']}, {mean['runs']} runs ({mean['undefined']} undefined): "
            f"held out {shown(mean['held_out'])}, calibration {shown(mean['calibration'])}, "
            f"no criteria on the held-out items {shown(mean['no_criteria'])}; "
            f"slowest {mean['most_seconds']:.1f} s, largest {mean['most_mb']:.0f} MB"
        )


if __name__ == "__main__":
    main()
