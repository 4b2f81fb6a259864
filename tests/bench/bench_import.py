"""Bringing in a judge: rows a second of processor time, and whether twice the rows take twice the time.

    python tests/bench/bench_import.py [--rows 100000]

Files of made-up replies and scores for a golden set with as many items, read and matched; once more beside a golden
set of 1,000 items, where only the matching rows' replies are read.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.data.verdict_files import load_recording, match
from core.judging.parse import read_rating
from core.records import AspectLabels, GoldenSet, Item, Scale


def golden_of(n: int) -> GoldenSet:
    items = tuple(Item(f"i{k}", f"text {k}", f"s{k // 10}") for k in range(n))
    return GoldenSet("g", "single", items, {"wit": AspectLabels("wit", Scale(1, 5), (3.0,) * n)})


def replies_file(n: int) -> bytes:
    texts = ("The text holds together well, though its end is abrupt. Score: {}", "Rating: {}/5", "I give it a {}.")
    rows = ({"custom_id": f"i{k}", "completion": texts[k % 3].format(k % 5 + 1)} for k in range(n))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def scores_file(n: int) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerows([["id", "rating"], *([f"i{k}", k % 5 + 1] for k in range(n))])
    return out.getvalue().encode()


def seconds(data: bytes, name: str, golden: GoldenSet) -> float:
    start = time.process_time()
    preview = match(load_recording(data, name), golden, "wit", read_reply=read_rating)
    taken = time.process_time() - start
    assert preview.n_scored == min(preview.n_rows, len(golden.items)), preview.problems
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    most = parser.parse_args().rows
    print(f"{'file':8} {'items':>8} {'rows':>9} {'seconds':>8} {'rows a second':>14} {'of half the rows':>17}")
    for label, name, make in (("scores", "s.csv", scores_file), ("replies", "r.jsonl", replies_file)):
        for n_items in (most, 1_000):
            golden = golden_of(n_items)
            _ = golden.digest
            before = None
            for n in (most // 4, most // 2, most):
                taken = min(seconds(make(n), name, golden) for _ in range(2))
                ratio = "" if before is None else f"{taken / before:.2f} ×"
                print(f"{label:8} {n_items:>8,} {n:>9,} {taken:>8.2f} {n / taken:>14,.0f} {ratio:>17}")
                before = taken


if __name__ == "__main__":
    main()
