"""Make the sample golden sets from the hand-written texts: ``python sample_data/make.py [--out DIR] [--seed N]``.

With the default seed the files equal the committed ones byte for byte.  README.md says how labels come about.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from recipe import dialogues, notifications, pairs, summaries, verbalisations

HERE = Path(__file__).parent
SEED = 2026


def read_texts(folder: str) -> list[Any]:
    """All hand-written entries under ``texts/<folder>``, files in the order of their names."""
    entries: list[Any] = []
    for path in sorted((HERE / "texts" / folder).glob("*.json")):
        entries.extend(json.loads(path.read_text(encoding="utf-8")))
    return entries


def write_jsonl(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """One JSON object a line, UTF-8, line feeds."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    path.write_bytes(text.encode("utf-8"))


def write_csv(path: Path, rows: Sequence[dict[str, object]]) -> None:
    """A header line and a line a row, UTF-8, line feeds; lists and objects are written as JSON in their cell."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _cell(value) for name, value in row.items()})


def _cell(value: object) -> object:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else value


def make(out: Path, seed: int) -> None:
    """Write the five sets, and the newer batches beside them, into `out`, which is made if need be."""
    out.mkdir(parents=True, exist_ok=True)
    articles, reports = read_texts("articles"), read_texts("reports")
    rated = summaries.build(articles, seed)
    write_jsonl(out / "summaries.jsonl", rated)
    write_jsonl(out / "pairs.jsonl", pairs.build(rated, seed))
    write_jsonl(out / "dialogue.jsonl", dialogues.build(read_texts("dialogues"), seed))
    write_csv(out / "data_to_text.csv", verbalisations.build(read_texts("records"), seed))
    write_jsonl(out / "notifications.jsonl", notifications.build(reports, seed))
    newer = summaries.newer(articles, seed) | notifications.newer(read_texts("later_reports"), seed)
    (out / "newer").mkdir(exist_ok=True)
    for name, rows in newer.items():
        write_jsonl(out / "newer" / f"{name}.jsonl", rows)


def main() -> None:
    """Read the command line and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=HERE, help="folder to write to (default: beside this script)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"seed of the generators (default: {SEED})")
    options = parser.parse_args()
    make(options.out, options.seed)


if __name__ == "__main__":
    main()
