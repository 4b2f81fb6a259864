"""All that Ray does for Concord, on one cluster of two nodes: ``python on_two_nodes.py JUDGE_FILE FOLDER``.

A file is scored with the offline judge, and a node is killed on the way; a second start skips what is there.  A judge
that asks an endpoint scores on both nodes.  Hidden states are read, and a node is killed.  To be started as
`tests/ray_nodes.py` says.  Prints one JSON object; FOLDER takes whatever is written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.core.repeval.two_nodes import run_with_a_loss
from tests.ray_nodes import (
    HEAD,
    OTHER,
    PORT,
    holding,
    kill_with_children,
    start_node,
    two_nodes,
    wait_for_nodes,
    wait_until_started,
)

ADDRESS, KEY = f"{HEAD}:{PORT}", "sk-never-in-ray-4711"
SAMPLES = Path(__file__).parents[1] / "sample_data"
N_ITEMS, PART = 1_600, 100


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


def scored_with_a_loss(judge_file: Path, folder: Path, second: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Score while a node is killed, once a few parts are there; then once more; beside one process."""
    from core.scoring import ScoreRequest, score_file
    from core.scoring.on_ray import score_on_ray

    items, out = write_items(folder / "items.jsonl", N_ITEMS), folder / "offline.jsonl"
    seen = {"parts_at_the_kill": 0}

    def kill() -> None:
        while len(list(out.glob("part-*"))) < 3:
            time.sleep(0.05)
        seen["parts_at_the_kill"] = len(list(out.glob("part-*")))
        kill_with_children(second.pid)

    threading.Thread(target=kill, daemon=True).start()
    request = ScoreRequest(items, judge_file, folder / "alone.jsonl")
    first = score_on_ray(ADDRESS, request, str(items), str(out))
    again = score_on_ray(ADDRESS, request, str(items), str(out))
    score_file(request)
    alone = {row["item_id"]: row["score"] for row in map(json.loads, request.out.open())}
    there = [(row["item_id"], row["score"]) for row in verdicts(out)]
    return seen | {
        "n_scored": first.n_scored,
        "n_lines": len(there),
        "same_items": sorted(alone) == sorted(item_id for item_id, _ in there),
        "largest_gap": max(abs(score / alone[item_id] - 1.0) for item_id, score in there),
        "again": {"resumed_from": again.n_before, "calls": again.calls},
    }


def scored_by_endpoint(judge_file: Path, url: str, folder: Path) -> dict[str, Any]:
    from core.scoring import ScoreRequest
    from core.scoring.on_ray import score_on_ray

    items, out = write_items(folder / "few.jsonl", 24), folder / "endpoint.jsonl"
    request = ScoreRequest(items, judge_file, out, judge=f"openai:fake-judge@{url}")
    scored = score_on_ray(ADDRESS, request, str(items), str(out))
    return {"n_scored": scored.n_scored, "calls": scored.calls, "n_lines": len(verdicts(out)), "stats": stats(url)}


def with_another_token(judge_file: Path, items: Path, folder: Path) -> dict[str, Any]:
    """What the command says, and how soon."""
    token, started = folder / "another", time.monotonic()
    token.touch(mode=0o600)
    token.write_text("ab" * 32)
    command = [sys.executable, "-m", "core", "score", str(items), "--judge-file", str(judge_file), "--json"]
    command += ["--out", str(folder / "refused"), "--ray", ADDRESS]
    env = os.environ | {"RAY_AUTH_TOKEN_PATH": str(token)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=100, check=False)
    return {
        "message": json.loads(done.stdout)["error"]["message"],
        "seconds": time.monotonic() - started,
        "written": (folder / "refused").exists(),
    }


def stats(url: str) -> dict[str, int]:
    from urllib.request import urlopen

    with urlopen(f"{url.removesuffix('/v1')}/stats") as reply:
        return dict(json.load(reply))


def main() -> None:
    judge_file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    os.environ |= {"OPENAI_API_KEY": KEY, "CONCORD_HOME": str(folder / "home"), "CONCORD_CONCURRENCY": "8"}
    with two_nodes(folder) as second:
        from core.scoring import on_ray, run

        on_ray.PART = run.BATCH = PART
        fake = [sys.executable, str(Path(__file__).with_name("fake_openai.py")), "--latency-ms", "50"]
        server = subprocess.Popen(fake, stdout=subprocess.PIPE, text=True)  # ends with this namespace
        assert server.stdout is not None
        body: dict[str, Any] = {"endpoint": scored_by_endpoint(judge_file, server.stdout.readline().strip(), folder)}
        body["another_token"] = with_another_token(judge_file, folder / "few.jsonl", folder)
        body["offline"] = scored_with_a_loss(judge_file, folder, second)
        body["key_at_large"] = holding(KEY)
        wait_for_nodes(1)
        another = start_node(folder, OTHER, f"--address={ADDRESS}")
        wait_until_started(folder, OTHER)
        body["states"] = run_with_a_loss(SAMPLES / "data_to_text.csv", folder, another)
    print(json.dumps(body))


if __name__ == "__main__":
    main()
