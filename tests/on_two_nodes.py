"""All that a Ray cluster does for Concord, on one cluster of two nodes: ``python on_two_nodes.py JUDGE_FILE FOLDER``.

Judges that ask an endpoint or a model in the process score there and in one process; the model is asked for a score
matrix; items are measured for the offline judge; hidden states are read.  A node is lost while the matrix is made, and
while states are read.  To be started as `tests/ray_nodes.py` says.  Prints one JSON object; FOLDER takes whatever is
written.
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

import numpy as np
import yaml

from tests.core.local_models import save_model
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
ELSEWHERE = "models.test"
"""The endpoint by another name: 127.0.0.1 is each node itself, and what runs there no other's to share."""
SAMPLES = Path(__file__).parents[1] / "sample_data"
N_ITEMS = 24


def name_elsewhere(folder: Path) -> None:
    """Have `ELSEWHERE` found in this namespace alone."""
    known = folder / "hosts"
    known.write_text(f"{Path('/etc/hosts').read_text()}\n127.0.0.1 {ELSEWHERE}\n")
    subprocess.run(["mount", "--bind", str(known), "/etc/hosts"], check=True)


def write_items(path: Path) -> Path:
    """Short texts: a model of the tests reads a token a byte."""
    rows = [json.loads(line) for line in (SAMPLES / "summaries.jsonl").read_text().splitlines()[:N_ITEMS]]
    short = [{"item_id": f"i{k}", "source": r["source"][:200], "target": r["target"][:200]} for k, r in enumerate(rows)]
    path.write_text("".join(json.dumps(row) + "\n" for row in short))
    return path


def local_judge_file(judge_file: Path, folder: Path, model: Path) -> Path:
    """The judge file, with a model in the process for its judge."""
    from core.judging.registry import NAMED, make_judge
    from core.settings import Settings

    card = yaml.safe_load(judge_file.read_text())
    card["judge"] = dict(make_judge(f"hf:{model}", Settings(), gate=NAMED).as_state())
    path = folder / "local.yaml"
    path.write_text(yaml.safe_dump(card, sort_keys=False))
    return path


def scored_both_ways(kind: str, file: Path, judge: str, items: Path, folder: Path) -> dict[str, Any]:
    """The judge on the cluster beside one process."""
    from core.scoring import ScoreRequest, score_file
    from core.scoring.on_ray import score_on_ray

    request = ScoreRequest(items, file, folder / f"{kind}.jsonl", judge=judge, accept_edited=True)
    parts = folder / f"{kind}-parts.jsonl"
    on_ray = score_on_ray(ADDRESS, request, str(items), str(parts))
    score_file(request)
    ours = [json.loads(line) for line in request.out.open()]
    theirs = [json.loads(line) for part in sorted(parts.glob("part-*")) for line in part.open()]
    return {
        "same_items": [row["item_id"] for row in theirs] == [row["item_id"] for row in ours],
        "n_scored": on_ray.n_scored,
        "calls": on_ray.calls,
        "n_parts": len(list(parts.glob("part-*"))),
        "remarks": list(on_ray.remarks),
        "largest_gap": max(abs(a["score"] / b["score"] - 1.0) for a, b in zip(theirs, ours, strict=True)),
    }


def kill_at_work(node: subprocess.Popen[bytes], killed: threading.Event) -> None:
    """Kill a node as soon as all processors of the cluster are at work."""
    import ray

    while not ray.is_initialized() or ray.available_resources().get("CPU", 0):
        time.sleep(0.05)
    kill_with_children(node.pid)
    killed.set()


def matrix(model: Path, items: Path, folder: Path, second: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Criteria × items asked of a model on the cluster, as a calibration asks, beside this process.

    The second node is killed while both are at work.
    """
    import core
    from core.judging.registry import NAMED, make_judge
    from core.records import Criteria, Provenance, Scale, Task
    from core.settings import Settings
    from core.store.store import Store

    task = Task("relevance", "source_target", Scale(1, 5))
    criteria = [Criteria(text, "relevance", Provenance("given")) for text in ("Short is good.", "Facts are good.")]
    texts, store = core.load_items(items).items, Store(f"sqlite:///{folder / 'replies.sqlite'}")
    there = make_judge(f"hf:{model}", Settings(ray=ADDRESS), store.replies, gate=NAMED)
    killed = threading.Event()
    threading.Thread(target=kill_at_work, args=(second, killed), daemon=True).start()
    scores = there.score(task, texts, criteria)
    lost_on_the_way = killed.is_set()
    again = there.score(task, texts, criteria)
    here = make_judge(f"hf:{model}", Settings(), gate=NAMED).score(task, texts, criteria)
    return {
        "largest_gap": float(np.abs(scores.values / here.values - 1.0).max()),
        "usage_is_that_of_one_process": scores.usage == here.usage,
        "kept": again.usage.cached,
        "lost_on_the_way": lost_on_the_way,
    }


def features_on_nodes(items: Path) -> dict[str, Any]:
    """The offline judge's measures."""
    import core
    from core.judging.offline import features

    texts = core.load_items(items).items
    here = features.feature_matrix(texts, "source_target")
    features.forget_items()
    features.TRIED, features.WORTH_SECONDS, features.SHARD = 1, 0.0, 10
    features.measure_ahead(texts, "source_target", ADDRESS)
    return {"measured_there": len(features._ahead), "equal": bool(np.array_equal(
        features.feature_matrix(texts, "source_target"), here, equal_nan=True
    ))}  # fmt: skip


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


def main() -> None:
    judge_file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    os.environ |= {"OPENAI_API_KEY": KEY, "CONCORD_HOME": str(folder / "home"), "CONCORD_CONCURRENCY": "8"}
    os.environ["CONCORD_LOCAL_MODELS"] = str(folder / "model")
    name_elsewhere(folder)
    items, model = write_items(folder / "items.jsonl"), save_model(folder / "model", context=8192)
    with two_nodes(folder) as second:
        from core.scoring import sizes

        sizes.PART = sizes.REMOTE_PART = sizes.BATCH = 8  # so: three parts, each a batch of the one process
        fake = [
            sys.executable,
            str(Path(__file__).with_name("fake_openai.py")),
            "--latency-ms",
            "150",
        ]  # both nodes are at it meanwhile
        server = subprocess.Popen(fake, stdout=subprocess.PIPE, text=True)  # ends with this namespace
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        files = {
            "endpoint": (judge_file, f"openai:fake-judge@{url.replace('127.0.0.1', ELSEWHERE)}"),
            "hf": (local_judge_file(judge_file, folder, model), ""),
        }
        body: dict[str, Any] = {kind: scored_both_ways(kind, *file, items, folder) for kind, file in files.items()}
        body["endpoint"]["stats"] = stats(url)
        body["another_token"] = with_another_token(judge_file, items, folder)
        body["features"] = features_on_nodes(items)
        body["key_at_large"] = holding(KEY)
        body["matrix"] = matrix(model, items, folder, second)
        wait_for_nodes(1)
        another = start_node(folder, OTHER, f"--address={ADDRESS}")
        wait_until_started(folder, OTHER)
        body["states"] = run_with_a_loss(SAMPLES / "data_to_text.csv", folder, another)
    print(json.dumps(body))


def stats(url: str) -> dict[str, int]:
    from urllib.request import urlopen

    with urlopen(f"{url.removesuffix('/v1')}/stats") as reply:
        return dict(json.load(reply))


if __name__ == "__main__":
    main()
