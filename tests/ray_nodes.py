"""Two Ray nodes on a loopback that nobody else sees, for scripts that tests start.

A script is the first process of network, process and mount namespaces of its own (``unshare --net --pid --fork
--kill-child --mount-proc``): whatever is left ends with it.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import socket
import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

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
        "RAY_prestart_worker_first_driver": "0",  # what nobody asked for costs seconds of a processor
        "RAY_raylet_start_wait_time_s": "200",  # on a machine that others load, too
        "CUDA_VISIBLE_DEVICES": "",  # the nodes share one machine: neither is to find its GPU
    }


@contextmanager
def two_nodes(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A cluster: its address, and what kills its second node.  `folder` takes the token."""
    raise_loopback()
    set_environment(folder)
    sockets = os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="r", dir="/tmp")  # a socket's path is short
    import ray
    from ray.cluster_utils import Cluster

    about = {"num_cpus": 1, "num_gpus": 0, "object_store_memory": 80_000_000, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=about)
    second = cluster.add_node(wait=True, **about)
    try:
        yield cluster.address, lambda: cluster.remove_node(second, allow_graceful=False)
        ray.shutdown()  # what it says of the lost node comes before the script's last line
        cluster.shutdown()
    finally:
        shutil.rmtree(sockets, ignore_errors=True)


def holding(key: str) -> list[str]:
    """The files of the nodes and the store of the cluster, as far as they hold the key."""
    import ray
    from ray.experimental.internal_kv import _internal_kv_get, _internal_kv_list

    session = Path(ray._private.worker._global_node.get_session_dir_path())
    logs = {str(file): file.read_bytes() for file in session.rglob("*") if file.is_file()}
    kept = {str(name): _internal_kv_get(name) or b"" for name in _internal_kv_list(b"")}
    kept |= {"jobs": repr(ray._private.state.jobs()).encode()}
    assert logs
    assert kept["jobs"]
    return [name for name, data in (logs | kept).items() if key.encode() in data]
