"""How often a judge that is simply one more rater is called above people, and how often a better or worse one is.

    python tests/bench/bench_people.py [--json] [--runs 2000] [--raters 3 4 5] [--sources 8 25 100]
        [--statistic spearman] [--levels dataset sample] [--judges "one more" better worse uneven]
        [--annotator-test]

Labels are whole numbers from 1 to 5 on sources of 6 items.  Each rater reads the truth with an error on each item, an
error on each source (what one text did to them) and a leniency of their own.  The judge is drawn in the same way
("one more"), with errors 0.6 times as large ("better") or 1.6 times ("worse"), or the raters' errors differ and the
judge's too ("uneven": log-normal, sigma .3; the judge is then really better or worse than these raters, so a rate
above 5 % there is no mistake, and the sentence speaks of these raters only).

Told are the shares of runs called above, as good as, and below a person, and how often the interval holds 0;
`--annotator-test` adds how often that test passes (the paper's, and ours by source).  A share over 2,000 runs is known
to within .01 (two simulation errors).
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from core.records import Measure
from core.stats import LabelledItems, RaterTable, annotator_test, beside_people

ITEMS = 6
JUDGES = {"one more": 1.0, "better": 0.6, "worse": 1.6, "uneven": 1.0}


@dataclass(frozen=True)
class Drawn:
    """(n_raters, n_items) ratings, the judge's labels (n_items,), and the source of each item."""

    ratings: np.ndarray
    judge: np.ndarray
    sources: np.ndarray


def draw(rng: np.random.Generator, raters: int, n_sources: int, judge: str) -> Drawn:
    """Labels of the raters and of a judge of that kind."""
    sources = np.repeat(np.arange(n_sources), ITEMS)
    truth = 0.7 * rng.normal(size=n_sources)[sources] + rng.normal(size=sources.size)
    size = np.full(raters + 1, 1.0) if judge != "uneven" else np.exp(0.3 * rng.normal(size=raters + 1))
    size[-1] *= JUDGES[judge]
    by_source = rng.normal(size=(raters + 1, n_sources))[:, sources]
    error = 0.8 * rng.normal(size=(raters + 1, sources.size)) + 0.5 * by_source
    seen = 3 + truth + size[:, None] * error + 0.3 * rng.normal(size=(raters + 1, 1))
    labels = np.clip(np.rint(seen), 1, 5)
    return Drawn(labels[:-1], labels[-1], sources)


def table_of(drawn: Drawn) -> RaterTable:
    return RaterTable(tuple(str(k) for k in range(len(drawn.ratings))), drawn.ratings)


def items_of(drawn: Drawn) -> LabelledItems:
    return LabelledItems.from_arrays(drawn.ratings.mean(axis=0), drawn.sources)


def shares(runs: int, raters: int, n_sources: int, judge: str, measure: dict[str, Any]) -> dict[str, float]:
    """Shares of runs by what was said."""
    rng = np.random.default_rng([raters, n_sources, list(JUDGES).index(judge)])
    counted = dict.fromkeys(("above", "level", "open", "below", "holds 0"), 0)
    for _ in range(runs):
        drawn = draw(rng, raters, n_sources, judge)
        beside = beside_people(table_of(drawn), drawn.judge, items_of(drawn), **measure)
        counted[beside.standing] += 1
        counted["holds 0"] += beside.interval is not None and beside.interval.low <= 0 <= beside.interval.high
    return {("as good" if name == "level" else name): count / runs for name, count in counted.items()}


def passed(runs: int, raters: int, n_sources: int, judge: str) -> dict[str, float]:
    """Shares of runs in which the annotator test passed."""
    rng = np.random.default_rng([raters, n_sources, list(JUDGES).index(judge)])
    counted = {"passes": 0, "passes by source": 0}
    for _ in range(runs):
        drawn = draw(rng, raters, n_sources, judge)
        for name, clustered in (("passes", False), ("passes by source", True)):
            counted[name] += bool(
                annotator_test(table_of(drawn), drawn.judge, items_of(drawn), clustered=clustered).passes
            )
    return {name: count / runs for name, count in counted.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=2_000)
    parser.add_argument("--annotator-test", action="store_true")
    parser.add_argument("--raters", type=int, nargs="+", default=[3, 4, 5])
    parser.add_argument("--sources", type=int, nargs="+", default=[8, 25, 100])
    parser.add_argument("--levels", nargs="+", default=["dataset", "sample"])
    parser.add_argument("--judges", nargs="+", default=list(JUDGES), choices=list(JUDGES))
    parser.add_argument("--statistic", default="spearman")
    options = parser.parse_args()
    told = []
    for level in options.levels:
        measure = {"measure": Measure(options.statistic, level)}
        for judge in options.judges:
            for raters in options.raters:
                for n_sources in options.sources:
                    row = {"level": level, "judge": judge, "raters": raters, "sources": n_sources}
                    row |= shares(options.runs, raters, n_sources, judge, measure)
                    if options.annotator_test:
                        row |= passed(options.runs, raters, n_sources, judge)
                    told.append(row)
                    if not options.json:
                        cells = (f"{k} {v:.3f}" if isinstance(v, float) else str(v) for k, v in row.items())
                        print("  ".join(cells), flush=True)
    if options.json:
        print(json.dumps({"runs": options.runs, "statistic": options.statistic, "cells": told}))


if __name__ == "__main__":
    main()
