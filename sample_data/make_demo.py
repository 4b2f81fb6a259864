"""Builds the demo project and writes it to `demo_project.zip`.

    python sample_data/make_demo.py [--out FILE]

Takes about half a minute. Every run is done again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "sample_data" / "demo_project.zip")
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from core import projects
    from core.project_records import DEMO_PROJECT
    from core.settings import Settings
    from sample_data.recipe.demo_project import build_demo

    with tempfile.TemporaryDirectory(prefix="concord-demo-") as folder:
        settings = Settings(home=Path(folder), worker="external", worker_id="demo")
        with projects.open_store(settings) as store:
            build_demo(store, settings, lambda chapter: sys.stderr.write(f"{chapter}\n"))
            store.upkeep.prune_replies(time.time(), delete=True)  # the simulated judge answers again for nothing
            told = projects.export_project(store, settings, DEMO_PROJECT, options.out)
    sys.stdout.write(f"{options.out}: {told.size / 1e6:.1f} MB; {told.words}\n")


if __name__ == "__main__":
    main()
