"""A RepEval run on a Ray cluster of two nodes, one of which is killed (`tests/on_two_nodes.py`)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from tests.ray_nodes import HEAD, PORT, kill_with_children, wait_for_nodes


def run_with_a_loss(golden_file: Path, folder: Path, second: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Do the run; the second node is killed when both are at work and one shard is there."""
    import ray

    from core.data import load_golden
    from core.progress import Silent
    from core.projects.method_runs import RepEvalRequest
    from core.projects.run_work import do_run
    from core.repeval import Extraction, RepEvalSettings, extract
    from core.repeval.states_on_ray import cluster_at
    from core.settings import Settings
    from core.store.codec import pack
    from core.store.store import Store

    address = f"{HEAD}:{PORT}"
    golden, home = load_golden(golden_file), folder / "home"
    store = Store(f"sqlite:///{folder / 'concord.sqlite'}")
    project = store.projects.add("p")
    golden_id = store.goldens.add(project, golden)
    reading = Extraction(batch_tokens=256)  # so: six shards
    quick = RepEvalSettings(reading=reading, resamples=20, random_vectors=20)
    aspect = next(iter(golden.aspects))
    request = RepEvalRequest(project, golden_id, aspect, quick)
    run_id = store.runs.add(project, golden_id, "repeval", "t", aspect, "minilm", pack(request).body)
    store.runs.claim(run_id, 1, "w")
    cluster_at(address, quick.model)  # connects; the second node may not have joined yet
    wait_for_nodes(2)
    seen: dict[str, Any] = {"slots": cluster_at(address, quick.model)[0], "kept_at_the_kill": 0, "messages": []}

    class Watching(Silent):
        def publish(self, snapshot: Any) -> None:
            seen["messages"].append(snapshot.message)

        def advance(self, done: int, of: int) -> None:
            if not seen["kept_at_the_kill"] and 0 < done < len(golden.items):
                seen["kept_at_the_kill"] = done
                kill_with_children(second.pid)

        def check(self) -> None:
            """Nobody stops it."""

    seen["status"] = do_run(store, Settings(home=home, ray=address), store.runs.get(run_id), Watching())
    wait_for_nodes(1)
    ray.shutdown()
    there, here = (extract(golden, None, reading, cache) for cache in (home, folder / "alone"))
    gap = np.abs(there.values.astype(np.float64) - here.values.astype(np.float64)).max()
    return seen | {
        "prompts": here.prompts,
        "computed_here": here.prompts - here.cached,
        "found_of_the_cluster": there.cached,
        "largest_gap": float(gap),
    }
