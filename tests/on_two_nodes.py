"""All that Ray does for Concord, on one cluster of two nodes: ``python on_two_nodes.py JUDGE_FILE FOLDER``.

A judge that asks an endpoint scores on both nodes, and hidden states are read there.  A file is scored with the offline
judge, and a node is killed on the way.  To be started as `tests/ray_nodes.py`
says.  Prints one JSON object; FOLDER takes whatever is written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.ray_nodes import holding, two_nodes

KEY = "sk-never-in-ray-4711"
SAMPLES = Path(__file__).parents[1] / "sample_data"
N_ITEMS, PART = 1_000, 100


def write_items(path: Path, n: int) -> Path:
    rows = [json.loads(line) for line in (SAMPLES / "summaries.jsonl").read_text().splitlines()]
    with path.open("w") as file:
        for k in range(n):
            row = rows[k % len(rows)]
            item = {"item_id": f"i{k}", "source": row["source"], "target": f"{row['target']} It was case {k}."}
            file.write(json.dumps(item) + "\n")
    return path


def verdicts(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for part in sorted(out.glob("part-*")) for line in part.open()]


def scored_with_a_loss(address: str, judge_file: Path, folder: Path, lose: Callable[[], None]) -> dict[str, Any]:
    """Score while a node is killed, once a few parts are there; next to one process."""
    from core.scoring import ScoreRequest, score_file
    from core.scoring.on_ray import score_on_ray

    items, out = write_items(folder / "items.jsonl", N_ITEMS), folder / "offline.jsonl"
    seen = {"parts_at_the_kill": 0}

    def kill() -> None:
        while len(list(out.glob("part-*"))) < 3:
            time.sleep(0.05)
        seen["parts_at_the_kill"] = len(list(out.glob("part-*")))
        lose()

    threading.Thread(target=kill, daemon=True).start()
    request = ScoreRequest(items, judge_file, folder / "alone.jsonl")
    first = score_on_ray(address, request, str(items), str(out))
    score_file(request)
    alone = {row["item_id"]: row["score"] for row in map(json.loads, request.out.open())}
    there = [(row["item_id"], row["score"]) for row in verdicts(out)]
    return seen | {
        "n_scored": first.n_scored,
        "n_lines": len(there),
        "same_items": sorted(alone) == sorted(item_id for item_id, _ in there),
        "largest_gap": max(abs(score / alone[item_id] - 1.0) for item_id, score in there),
    }


def scored_by_endpoint(address: str, judge_file: Path, url: str, folder: Path) -> dict[str, Any]:
    from core.scoring import ScoreRequest
    from core.scoring.on_ray import score_on_ray

    items, out = write_items(folder / "few.jsonl", 24), folder / "endpoint.jsonl"
    request = ScoreRequest(items, judge_file, out, judge=f"openai:fake-judge@{url}")
    scored = score_on_ray(address, request, str(items), str(out))
    return {"n_scored": scored.n_scored, "calls": scored.calls, "n_lines": len(verdicts(out)), "stats": stats(url)}


def states_read(address: str, folder: Path) -> dict[str, Any]:
    """Hidden states, read on both nodes and in one process."""
    from core.data import load_golden
    from core.repeval import Extraction, extract

    golden, reading = load_golden(SAMPLES / "data_to_text.csv"), Extraction()
    there = extract(golden, None, reading, folder / "states", ray=address)
    here = extract(golden, None, reading)
    gap = np.abs(there.values.astype(np.float64) - here.values.astype(np.float64)).max()
    kept = extract(golden, None, reading, folder / "states").cached
    return {"prompts": here.prompts, "kept": kept, "largest_gap": float(gap)}


def stats(url: str) -> dict[str, int]:
    from urllib.request import urlopen

    with urlopen(f"{url.removesuffix('/v1')}/stats") as reply:
        return dict(json.load(reply))


def main() -> None:
    judge_file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    os.environ |= {"OPENAI_API_KEY": KEY, "CONCORD_HOME": str(folder / "home"), "CONCORD_CONCURRENCY": "8"}
    with two_nodes(folder) as (address, lose):
        from core.scoring import on_ray, run

        on_ray.PART = run.BATCH = PART
        fake = [sys.executable, str(Path(__file__).with_name("fake_openai.py")), "--latency-ms", "50"]
        server = subprocess.Popen(fake, stdout=subprocess.PIPE, text=True)  # ends with this namespace
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        body: dict[str, Any] = {"endpoint": scored_by_endpoint(address, judge_file, url, folder)}
        body["states"] = states_read(address, folder)
        body["offline"] = scored_with_a_loss(address, judge_file, folder, lose)
        body["key_at_large"] = holding(KEY)
    print(json.dumps(body))


if __name__ == "__main__":
    main()
