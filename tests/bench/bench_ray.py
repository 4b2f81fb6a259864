"""`score` on a Ray cluster of two nodes beside `score` in one process: ``python bench_ray.py N FOLDER [--kill]``.

To be started in namespaces of its own (see `tests/ray_nodes.py`); prints one JSON object: items a second and CPU
milliseconds an item of both, and whether every item came once with the same verdict.  `--kill`: the driver is killed
when a quarter of the parts are there and started again, the second node when half of them are; no pace is told then,
because the last call scores a part of the items and the time of killed processes is not counted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from core import load_judge  # noqa: E402
from core.scoring.on_ray import PART  # noqa: E402
from tests.bench.bench_score import calibrate, command, texts, write  # noqa: E402
from tests.ray_nodes import HEAD, PORT, kill_with_children, two_nodes  # noqa: E402

KEY = "sk-never-in-ray-4711"
TICK = os.sysconf("SC_CLK_TCK")
Watch = Callable[["subprocess.Popen[str]"], None]


def cpu_seconds() -> float:
    """Of all processes of this namespace, those that have ended and were waited for included."""
    total = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            total += sum(map(int, stat.read_text().rpartition(")")[2].split()[11:15]))
        except OSError:  # it has just ended
            continue
    return total / TICK


def timed(asked: list[str], n: int, then: Watch = lambda process: None) -> dict[str, Any]:
    """What the command said and how fast it was."""
    started, cpu = time.perf_counter(), cpu_seconds()
    with subprocess.Popen(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        then(process)
        said = json.loads(process.communicate()[0] or "{}")
    seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu
    pace = {"seconds": round(seconds, 2), "items_per_second": round(n / seconds, 1), "cpu_ms": round(1e3 * cpu / n, 3)}
    keep = ("n_scored", "calls", "resumed_from", "remarks", "error")
    return {"exit": process.returncode, **pace, "said": {name: said.get(name) for name in keep}}


def stamps(parts: Path) -> dict[str, int]:
    return {part.name: part.stat().st_mtime_ns for part in sorted(parts.glob("part-*"))}


def killing(parts: Path, at: int, kill: Callable[[subprocess.Popen[str]], None], seen: dict[str, int]) -> Watch:
    """Kill when `at` parts are there; `seen` takes the parts of that moment."""

    def watch(process: subprocess.Popen[str]) -> None:
        while process.poll() is None and len(stamps(parts)) < at:
            time.sleep(0.05)
        seen.update(stamps(parts))
        kill(process)

    return watch


def holding(key: str) -> list[str]:
    """The files of the nodes and the store of the cluster, as far as they hold the key."""
    import ray
    from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list

    ray.init(address=f"{HEAD}:{PORT}", log_to_driver=False, configure_logging=False)
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    logs = {str(file): file.read_bytes() for file in session.rglob("*") if file.is_file()}
    kept = {str(name): _internal_kv_get(name) or b"" for name in _internal_kv_list(b"")}
    kept |= {"jobs": repr(ray._private.state.jobs()).encode()}
    ray.shutdown()
    assert logs
    assert kept["jobs"]
    return [name for name, data in (logs | kept).items() if key.encode() in data]


def another_concord(folder: Path) -> str:
    """Where a version of Concord lies that cannot do this: nodes are to work with the code of who asks."""
    package = folder / "another" / "core"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text('raise RuntimeError("another version of Concord")\n')
    return str(package.parent)


def main() -> None:
    n, folder, kill = int(sys.argv[1]), Path(sys.argv[2]), "--kill" in sys.argv
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"CONCORD_HOME": str(folder / "home"), "OPENAI_API_KEY": KEY}
    items, alone, parts = folder / "items.jsonl", folder / "alone.jsonl", folder / "parts.jsonl"
    data = ROOT.parent / "shared" / "data"
    judge = calibrate(folder, data, dict(os.environ))
    write(items, texts(data), n)
    at_driver, at_node = dict[str, int](), dict[str, int]()
    with two_nodes(folder, another_concord(folder)) as second:
        asked = command(items, judge, parts, "--ray", f"{HEAD}:{PORT}")
        killed = kill and timed(asked, n, killing(parts, n // PART // 4, subprocess.Popen.kill, at_driver))
        lose = killing(parts, n // PART // 2, lambda _: kill_with_children(second.pid), at_node)
        on_ray = timed(asked, n, lose) if kill else timed(asked, n)
        assert on_ray["exit"] == 0, on_ray
        kept = stamps(parts)
        again = timed(asked, n)
        key_at_large = holding(KEY)
        one = timed(command(items, judge, alone, "--workers", "1"), n)
    print(json.dumps([killed, on_ray, again, one]), file=sys.stderr)
    theirs = [json.loads(line) for file in sorted(parts.glob("part-*")) for line in file.open()]
    ours = [json.loads(line) for line in alone.open()]
    gaps = [abs(a["score"] - b["score"]) for a, b in zip(theirs, ours, strict=True)]
    body = {
        "n": n,
        "driver_killed_at_part": len(at_driver),
        "node_killed_at_part": len(at_node),
        "finished_parts_untouched": kept.items() >= at_driver.items() | at_node.items() and kept == stamps(parts),
        "ray": on_ray,
        "again": again,
        "one_process": one,
        "same_order": [row["item_id"] for row in theirs] == [row["item_id"] for row in ours],
        "largest_gap": max(gaps),
        "per_core": None if kill else round(on_ray["items_per_second"] / 2 / one["items_per_second"], 3),
        "per_cpu_second": None if kill else round(one["cpu_ms"] / on_ray["cpu_ms"], 3),
        "criteria": len(load_judge(judge).criteria),
        "key_at_large": key_at_large,
        "load": os.getloadavg()[0],
    }
    print(json.dumps(body))


main()
