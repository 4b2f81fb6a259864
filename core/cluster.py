"""Connect to a Ray cluster, and turn its errors into plain messages.

Ray is installed separately (`pip install "ray==2.60.0"`). This host must be a node of the cluster (``ray start``), and
all nodes need the same Python and packages. Concord sends its own code to the nodes, but no API keys. Every node reads
the keys from its own environment.
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
"""The Ray version tested with the other requirements."""

ANSWER_SECONDS = 5.0
"""Time for the head to accept a connection; Ray itself would try for many minutes."""

_connecting = threading.Lock()


def connected(address: str) -> Any:
    """Return the `ray` module, connected to the cluster at `address` ("auto" or HOST:PORT).

    Raises JobError if Ray isn't installed or the connection fails.
    """
    try:
        import ray
    except ImportError as error:
        raise JobError(
            f"CONCORD_RAY or --ray specifies a cluster ({address}), but Ray isn't installed on this machine. "
            f'Install it on every node (pip install "ray[data]=={RAY}"), or remove the setting to use only this host.'
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
    """Raise JobError if nothing accepts a connection at HOST:PORT."""
    if address == "auto":
        return
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise JobError(
            f"No Ray cluster responds at {address} ({error}). Check that the address is correct, that the head node is "
            f"running there (ray start --head --node-ip-address=HEAD --port={port}), and that this host can reach it."
        ) from error


@contextmanager
def ray_output_to_stderr() -> Iterator[None]:
    """Redirect standard output to standard error; on exit, disconnect from Ray and restore standard output."""
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
    """Convert errors of Ray to a JobError with a plain message."""
    import ray

    try:
        yield
    except (ray.exceptions.RayError, ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
        raise JobError(
            f"The Ray cluster at {address} failed: {_message(error)}. Check `ray status`: every node needs the same "
            f"Python version, ray=={RAY}, enough memory, and connections to all other nodes. This host must also be a "
            "node. If the cluster uses a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH on this host too. "
            "Finished work is saved, so you can resume the run."
        ) from error


def _message(error: Exception) -> str:
    """Return the message of a Ray error in one line, without its traceback."""
    error = getattr(error, "cause", None) or error  # the error of a task follows its traceback
    lines = [line.strip() for line in str(error).strip().split("\n")]
    message = " ".join(lines) if lines[0].startswith("Version mismatch") else lines[0]
    return message[:300].rstrip(".") or type(error).__name__
