"""Bent files of every format through the ways that users have: no traceback, at most 10 s of CPU and 1 GB for each.

``python tests/bench/bench_fuzz.py --files 10000`` prints what the worst cost and each file that failed, by its seed;
``--seed N`` tries that file alone and keeps it.  Files go through `check`, the upload of a golden set, `score`,
`align`, the import of a judge, `read-ratings`, `score --judge-file`, the preview and import of a project, `styles
--criteria` and `fuse --plan`.  Exit 1 when one failed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).parent)]

from fuzz_files import PROJECT, SAMPLE, file_of  # noqa: E402

from core import projects  # noqa: E402
from core.__main__ import main as command  # noqa: E402
from core.data import as_check_json, build_golden, load_golden, propose_mapping, read_upload, tables  # noqa: E402
from core.data.label_cells import asks_about_commas  # noqa: E402
from core.data.verdict_files import load_recording, match, propose_columns  # noqa: E402
from core.errors import ConcordError  # noqa: E402
from core.judging.parse import read_rating  # noqa: E402
from core.projects import transfer  # noqa: E402
from core.settings import Settings  # noqa: E402
from core.store.store import Store  # noqa: E402

SECONDS, MEGABYTES = 10.0, 1024
ASPECT = "relevance"
JUDGE = Path(__file__).resolve().parents[1] / "core" / "export" / "files" / "judge_offline.yaml"
SMALL = 300_000
BATCH = 250


@dataclass
class Bench:
    """What every file meets: a home of its own, the golden set, a judge file, a store."""

    home: Path
    judge: Path
    golden: Any
    store: Store
    settings: Settings

    def run(self, kind: str, path: Path, seed: int) -> str:
        """Bring one file in by one of the ways for its kind; returns the way."""
        ways = getattr(self, f"_{kind.partition('.')[0]}")
        way: Callable[[Path], None] = ways[seed // 14 % len(ways)]
        way(path)
        return way.__name__.strip("_")

    @property
    def _golden(self) -> list[Callable[[Path], None]]:
        return [self.check, self.upload, self.score]

    @property
    def _verdicts(self) -> list[Callable[[Path], None]]:
        return [self.align, self.judge_import]

    @property
    def _replies(self) -> list[Callable[[Path], None]]:
        return [self.read_ratings, self.judge_import, self.align]

    @property
    def _judge(self) -> list[Callable[[Path], None]]:
        return [self.judge_file]

    @property
    def _project(self) -> list[Callable[[Path], None]]:
        return [self.preview, self.project_import]

    @property
    def _text(self) -> list[Callable[[Path], None]]:
        return [self.plan_or_criteria]

    def check(self, path: Path) -> None:
        said("check", path)

    def score(self, path: Path) -> None:
        if unpacked(path) > SMALL:
            self.check(path)
            return
        out = path.with_suffix(".verdicts.jsonl")
        said("score", path, "--judge-file", self.judge, "--out", out, "--workers", "1", "--again")

    def align(self, path: Path) -> None:
        said("align", SAMPLE, path, "--aspect", ASPECT, "--bootstrap", "10")

    def read_ratings(self, path: Path) -> None:
        said("read-ratings", path, "--scale", "1-5", "--out", path.with_suffix(".ratings"))

    def judge_file(self, path: Path) -> None:
        said(
            "score",
            self.home / "few.jsonl",
            "--judge-file",
            path,
            "--out",
            path.with_suffix(".v"),
            "--workers",
            "1",
            "--again",
        )

    def plan_or_criteria(self, path: Path) -> None:
        few = (self.home / "few.jsonl", "--aspect", ASPECT, "--judge", "scripted")
        if path.name == "plan.txt":
            said("fuse", *few, "--with", "overlap", "--method", "llm", "--plan", path, "--out", path.parent / "fused")
        else:
            said("styles", *few, "--criteria", path, "--bootstrap", "5")

    def upload(self, path: Path) -> None:
        """What the screen does with an uploaded golden set."""
        with refused():
            table = read_upload(path.read_bytes(), path.name, max_rows=250_000)
            mapping = propose_mapping(table.columns, table.rows)
            asks_about_commas(table, mapping)
            json.dumps(as_check_json(build_golden(table, mapping)), allow_nan=False)

    def judge_import(self, path: Path) -> None:
        """What the screen does with a file of a judge's replies or scores."""
        with refused():
            recording = load_recording(path.read_bytes(), path.name, read=read_upload)
            propose_columns(recording, ASPECT, [ASPECT])
            preview = match(recording, self.golden, ASPECT, read_reply=read_rating)
            if preview.n_scored:
                preview.as_judge("fuzz")

    def preview(self, path: Path) -> None:
        with refused():
            projects.preview_upload(self.store, self.settings, path.read_bytes())

    def project_import(self, path: Path) -> None:
        with refused():
            projects.import_project(self.store, self.settings, path, name="fuzz")


@contextlib.contextmanager
def refused() -> Iterator[None]:
    """A refusal in words is as good as a file that is read."""
    with contextlib.suppress(ConcordError):
        yield


def said(*arguments: str | Path) -> None:
    """A command with --json; RuntimeError for anything but one JSON object, or for a fault of the program."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        command([*map(str, arguments), "--json"])
    body = json.loads(out.getvalue())
    if body.get("error", {}).get("type") == "InternalError" or "Traceback" in err.getvalue():
        raise RuntimeError(str(body) + err.getvalue())


def unpacked(path: Path) -> int:
    """Bytes of a file, of gzip and Parquet roughly what they unfold to."""
    size = path.stat().st_size
    return size * 100 if path.suffix in (".gz", ".parquet", ".xlsx") and size > 20_000 else size


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────


def tried(bench: Bench, seed: int, folder: Path) -> dict[str, Any]:
    """One file: its seed, way, seconds of CPU, MB at its peak, and what went wrong."""
    kind, name, data = file_of(seed, bench.judge.read_text("utf-8"))
    path = folder / name
    path.write_bytes(data)
    wrong, way = "", ""
    readers = (tables.READER, transfer._READER)
    for reader in readers:
        reader.cost = (0.0, 0.0)
    _forget_peak()
    started = time.process_time()
    try:
        way = bench.run(kind, path, seed)
    except BaseException:
        wrong = traceback.format_exc()
    seconds = time.process_time() - started + sum(reader.cost[0] for reader in readers)
    peak = max(_peak(), *(reader.cost[1] for reader in readers))
    if not wrong and seconds > SECONDS:
        wrong = f"{seconds:.1f} s of CPU"
    if not wrong and peak > MEGABYTES:
        wrong = f"{peak:.0f} MB"
    return {
        "seed": seed,
        "kind": kind,
        "way": way,
        "bytes": len(data),
        "seconds": seconds,
        "peak": peak,
        "wrong": wrong,
    }


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _peak() -> float:
    """MB at the highest since the peak was forgotten."""
    line = next(entry for entry in Path("/proc/self/status").read_text().splitlines() if entry.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def batch(bench: Bench, seeds: list[int]) -> list[dict[str, Any]]:
    """Try files in a forked process, so that one that ends it is told by its seed and costs only itself."""
    results: list[dict[str, Any]] = []
    while len(results) < len(seeds):
        here, there = os.pipe()
        pid = os.fork()
        if pid == 0:
            _child(bench, seeds[len(results) :], there)
        os.close(there)
        with os.fdopen(here) as lines:
            results += [json.loads(line) for line in lines if line.endswith("\n")]
        _, status = os.waitpid(pid, 0)
        if status and len(results) < len(seeds):
            wrong = f"the process ended with status {status}"
            unknown = {"kind": "?", "way": "", "bytes": 0, "seconds": 0.0, "peak": 0.0}
            results.append({"seed": seeds[len(results)], **unknown, "wrong": wrong})
    return results


def _child(bench: Bench, seeds: list[int], there: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    with os.fdopen(there, "w") as out, tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            out.write(json.dumps(tried(bench, seed, Path(folder))) + "\n")
            out.flush()
    for reader in (tables.READER, transfer._READER):
        reader.close()
    os._exit(0)


# ── report ───────────────────────────────────────────────────────────────────────────────────────────────────


def made(folder: Path) -> Bench:
    """A judge file, a few items, a store; and a first call of what imports much, which is no file's cost."""
    os.environ["CONCORD_HOME"] = str(folder / "home")
    few = SAMPLE.read_text("utf-8").splitlines(keepends=True)[:30]
    (folder / "few.jsonl").write_text("".join(few), encoding="utf-8")
    settings = Settings(home=folder / "home", worker="external", worker_id="fuzz")
    store = projects.open_store(settings)
    bench = Bench(folder, JUDGE, load_golden(SAMPLE), store, settings)
    projects.preview_project(store, settings, PROJECT)
    said("score", folder / "few.jsonl", "--judge-file", bench.judge, "--out", folder / "v.jsonl", "--workers", "1")
    store.close()
    return bench


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seed", type=int, help="This one alone; the file is kept where you stand.")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = made(Path(folder))
        if chosen.seed is not None:
            _, name, data = file_of(chosen.seed, bench.judge.read_text("utf-8"))
            Path(f"seed-{chosen.seed}-{name}").write_bytes(data)
            print(json.dumps(tried(bench, chosen.seed, Path(folder)), indent=1).replace("\\n", "\n"))
            return 0
        seeds = list(range(chosen.start, chosen.start + chosen.files))
        Random(0).shuffle(seeds)
        started, results = time.monotonic(), []
        for at in range(0, len(seeds), BATCH):
            found = batch(bench, seeds[at : at + BATCH])
            results += found
            for one in found:
                if one["wrong"]:
                    print(f"seed {one['seed']}: {one['kind']} by {one['way'] or '?'}: {one['wrong']}", flush=True)
            print(f"{len(results):,} files, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return _told(results)


def _told(results: list[dict[str, Any]]) -> int:
    ways: Counter[str] = Counter()
    spent: Counter[str] = Counter()
    for result in results:
        way = f"{result['kind'].partition('.')[0]} by {result['way']}"
        ways[way] += 1
        spent[way] += result["seconds"]
    slowest, largest = (sorted(results, key=lambda one: -one[name])[:5] for name in ("seconds", "peak"))
    print(f"{len(results):,} files: {sum(bool(result['wrong']) for result in results)} failed")
    print(f"CPU: {sum(result['seconds'] for result in results):.0f} s in all")
    for what, worst in (("slowest", slowest), ("largest", largest)):
        told = ", ".join(
            f"{result['seconds']:.1f} s {result['peak']:.0f} MB (seed {result['seed']}, {result['kind']})"
            for result in worst
        )
        print(f"{what}: {told}")
    print(", ".join(f"{way}: {n:,} ({spent[way] / n:.2f} s each)" for way, n in sorted(ways.items())))
    return int(any(result["wrong"] for result in results))


if __name__ == "__main__":
    sys.exit(main())
