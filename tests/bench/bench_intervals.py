"""Intervals around verdicts and abstaining, on held-out items of the reference sets: does what is promised hold?

    python tests/bench/bench_intervals.py [--data ../shared/data] [--sets …] [--seeds 2] [--coverage .9] [--json]

Every aspect of every set is calibrated with the offline judge (no refining).  Told on held-out sources: the share of
labels that the intervals hold (mean over sources), their mean width in widths of the scale (for yes and no the share of
sets that hold both answers), and how the error changes when the least sure fifth goes, with a one-sided p.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import core  # noqa: E402
from core.comparison.sureness import Sureness, calibrated_sureness  # noqa: E402


@dataclass(frozen=True)
class Row:
    """One aspect of one set with one seed."""

    golden: str
    aspect: str
    seed: int
    sure: Sureness


def measured(data: Path, sets: list[str], seeds: int, coverage: float) -> list[Row]:
    rows = []
    for path in sorted(data.glob("*.jsonl.gz")):
        name = path.name.split(".")[0]
        if sets and name not in sets:
            continue
        golden = core.load_golden(path)
        for aspect in golden.aspects:
            for seed in range(seeds):
                settings = core.CalibrationSettings(rounds=0, resamples=0, seed=seed)
                run = core.calibrate(golden, aspect, settings=settings)
                rows.append(Row(name, aspect, seed, calibrated_sureness(golden, run, coverage=coverage)))
    return rows


def row_words(row: Row) -> str:
    sure, fifth = row.sure, row.sure.fifth
    width = None if sure.width is None else sure.width / (sure.scale.high - sure.scale.low)
    figures = [f"{value:.3f}" if value is not None else "—" for value in (sure.held, width)]
    change = "—" if fifth is None else f"{fifth.change / fifth.overall:+.1%} of {fifth.overall:.3g}"
    p = "—" if fifth is None or fifth.p is None else f"{fifth.p:.3f}"
    name = f"{row.golden} {row.aspect}{' (yes/no)' if sure.two_answers else ''}"
    return f"{name:<44}{row.seed:>3}{sure.n:>6}{sure.n_sources:>5}  {'  '.join(figures)}  {change:<20}{p}"


def total(rows: list[Row]) -> dict[str, object]:
    """Means over aspects and seeds, and on how many aspects abstaining helps, by seed."""
    graded = [row.sure.held for row in rows if not row.sure.two_answers and row.sure.held is not None]
    binary = [row.sure.held for row in rows if row.sure.two_answers and row.sure.held is not None]
    seeds = sorted({row.seed for row in rows})
    return {
        "held": fmean(graded) if graded else None,
        "held_yes_no": fmean(binary) if binary else None,
        "aspects": len(rows) // max(1, len(seeds)),
        "lower": [sum(r.sure.fifth is not None and r.sure.fifth.helps for r in rows if r.seed == s) for s in seeds],
        "not_lower": sorted({f"{r.golden} {r.aspect}" for r in rows if r.sure.fifth is None or not r.sure.fifth.helps}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--coverage", type=float, default=0.9)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    options = parser.parse_args()

    rows = measured(options.data, options.sets, options.seeds, options.coverage)
    if options.json:
        body = [{"set": row.golden, "seed": row.seed, "aspect": row.aspect} | row.sure.as_json() for row in rows]
        print(json.dumps(total(rows) | {"rows": body}))
        return
    print(f"{'set and aspect':<44}{'seed':>3}{'n':>5}{'src':>5}  held   width  error without the fifth  p")
    print("\n".join(map(row_words, rows)))
    print(json.dumps(total(rows), indent=1))


if __name__ == "__main__":
    main()
