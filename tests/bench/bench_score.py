"""How fast `python -m core score` scores a file with the offline judge, and how much memory it takes as files grow.

    python tests/bench/bench_score.py [--json] [--sizes 10000,1000000] [--format jsonl] [--data ../shared/data]

The items are SummEval's (its 1,600 summaries with their sources; the sample project's where the data is missing),
written again and again, each with a number of its own in the text so that no two are equal.  Each size is scored by
the whole command in a process of its own.  Told are: items a second from start to end, the CPU seconds an item takes
(what matters where other work shares the cores), and the peak resident memory of the command and of the processes it
starts, added up (what they share counts in each).
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

SAMPLE = ROOT / "sample_data" / "summaries.jsonl"
COLUMNS = ("item_id", "source_id", "system_id", "source", "target")


@dataclass(frozen=True)
class Measured:
    """One scoring: `n` items, wall and CPU seconds, peak MB of all its processes together."""

    n: int
    seconds: float
    cpu: float
    peak_mb: float

    def as_json(self) -> dict[str, float]:
        """The figures by name."""
        return {
            "n": self.n,
            "seconds": round(self.seconds, 1),
            "items_per_second": round(self.n / self.seconds, 1),
            "cpu_ms_per_item": round(1e3 * self.cpu / self.n, 3),
            "peak_mb": round(self.peak_mb, 1),
        }


def texts(data: Path) -> list[dict[str, str]]:
    """The items that are written again and again."""
    file = data / "summeval.jsonl.gz"
    content = gzip.decompress(file.read_bytes()) if file.is_file() else SAMPLE.read_bytes()
    found = [json.loads(line) for line in content.decode("utf-8").splitlines()]
    return [{name: str(row.get(name, "")) for name in COLUMNS} for row in found]


def rows(base: list[dict[str, str]], n: int) -> Iterator[dict[str, str]]:
    """`n` different items."""
    for k in range(n):
        row = base[k % len(base)]
        yield row | {"item_id": f"i{k}", "target": f"{row['target']} Case {k} ."}


def write(path: Path, base: list[dict[str, str]], n: int) -> None:
    """The file of `n` items, in the format that its name tells."""
    if path.suffix == ".parquet":
        import pyarrow as arrow
        from pyarrow import parquet

        schema = arrow.schema([(name, arrow.string()) for name in COLUMNS])
        with parquet.ParquetWriter(path, schema) as out:
            batch: list[dict[str, str]] = []
            for row in rows(base, n):
                batch.append(row)
                if len(batch) == 10_000:
                    out.write_table(arrow.Table.from_pylist(batch, schema))
                    batch = []
            if batch:
                out.write_table(arrow.Table.from_pylist(batch, schema))
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".csv":
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows(base, n))
        else:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows(base, n))


def command(items: Path, judge: Path, out: Path, *more: str) -> list[str]:
    """The command line that is measured."""
    asked = ["score", str(items), "--judge-file", str(judge), "--out", str(out), *more, "--json"]
    return [sys.executable, "-m", "core", *asked]


def calibrate(folder: Path, data: Path, environment: dict[str, str]) -> Path:
    """A judge file calibrated on the sample project's summaries."""
    asked = [str(SAMPLE), "--aspect", "relevance", "--preset", "quick", "--out", str(folder / "judge")]
    subprocess.run([sys.executable, "-m", "core", "calibrate", *asked], check=True, cwd=ROOT, env=environment,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
    return folder / "judge" / "judge.yaml"


def measured(asked: list[str], n: int, environment: dict[str, str]) -> Measured:
    """Run the command; its memory is looked at ten times a second, with that of the processes it started."""
    started = time.perf_counter()
    process = subprocess.Popen(asked, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    peak = cpu = 0.0
    while process.poll() is None:
        family = _family(process.pid)
        peak = max(peak, sum(_resident(pid) for pid in family))
        cpu = max(cpu, sum(_cpu(pid) for pid in family))
        time.sleep(0.1)
    seconds = time.perf_counter() - started
    assert process.stdout is not None
    body = json.loads(process.stdout.read())
    if process.returncode or body["n_scored"] != n:
        raise SystemExit(f"the command failed: {body}")
    return Measured(n, seconds, cpu, peak / 1e6)


def _family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return [pid]
    return [pid, *(one for child in children for one in _family(int(child)))]


def _resident(pid: int) -> int:
    """Bytes of memory that are the process's own or shared with others, from Linux's accounts."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def _cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", action="store_true")
    options.add_argument("--sizes", default="10000,1000000")
    options.add_argument("--format", default="jsonl", choices=("jsonl", "csv", "parquet"))
    options.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    options.add_argument("--workers", default="")
    asked = options.parse_args()
    more = ["--workers", asked.workers] if asked.workers else []
    results: dict[str, Any] = {"cores": len(os.sched_getaffinity(0)), "load_before": os.getloadavg()[0], "sizes": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = os.environ | {"CONCORD_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
        judge, base = calibrate(folder, asked.data, environment), texts(asked.data)
        for n in map(int, asked.sizes.split(",")):
            items, out = folder / f"{n}.{asked.format}", folder / f"{n}.verdicts.jsonl"
            write(items, base, n)
            ceiling = measured(command(items, judge, out, *more), n, environment)
            results["sizes"].append(ceiling.as_json())
            if not asked.json:
                print("  ".join(f"{key} {value:,}" for key, value in ceiling.as_json().items()), flush=True)
    peaks = [size["peak_mb"] for size in results["sizes"]]
    results["peak_ratio"] = round(peaks[-1] / peaks[0], 3)
    print(json.dumps(results) if asked.json else f"memory: largest size over smallest {results['peak_ratio']}")


if __name__ == "__main__":
    main()
