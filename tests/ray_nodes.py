"""Two Ray nodes on a loopback that nobody else sees, for scripts that tests start.

A script is the first process of network, process and mount namespaces of its own (``unshare --net --pid --fork
--kill-child --mount-proc``): whatever is left ends with it.
"""

from __future__ import annotations

import fcntl
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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HEAD, OTHER, PORT = "127.0.0.1", "127.0.0.2", "6379"
START_SECONDS = 200.0  # on a machine that others load, too
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
        "PYTHONUNBUFFERED": "1",  # the log of a node says at once that it has started
        "RAY_USAGE_STATS_ENABLED": "0",
        "OMP_NUM_THREADS": "1",  # as many as a task of one processor gets
        "RAY_health_check_period_ms": "1000",  # a lost node is noticed after seconds, not a quarter of a minute
        "RAY_health_check_timeout_ms": "2000",
        "RAY_health_check_failure_threshold": "3",
        "RAY_prestart_worker_first_driver": "0",  # what nobody asked for costs seconds of a processor
        "RAY_raylet_start_wait_time_s": f"{START_SECONDS:.0f}",
        "CUDA_VISIBLE_DEVICES": "",  # the nodes share one machine: neither is to find its GPU
    }


def start_node(folder: Path, address: str, *arguments: str, path: str = "") -> subprocess.Popen[bytes]:
    about = (f"--node-ip-address={address}", "--num-cpus=1", "--num-gpus=0", "--object-store-memory=80000000")
    ray = Path(sys.executable).with_name("ray")
    with (folder / f"{address}.log").open("wb") as log:
        return subprocess.Popen(
            [str(ray), "start", *arguments, *about, "--block"],
            env=os.environ | ({"PYTHONPATH": path} if path else {}),
            stdout=log,
            stderr=log,
        )


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
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


def wait_for_nodes(n: int) -> None:
    import ray

    end = time.monotonic() + START_SECONDS
    while sum(node["Alive"] for node in ray.nodes()) != n:
        assert time.monotonic() < end, f"not {n} nodes after {START_SECONDS:.0f} s"
        time.sleep(0.1)


def wait_until_started(folder: Path, address: str) -> None:
    log, end = folder / f"{address}.log", time.monotonic() + START_SECONDS
    while "Ray runtime started" not in log.read_text(errors="replace"):
        assert time.monotonic() < end, log.read_text(errors="replace")[-2000:]
        time.sleep(0.2)


@contextmanager
def two_nodes(folder: Path, second_path: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A cluster at HEAD:PORT; what comes is the second node, `second_path` the PYTHONPATH that it is started with.

    `folder` takes the nodes' logs and the token.
    """
    raise_loopback()
    set_environment(folder)
    sockets = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # the path of a socket may have 107 characters
    try:
        start = (f"--port={PORT}", "--include-dashboard=false", f"--temp-dir={sockets}", "--disable-usage-stats")
        first = start_node(folder, HEAD, "--head", *start)
        wait_until_started(folder, HEAD)
        second = start_node(folder, OTHER, f"--address={HEAD}:{PORT}", path=second_path)
        wait_until_started(folder, OTHER)
        yield second
        for node in (second, first):
            kill_with_children(node.pid)
    finally:
        shutil.rmtree(sockets, ignore_errors=True)


def holding(key: str) -> list[str]:
    """The files of the nodes and the store of the cluster, as far as they hold the key."""
    import ray
    from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list

    ours = not ray.is_initialized()
    if ours:
        ray.init(address=f"{HEAD}:{PORT}", log_to_driver=False, configure_logging=False)
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    logs = {str(file): file.read_bytes() for file in session.rglob("*") if file.is_file()}
    kept = {str(name): _internal_kv_get(name) or b"" for name in _internal_kv_list(b"")}
    kept |= {"jobs": repr(ray._private.state.jobs()).encode()}
    if ours:
        ray.shutdown()
    assert logs
    assert kept["jobs"]
    return [name for name, data in (logs | kept).items() if key.encode() in data]
