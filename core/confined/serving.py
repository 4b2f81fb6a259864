"""The process that decodes: it imports the jobs once, and forks for each file, so that a file costs milliseconds."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from core.errors import ConcordError


@dataclass(frozen=True, slots=True)
class Job:
    """`run`: the opened file and the options → values that JSON can hold, one after the other.

    `prepare` imports what it needs: once, before any file is looked at.
    """

    run: Callable[[IO[bytes], Mapping[str, Any]], Iterable[Any]]
    prepare: Callable[[], None] | None = None


VALUE, COST, REFUSED, SPENT, END = b"V", b"C", b"R", b"S", b"."
"""How a line begins: a value, what it all cost, why the file is refused, what allowance is spent, the end."""

_MOST = 65_536
_FLUSHED = 1 << 18


class _OutOfTimeError(BaseException):
    """The CPU time is spent."""


def serve(jobs: Mapping[str, Job], place: int) -> None:
    """Answer requests on the socket with the file descriptor `place` until the other end is closed."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks
    with socket.socket(fileno=place) as line:
        while True:
            text, descriptors, _, _ = socket.recv_fds(line, _MOST, 2)
            if not text:
                return
            request = json.loads(text)
            job = jobs[request["job"]]
            if job.prepare is not None:
                job.prepare()
            if os.fork() == 0:
                try:
                    line.close()
                    _work(job, request, *descriptors)
                finally:
                    os._exit(0)
            for descriptor in descriptors:
                os.close(descriptor)
            line.sendall(END)


def _work(job: Job, request: Mapping[str, Any], source: int, answer: int) -> None:
    _limit(request["memory"], request["seconds"], request["wall"])
    with open(answer, "wb", buffering=_FLUSHED) as out, open(source, "rb") as file:
        try:
            for value in job.run(file, request["options"]):
                out.write(VALUE + json.dumps(value, separators=(",", ":")).encode() + b"\n")
            last = END
        except ConcordError as error:
            places = {name: getattr(error, name, None) for name in ("row", "column")}
            message = getattr(error, "message", "") or str(error)
            last = REFUSED + json.dumps({"message": message, **places}).encode()
        except MemoryError:
            last = SPENT + b"memory"
        except _OutOfTimeError:
            last = SPENT + b"time"
        used = resource.getrusage(resource.RUSAGE_SELF)
        cost = json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss // 1024]).encode()
        out.write(COST + cost + b"\n" + last + b"\n")


def _limit(memory: int, seconds: int, wall: int) -> None:
    """`memory` in bytes beyond what the process has already; 0 for `wall` is no limit."""
    _cap(resource.RLIMIT_CORE, 0, 0)
    _cap(resource.RLIMIT_FSIZE, 0, 0)
    _cap(resource.RLIMIT_AS, memory + _size(), memory + _size())
    signal.signal(signal.SIGXCPU, _out_of_time)
    _cap(resource.RLIMIT_CPU, seconds, seconds + 2)
    signal.alarm(wall)  # ends the process


def _cap(what: int, soft: int, hard: int) -> None:
    try:
        resource.setrlimit(what, (soft, hard))
    except (ValueError, OSError):  # a system that does not know the limit; the others still hold
        return


def _size() -> int:
    """Bytes of address space in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            return int(file.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


def _out_of_time(*_: object) -> None:
    raise _OutOfTimeError
