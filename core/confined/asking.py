"""Asking the decoding process: a file goes in, values come out, and whatever happens there is an error in words."""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from core.confined.serving import COST, END, REFUSED, SPENT, VALUE

_ROOT = Path(__file__).resolve().parents[2]
_MB = 1 << 20
_MEMORY, _SECONDS = 900 * _MB, 8
_MEMORY_TIMES, _SECONDS_EACH_MB = 16, 4
_LONGEST = 256 * _MB
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""All that the decoding process has of the environment: no key, no address of a store, no folder."""


class RefusedError(Exception):
    """The file was refused; `message` is for people, `row` (from 1) and `column` say where."""

    def __init__(self, message: str, row: int | None = None, column: str | None = None) -> None:
        super().__init__(message)
        self.message, self.row, self.column = message, row, column


@dataclass(frozen=True, slots=True)
class Allowance:
    """What decoding one file may cost: bytes of memory, seconds of CPU, seconds by the clock (0: any number)."""

    memory: int
    seconds: int
    wall: int

    @classmethod
    def of(cls, size: int, *, streaming: bool = False) -> Allowance:
        """The allowance of a file of `size` bytes; `streaming`: its reader may take as long as it likes."""
        seconds = _SECONDS + _SECONDS_EACH_MB * (size // _MB)
        return cls(max(_MEMORY, _MEMORY_TIMES * size), seconds, 0 if streaming else 60 + 10 * seconds)


class Reader:
    """Asks for the jobs of `module`, which holds them as `JOBS`.  The process starts when it is first asked.

    `folder` is where the module lies.  `cost`: seconds of CPU and MB of memory that the last file took which was read
    to its end or refused.
    """

    def __init__(self, module: str, folder: Path = _ROOT) -> None:
        self._module, self._folder = module, folder
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self.cost: tuple[float, ...] = ()

    def ask(
        self, job: str, file: bytes | Path, options: Mapping[str, Any], allowance: Allowance, *, most: int = 0
    ) -> Generator[Any, None, None]:
        """The values that `job` makes of `file`; `most` bounds their bytes (0: no bound).

        RefusedError for a file that the job refuses, or that needs more than it is allowed; OSError for a path that
        cannot be opened.
        """
        request = {"job": job, "options": dict(options), "memory": allowance.memory}
        request |= {"seconds": allowance.seconds, "wall": allowance.wall}
        with _opened(file) as source, self._sent(json.dumps(request).encode(), source) as answer:
            size = 0
            while True:
                line = answer.readline(_LONGEST)
                size += len(line)
                if most and size > most:
                    raise RefusedError(f"Unpacked, the file is larger than {most // _MB} MB.")
                kind, rest = line[:1], line[1:]
                if kind == VALUE and line.endswith(b"\n"):
                    yield json.loads(rest)
                elif kind == COST:
                    self.cost = tuple(json.loads(rest))
                elif kind == END:
                    return
                else:
                    raise _refusal(kind, rest, allowance)

    def close(self) -> None:
        """End the process; the next question starts another."""
        with self._lock:
            self._close()

    def _sent(self, request: bytes, source: IO[bytes]) -> IO[bytes]:
        """Where the answer to `request` comes; a process that died in the meantime is replaced once."""
        for attempt in (1, 2):
            here, there = os.pipe()
            try:
                with self._lock:
                    line = self._started()
                    socket.send_fds(line, [request], [source.fileno(), there])
                    if line.recv(1) == END:
                        return os.fdopen(here, "rb", buffering=1 << 18)
                    raise ConnectionError("the process ended")
            except OSError:
                os.close(here)
                with self._lock:
                    self._close()
                if attempt == 2:
                    raise RefusedError("The process that reads files cannot be started on this machine.") from None
            finally:
                os.close(there)
        raise AssertionError("unreachable")

    def _started(self) -> socket.socket:
        if self._line is not None and self._owner == os.getpid():
            return self._line
        ours, theirs = socket.socketpair()
        code = (
            f"import sys; sys.path[:0] = {[str(_ROOT), str(self._folder)]!r}; from {self._module} import JOBS; "
            f"from core.confined.serving import serve; serve(JOBS, {theirs.fileno()})"
        )
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", code],
                env=_ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._line, self._owner = ours, os.getpid()
        atexit.register(self.close)
        return ours

    def _close(self) -> None:
        if self._line is None or self._owner != os.getpid():
            self._line = self._process = None
            return
        self._line.close()
        self._line = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=5)
            self._process = None
        atexit.unregister(self.close)


def _opened(file: bytes | Path) -> IO[bytes]:
    if isinstance(file, Path):
        return file.open("rb")
    kept: Any = tempfile.TemporaryFile()  # noqa: SIM115 - closed by who asked
    kept.write(file)
    kept.flush()
    kept.seek(0)
    return kept  # type: ignore[no-any-return]


def _refusal(kind: bytes, rest: bytes, allowance: Allowance) -> RefusedError:
    if kind == REFUSED:
        said = json.loads(rest)
        return RefusedError(str(said["message"]), said["row"], said["column"])
    limits = f"{allowance.memory // _MB} MB of memory and {allowance.seconds} s of computing"
    if kind == SPENT:
        spent = "memory" if rest.strip() == b"memory" else "time"
        return RefusedError(f"Reading it takes more {spent} than a file of its size may: {limits}. Split the file.")
    return RefusedError(f"It cannot be read within {limits}, or its data are broken. Save the file anew, or split it.")
