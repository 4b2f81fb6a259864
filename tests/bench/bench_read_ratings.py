"""How fast replies are read, from the file to the ratings file.

    python tests/bench/bench_read_ratings.py [--json] [--replies 200000] [--data ../shared/data]

The replies of `topical_chat_responses` and `summeval_responses`, repeated until there are enough of them, in one file
with 20 replies an item; where the data is missing, made-up replies of the same forms.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from core.export.verdict_files import read_replies_file
from core.records import Scale

SAMPLES = 20
FORMS = (
    "{n}",
    "Rating: {n}\nRationale: The reply names 2 of the 3 facts and would need a source to be a 5.",
    "Analysis: The text keeps to its topic, names {n} people and 1 town, and ends early.\n\nRating: {n}",
    "The summary leaves out two of the main points, resulting in a score of {n} out of 5.",
    "{n} stars. The text is clear.",
    '{{"reason": "It repeats itself.", "score": {n}}}',
    "Bewertung: {n}",
    "评分：{n}分",
)


def recorded(folder: Path) -> list[str]:
    """The recorded replies under `folder`, or made-up ones."""
    files = sorted(folder.glob("*_responses/*.jsonl.gz"))
    replies = []
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            replies += [reply for line in lines for reply in json.loads(line)["responses"]]
    rng = random.Random(0)
    return replies or [rng.choice(FORMS).format(n=rng.randint(1, 5)) for _ in range(10_000)]


def rows(replies: list[str], wanted: int) -> Iterator[str]:
    """JSONL lines of `SAMPLES` replies an item, until `wanted` replies are written."""
    for start in range(0, wanted, SAMPLES):
        responses = [replies[place % len(replies)] for place in range(start, min(start + SAMPLES, wanted))]
        yield json.dumps({"item_id": str(start), "responses": responses}) + "\n"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true")
    options.add_argument("--replies", type=int, default=200_000)
    options.add_argument("--data", type=Path, default=Path(__file__).resolve().parents[3] / "shared" / "data")
    given = options.parse_args()
    replies = recorded(given.data)
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "replies.jsonl", Path(folder) / "ratings.jsonl"
        source.write_text("".join(rows(replies, given.replies)), encoding="utf-8")
        start, worked = time.perf_counter(), time.process_time()
        counts = read_replies_file(source, Scale(0, 5), out=out)
        seconds, worked = time.perf_counter() - start, time.process_time() - worked
    body = {
        "replies": counts["n_replies"],
        "different": len(replies),
        "read": counts["n_read"],
        "seconds": round(seconds, 2),
        "processor_seconds": round(worked, 2),
        "replies_per_second": round(counts["n_replies"] / seconds),
    }
    print(json.dumps(body) if given.json else "\n".join(f"{name}: {value}" for name, value in body.items()))


if __name__ == "__main__":
    main()
