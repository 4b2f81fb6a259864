"""Server time of a rerun with 1,600 items and 60 candidates loaded; at most 60 ms, the median.

    python tests/bench/bench_rerun.py [--reruns 20] [--json]

A golden set of 100 sources × 16 systems is kept in a temporary store, a calibration with 60 drafts is run by a real
worker, then every screen is opened and drawn again and again through Streamlit's own script runner, in a process that
got ready as the server does: screens imported and frozen.  Added to each rerun is a full garbage collection, which the
server makes now and then.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from core import projects  # noqa: E402
from core.calibration.settings import CalibrationSettings  # noqa: E402
from core.projects.calibration import CalibrationRequest  # noqa: E402
from core.projects.kinds import RunDetail  # noqa: E402
from core.records import AspectLabels, GoldenSet, Item, Scale  # noqa: E402
from core.settings import Settings  # noqa: E402
from core.store.store import Store  # noqa: E402
from pages.components import serving  # noqa: E402

LIMIT_MS, N_SOURCES, N_SYSTEMS, WAIT_SECONDS = 60.0, 100, 16, 300.0
WORDS = "the of a river bridge council budget school train storm harvest museum because therefore however".split()


@dataclass(frozen=True, slots=True)
class Figure:
    """Milliseconds of server time of one screen's reruns."""

    screen: str
    median: float
    worst: float


def golden_set(seed: int = 0) -> GoldenSet:
    """1,600 short texts; the label falls with the share of repeated words, so that there is something to find."""
    rng = np.random.default_rng(seed)
    items, labels = [], []
    for source in range(N_SOURCES):
        text = " ".join(rng.choice(WORDS, 120)) + "."
        for system in range(N_SYSTEMS):
            words = list(rng.choice(WORDS, 40))
            repeated = int(rng.integers(0, 5))
            target = " ".join(words[: 40 - 6 * repeated] + ["storm"] * (6 * repeated)).capitalize() + "."
            items.append(Item(f"{source}-{system}", target, f"doc{source}", f"sys{system}", text))
            labels.append(float(5 - repeated))
    aspects = {"coherence": AspectLabels("coherence", Scale(1, 5, 1.0), tuple(labels))}
    return GoldenSet("bench", "source_target", tuple(items), aspects)


def finished_run(store: Store, settings: Settings, golden: GoldenSet) -> RunDetail:
    """A calibration of 60 drafts without refining, run by a worker process."""
    project = projects.create_project(store, "bench")
    golden_id = projects.add_golden(store, project.project_id, golden)
    chosen = CalibrationSettings(rounds=0, resamples=200)
    request = CalibrationRequest(project.project_id, golden_id, "coherence", settings=chosen)
    run_id = projects.start_calibration(store, settings, request)
    projects.ensure_worker(settings)
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if (view := projects.run_view(store, run_id)).finished:
            return view
        time.sleep(0.5)
    raise TimeoutError("the calibration did not finish")


def measure(screen: str, reruns: int, **ids: str) -> Figure:
    from streamlit.testing.v1 import AppTest

    page = AppTest.from_file(ROOT / "pages" / f"{screen}.py", default_timeout=60)
    for name, value in ids.items():
        page.query_params[name] = value
    for _ in range(2):
        page.run()
    if page.exception:
        raise RuntimeError(page.exception[0].message)
    spent = []
    for _ in range(reruns):
        start = time.perf_counter()
        page.run()
        gc.collect()
        spent.append(1000 * (time.perf_counter() - start))
    return Figure(" ".join((screen, ids.get("section", ""))).strip(), statistics.median(spent), max(spent))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--reruns", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ |= {"CONCORD_HOME": home}
        settings = Settings.from_environment()
        store = projects.open_store(settings)
        view = finished_run(store, settings, golden_set())
        serving.get_ready()
        ids = {"project": view.project_id, "run": view.run_id}
        n = 0 if view.standing is None else len(view.standing.candidates)
        figures = [
            measure("0_overview", options.reruns, project=view.project_id, golden=view.golden_id, aspect="coherence"),
            measure("1_golden_set", options.reruns, project=view.project_id),
            measure("3_calibrate", options.reruns, **ids),
            measure("4_criteria", options.reruns, **ids),
            *(
                measure("6_compare", options.reruns, section=section, project=view.project_id, golden=view.golden_id)
                for section in ("table", "differences", "items", "curve", "brought", "judges")
            ),
            measure("10_runs", options.reruns, project=view.project_id),
        ]
    kept = all(figure.median <= LIMIT_MS for figure in figures)
    if options.json:
        body = {f.screen: {"median_ms": round(f.median, 1), "worst_ms": round(f.worst, 1)} for f in figures}
        print(json.dumps({"candidates": n, "limit_ms": LIMIT_MS, "kept": kept, "screens": body}))
    else:
        print(f"1,600 items, {n} candidates; server time of a rerun, limit {LIMIT_MS:.0f} ms")
        for figure in figures:
            print(f"  {figure.screen:22} median {figure.median:6.1f} ms   worst {figure.worst:6.1f} ms")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
