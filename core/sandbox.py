"""Files of unknown origin are decoded in a process of their own, with little memory, little time and no secrets.

::

    Reader ── starts once, asks often ──> serve (clean environment, no keys) ── forks for each file ──>
    the job, under limits of memory, CPU and wall-clock time ── lines of JSON ──> the values that `Reader.ask` yields

A decoder that is led astray can only waste what it was allowed, and what it writes is read as JSON, which runs nothing.
The process imports the jobs once and forks for each file, so that a file costs milliseconds.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from core.errors import ConcordError

_ROOT = Path(__file__).resolve().parents[1]
_MB = 1 << 20
_MEMORY, _SECONDS = 900 * _MB, 8
_MEMORY_TIMES, _SECONDS_EACH_MB = 16, 4
_LONGEST = 256 * _MB
_VALUE, _REFUSED, _SPENT, _END = b"V", b"R", b"S", b"."
"""How a line begins: a value, why the file is refused, what allowance is spent, the end."""

_MOST = 65_536
_FLUSHED = 1 << 18
_ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
"""All that the decoding process has of the environment: no key, no address of a store, no folder."""


Job = Callable[[IO[bytes], Mapping[str, Any]], Iterable[Any]]
"""The opened file and the options → values that JSON can hold, one after the other."""


class RefusedError(Exception):
    """The file was refused; `message` is for people, `row` (from 1) and `column` say where."""

    def __init__(self, message: str, row: int | None = None, column: str | None = None) -> None:
        super().__init__(message)
        self.message, self.row, self.column = message, row, column


def allowance(size: int, *, streaming: bool = False) -> dict[str, int]:
    """What decoding a file of `size` bytes may cost: bytes of `memory`, `seconds` of CPU, `wall` seconds (0: any).

    `streaming`: its reader may take as long as it likes.
    """
    seconds = _SECONDS + _SECONDS_EACH_MB * (size // _MB)
    wall = 0 if streaming else 60 + 10 * seconds
    return {"memory": max(_MEMORY, _MEMORY_TIMES * size), "seconds": seconds, "wall": wall}


class Reader:
    """Asks for the jobs of `module`, which holds them as `JOBS`, and as `PREPARED` what imports all that a job takes.

    The process starts when it is first asked, and imports once.  `folder` is where the module lies.
    """

    def __init__(self, module: str, folder: Path = _ROOT) -> None:
        self._module, self._folder = module, folder
        self._lock = threading.Lock()
        self._line: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def ask(
        self, job: str, file: bytes | Path, options: Mapping[str, Any], allowed: Mapping[str, int], *, most: int = 0
    ) -> Generator[Any, None, None]:
        """The values that `job` makes of `file` (`allowance`); `most` bounds their bytes (0: no bound).

        RefusedError for a file that the job refuses, or that needs more than it is allowed; OSError for a path that
        cannot be opened.
        """
        request = {"job": job, "options": dict(options), **allowed}
        with _opened(file) as source, self._sent(json.dumps(request).encode(), source) as answer:
            size = 0
            while True:
                line = answer.readline(_LONGEST)
                size += len(line)
                if most and size > most:
                    raise RefusedError(f"Unpacked, the file is larger than {most // _MB} MB.")
                kind, rest = line[:1], line[1:]
                if kind == _VALUE and line.endswith(b"\n"):
                    yield json.loads(rest)
                elif kind == _END:
                    return
                else:
                    raise _refusal(kind, rest, allowed)

    def close(self) -> None:
        """End the process; the next question starts another."""
        with self._lock:
            self._close()

    def _sent(self, request: bytes, source: IO[bytes]) -> IO[bytes]:
        """Where the answer to `request` comes; a process that died in the meantime is replaced once."""
        with suppress(OSError):
            return self._asked(request, source)
        try:
            return self._asked(request, source)
        except OSError:
            raise RefusedError("The process that reads files cannot be started on this machine.") from None

    def _asked(self, request: bytes, source: IO[bytes]) -> IO[bytes]:
        here, there = os.pipe()
        with self._lock:
            try:
                line = self._started()
                socket.send_fds(line, [request], [source.fileno(), there])
                if line.recv(1) != _END:
                    raise ConnectionError("the process ended")
            except OSError:
                os.close(here)
                self._close()
                raise
            finally:
                os.close(there)
        return os.fdopen(here, "rb", buffering=1 << 18)

    def _started(self) -> socket.socket:
        if self._line is not None and self._owner == os.getpid():
            return self._line
        ours, theirs = socket.socketpair()
        code = (
            f"import sys; sys.path[:0] = {[str(_ROOT), str(self._folder)]!r}; import {self._module} as module; "
            f"from core.sandbox import serve; serve(module.JOBS, module.PREPARED, {theirs.fileno()})"
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
    spooled: Any = tempfile.TemporaryFile()  # noqa: SIM115 - closed by who asked
    spooled.write(file)
    spooled.flush()
    spooled.seek(0)
    return spooled  # type: ignore[no-any-return]


def _refusal(kind: bytes, rest: bytes, allowed: Mapping[str, int]) -> RefusedError:
    if kind == _REFUSED:
        refusal = json.loads(rest)
        return RefusedError(str(refusal["message"]), refusal["row"], refusal["column"])
    limits = f"{allowed['memory'] // _MB} MB of memory and {allowed['seconds']} s of computing"
    if kind == _SPENT:
        spent = "memory" if rest.strip() == b"memory" else "time"
        return RefusedError(
            f"Reading it takes more {spent} than a file of its size is allowed: {limits}. Split the file."
        )
    return RefusedError(f"It cannot be read within {limits}, or its data are broken. Save the file anew, or split it.")


# ── in the process that decodes ────────────────────────────────────────────────────────────────────────────────


class _OutOfTimeError(BaseException):
    """The CPU time is spent."""


def serve(jobs: Mapping[str, Job], prepared: Mapping[str, Callable[[], None]], place: int) -> None:
    """Answer requests on the socket with the file descriptor `place` until the other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(fileno=place) as line:
        while True:
            text, descriptors, _, _ = socket.recv_fds(line, _MOST, 2)
            if not text:
                return
            request = json.loads(text)
            if prepare := prepared.get(request["job"]):
                prepare()
            if os.fork() == 0:
                try:
                    line.close()
                    _work(jobs[request["job"]], request, *descriptors)
                finally:
                    os._exit(0)
            for descriptor in descriptors:
                os.close(descriptor)
            line.sendall(_END)


def _work(job: Job, request: Mapping[str, Any], source: int, answer: int) -> None:
    _limit(request["memory"], request["seconds"], request["wall"])
    with open(answer, "wb", buffering=_FLUSHED) as out, open(source, "rb") as file:
        try:
            for value in job(file, request["options"]):
                out.write(_VALUE + json.dumps(value, separators=(",", ":")).encode() + b"\n")
            last = _END
        except ConcordError as error:
            places = {name: getattr(error, name, None) for name in ("row", "column")}
            message = getattr(error, "message", "") or str(error)
            last = _REFUSED + json.dumps({"message": message, **places}).encode()
        except MemoryError:
            last = _SPENT + b"memory"
        except _OutOfTimeError:
            last = _SPENT + b"time"
        out.write(last + b"\n")


def _limit(memory: int, seconds: int, wall: int) -> None:
    """`memory` in bytes beyond what the process has already; 0 for `wall` is no limit."""
    signal.signal(signal.SIGXCPU, _out_of_time)
    memory += _size()
    for what, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_AS, memory, memory),
        (resource.RLIMIT_CPU, seconds, seconds + 2),
    ):
        with suppress(ValueError, OSError):  # a system that does not know the limit; the others still hold
            resource.setrlimit(what, (soft, hard))
    signal.alarm(wall)  # ends the process


def _size() -> int:
    """Bytes of address space in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def _out_of_time(*_: object) -> None:
    raise _OutOfTimeError
