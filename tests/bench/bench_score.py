"""How fast `python -m core score` scores a file with the offline judge, and its memory as files grow.

    python tests/bench/bench_score.py [--json] [--sizes 10000,1000000] [--data ../shared/data]

The items are SummEval's 1,600 summaries with their sources, repeated, each with a number in the text so that no two
are equal.  Each size is scored by the whole command in a process of its own.  Printed: items per second from start to
end, CPU per item, and the peak resident memory of the command and the processes it starts, added up (what they share
counts in each).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_data" / "summaries.jsonl"
COLUMNS = ("item_id", "source_id", "system_id", "source", "target")


def write_items(path: Path, data: Path, n: int) -> None:
    lines = gzip.decompress((data / "summeval.jsonl.gz").read_bytes()).decode("utf-8").splitlines()
    base = [{name: str(json.loads(line).get(name, "")) for name in COLUMNS} for line in lines]
    with path.open("w", encoding="utf-8") as file:
        for k in range(n):
            row = base[k % len(base)]
            new = row | {"item_id": f"i{k}", "target": f"{row['target']} Case {k} ."}
            file.write(json.dumps(new, ensure_ascii=False) + "\n")


def measure(command: list[str], n: int, environment: dict[str, str]) -> dict[str, float]:
    """Run the command and look at its processes ten times a second, in Linux's accounts."""
    started = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    peak = cpu = 0.0
    while process.poll() is None:
        pages, ticks = used(process.pid)
        peak, cpu = max(peak, pages * os.sysconf("SC_PAGE_SIZE")), max(cpu, ticks / os.sysconf("SC_CLK_TCK"))
        time.sleep(0.1)
    seconds = time.perf_counter() - started
    assert process.stdout is not None
    body = json.loads(process.stdout.read())
    if process.returncode or body["n_scored"] != n:
        raise SystemExit(f"the command failed: {body}")
    return {
        "n": n,
        "seconds": round(seconds, 1),
        "items_per_second": round(n / seconds, 1),
        "cpu_ms_per_item": round(1e3 * cpu / n, 3),
        "peak_mb": round(peak / 1e6, 1),
    }


def used(pid: int) -> tuple[int, int]:
    """Return resident pages and clock ticks of a process and all that it started; (0, 0) once it has ended."""
    place = Path(f"/proc/{pid}")
    try:
        children = (place / "task" / str(pid) / "children").read_text().split()
        pages = int((place / "statm").read_text().split()[1])
        fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0, 0
    ticks = int(fields[11]) + int(fields[12])
    below = [used(int(child)) for child in children]
    return pages + sum(own for own, _ in below), ticks + sum(own for _, own in below)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--sizes", default="10000,1000000")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    options = parser.parse_args()
    concord = [sys.executable, "-m", "core"]
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = os.environ | {"CONCORD_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
        calibrate = ["calibrate", str(SAMPLE), "--aspect", "relevance", "--preset", "quick", "--out", str(folder)]
        subprocess.run([*concord, *calibrate], check=True, cwd=ROOT, env=environment, capture_output=True)
        for n in map(int, options.sizes.split(",")):
            items, out = folder / f"{n}.jsonl", folder / f"{n}.verdicts.jsonl"
            write_items(items, options.data, n)
            score = ["score", str(items), "--judge-file", str(folder / "judge.yaml"), "--out", str(out), "--json"]
            results.append(measure([*concord, *score], n, environment))
            if not options.json:
                print("  ".join(f"{key} {value:,}" for key, value in results[-1].items()), flush=True)
    if options.json:
        print(json.dumps({"cores": len(os.sched_getaffinity(0)), "sizes": results}))


if __name__ == "__main__":
    main()
