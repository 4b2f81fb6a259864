"""`score` on a Ray cluster of two nodes beside `score` in one process: ``python tests/bench/bench_ray.py 200000``.

The second of the nodes, of one processor each, is killed when half of the parts are there (``--kill``: whatever is
named is killed; ``driver``: the command itself when a quarter is there, which is then started again; ``none``).  It
all happens in namespaces of its own, which end with it; FOLDER (a temporary one) takes what is written.

Printed: a summary, and one JSON object.  *Per core* is items over the seconds of all nodes that lived, beside items a
second of one process on one core, before and after: it takes a machine with two free cores.  *Processor time* is that
of all processes of the cluster, Ray's own and the command's, looked at four times a second; it can be compared on a
busy machine too.  `--part` takes other parts than `core.scoring.sizes` has: a test has fewer items.  `--files` splits
the items over several files of a folder for the cluster, whose nodes then look at them side by side before anything is
scored.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from core import load_judge  # noqa: E402
from core.scoring.sizes import PART  # noqa: E402
from core.wording import counted  # noqa: E402
from tests.bench.bench_score import calibrate, command, texts, write  # noqa: E402
from tests.ray_nodes import HEAD, PORT, holding, kill_with_children, two_nodes  # noqa: E402

KEY = "sk-never-in-ray-4711"
TICK = os.sysconf("SC_CLK_TCK")
IN_PARTS = "from core.scoring import sizes; sizes.PART = {}; from core.__main__ import main; raise SystemExit(main())"
Watch = Callable[["subprocess.Popen[str]"], None]


class ProcessorTime(threading.Thread):
    """Seconds of all processes of this namespace but this one, by what they do; those that have ended included."""

    def __init__(self, driver: int) -> None:
        super().__init__(daemon=True)
        self.driver, self.ended = driver, threading.Event()
        self.seen = dict[tuple[int, str], tuple[str, float]]()
        self.before = self._now()

    def run(self) -> None:
        while not self.ended.wait(0.25):
            self.seen |= self._now()

    def seconds(self) -> Counter[str]:
        self.ended.set()
        self.join()
        self.seen |= self._now()
        total = Counter[str]()
        for process, (kind, seconds) in self.seen.items():
            total[kind] += seconds - self.before.get(process, ("", 0.0))[1]
        return total

    def _now(self) -> dict[tuple[int, str], tuple[str, float]]:
        now = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                head, _, tail = stat.read_text().rpartition(")")
            except OSError:  # it has just ended
                continue
            pid, fields = int(stat.parent.name), tail.split()
            if pid != os.getpid():
                now[pid, fields[19]] = self._kind(pid, head.partition("(")[2]), sum(map(int, fields[11:13])) / TICK
        return now

    def _kind(self, pid: int, name: str) -> str:
        if pid == self.driver:
            return "command"
        return "actors" if name.startswith("ray::Scorer") else "readers" if name.startswith("ray::") else "ray itself"


def timed(asked: list[str], n: int, then: Watch = lambda process: None) -> dict[str, Any]:
    """What the command said, how long it took, and the processor milliseconds an item."""
    started = time.perf_counter()
    with subprocess.Popen(asked, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        spent = ProcessorTime(process.pid)
        spent.start()
        then(process)
        said = json.loads(process.communicate()[0] or "{}")
    seconds = time.perf_counter() - started
    keep = ("n_scored", "calls", "resumed_from", "remarks", "error")
    return {
        "exit": process.returncode,
        "seconds": round(seconds, 2),
        "processor_ms": {kind: round(1e3 * each / n, 4) for kind, each in spent.seconds().items()},
        "said": {name: said.get(name) for name in keep},
    }


def mean(one: dict[str, Any], again: dict[str, Any]) -> dict[str, Any]:
    """Of one process before the cluster and after it: its pace differs by some per cent from minute to minute."""
    spent = {kind: round((each + again["processor_ms"][kind]) / 2, 4) for kind, each in one["processor_ms"].items()}
    return one | {"seconds": round((one["seconds"] + again["seconds"]) / 2, 2), "processor_ms": spent}


def in_files(items: Path, n: int, files: int) -> Path:
    """A folder with the `n` lines of `items` in so many files, in order."""
    folder = items.parent / "items"
    folder.mkdir(exist_ok=True)
    with items.open("rb") as lines:
        for k in range(files):
            with (folder / f"{k:04d}.jsonl").open("wb") as file:
                file.writelines(itertools.islice(lines, n * (k + 1) // files - n * k // files))
    return folder


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


def another_concord(folder: Path) -> str:
    """Where a version of Concord lies that cannot do this: nodes are to work with the code of who asks."""
    package = folder / "another" / "core"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text('raise RuntimeError("another version of Concord")\n')
    return str(package.parent)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("n", type=int)
    options.add_argument("folder", type=Path, nargs="?")
    options.add_argument("--kill", nargs="+", choices=("driver", "node", "none"), default=["node"])
    options.add_argument("--part", type=int, default=PART)
    options.add_argument("--files", type=int, default=1)
    asked = options.parse_args()
    if os.getpid() != 1:
        apart = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
        sys.exit(subprocess.run([*apart, sys.executable, *sys.argv], check=False).returncode)
    folder = asked.folder or Path(tempfile.mkdtemp(prefix="bench_ray"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        measure(asked.n, folder, asked.kill, asked.part, asked.files)
    finally:
        if asked.folder is None:
            shutil.rmtree(folder, ignore_errors=True)


def measure(n: int, folder: Path, kill: list[str], part: int, files: int) -> None:
    os.environ |= {"CONCORD_HOME": str(folder / "home"), "OPENAI_API_KEY": KEY, "OMP_NUM_THREADS": "1"}
    items, alone, parts = folder / "items.jsonl", folder / "alone.jsonl", folder / "parts.jsonl"
    data = ROOT.parent / "shared" / "data"
    judge = calibrate(folder, data, dict(os.environ))
    write(items, texts(data), n)
    load = os.getloadavg()[0]
    one = timed(command(items, judge, alone, "--workers", "1", "--again"), n)
    at_driver, at_node, killed, lost = dict[str, int](), dict[str, int](), None, list[float]()
    with two_nodes(folder, another_concord(folder)) as second:
        there = items if files == 1 else in_files(items, n, files)
        asked = command(there, judge, parts, "--ray", f"{HEAD}:{PORT}")
        asked[1:3] = ["-c", IN_PARTS.format(part)]
        if "driver" in kill:
            killed = timed(asked, n, killing(parts, n // part // 4, subprocess.Popen.kill, at_driver))

        def lose(_: subprocess.Popen[str]) -> None:
            lost.append(time.perf_counter())
            kill_with_children(second.pid)

        started = time.perf_counter()
        on_ray = timed(asked, n, killing(parts, n // part // 2, lose, at_node)) if "node" in kill else timed(asked, n)
        assert on_ray["exit"] == 0, on_ray
        node_seconds = on_ray["seconds"] + (lost[0] - started if lost else on_ray["seconds"])
        kept = stamps(parts)
        again = timed(asked, n)
        key_at_large = holding(KEY)
    one = mean(one, timed(command(items, judge, alone, "--workers", "1", "--again"), n))
    theirs = [json.loads(line) for file in sorted(parts.glob("part-*")) for line in file.open()]
    ours = [json.loads(line) for line in alone.open()]
    n_new = n - on_ray["said"]["resumed_from"]
    told = {
        "n": n,
        "files": files,
        "killed": kill,
        "driver_killed_at_part": len(at_driver),
        "node_killed_at_part": len(at_node),
        "finished_parts_untouched": kept.items() >= at_driver.items() | at_node.items() and kept == stamps(parts),
        "killed_run": killed,
        "ray": on_ray,
        "again": again,
        "one_process": one,
        "same_order": [row["item_id"] for row in theirs] == [row["item_id"] for row in ours],
        "largest_gap": max(abs(a["score"] - b["score"]) for a, b in zip(theirs, ours, strict=True)),
        "items_per_core_second": {"ray": round(n_new / node_seconds, 1), "one process": round(n / one["seconds"], 1)},
        "per_core": round(n_new / node_seconds / (n / one["seconds"]), 3),
        "processor_ms": on_ray["processor_ms"] | {"one process": sum(one["processor_ms"].values())},
        "per_processor_second": round(
            sum(one["processor_ms"].values()) / sum(on_ray["processor_ms"].values()) * n_new / n, 3
        ),
        "criteria": len(load_judge(judge).criteria),
        "key_at_large": key_at_large,
        "load": load,
    }
    print(in_words(told))
    print(json.dumps(told))


def in_words(told: dict[str, Any]) -> str:
    """The summary."""
    whole = told["same_order"] and told["ray"]["said"]["n_scored"] == told["n"]
    pace, spent = told["items_per_core_second"], told["processor_ms"]
    kinds = ", ".join(f"{kind} {value:.3f}" for kind, value in spent.items() if kind != "one process")
    return (
        f"{told['n']:,} items in {counted(told['files'], 'file')}, two nodes of one processor; "
        f"killed: {', '.join(told['killed'])} (the node after "
        f"{told['node_killed_at_part']} parts). Every item once and in order: {'yes' if whole else 'NO'}; largest gap "
        f"of a verdict {told['largest_gap']:.1e}.\n"
        f"Items a second and core: {pace['ray']:,} on Ray, {pace['one process']:,} in one process: {told['per_core']} "
        f"of it (at least .85 wanted); load before the start {told['load']:.1f}.\n"
        f"Processor milliseconds an item: {kinds}; one process {spent['one process']:.3f}: throughput per processor "
        f"second {told['per_processor_second']} of that of one process."
    )


main()
