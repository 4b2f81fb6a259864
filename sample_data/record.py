"""Writes the recorded sessions and replies: of the language model, out of `recorded/ratings.tsv` and
`recorded/criteria.json`, and of the demo's simulated reader, which is asked again.

    python sample_data/record.py [--out DIR]

To be run again when a prompt has changed (a request is known by its text) or when something was rated anew.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="default: sample_data/recorded")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from sample_data.recipe import demo_calibration, recorded_session

    for result in (
        recorded_session.record(out=options.out),
        demo_calibration.record(options.out or recorded_session.FOLDER),
    ):
        bare = result.no_criteria.held_out
        sys.stdout.write(f"{result.calls} replies; held-out {result.held_out.value}, no criteria {bare.value}\n")


if __name__ == "__main__":
    main()
