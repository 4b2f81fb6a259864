"""A RepEval run on a Ray cluster of two nodes, one of which is killed: ``python two_nodes.py GOLDEN FOLDER``.

To be started as the first process of network, process and mount namespaces of its own (``unshare --net --pid --fork
--kill-child --mount-proc``): the cluster listens on a loopback that nobody else sees, and whatever is left ends with
this process.  Prints one JSON object; FOLDER takes the states, the nodes' logs and a home for the token.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

HEAD, OTHER, PORT = "127.0.0.1", "127.0.0.2", "6379"
SET_FLAGS, UP_AND_RUNNING = 0x8914, 0x41  # SIOCSIFFLAGS; IFF_UP | IFF_RUNNING


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", b"lo", UP_AND_RUNNING))


def set_environment(folder: Path) -> None:
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(secrets.token_hex(32))
    os.environ |= {
        "HOME": str(folder),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",  # as many as a task of one processor gets
        "RAY_health_check_period_ms": "1000",  # a lost node is noticed after seconds, not a quarter of a minute
        "RAY_health_check_timeout_ms": "2000",
        "RAY_health_check_failure_threshold": "3",
        "CUDA_VISIBLE_DEVICES": "",  # the nodes share one machine: neither is to find its GPU
    }


def start_node(folder: Path, address: str, *arguments: str) -> subprocess.Popen[bytes]:
    about = (f"--node-ip-address={address}", "--num-cpus=1", "--num-gpus=0", "--object-store-memory=80000000")
    ray = Path(sys.executable).with_name("ray")
    with (folder / f"{address}.log").open("wb") as log:
        return subprocess.Popen([str(ray), "start", *arguments, *about, "--block"], stdout=log, stderr=log)


def kill_with_children(pid: int) -> None:
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has just ended
            continue
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    for one in family:
        os.kill(one, signal.SIGKILL)


def wait_for_nodes(n: int) -> None:
    import ray

    end = time.monotonic() + 60
    while sum(node["Alive"] for node in ray.nodes()) != n:
        assert time.monotonic() < end, f"not {n} nodes after a minute"
        time.sleep(0.1)


def run_with_a_loss(golden_file: Path, folder: Path, second: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Do the run; the second node is killed when both are at work and one shard is there."""
    import ray

    from core.data import load_golden
    from core.progress import Silent
    from core.projects.kinds import do_run
    from core.projects.repeval import RepEvalRequest
    from core.repeval import Extraction, RepEvalSettings, extract
    from core.repeval.cluster import cluster_at
    from core.settings import Settings
    from core.store.codec import pack
    from core.store.store import Store

    address = f"{HEAD}:{PORT}"
    golden, home = load_golden(golden_file), folder / "home"
    store = Store(f"sqlite:///{folder / 'concord.sqlite'}")
    project = store.projects.add("p")
    golden_id = store.goldens.add(project, golden)
    quick, reading = RepEvalSettings(resamples=20, random_vectors=20), Extraction(batch_tokens=256)  # so: six shards
    aspect = next(iter(golden.aspects))
    request = RepEvalRequest(project, golden_id, aspect, extraction=reading, settings=quick)
    run_id = store.runs.add(project, golden_id, "repeval", "t", aspect, "minilm", pack(request).body)
    store.runs.claim(run_id, 1, "w")
    cluster_at(address, request.model)  # connects; the second node may not have joined yet
    wait_for_nodes(2)
    seen: dict[str, Any] = {"slots": cluster_at(address, request.model).slots, "kept_at_the_kill": 0, "messages": []}

    class Watching(Silent):
        def publish(self, snapshot: Any) -> None:
            seen["messages"].append(snapshot.message)

        def advance(self, done: int, of: int) -> None:
            busy = ray.available_resources().get("CPU", 0) == 0
            if not seen["kept_at_the_kill"] and 0 < done < len(golden.items) and busy:
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


def main() -> None:
    golden_file, folder = Path(sys.argv[1]), Path(sys.argv[2])
    raise_loopback()
    set_environment(folder)
    sockets = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # the path of a socket may have 107 characters
    try:
        start = (f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={sockets}", "--disable-usage-stats")
        start_node(folder, HEAD, "--head", *start)
        wait_for_port()
        second = start_node(folder, OTHER, f"--address={HEAD}:{PORT}")
        print(json.dumps(run_with_a_loss(golden_file, folder, second)))
    finally:
        shutil.rmtree(sockets, ignore_errors=True)


def wait_for_port() -> None:
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection((HEAD, int(PORT)), timeout=1).close()
            return
        except OSError:
            assert time.monotonic() < end, "no head after a minute"
            time.sleep(0.2)


main()
