"""`score` on a Ray cluster of two nodes beside `score` in one process: ``python bench_ray.py N FOLDER [--kill]``.

To be started in namespaces of its own (see `tests/ray_nodes.py`); prints one JSON object: items a second and CPU
milliseconds an item of both, and whether every item came once with the same verdict.  `--kill`: the second node is
killed when half of the parts are there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.bench_score import calibrate, command, texts, write  # noqa: E402
from tests.ray_nodes import HEAD, PORT, kill_with_children, two_nodes  # noqa: E402

TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Of all processes of this namespace, those that have ended and were waited for included."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            total += sum(map(int, stat.read_text().rpartition(")")[2].split()[11:15]))
        except OSError:  # it has just ended
            continue
    return total / TICK


def timed(asked: list[str], n: int, then: Any = lambda process: process.wait()) -> dict[str, Any]:
    """What the command said and how fast it was."""
    started, cpu = time.perf_counter(), cpu_seconds()
    with subprocess.Popen(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        then(process)
        assert process.stdout is not None
        said = json.loads(process.stdout.read() or "{}")
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    pace = {"seconds": round(seconds, 2), "items_per_second": round(n / seconds, 1), "cpu_ms": round(1e3 * cpu / n, 3)}
    return {
        "exit": process.returncode,
        **pace,
        "said": {k: said.get(k) for k in ("n_scored", "calls", "error")},
    }, seconds


def main() -> None:
    n, folder, kill = int(sys.argv[1]), Path(sys.argv[2]), "--kill" in sys.argv
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"CONCORD_HOME": str(folder / "home"), "OPENAI_API_KEY": "sk-never-in-ray-4711"}
    items, alone, parts = folder / "items.jsonl", folder / "alone.jsonl", folder / "parts.jsonl"
    data = ROOT.parent / "shared" / "data"
    judge = calibrate(folder, data, dict(os.environ))
    write(items, texts(data), n)
    with two_nodes(folder) as second:
        killed_at = 0

        def watch(process: subprocess.Popen[str]) -> None:
            nonlocal killed_at
            while process.poll() is None:
                there = len(list(parts.glob("part-*")))
                if kill and not killed_at and there * 2_000 * 2 >= n:
                    killed_at = there
                    kill_with_children(second.pid)
                time.sleep(0.1)

        on_ray = timed(command(items, judge, parts, "--ray", f"{HEAD}:{PORT}"), n, watch)
        again = timed(command(items, judge, parts, "--ray", f"{HEAD}:{PORT}"), n)
        one = timed(command(items, judge, alone, "--workers", "1"), n)
    print(json.dumps([on_ray, again, one]), file=sys.stderr)
    theirs = [json.loads(line) for file in sorted(parts.glob("part-*")) for line in file.open()]
    ours = [json.loads(line) for line in alone.open()]
    gaps = [abs(a["score"] - b["score"]) for a, b in zip(theirs, ours, strict=True)]
    body = {
        "n": n,
        "killed_at_part": killed_at,
        "ray": on_ray,
        "again": again,
        "one_process": one,
        "same_order": [row["item_id"] for row in theirs] == [row["item_id"] for row in ours],
        "largest_gap": max(gaps),
        "per_core": round(on_ray["items_per_second"] / 2 / one["items_per_second"], 3),
        "per_cpu_second": round(one["cpu_ms"] / on_ray["cpu_ms"], 3),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(body))


main()
