"""Processes of `python -m …` that need no seconds for their imports: forks of one that has imported everything.

What is started is a process of its own, to be stopped, killed and waited for as any other.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WORKER = (
    "core.jobs.worker",
    "core.projects.start_and_resume",
    "aiohttp",
    "sklearn.linear_model",
    "torch",
    "transformers",
)
"""All that a worker imports at its start or with its first run."""
WEB = "streamlit.web.cli", "streamlit.web.bootstrap", "core.projects", "core.report", "pyarrow"
"""What the web process imports but the screens themselves, which want Streamlit's runtime to be there."""
LATE = {"transformers": ("AutoModel", "AutoTokenizer")}
"""What these import only when it is asked for."""


class Forks:
    """Starts processes; those that are left end with it."""

    def __init__(self, imports: tuple[str, ...]) -> None:
        command = [sys.executable, str(Path(__file__)), *imports]
        self._parent = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def start(self, module: str, arguments: list[str], environment: Mapping[str, str], log: Path) -> Fork:
        """`python -m module` with these arguments, which writes on at the end of `log`."""
        started = {"module": module, "arguments": arguments, "environment": dict(environment), "log": str(log)}
        return Fork(self, self.ask({"start": started}))

    def ask(self, order: dict[str, Any]) -> Any:
        assert self._parent.stdin is not None and self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(order) + "\n")
        return json.loads(self._parent.stdout.readline())

    def close(self) -> None:
        self._parent.communicate(timeout=60)


class Fork:
    """A process: the part of `subprocess.Popen` that tests need."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self._forks, self.pid = forks, pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Its exit code (minus the signal that ended it), None while it lives."""
        if self._code is None:
            self._code = self._forks.ask({"poll": self.pid})
        return self._code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float = 60.0) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            assert time.monotonic() < end, f"process {self.pid} did not end"
            time.sleep(0.02)
        return code


def become(module: str, arguments: list[str], environment: dict[str, str], log: str) -> None:
    """What a started process does in the child; does not return."""
    code: object = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        nothing, file = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for own, stream in ((nothing, 0), (file, 1), (file, 2)):
            os.dup2(own, stream)
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def take_orders() -> None:
    children: set[int] = set()
    while line := sys.stdin.readline():
        order = json.loads(line)
        answer: int | None
        if "start" in order:
            answer = os.fork()
            if not answer:
                become(**order["start"])
            children.add(answer)
        else:
            ended, status = os.waitpid(order["poll"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
            children -= {ended}
        print(json.dumps(answer), flush=True)
    for pid in children:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    for name in sys.argv[1:]:
        imported = importlib.import_module(name)
        assert all(getattr(imported, late) for late in LATE.get(name, ()))
    take_orders()
