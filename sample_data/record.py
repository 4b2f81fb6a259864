"""Write the recorded session of the demo's simulated reader, which the demo replays: ``python sample_data/record.py``.

Run it again when a prompt or the reader has changed: a request is known by its text.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from sample_data.recipe import demo_calibration

    demo_calibration.record()
