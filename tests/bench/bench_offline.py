"""The offline judge on every aspect of the reference sets: calibrated, without criteria, and a plain regression.

    python tests/bench/bench_offline.py [--data ../shared/data] [--sets …] [--seeds 3] [--out OFFLINE.md]

Default settings of Concord; each figure is the alignment on held-out sources (the statistic and level that the golden
set allows).  The plain regression is the row of the leaderboard (`core.comparison.supervised`): learnt from about four
fifths of all labels, twice what calibrating sees.  A run is below no criteria where the paired difference, clustered
by source, is negative at 5 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import core  # noqa: E402
from core.comparison.supervised import plain_regression  # noqa: E402
from core.records import Measure  # noqa: E402
from core.stats import LabelledItems, align_each, claim  # noqa: E402


@dataclass(frozen=True)
class Row:
    """One calibration; held-out alignments, None if undefined.  `claim` is on the gain over the baseline."""

    set: str
    aspect: str
    seed: int
    calibrated: float | None
    no_criteria: float | None
    plain: float | None
    claim: str


def rows_of(path: Path, seeds: int) -> Iterator[Row]:
    golden = core.load_golden(path)
    for aspect in golden.aspects:
        plain = plain_regression(golden, aspect).values
        for seed in range(seeds):
            run = core.calibrate(golden, aspect, seed=seed)
            told = run.held_out
            items = LabelledItems.of(golden, aspect, run.split.held_out)
            beside = align_each(plain[None, items.positions], items, Measure(told.statistic, told.level))
            gain = run.gain
            yield Row(
                set=path.name.split(".")[0],
                aspect=aspect,
                seed=seed,
                calibrated=told.value,
                no_criteria=run.no_criteria.held_out.value,
                plain=beside[0].value,
                claim=claim(gain.value, gain.interval, gain.p),
            )


def mean(values: Sequence[float | None]) -> float:
    return fmean(value for value in values if value is not None)


def line(name: str, rows: Sequence[Row]) -> str:
    figures = [mean([getattr(row, part) for row in rows]) for part in ("calibrated", "no_criteria", "plain")]
    claims = [sum(row.claim == word for row in rows) for word in ("higher", "lower")]
    return (
        f"| {name} | {len(rows)} | "
        + " | ".join(f"{figure:.3f}" for figure in figures)
        + f" | {claims[0]} | {claims[1]} |"
    )


def table(rows: Sequence[Row]) -> str:
    """A line an aspect, and the mean of all, in Markdown."""
    names = list(dict.fromkeys((row.set, row.aspect) for row in rows))
    parts = [line(" ".join(name), [row for row in rows if (row.set, row.aspect) == name]) for name in names]
    head = ["| aspect | runs | calibrated | no criteria | plain regression | above | below |", "|" + " --- |" * 7]
    return "\n".join([*head, *parts, line("**mean**", rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, help="keep the table in this Markdown file")
    options = parser.parse_args()

    paths = [
        path
        for path in sorted(options.data.glob("*.jsonl.gz"))
        if not options.sets or path.name.split(".")[0] in options.sets
    ]
    rows: list[Row] = []
    for path in paths:
        for row in rows_of(path, options.seeds):
            rows.append(row)
            print(f"{row.set} {row.aspect} {row.seed}: {row.calibrated} {row.no_criteria} {row.plain}", file=sys.stderr)
    print(table(rows))
    if options.out:
        command = f"python tests/bench/bench_offline.py --seeds {options.seeds}"
        options.out.write_text(f"# The offline judge, held out\n\n`{command}`\n\n{table(rows)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
