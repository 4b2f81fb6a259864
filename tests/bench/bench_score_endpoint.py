"""Wall of `score` over an endpoint with a heavy tail, beside a bare asyncio loop over the same server, in one run.

    python tests/bench/bench_score_endpoint.py [--json] [--items 1000] [--slow-share 0.05] [--slow-ms 4000] [--rounds 2]
        [--criteria 3] [--growth 0] [--ray HOST:PORT]

The server (`tests/fake_openai.py`) runs in a process of its own and answers most requests after `--latency-ms`, a share
of them, drawn by their text, after `--slow-ms`.  The bare loop sends bodies that were rendered before the clock starts
and keeps nothing; `score` reads the file, renders, keeps every reply in SQLite, reads it, and writes the output in
order.  The two take turns, and with `--ray` (a cluster of this host) the same scoring in parts there.
`--growth 100000` also scores so many items and tells the pace and the resident memory after each fifth.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench_llm import bare_loop

import core
from core.progress import Shown
from core.records import Item
from core.scoring import ScoreRequest, score_file
from core.scoring.on_ray import score_on_ray
from core.scoring.run import open_judge
from core.store.store import Store
from tests.fake_openai import MODEL, FakeOpenAI, _serve

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "sample_data" / "summaries.jsonl"
AIM = 1.1


@dataclass
class Tailed(FakeOpenAI):
    """A share of the requests, drawn by their text, takes long."""

    slow_share: float = 0.0
    slow: float = 0.0

    def _delay(self, body: dict[str, Any]) -> float:
        drawn = int(hashlib.sha256(json.dumps(body["messages"]).encode()).hexdigest()[:8], 16) / 2**32
        return self.slow if drawn < self.slow_share else self.latency


def serve(options: argparse.Namespace) -> None:
    fake = Tailed(options.latency_ms / 1000, slow_share=options.slow_share, slow=options.slow_ms / 1000)
    announce = lambda port: print(f"http://127.0.0.1:{port}/v1", flush=True)  # noqa: E731
    asyncio.run(_serve(fake, 0, announce, asyncio.Event().wait()))


def write_items(path: Path, n: int) -> Path:
    """`n` items, all different; those of another file have other texts."""
    sample = core.load_items(SAMPLE).items
    with path.open("w", encoding="utf-8") as file:
        for k in range(n):
            item = sample[k % len(sample)]
            row = {"item_id": f"i{k}", "source": item.source, "target": f"{item.target} Case {k} of {path.stem}."}
            file.write(json.dumps(row) + "\n")
    return path


def bodies_of(request: ScoreRequest) -> list[dict[str, Any]]:
    """What the judge asks about the items, with one of its criteria after the other."""
    judge = open_judge(request)
    llm: Any = judge.judge
    items: tuple[Item, ...] = core.load_items(request.items).items
    return [
        {
            "model": MODEL,
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "temperature": 0.0,
            "max_tokens": 512,
        }
        for item in items
        for criteria in judge.criteria
        for messages in llm.prompts(judge.task, item, criteria)
    ]


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def grown(request: ScoreRequest, n: int, store: Store) -> list[dict[str, float]]:
    """Pace and memory after each fifth of `n` items."""
    marks: list[dict[str, float]] = []
    started = time.perf_counter()

    def look(stage: Any) -> None:
        if stage.phase == "scoring" and stage.calls >= (len(marks) + 1) * n // 5:
            seconds = time.perf_counter() - started
            marks.append({"items": stage.calls, "seconds": round(seconds, 1), "mb": round(resident_mb(), 1)})

    score_file(request, replies=store.replies, progress=Shown(look))
    return marks


def measure(base_url: str, options: argparse.Namespace, folder: Path, store: Store) -> dict[str, Any]:
    subprocess.run(
        [sys.executable, "-m", "core", "calibrate", str(SAMPLE), "--aspect", "relevance", "--preset", "quick",
         "--ensemble", str(options.criteria),
         "--out", str(folder / "judge")],
        check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    blank = ScoreRequest(Path(), folder / "judge" / "judge.yaml", folder / "v.jsonl", f"openai:{MODEL}@{base_url}")
    walls: dict[str, list[float]] = {"bare": [], "score": []}
    n_calls = 0
    for number in range(options.rounds):
        bodies = bodies_of(replace(blank, items=write_items(folder / f"bare{number}.jsonl", options.items)))
        walls["bare"].append(asyncio.run(bare_loop(base_url, bodies, options.concurrency)).wall)
        request = replace(blank, items=write_items(folder / f"own{number}.jsonl", options.items))
        started = time.perf_counter()
        scored = score_file(request, replies=store.replies)
        walls["score"].append(time.perf_counter() - started)
        assert scored.n_scored == options.items, scored.reasons
        assert scored.calls == len(bodies)
        n_calls = scored.calls
        if options.ray:
            asked = replace(request, items=write_items(folder / f"ray{number}.jsonl", options.items))
            started = time.perf_counter()
            score_on_ray(options.ray, asked, str(asked.items), str(folder / f"parts{number}.jsonl"))
            walls.setdefault("ray", []).append(time.perf_counter() - started)
    found: dict[str, Any] = {
        "items": options.items,
        "calls": n_calls,
        "seconds": {name: [round(wall, 2) for wall in taken] for name, taken in walls.items()},
        "ratio": round(sum(walls["score"]) / sum(walls["bare"]), 3),
    }
    if options.ray:
        found["ray_ratio"] = round(sum(walls["ray"]) / sum(walls["bare"]), 3)
    if options.growth:
        found["growth"] = grown(
            replace(blank, items=write_items(folder / "growth.jsonl", options.growth)), options.growth, store
        )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--slow-share", type=float, default=0.05)
    parser.add_argument("--slow-ms", type=float, default=4000.0)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--growth", type=int, default=0)
    parser.add_argument("--criteria", type=int, default=3, help="calls an item")
    parser.add_argument("--ray", default="", metavar="HOST:PORT")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options)
        return 0
    tail = [f"--latency-ms={options.latency_ms}", f"--slow-share={options.slow_share}", f"--slow-ms={options.slow_ms}"]
    server = subprocess.Popen([sys.executable, __file__, "--serve", *tail], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        base_url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as name, Store(f"sqlite:///{name}/bench.sqlite") as store:
            os.environ |= {"CONCORD_HOME": f"{name}/home", "CONCORD_CONCURRENCY": str(options.concurrency)}
            result = measure(base_url, options, Path(name), store)
    finally:
        server.terminate()
        server.wait()
    reached = result["ratio"] <= AIM
    print(json.dumps(result) if options.json else "\n".join(f"{name}: {value}" for name, value in result.items()))
    print("reached" if reached else f"NOT reached: {AIM} of the bare loop's wall", file=sys.stderr)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
