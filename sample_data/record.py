"""Write the recorded session of the demo's simulated reader, which the demo replays.

    python sample_data/record.py [--out DIR]

Run it again when a prompt or the reader has changed: a request is known by its text.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "sample_data" / "recorded")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from sample_data.recipe import demo_calibration

    result = demo_calibration.record(options.out)
    bare = result.no_criteria.held_out
    sys.stdout.write(f"{result.calls} replies; held-out {result.held_out.value}, no criteria {bare.value}\n")


if __name__ == "__main__":
    main()
