"""Processes of `python -m core …` that need no seconds for their imports: forks of one that has imported everything.

What is started is a process of its own, to be stopped, killed and waited for as any other.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Forks:
    """Starts processes; those that are left end with it."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__))]
        pipe = subprocess.PIPE
        self._parent = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)

    def start(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> Fork:
        """`python -m core` with these arguments, which writes on at the end of `log`."""
        order = {"start": arguments, "environment": dict(environment), "log": str(log)}
        return Fork(self, int(self.ask(order)))

    def ask(self, order: dict[str, Any]) -> Any:
        assert self._parent.stdin is not None and self._parent.stdout is not None
        self._parent.stdin.write(json.dumps(order) + "\n")
        self._parent.stdin.flush()
        return json.loads(self._parent.stdout.readline())

    def close(self) -> None:
        self._parent.communicate(timeout=60)


class Fork:
    """A process: the part of `subprocess.Popen` that tests need."""

    def __init__(self, forks: Forks, pid: int) -> None:
        self._forks, self.pid = forks, pid
        self._code: int | None = None

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def poll(self) -> int | None:
        """Its exit code (minus the signal that ended it), None while it lives."""
        return self._ended("poll")

    def wait(self) -> int | None:
        return self._ended("wait")

    def _ended(self, how: str) -> int | None:
        if self._code is None:
            self._code = self._forks.ask({how: self.pid})
        return self._code


def become(arguments: list[str], environment: dict[str, str], log: str) -> None:
    """What a started process does in the child; does not return."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(environment)
        nothing, file = os.open(os.devnull, os.O_RDONLY), os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        for own, stream in ((nothing, 0), (file, 1), (file, 2)):
            os.dup2(own, stream)
        from core.__main__ import main

        code = main(arguments)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def import_everything() -> None:
    """All that a worker imports at its start or with its first run."""
    import openai
    import sklearn.linear_model
    import torch
    import transformers

    import core.jobs.worker
    import core.projects.kinds

    assert all((openai.DefaultAioHttpClient, sklearn.linear_model, torch, core.jobs.worker, core.projects.kinds))
    assert all((transformers.AutoModel, transformers.AutoTokenizer))


def take_orders() -> None:
    import_everything()
    children: set[int] = set()
    while line := sys.stdin.readline():
        order = json.loads(line)
        answer: int | None
        if "start" in order:
            answer = os.fork()
            if not answer:
                become(order["start"], order["environment"], order["log"])
            children.add(answer)
        else:
            pid, flags = (order["poll"], os.WNOHANG) if "poll" in order else (order["wait"], 0)
            ended, status = os.waitpid(pid, flags)
            answer = os.waitstatus_to_exitcode(status) if ended else None
            children -= {ended}
        print(json.dumps(answer), flush=True)
    for pid in children:
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    take_orders()
