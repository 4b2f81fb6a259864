"""Connect to a Ray cluster, and translate its errors into plain words.

Ray is installed apart (`pip install "ray==2.60.0"`) and imported when a cluster is named.  The host that asks must be a
node of the cluster (``ray start``); nodes need the same Python and requirements, Concord's own code is sent along.  A
key is not: every node has its own in the environment that it was started with.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from core.errors import JobError

RAY = "2.60.0"
"""The version that was tested with the other requirements."""

ANSWER_SECONDS = 5.0
"""Within which the head must take a connection; Ray itself would try for many minutes."""

REACH = "All hosts of a cluster must be able to open connections to one another, on any port."

_connecting = threading.Lock()


def connected(address: str) -> Any:
    """Return the ray module, connected once a process to the cluster at `address` ("auto" or HOST:PORT).

    JobError says why it cannot be.
    """
    try:
        import ray
    except ImportError as error:
        raise JobError(
            f"CONCORD_RAY or --ray names a cluster ({address}), but ray is not installed here. Install it on every "
            f'node (pip install "ray[data]=={RAY}"), or name none to compute on this machine alone.'
        ) from error
    with _connecting:
        if not ray.is_initialized():
            _find_head(address)
            code = str(Path(__file__).resolve().parent)  # the package core itself
            logging.getLogger("ray").setLevel(logging.ERROR)
            with plain_errors(address):
                ray.init(
                    address=address, log_to_driver=False, configure_logging=False, runtime_env={"py_modules": [code]}
                )
                from ray.data import DataContext

                DataContext.get_current().enable_progress_bars = False
    return ray


def _find_head(address: str) -> None:
    """JobError where nothing takes a connection at HOST:PORT."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise JobError(
            f"No Ray cluster answers at {address} ({error}). Check that its head runs there (ray start --head "
            f"--node-ip-address=HEAD --port={port}), that this host can reach it, and that the address is right."
        ) from error


@contextmanager
def output_kept_clean() -> Iterator[None]:
    """Let what Ray writes to standard output go to standard error, and end the connection with the block."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        if (ray := sys.modules.get("ray")) is not None:
            ray.shutdown()
        os.dup2(kept, 1)
        os.close(kept)


@contextmanager
def plain_errors(address: str) -> Iterator[None]:
    """Raise Ray's errors in plain words; its own, with the reason, goes to the log as the cause."""
    import ray

    try:
        yield
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        if type(error).__name__ == "AuthenticationError":
            raise JobError(
                f"The Ray cluster at {address} accepts this host only with the cluster's token "
                f"({words_of(error).partition('. ')[0]}). Set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH here as on "
                "its nodes, to the same token."
            ) from error
        raise JobError(f"The Ray cluster at {address} failed: {words_of(error)}. {_way_out(error, address)}") from error


def words_of(error: Exception) -> str:
    """Return the message of a Ray error in one line, without its traceback."""
    error = getattr(error, "cause", None) or error  # what a task raised stands behind its traceback
    lines = [line.strip() for line in str(error).strip().split("\n")]
    if lines[0].startswith("Version mismatch"):
        return " ".join(lines)[:300].rstrip(".")
    return lines[0][:300].rstrip(".") or type(error).__name__


def _way_out(error: Exception, address: str) -> str:
    if str(error).startswith("Version mismatch"):
        return f"Install the same Python and ray=={RAY} on every node, and start them anew."
    if type(error).__name__ == "GetTimeoutError":
        return f"Its nodes may be busy (`ray status` shows it), or hang. {REACH}"
    if type(error).__name__ in ("ActorDiedError", "WorkerCrashedError", "NodeDiedError", "OutOfMemoryError"):
        return (
            "Its nodes or processes stop before they finish anything: check their memory (ray start --num-cpus gives "
            "fewer processes more of it) and their logs. Finished work is saved; run it again."
        )
    return (
        f"This host must be a node of it (ray start --address={'HOST:PORT' if address == 'auto' else address}), and "
        "RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH must be set here as there, to the same token. Finished work is "
        "saved, so the run can be resumed."
    )
