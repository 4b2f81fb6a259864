"""A golden set of 100,000 items: from the upload to frozen, its calibration by racing, and every screen with it.

    python tests/bench/bench_large.py [--items 100000] [--only upload,calibrate,screens] [--keep FOLDER] [--json]

A file of ten systems a source (texts of 60 words, sources of 100, three people an item) is made on the fly.  Each part
runs in a process of its own, as a person goes: *upload* drops the file on Golden set, waits until it is read, and
presses Freeze; *calibrate* is a run with the offline judge and the settings that the screen proposes, refining round
and held-out items included; *screens* opens each screen and draws it anew.  Printed: processor seconds and largest
memory of the first two, processor milliseconds of the reruns (a quiet machine's server time), the first opening apart.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

UPLOAD_SECONDS, UPLOAD_MB, CALIBRATE_SECONDS, RERUN_MS = 60.0, 1_500.0, 600.0, 250.0
N_SYSTEMS, PATIENCE = 10, 600
WORDS = (
    "the of a in to and was for on that with said from his at by it be as has not are but were after who had they "
    "river bridge council budget school train storm harvest museum because therefore however police court company "
    "market player season team goal city minister report plan water fire family home hospital doctor patient road"
).split()
Screen = tuple[str, str, dict[str, str], dict[str, str]]
"""What it is called, its file, ids of its address, and what its session remembers (key → choice)."""


def write_golden(file: Path, n_items: int, seed: int = 0) -> None:
    """Labels fall with the share of one word that a text repeats, so that there is something to find."""
    rng = np.random.default_rng(seed)
    words = np.array(WORDS)
    with file.open("w", encoding="utf-8") as out:
        for position in range(n_items):
            number, system = divmod(position, N_SYSTEMS)
            if not system:
                source = " ".join(rng.choice(words, 100)) + "."
            repeated = int(rng.integers(0, 5))
            target = " ".join([*rng.choice(words, 60 - 8 * repeated), *["storm"] * (8 * repeated)]).capitalize()
            raters = np.clip(5 - repeated + rng.integers(-1, 2, 3), 1, 5).tolist()
            about = {"item_id": f"{number}-{system}", "source_id": f"doc{number}", "system_id": f"sys{system}"}
            labels = {"ann_coherence": raters, "human_coherence": sum(raters) / 3}
            out.write(json.dumps(about | {"source": source, "target": f"{target}."} | labels) + "\n")


# ── the parts, each in a process of its own ──────────────────────────────────────────────────────────────────────


def upload(folder: Path, n_items: int) -> dict[str, Any]:
    """The file dropped on the screen, read, and frozen by the press."""
    from core import projects
    from core.data.tables import READER
    from core.settings import Settings
    from tests.pages.screen import open_screen, press
    from tests.pages.screen import upload as drop

    store = projects.open_store(Settings.from_environment())
    project_id = projects.create_project(store, "large").project_id
    screen = open_screen("1_golden_set", project=project_id, section="upload")
    screen.default_timeout = PATIENCE
    before = processor_seconds()
    press(drop(screen, "large.jsonl", (folder / "large.jsonl").read_bytes()), "Freeze this golden set")
    (golden,) = projects.list_goldens(store, project_id)
    assert golden.n_items == n_items, golden.n_items
    (folder / "ids.json").write_text(json.dumps({"project": project_id, "golden": golden.golden_id}))
    decoding, beside = READER.cost  # in a process of its own, which lives at the same time
    return {"seconds": processor_seconds() - before + decoding, "mb": largest_mb() + beside}


def calibrate(folder: Path, n_items: int) -> dict[str, Any]:
    """A run as the screen would start it, done by a worker's queue in this process."""
    from core import projects
    from core.jobs.queue import Queue
    from core.projects.calibration import CalibrationRequest
    from core.projects.kinds import do_run, wants_of
    from core.settings import Settings

    settings = Settings.from_environment()
    store = projects.open_store(settings)
    ids = json.loads((folder / "ids.json").read_text())
    run_id = projects.start_calibration(store, settings, CalibrationRequest(ids["project"], ids["golden"], "coherence"))
    before = processor_seconds()
    queue = Queue(store, "here", lambda run, progress: do_run(store, settings, run, progress), wants=wants_of)
    while not queue.idle:
        queue.tick()
        time.sleep(0.1)
    run = projects.run_view(store, run_id)
    if run.status != "done" or run.calibration is None:
        raise RuntimeError(f"the calibration is {run.status}: {run.error}")
    (folder / "ids.json").write_text(json.dumps(ids | {"run": run_id}))
    found = run.calibration.held_out
    return {"seconds": processor_seconds() - before, "mb": largest_mb(), "calls": run.calls, "held_out": found.value}


def screens(folder: Path, n_items: int) -> dict[str, Any]:
    """Each screen opened and drawn anew; milliseconds of the processor, all threads of the process."""
    from pages.components import serving

    serving.get_ready()
    ids = json.loads((folder / "ids.json").read_text())
    figures = {}
    for name, file, address, chosen in list_screens(ids):
        first, again = draw(file, address, chosen)
        figures[name] = {"first_ms": first, "median_ms": statistics.median(again), "worst_ms": max(again)}
        print(f"  {name:28} first {first:8.0f} ms   again {figures[name]['median_ms']:7.0f} ms", file=sys.stderr)
    return {"screens": figures, "mb": largest_mb()}


def list_screens(ids: dict[str, str]) -> list[Screen]:
    """Every screen, and what of each may be slow with many items."""
    from pages.components import state

    project, golden = {"project": ids["project"]}, {"golden": ids["golden"]}
    about = project | golden | {"aspect": "coherence"}
    run = project | {"run": ids["run"]}
    sections = ("table", "differences", "items", "fails", "systems", "curve", "brought", "judges")
    parts = ("Labels", "Items", "Sources and systems")
    views = ("items", "list", "plot", "rounds", "lineage")
    return [
        ("overview", "0_overview", about, {}),
        *((f"golden set, {part}", "1_golden_set", project, {state.GOLDEN_PART: part}) for part in parts),
        ("label", "2_label", about, {}),
        ("calibrate", "3_calibrate", run, {}),
        ("criteria", "4_criteria", run, {}),
        ("criteria, try", "4_criteria", run | {"section": "try"}, {}),
        *((f"misaligned, {view}", "5_misaligned", run | {"section": view}, {}) for view in views),
        *((f"compare, {section}", "6_compare", about | {"section": section}, {}) for section in sections),
        ("repeval", "7_repeval", about, {}),
        ("fusion", "8_fusion", about, {}),
        ("report", "9_report", about, {}),
        ("runs", "10_runs", project, {}),
        ("runs, log", "10_runs", project | {"section": "log"}, {}),
    ]


def draw(file: str, address: dict[str, str], chosen: dict[str, str], reruns: int = 5) -> tuple[float, list[float]]:
    """(the first drawing, the reruns), in milliseconds of the processor."""
    from tests.pages.screen import prepared, run

    screen = prepared(file, **address)
    screen.default_timeout = PATIENCE
    for key, choice in chosen.items():
        screen.session_state[key] = choice

    def spent(do: Callable[[], Any]) -> float:
        before = time.process_time()
        do()
        return 1000 * (time.process_time() - before)

    first = spent(lambda: run(screen))
    run(screen)
    gc.collect()
    return first, [spent(lambda: run(screen)) for _ in range(reruns)]


def remember_somebody() -> None:
    """Every session begins as that of a browser that knows whose it is."""
    from pages.components import remembered

    remembered.name = lambda settings: "Ann"


PARTS = {"upload": upload, "calibrate": calibrate, "screens": screens}


def processor_seconds() -> float:
    """Of this process and those it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def largest_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ── the whole ────────────────────────────────────────────────────────────────────────────────────────────────────


def in_own_process(part: str, folder: Path, n_items: int) -> Any:
    command = [sys.executable, __file__, "--part", part, "--keep", str(folder), "--items", str(n_items)]
    environment = {**os.environ, "CONCORD_HOME": str(folder / "home"), "CONCORD_DEMO": "off", "OMP_NUM_THREADS": "1"}
    environment |= {"CONCORD_WORKER": "external"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def told(found: dict[str, Any]) -> list[str]:
    """What was over a limit."""
    over = []
    if (part := found.get("upload")) and (part["seconds"] > UPLOAD_SECONDS or part["mb"] > UPLOAD_MB):
        over.append("upload")
    if (part := found.get("calibrate")) and part["seconds"] > CALIBRATE_SECONDS:
        over.append("calibrate")
    drawn = found.get("screens", {}).get("screens", {})
    return over + [name for name, figures in drawn.items() if figures["median_ms"] > RERUN_MS]


def measure(folder: Path, n_items: int, parts: list[str]) -> dict[str, Any]:
    if not (file := folder / "large.jsonl").exists():
        write_golden(file, n_items)
    found: dict[str, Any] = {"items": n_items, "file_mb": file.stat().st_size / 1e6}
    for part in parts:
        found[part] = in_own_process(part, folder, n_items)
        if "seconds" in found[part]:
            print(f"{part}: {found[part]['seconds']:.1f} s, {found[part]['mb']:.0f} MB", file=sys.stderr, flush=True)
    return found | {"over": told(found)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--only", default=",".join(PARTS))
    parser.add_argument("--keep", type=Path, help="folder to work in and leave as it is; with --only, to go on in")
    parser.add_argument("--part", choices=list(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.part:
        remember_somebody()
        print(json.dumps(PARTS[options.part](options.keep, options.items)))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        found = measure(folder, options.items, options.only.split(","))
    if options.json:
        print(json.dumps(found))
    else:
        print("all within the limits" if not found["over"] else f"over a limit: {', '.join(found['over'])}")
    return 1 if found["over"] else 0


if __name__ == "__main__":
    sys.exit(main())
