"""Throughput of the LLM judge against a bare asyncio + SDK loop on the same local server, in the same run.

    python tests/bench/bench_llm.py [--json] [--requests 1536] [--latency-ms 50] [--concurrency 64] [--rounds 2]

The server (`tests/fake_openai.py`) runs in a process of its own.  The bare loop sends bodies that were rendered
before the clock starts, `concurrency` at once, and keeps nothing; the judge renders, looks up, sends, reads and commits
every reply to SQLite.  The two take turns, so that a slow moment of the machine hits both.  At the end the judge's
last run is repeated on a fresh judge: it must send 0 requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from openai import AsyncOpenAI, DefaultAioHttpClient

from core.judging.registry import make_judge
from core.judging.render import score_messages
from core.records import Criteria, Item, Scale, Task
from core.settings import Settings
from core.store.store import Store

SERVER = Path(__file__).resolve().parents[1] / "fake_openai.py"
TASK = Task("coherence", "source_target", Scale(1, 5))
CRITERIA = [Criteria(f"Rule {n}: texts must be faithful to the source and brief. " * 4, "coherence") for n in range(16)]
MODEL = "fake-judge"


@dataclass(frozen=True)
class Spent:
    """Seconds by the wall clock, and of this process's CPU (all threads)."""

    wall: float
    cpu: float


class Clock:
    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def stop(self) -> Spent:
        return Spent(time.perf_counter() - self._wall, time.process_time() - self._cpu)


def items_of(name: str, requests: int) -> list[Item]:
    """Items of newspaper length (a source of about 2,400 characters), so many that they make `requests` calls."""
    source = "The council met on Monday and agreed to mend the bridge before the winter. " * 32
    return [
        Item(f"{name}-{n}", f"Item {n} of {name}. The council will mend the bridge. " * 5, source=source)
        for n in range(requests // len(CRITERIA))
    ]


async def bare_loop(base_url: str, bodies: list[dict[str, Any]], concurrency: int) -> Spent:
    """What `concurrency` workers over the SDK take for `bodies`."""
    async with AsyncOpenAI(
        api_key="none", base_url=base_url, max_retries=5, timeout=60, http_client=DefaultAioHttpClient(timeout=60)
    ) as client:
        order = iter(bodies)

        async def work() -> None:
            for body in order:
                reply = await client.chat.completions.create(**body)
                assert reply.choices[0].message.content

        clock = Clock()
        await asyncio.gather(*(work() for _ in range(concurrency)))
        return clock.stop()


def bodies_of(items: list[Item]) -> list[dict[str, Any]]:
    return [
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": score_messages(TASK, item, criteria.text)[0].content}],
            "temperature": 0.0,
            "max_tokens": 512,
        }
        for item in items
        for criteria in CRITERIA
    ]


def judged(base_url: str, items: list[Item], store: Store, concurrency: int) -> tuple[Spent, int]:
    """(time spent, requests sent) for scoring `items` with every criteria on a fresh judge."""
    settings = Settings(concurrency=concurrency)
    judge = make_judge(f"openai:{MODEL}@{base_url}", settings, store.replies)
    try:
        clock = Clock()
        matrix = judge.score(TASK, items, CRITERIA)
        spent = clock.stop()
    finally:
        judge.close()
    assert not matrix.unscored, "the local server answers every request with a number"
    return spent, matrix.usage.requests


def served(base_url: str) -> int:
    """Requests the server has seen so far."""
    with urllib.request.urlopen(base_url.removesuffix("/v1") + "/stats") as reply:
        return int(json.load(reply)["requests"])


def measure(base_url: str, options: argparse.Namespace, store: Store) -> dict[str, Any]:
    rates: dict[str, list[float]] = {"bare": [], "judge": []}
    cpu: dict[str, list[float]] = {"bare": [], "judge": []}
    asyncio.run(bare_loop(base_url, bodies_of(items_of("warm", 160)), options.concurrency))
    judged(base_url, items_of("warm", 160), store, options.concurrency)
    for number in range(options.rounds):
        bodies = bodies_of(items_of(f"bare {number}", options.requests))
        items = items_of(f"judge {number}", options.requests)
        bare = asyncio.run(bare_loop(base_url, bodies, options.concurrency))
        own, sent = judged(base_url, items, store, options.concurrency)
        for name, spent, count in (("bare", bare, len(bodies)), ("judge", own, sent)):
            rates[name].append(count / spent.wall)
            cpu[name].append(1000 * spent.cpu / count)
    before = served(base_url)
    again, _ = judged(base_url, items, store, options.concurrency)
    return {
        "requests_per_second": {name: [round(rate) for rate in values] for name, values in rates.items()},
        "cpu_ms_per_request": {name: [round(value, 2) for value in values] for name, values in cpu.items()},
        "share_of_bare": round(sum(rates["judge"]) / sum(rates["bare"]), 3),
        "ceiling_by_latency": round(options.concurrency / (options.latency_ms / 1000)),
        "second_run": {"requests": served(base_url) - before, "seconds": round(again.wall, 3)},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--requests", type=int, default=1536)
    parser.add_argument("--latency-ms", type=float, default=50.0)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, str(SERVER), "--latency-ms", str(options.latency_ms)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        base_url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/bench.sqlite") as store:
            result = measure(base_url, options, store)
    finally:
        server.terminate()
        server.wait()
    reached = result["share_of_bare"] >= 0.85 and result["second_run"]["requests"] == 0
    print(json.dumps(result) if options.json else "\n".join(f"{name}: {value}" for name, value in result.items()))
    print("reached" if reached else "NOT reached: 85 % of the bare loop, 0 requests the second time", file=sys.stderr)
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
